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
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterPartitionReassignmentsOptions;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.PartitionReassignment;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;

/**
 * Drives Kafka's own Admin for the demo: BOOTSTRAP TIMEOUT_MS on the command line, then one JSON
 * object a line in and one answer a line out, as demo/clients/python/line_protocol.py has it.
 *
 * <p>One source for every release: the replication-factor guard came with 4.1, so it is looked up
 * when asked for rather than compiled in.
 */
public final class AdminDriver {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Admin admin;
    private final int timeoutMs;

    private AdminDriver(String bootstrap, int timeoutMs) {
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        config.put("client.id", "demo-java-admin");
        config.put("request.timeout.ms", timeoutMs);
        config.put("default.api.timeout.ms", timeoutMs);
        config.put("retry.backoff.ms", 50);
        this.admin = Admin.create(config);
        this.timeoutMs = timeoutMs;
    }

    public static void main(String[] args) throws IOException {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        AdminDriver driver = new AdminDriver(args[0], Integer.parseInt(args[1]));
        ObjectNode greeting = JSON.createObjectNode();
        out.println(greeting.put("client", "java-admin").put("version", version()));
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(driver.answer(JSON.readTree(line)));
        }
        driver.admin.close(Duration.ofSeconds(1));
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
            failure(answer, failed.getCause());
        } catch (InterruptedException | ReflectiveOperationException | RuntimeException failed) {
            failure(answer, failed);
        }
        return answer;
    }

    private static void failure(ObjectNode answer, Throwable error) {
        Errors known = Errors.forException(error);
        answer.put("ok", false);
        answer.put("error", error.getClass().getSimpleName());
        if (known != Errors.UNKNOWN_SERVER_ERROR) {
            answer.put("code", known.code());
        }
        answer.put("message", error.getMessage());
    }

    private JsonNode perform(JsonNode call)
            throws ExecutionException, InterruptedException, ReflectiveOperationException {
        switch (call.get("op").asText()) {
            case "describe_cluster":
                return describeCluster();
            case "alter":
                return alter(call);
            case "list":
                return list();
            case "elect":
                return elect(partition(call));
            default:
                throw new UnsupportedOperationException("no call for " + call.get("op"));
        }
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
        return result.put("controller", cluster.controller().get().id());
    }

    private JsonNode alter(JsonNode call)
            throws ExecutionException, InterruptedException, ReflectiveOperationException {
        AlterPartitionReassignmentsOptions options = new AlterPartitionReassignmentsOptions();
        options.timeoutMs(timeoutMs);
        JsonNode guard = call.get("allow_replication_factor_change");
        if (guard != null) {
            guard(options, guard.asBoolean());
        }
        Optional<NewPartitionReassignment> target = Optional.empty();
        if (!call.get("replicas").isNull()) {
            List<Integer> replicas = new ArrayList<>();
            call.get("replicas").forEach(id -> replicas.add(id.asInt()));
            target = Optional.of(new NewPartitionReassignment(replicas));
        }
        TopicPartition partition = partition(call);
        admin.alterPartitionReassignments(Map.of(partition, target), options)
            .values().get(partition).get();
        return JSON.nullNode();
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

    private JsonNode list() throws ExecutionException, InterruptedException {
        ObjectNode result = JSON.createObjectNode();
        Map<TopicPartition, PartitionReassignment> ongoing =
            admin.listPartitionReassignments().reassignments().get();
        ongoing.forEach((partition, state) -> {
            ObjectNode row = result.putObject(partition.toString());
            row.set("replicas", ids(state.replicas()));
            row.set("adding", ids(state.addingReplicas()));
            row.set("removing", ids(state.removingReplicas()));
        });
        return result;
    }

    private JsonNode elect(TopicPartition partition)
            throws ExecutionException, InterruptedException {
        KafkaFuture<Map<TopicPartition, Optional<Throwable>>> elected =
            admin.electLeaders(ElectionType.PREFERRED, Set.of(partition)).partitions();
        Optional<Throwable> error = elected.get().get(partition);
        if (error.isPresent()) {
            throw new ExecutionException(error.get());
        }
        return JSON.nullNode();
    }

    private static TopicPartition partition(JsonNode call) {
        return new TopicPartition(call.get("topic").asText(), call.get("partition").asInt());
    }

    private static JsonNode ids(Collection<Integer> brokers) {
        return JSON.valueToTree(brokers);
    }
}
