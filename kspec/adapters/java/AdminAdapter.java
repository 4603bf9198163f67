import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterPartitionReassignmentsOptions;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.PartitionReassignment;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.protocol.Errors;

/**
 * Drives Kafka's own Admin, producer and consumer by the protocol of docs/reference/adapters.md: one JSON object per line in, one
 * answer per line out.
 *
 * <p>One source serves every release: the replication-factor guard was added in 4.1, so it is looked
 * up by reflection when requested.
 */
public final class AdminAdapter {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final List<String> CAPABILITIES = List.of(
        "alter_reassignments", "create_topics", "describe_cluster", "describe_topics",
        "elect_leaders", "list_reassignments", "list_topics");

    private static final Comparator<String> ORDER = Comparator.nullsFirst(Comparator.naturalOrder());

    private Admin admin;
    private DataClients data;
    private int timeoutMs;

    public static void main(String[] args) throws IOException {
        AdminAdapter adapter = new AdminAdapter();
        Map<String, Object> options = options("timeout_ms");
        options.putAll(DataClients.options());
        List<String> capabilities =
            Stream.of(CAPABILITIES, AdminCalls.CAPABILITIES, DataClients.capabilities())
                .flatMap(List::stream).toList();
        String version = AdapterLines.version("kafka/kafka-version.properties");
        AdapterLines.serve(
            "kafka-clients", version, capabilities, List.of("headers"), options, adapter::perform);
        adapter.close();
    }

    /** Options that differ from the client's defaults. */
    static Map<String, Object> options(Object timeoutMs) {
        Map<String, Object> options = new LinkedHashMap<>();
        options.put("request.timeout.ms", timeoutMs);
        options.put("default.api.timeout.ms", timeoutMs);
        options.put("retry.backoff.ms", 50);
        options.put("socket.connection.setup.timeout.ms", timeoutMs);
        return options;
    }

    private Returned connect(JsonNode call) throws Raised {
        timeoutMs = call.get("timeout_ms").asInt();
        Properties config = config(call);
        data = new DataClients(config, call);
        admin = asked(() -> Admin.create(config));
        return Returned.NOTHING;
    }

    /** The addresses, the time-outs and the security of a {@code connect}. */
    static Properties config(JsonNode call) {
        Properties config = new Properties();
        config.put("bootstrap.servers", call.get("bootstrap").asText());
        config.put("client.id", call.get("client_id").asText());
        config.putAll(options(call.get("timeout_ms").asInt()));
        JsonNode tls = call.get("tls");
        JsonNode sasl = call.get("sasl");
        config.put("security.protocol",
            (sasl == null ? "" : "SASL_") + (tls == null ? "PLAINTEXT" : "SSL"));
        if (tls != null) {
            config.put("ssl.truststore.type", "PEM");
            config.put("ssl.truststore.location", tls.get("ca").asText());
            if (tls.has("certificate")) {
                config.put("ssl.keystore.type", "PEM");
                config.put("ssl.keystore.certificate.chain", text(tls.get("certificate")));
                config.put("ssl.keystore.key", text(tls.get("key")));
            }
        }
        if (sasl != null) {
            String mechanism = sasl.get("mechanism").asText();
            String module = mechanism.startsWith("SCRAM")
                ? "org.apache.kafka.common.security.scram.ScramLoginModule"
                : "org.apache.kafka.common.security.plain.PlainLoginModule";
            config.put("sasl.mechanism", mechanism);
            if (sasl.has("tokens")) {
                config.put("sasl.jaas.config", GivenTokens.jaasConfig(sasl.get("tokens")));
                config.put("sasl.login.callback.handler.class", GivenTokens.class.getName());
                return config;
            }
            config.put("sasl.jaas.config", String.format(
                "%s required username=\"%s\" password=\"%s\";", module,
                sasl.get("username").asText(), sasl.get("password").asText()));
        }
        return config;
    }

    private static String text(JsonNode path) {
        try {
            return Files.readString(Path.of(path.asText()));
        } catch (IOException unreadable) {
            throw new UncheckedIOException(unreadable);
        }
    }

    private Returned close() {
        if (data != null) {
            data.close();
            data = null;
        }
        if (admin != null) {
            admin.close(Duration.ofSeconds(1));
            admin = null;
        }
        return Returned.NOTHING;
    }

    /** What the client returned, and the equivalent result of the adapter protocol. */
    record Returned(Object raw, JsonNode result) {
        static final Returned NOTHING = new Returned(null, JSON.nullNode());
    }

    /** The client threw {@code getCause()}. */
    static final class Raised extends Exception {
        /** The records that the client had returned before, if any. */
        final JsonNode records;

        Raised(Throwable cause) {
            this(cause, null);
        }

        Raised(Throwable cause, JsonNode records) {
            super(cause);
            this.records = records;
        }
    }

    /**
     * Calls the client and nothing else. An exception thrown there is the client's answer, any other
     * is an error of the adapter. A future's exception is the cause of what {@code get} throws.
     */
    static <T> T asked(Callable<T> work) throws Raised {
        try {
            return work.call();
        } catch (ExecutionException failed) {
            throw new Raised(failed.getCause());
        } catch (VirtualMachineError fatal) {
            throw fatal;
        } catch (Throwable failed) { // a library that the client uses may throw an Error of its own
            throw new Raised(failed);
        }
    }

    /** The client has no public call for this operation. */
    static final class Unsupported extends Exception {
        Unsupported(String message) {
            super(message);
        }
    }

    /**
     * An error: its class, its message and its cause. The exceptions of kafka-clients have no
     * number: the code is the one that its own {@code Errors.forException} gives for the class.
     */
    static ObjectNode failure(ObjectNode answer, Throwable error) {
        Errors known = Errors.forException(error);
        answer.put("error", error.getClass().getSimpleName());
        if (known != Errors.UNKNOWN_SERVER_ERROR
                || error instanceof org.apache.kafka.common.errors.UnknownServerException) {
            answer.put("code", known.code());
        }
        answer.put("message", String.valueOf(error.getMessage()));
        StackTraceElement[] stack = error.getStackTrace();
        if (stack.length > 0) {
            answer.put("at", stack[0].getClassName() + " " + stack[0].getMethodName());
        }
        if (error.getCause() != null && error.getCause() != error) {
            failure(answer.putObject("cause"), error.getCause());
        }
        return answer;
    }

    /** Null, or the error of one partition or topic. */
    private static JsonNode outcome(KafkaFuture<?> future) {
        try {
            asked(future::get);
            return JSON.nullNode();
        } catch (Raised raised) {
            return failure(JSON.createObjectNode(), raised.getCause());
        }
    }

    private Returned perform(JsonNode call) throws Raised, Unsupported {
        switch (call.get("op").asText()) {
            case "connect":
                return connect(call);
            case "close":
                return close();
            case "describe_cluster":
                return describeCluster();
            case "describe_topics":
                return describeTopics(call);
            case "list_topics":
                Set<String> names = asked(() -> admin.listTopics().names().get());
                return new Returned(names, JSON.valueToTree(names.stream().sorted(ORDER).toList()));
            case "create_topics":
                return createTopics(call);
            case "alter_reassignments":
                return alterReassignments(call);
            case "list_reassignments":
                return listReassignments(call);
            case "elect_leaders":
                return electLeaders(call);
            case "together":
                return AdapterLines.together(call.get("calls"), this::perform);
            default:
                if (AdminCalls.CAPABILITIES.contains(call.get("op").asText())) {
                    return new AdminCalls(admin).perform(call);
                }
                if (data == null) {
                    throw new Unsupported("no public call for " + call.get("op"));
                }
                return data.perform(call);
        }
    }

    private Returned describeCluster() throws Raised {
        DescribeClusterResult cluster = asked(() -> admin.describeCluster());
        Collection<Node> nodes = asked(() -> cluster.nodes().get());
        Node controller = asked(() -> cluster.controller().get());
        ObjectNode result = JSON.createObjectNode();
        result.set("brokers", JSON.valueToTree(nodes.stream().map(Node::id).sorted().toList()));
        result.put("controller", controller == null ? -1 : controller.id());
        return new Returned(nodes + ", controller " + controller, result);
    }

    private Returned describeTopics(JsonNode call) throws Raised {
        List<String> names = new ArrayList<>();
        array(call, "topics").forEach(name -> names.add(name.asText()));
        var topics = asked(() -> admin.describeTopics(names).topicNameValues());
        ObjectNode result = JSON.createObjectNode();
        for (var each : topics.entrySet()) {
            try {
                TopicDescription topic = asked(each.getValue()::get);
                result.set(each.getKey(), partitions(topic));
            } catch (Raised raised) {
                failure(result.putObject(each.getKey()), raised.getCause());
            }
        }
        return new Returned(settled(topics), result);
    }

    /** The values of completed futures. */
    private static String settled(Map<?, ? extends KafkaFuture<?>> futures) {
        Map<Object, Object> held = new LinkedHashMap<>();
        futures.forEach((key, future) -> {
            try {
                held.put(key, asked(future::get));
            } catch (Raised raised) {
                held.put(key, raised.getCause());
            }
        });
        return held.toString();
    }

    static JsonNode array(JsonNode call, String name) {
        JsonNode value = call.get(name);
        if (value == null || !value.isArray()) {
            throw new IllegalArgumentException(name + " is not a list: " + value);
        }
        return value;
    }

    private static ObjectNode object(JsonNode call, String name) {
        if (call.get(name) instanceof ObjectNode value) {
            return value;
        }
        throw new IllegalArgumentException(name + " is not an object: " + call.get(name));
    }

    private static ObjectNode partitions(TopicDescription topic) {
        ObjectNode found = JSON.createObjectNode();
        for (TopicPartitionInfo row : topic.partitions()) {
            ObjectNode state = found.putObject(Integer.toString(row.partition()));
            state.put("leader", row.leader() == null ? -1 : row.leader().id());
            state.set("replicas", JSON.valueToTree(row.replicas().stream().map(Node::id).toList()));
            state.set("isr", JSON.valueToTree(row.isr().stream().map(Node::id).toList()));
        }
        return found;
    }

    private Returned createTopics(JsonNode call) throws Raised {
        List<NewTopic> wanted = new ArrayList<>();
        object(call, "topics").fields().forEachRemaining(each -> wanted.add(new NewTopic(
            each.getKey(),
            each.getValue().path("partitions").asInt(1),
            (short) each.getValue().path("replication_factor").asInt(1))));
        CreateTopicsOptions options =
            new CreateTopicsOptions().validateOnly(call.path("validate_only").asBoolean());
        return outcomes(asked(() -> admin.createTopics(wanted, options).values()));
    }

    private static Returned outcomes(Map<?, KafkaFuture<Void>> futures) {
        ObjectNode result = JSON.createObjectNode();
        futures.forEach((key, future) -> result.set(key.toString(), outcome(future)));
        return new Returned(settled(futures), result);
    }

    private Returned alterReassignments(JsonNode call) throws Raised, Unsupported {
        AlterPartitionReassignmentsOptions options = new AlterPartitionReassignmentsOptions();
        options.timeoutMs(timeoutMs);
        JsonNode guard = call.get("allow_replication_factor_change");
        if (guard != null) {
            guard(options, guard.asBoolean());
        }
        Map<TopicPartition, Optional<NewPartitionReassignment>> wanted = new HashMap<>();
        object(call, "assignments").fields().forEachRemaining(each -> {
            Optional<NewPartitionReassignment> target = Optional.empty();
            if (!each.getValue().isNull()) {
                List<Integer> replicas = new ArrayList<>();
                each.getValue().forEach(id -> replicas.add(id.asInt()));
                target = Optional.of(new NewPartitionReassignment(replicas));
            }
            wanted.put(partition(each.getKey()), target);
        });
        return outcomes(asked(() -> admin.alterPartitionReassignments(wanted, options).values()));
    }

    private static void guard(AlterPartitionReassignmentsOptions options, boolean allow)
            throws Raised, Unsupported {
        Method setter;
        try {
            setter = options.getClass().getMethod("allowReplicationFactorChange", boolean.class);
        } catch (NoSuchMethodException older) {
            throw new Unsupported("the option came with kafka-clients 4.1");
        }
        asked(() -> setter.invoke(options, allow));
    }

    private Returned listReassignments(JsonNode call) throws Raised {
        Set<TopicPartition> wanted = partitions(call);
        Map<TopicPartition, PartitionReassignment> ongoing = asked(() -> (wanted == null
            ? admin.listPartitionReassignments()
            : admin.listPartitionReassignments(wanted)).reassignments().get());
        ObjectNode result = JSON.createObjectNode();
        ongoing.forEach((partition, state) -> {
            ObjectNode row = result.putObject(partition.toString());
            row.set("replicas", ids(state.replicas()));
            row.set("adding", ids(state.addingReplicas()));
            row.set("removing", ids(state.removingReplicas()));
        });
        return new Returned(ongoing, result);
    }

    private Returned electLeaders(JsonNode call) throws Raised {
        ElectionType type = "unclean".equals(call.path("type").asText())
            ? ElectionType.UNCLEAN : ElectionType.PREFERRED;
        Set<TopicPartition> wanted = partitions(call);
        var elected = asked(() -> admin.electLeaders(type, wanted).partitions().get());
        ObjectNode result = JSON.createObjectNode();
        elected.forEach((partition, error) -> {
            if (error.isPresent()) {
                failure(result.putObject(partition.toString()), error.get());
            } else {
                result.putNull(partition.toString());
            }
        });
        return new Returned(elected, result);
    }

    /** The partitions that the call names; null for all. */
    private static Set<TopicPartition> partitions(JsonNode call) {
        JsonNode keys = call.get("partitions");
        if (keys == null || keys.isNull()) {
            return null;
        }
        Set<TopicPartition> found = new LinkedHashSet<>();
        keys.forEach(key -> found.add(partition(key.asText())));
        return found;
    }

    /** {@code foo-0}, as {@link TopicPartition#toString} writes it. */
    static TopicPartition partition(String key) {
        int at = key.lastIndexOf('-');
        return new TopicPartition(key.substring(0, at), Integer.parseInt(key.substring(at + 1)));
    }

    private static JsonNode ids(Collection<Integer> brokers) {
        return JSON.valueToTree(brokers);
    }
}
