import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterPartitionReassignmentsOptions;
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
 * Drives Kafka's own Admin by the lines of docs/adapters.md: one JSON object a line in, one answer a
 * line out.
 *
 * <p>One source for every release: the replication-factor guard came with 4.1, so it is looked up
 * when asked for rather than compiled in.
 */
public final class AdminAdapter {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final List<String> CAPABILITIES = List.of(
        "alter_reassignments", "create_topics", "describe_cluster", "describe_topics",
        "elect_leaders", "list_reassignments", "list_topics");

    private Admin admin;
    private int timeoutMs;

    public static void main(String[] args) throws IOException {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        AdminAdapter adapter = new AdminAdapter();
        ObjectNode greeting = JSON.createObjectNode();
        greeting.put("client", "java-admin").put("version", version()).put("language", "java");
        greeting.set("capabilities", JSON.valueToTree(CAPABILITIES));
        out.println(greeting);
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(adapter.answer(JSON.readTree(line)));
        }
        adapter.close();
    }

    private JsonNode connect(JsonNode call) {
        timeoutMs = call.get("timeout_ms").asInt();
        Properties config = new Properties();
        config.put("bootstrap.servers", call.get("bootstrap").asText());
        config.put("client.id", call.get("client_id").asText());
        config.put("request.timeout.ms", timeoutMs);
        config.put("default.api.timeout.ms", timeoutMs);
        config.put("retry.backoff.ms", 50);
        config.put("socket.connection.setup.timeout.ms", timeoutMs);
        JsonNode sasl = call.get("sasl");
        if (sasl != null) {
            String mechanism = sasl.get("mechanism").asText();
            String module = mechanism.startsWith("SCRAM")
                ? "org.apache.kafka.common.security.scram.ScramLoginModule"
                : "org.apache.kafka.common.security.plain.PlainLoginModule";
            config.put("security.protocol", "SASL_PLAINTEXT");
            config.put("sasl.mechanism", mechanism);
            config.put("sasl.jaas.config", String.format(
                "%s required username=\"%s\" password=\"%s\";", module,
                sasl.get("username").asText(), sasl.get("password").asText()));
        }
        admin = Admin.create(config);
        return JSON.nullNode();
    }

    private JsonNode close() {
        if (admin != null) {
            admin.close(Duration.ofSeconds(1));
            admin = null;
        }
        return JSON.nullNode();
    }

    /** The release, from the resource every kafka-clients jar carries. */
    private static String version() throws IOException {
        try (InputStream in = Admin.class.getResourceAsStream("/kafka/kafka-version.properties")) {
            Properties properties = new Properties();
            properties.load(in);
            return properties.getProperty("version");
        }
    }

    private ObjectNode answer(JsonNode call) {
        ObjectNode answer = JSON.createObjectNode();
        try {
            JsonNode result = perform(call);
            answer.put("ok", true);
            answer.set("result", result);
        } catch (UnsupportedOperationException unsupported) {
            answer.put("unsupported", unsupported.getMessage());
        } catch (ExecutionException failed) {
            failure(answer.put("ok", false), failed.getCause());
        } catch (InterruptedException | ReflectiveOperationException | RuntimeException failed) {
            failure(answer.put("ok", false), failed);
        }
        return answer;
    }

    private static ObjectNode failure(ObjectNode answer, Throwable error) {
        // A KafkaException that wraps what went wrong says so in its cause.
        Errors known = Errors.forException(error);
        answer.put("error", error.getClass().getSimpleName());
        if (known != Errors.UNKNOWN_SERVER_ERROR
                || error instanceof org.apache.kafka.common.errors.UnknownServerException) {
            answer.put("code", known.code());
        }
        String cause = error.getCause() == null ? "" : " (" + error.getCause() + ")";
        answer.put("message", error.getMessage() + cause);
        return answer;
    }

    /** Null, or the error of one partition or topic. */
    private static JsonNode outcome(KafkaFuture<?> future) throws InterruptedException {
        try {
            future.get();
            return JSON.nullNode();
        } catch (ExecutionException failed) {
            return failure(JSON.createObjectNode(), failed.getCause());
        }
    }

    private JsonNode perform(JsonNode call)
            throws ExecutionException, InterruptedException, ReflectiveOperationException {
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
                return JSON.valueToTree(new TreeSet<>(admin.listTopics().names().get()));
            case "create_topics":
                return createTopics(call);
            case "alter_reassignments":
                return alterReassignments(call);
            case "list_reassignments":
                return listReassignments(call);
            case "elect_leaders":
                return electLeaders(call);
            case "together":
                return together(call.get("calls"));
            default:
                throw new UnsupportedOperationException("no public call for " + call.get("op"));
        }
    }

    /** All at once, each in a thread of its own: the answers, in the order of the calls. */
    private JsonNode together(JsonNode calls) {
        List<CompletableFuture<ObjectNode>> asked = new ArrayList<>();
        calls.forEach(each -> asked.add(CompletableFuture.supplyAsync(() -> answer(each))));
        return JSON.valueToTree(asked.stream().map(CompletableFuture::join).toList());
    }

    private JsonNode describeCluster() throws ExecutionException, InterruptedException {
        DescribeClusterResult cluster = admin.describeCluster();
        List<Integer> ids = new ArrayList<>();
        for (Node node : cluster.nodes().get()) {
            ids.add(node.id());
        }
        ids.sort(null);
        ObjectNode result = JSON.createObjectNode();
        result.set("brokers", JSON.valueToTree(ids));
        Node controller = cluster.controller().get();
        return result.put("controller", controller == null ? -1 : controller.id());
    }

    private JsonNode describeTopics(JsonNode call) throws InterruptedException {
        List<String> names = new ArrayList<>();
        call.get("topics").forEach(name -> names.add(name.asText()));
        ObjectNode result = JSON.createObjectNode();
        for (var asked : admin.describeTopics(names).topicNameValues().entrySet()) {
            try {
                result.set(asked.getKey(), partitions(asked.getValue().get()));
            } catch (ExecutionException failed) {
                failure(result.putObject(asked.getKey()), failed.getCause());
            }
        }
        return result;
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

    private JsonNode createTopics(JsonNode call) throws InterruptedException {
        List<NewTopic> wanted = new ArrayList<>();
        call.get("topics").fields().forEachRemaining(each -> wanted.add(new NewTopic(
            each.getKey(),
            each.getValue().path("partitions").asInt(1),
            (short) each.getValue().path("replication_factor").asInt(1))));
        ObjectNode result = JSON.createObjectNode();
        for (var asked : admin.createTopics(wanted).values().entrySet()) {
            result.set(asked.getKey(), outcome(asked.getValue()));
        }
        return result;
    }

    private JsonNode alterReassignments(JsonNode call)
            throws InterruptedException, ReflectiveOperationException {
        AlterPartitionReassignmentsOptions options = new AlterPartitionReassignmentsOptions();
        options.timeoutMs(timeoutMs);
        JsonNode guard = call.get("allow_replication_factor_change");
        if (guard != null) {
            guard(options, guard.asBoolean());
        }
        Map<TopicPartition, Optional<NewPartitionReassignment>> wanted = new HashMap<>();
        call.get("assignments").fields().forEachRemaining(each -> {
            Optional<NewPartitionReassignment> target = Optional.empty();
            if (!each.getValue().isNull()) {
                List<Integer> replicas = new ArrayList<>();
                each.getValue().forEach(id -> replicas.add(id.asInt()));
                target = Optional.of(new NewPartitionReassignment(replicas));
            }
            wanted.put(partition(each.getKey()), target);
        });
        ObjectNode result = JSON.createObjectNode();
        for (var asked : admin.alterPartitionReassignments(wanted, options).values().entrySet()) {
            result.set(asked.getKey().toString(), outcome(asked.getValue()));
        }
        return result;
    }

    private static void guard(AlterPartitionReassignmentsOptions options, boolean allow)
            throws ReflectiveOperationException {
        Method setter;
        try {
            setter = options.getClass().getMethod("allowReplicationFactorChange", boolean.class);
        } catch (NoSuchMethodException older) {
            throw new UnsupportedOperationException("the option came with kafka-clients 4.1");
        }
        setter.invoke(options, allow);
    }

    private JsonNode listReassignments(JsonNode call)
            throws ExecutionException, InterruptedException {
        ObjectNode result = JSON.createObjectNode();
        Set<TopicPartition> asked = partitions(call);
        Map<TopicPartition, PartitionReassignment> ongoing = asked == null
            ? admin.listPartitionReassignments().reassignments().get()
            : admin.listPartitionReassignments(asked).reassignments().get();
        ongoing.forEach((partition, state) -> {
            ObjectNode row = result.putObject(partition.toString());
            row.set("replicas", ids(state.replicas()));
            row.set("adding", ids(state.addingReplicas()));
            row.set("removing", ids(state.removingReplicas()));
        });
        return result;
    }

    private JsonNode electLeaders(JsonNode call) throws ExecutionException, InterruptedException {
        ElectionType type = "unclean".equals(call.path("type").asText())
            ? ElectionType.UNCLEAN : ElectionType.PREFERRED;
        ObjectNode result = JSON.createObjectNode();
        var elected = admin.electLeaders(type, partitions(call)).partitions().get();
        elected.forEach((partition, error) -> {
            if (error.isPresent()) {
                failure(result.putObject(partition.toString()), error.get());
            } else {
                result.putNull(partition.toString());
            }
        });
        return result;
    }

    /** Those the call names; null for all of them. */
    private static Set<TopicPartition> partitions(JsonNode call) {
        JsonNode keys = call.get("partitions");
        if (keys == null || keys.isNull()) {
            return null;
        }
        Set<TopicPartition> found = new LinkedHashSet<>();
        keys.forEach(key -> found.add(partition(key.asText())));
        return found;
    }

    /** {@code foo-0}, as {@link TopicPartition#toString} has it. */
    private static TopicPartition partition(String key) {
        int at = key.lastIndexOf('-');
        return new TopicPartition(key.substring(0, at), Integer.parseInt(key.substring(at + 1)));
    }

    private static JsonNode ids(Collection<Integer> brokers) {
        return JSON.valueToTree(brokers);
    }
}
