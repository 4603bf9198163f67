import static java.util.Map.entry;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.kafka.streams.errors.MissingSourceTopicException;

/**
 * Drives Kafka Streams by the protocol of docs/reference/adapters.md.
 *
 * <p>Streams has no calls for single records. A topology reads topics as a member of the group that
 * has the application's id, and {@code poll} returns what its processor got; {@code produce} hands
 * records to that processor, which forwards them to a sink; {@code commit} has the processor request
 * a commit. {@link StreamsRun} is one such application. What a topology cannot do is unsupported:
 * to choose partitions or positions, an instance id, an assignor, or a transactional id.
 *
 * <p>An instance that an exception ended is not started again, as Streams does not allow it: the
 * call that needs an instance next makes another.
 */
public final class StreamsAdapter {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final List<String> CAPABILITIES = List.of(
        "assignment", "close_consumer", "commit", "committed", "poll", "process", "produce",
        "subscribe");
    private static final Map<String, String> PRODUCER = Map.of(
        "acks", "producer.acks",
        "idempotence", "producer.enable.idempotence",
        "compression", "producer.compression.type",
        "linger_ms", "producer.linger.ms",
        "batch_bytes", "producer.batch.size",
        "max_in_flight", "producer.max.in.flight.requests.per.connection",
        "delivery_timeout_ms", "producer.delivery.timeout.ms",
        "metadata_age_ms", "producer.metadata.max.age.ms");
    private static final Map<String, String> CONSUMER = Map.ofEntries(
        entry("group", "application.id"),
        entry("offset_reset", "consumer.auto.offset.reset"),
        entry("isolation", "consumer.isolation.level"),
        entry("max_wait_ms", "consumer.fetch.max.wait.ms"),
        entry("partition_max_bytes", "consumer.max.partition.fetch.bytes"),
        entry("rack", "consumer.client.rack"),
        entry("metadata_age_ms", "consumer.metadata.max.age.ms"),
        entry("protocol", "group.protocol"),
        entry("session_timeout_ms", "consumer.session.timeout.ms"),
        entry("heartbeat_ms", "consumer.heartbeat.interval.ms"));
    private static final Map<String, String> GUARANTEES =
        Map.of("at_least_once", "at_least_once", "exactly_once", "exactly_once_v2");
    private static final Set<String> PROTOCOLS = Set.of("classic", "streams");

    private JsonNode connected;
    private int timeoutMs;
    private StreamsRun.Sources sources;
    private String guarantee;
    private StreamsRun run;
    private int instances;

    public static void main(String[] args) throws IOException {
        loadClasses();
        StreamsAdapter adapter = new StreamsAdapter();
        AdapterLines.serve(
            "kafka-streams", AdapterLines.version("kafka/kafka-streams-version.properties"),
            CAPABILITIES, List.of(), disclosed(), adapter::perform);
        adapter.close();
    }

    /**
     * Starts an instance at a port of the adapter's own that answers nothing, and ends it: the time
     * that the JVM takes to load Streams is not that of the first call.
     */
    private static void loadClasses() throws IOException {
        try (ServerSocket silent = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
            StreamsAdapter adapter = new StreamsAdapter();
            adapter.timeoutMs = 500;
            adapter.connected = JSON.createObjectNode()
                .put("bootstrap", "127.0.0.1:" + silent.getLocalPort())
                .put("timeout_ms", adapter.timeoutMs)
                .put("client_id", "loading");
            adapter.sources = new StreamsRun.Sources(List.of("none"), null, null);
            adapter.running();
            adapter.close();
        } catch (AdminAdapter.Raised | AdminAdapter.Unsupported impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    /** Options that differ from the client's defaults. */
    private static Map<String, Object> options(Object timeoutMs) {
        Map<String, Object> options = new LinkedHashMap<>(AdminAdapter.options(timeoutMs));
        options.put("task.timeout.ms", timeoutMs);
        options.put("producer.max.block.ms", timeoutMs);
        return options;
    }

    /** The options, and what an application chooses by other means. */
    private static Map<String, Object> disclosed() {
        Map<String, Object> disclosed = options("timeout_ms");
        disclosed.put("application.id", "the case's group, or one of the instance's own");
        disclosed.put("StreamsUncaughtExceptionHandler", "SHUTDOWN_CLIENT");
        disclosed.put("topics that are read by who only writes", "that of the first record");
        return disclosed;
    }

    private AdminAdapter.Returned perform(JsonNode call)
            throws AdminAdapter.Raised, AdminAdapter.Unsupported {
        switch (call.get("op").asText()) {
            case "connect":
                connected = call;
                timeoutMs = call.get("timeout_ms").asInt();
                return AdminAdapter.Returned.NOTHING;
            case "close":
                close();
                return AdminAdapter.Returned.NOTHING;
            case "subscribe":
                return subscribe(call);
            case "process":
                return process(call);
            case "poll":
                return poll(call);
            case "assignment":
                return assignment();
            case "commit":
                return commit(call);
            case "committed":
                return committed(call);
            case "close_consumer":
                return closeConsumer();
            case "produce":
                return produce(call);
            case "together":
                return AdapterLines.together(call.get("calls"), this::perform);
            default:
                throw new AdminAdapter.Unsupported("Streams has no call for " + call.get("op"));
        }
    }

    private void close() {
        if (run != null) {
            run.close(2 * timeoutMs);
        }
        run = null;
        sources = null;
        guarantee = null;
    }

    private Properties config() throws AdminAdapter.Unsupported {
        Properties config = AdminAdapter.config(connected);
        // Where the case names no group, each instance has its own: none waits for the session of
        // the one before, which does not leave its group.
        config.put("application.id", "kspec-" + ++instances);
        config.putAll(options(timeoutMs));
        if (guarantee != null) {
            config.put("processing.guarantee", guarantee);
        }
        if (connected.path("consumer").has("max_poll_ms")) {
            throw new AdminAdapter.Unsupported("Streams polls by itself, not when it is called");
        }
        add(config, connected.path("producer"), PRODUCER);
        add(config, connected.path("consumer"), CONSUMER);
        String protocol = config.getProperty("group.protocol", "classic");
        if (!PROTOCOLS.contains(protocol)) {
            throw new AdminAdapter.Unsupported("Streams does not join a group of type " + protocol);
        }
        return config;
    }

    private static void add(Properties config, JsonNode given, Map<String, String> names)
            throws AdminAdapter.Unsupported {
        for (var each : given.properties()) {
            if (!names.containsKey(each.getKey())) {
                throw new AdminAdapter.Unsupported("Streams leaves no choice of " + each.getKey());
            }
            config.put(names.get(each.getKey()), each.getValue().asText());
        }
    }

    /** The running instance, or another one with the same topology if an exception ended it. */
    private synchronized StreamsRun running()
            throws AdminAdapter.Raised, AdminAdapter.Unsupported {
        if (run != null) {
            run.settle();
        }
        if (run != null && run.isReported()) {
            run.close(timeoutMs);
            run = null;
        }
        if (run == null) {
            Properties config = config();
            run = AdminAdapter.asked(() -> new StreamsRun(config, sources));
        }
        return run;
    }

    private AdminAdapter.Returned subscribe(JsonNode call)
            throws AdminAdapter.Raised, AdminAdapter.Unsupported {
        close();
        List<String> topics = new ArrayList<>();
        call.path("topics").forEach(each -> topics.add(each.asText()));
        sources = call.has("pattern")
            ? new StreamsRun.Sources(topics, Pattern.compile(call.get("pattern").asText()), null)
            : new StreamsRun.Sources(topics, null, null);
        running();
        return AdminAdapter.Returned.NOTHING;
    }

    private AdminAdapter.Returned process(JsonNode call)
            throws AdminAdapter.Raised, AdminAdapter.Unsupported {
        close();
        List<String> topics = new ArrayList<>();
        AdminAdapter.array(call, "from").forEach(each -> topics.add(each.asText()));
        sources = new StreamsRun.Sources(topics, null, call.get("to").asText());
        guarantee = GUARANTEES.get(call.get("guarantee").asText());
        running();
        return AdminAdapter.Returned.NOTHING;
    }

    private AdminAdapter.Returned poll(JsonNode call)
            throws AdminAdapter.Raised, AdminAdapter.Unsupported {
        if (sources == null) {
            throw new AdminAdapter.Unsupported("Streams has no topology without topics");
        }
        StreamsRun from = running();
        long ends = System.nanoTime() + call.get("ms").asLong() * 1_000_000;
        ArrayNode found = JSON.createArrayNode();
        while (true) {
            Throwable ended = from.ended();
            from.takeRead(found);
            if (found.size() >= call.get("records").asInt() || System.nanoTime() >= ends) {
                return new AdminAdapter.Returned(found.toString(), found);
            }
            if (ended != null) {
                throw new AdminAdapter.Raised(from.report(), found);
            }
            StreamsRun.pause();
        }
    }

    private AdminAdapter.Returned assignment()
            throws AdminAdapter.Raised, AdminAdapter.Unsupported {
        StreamsRun from = running();
        var found = AdminAdapter.asked(from::assignment);
        ArrayNode result = JSON.createArrayNode();
        found.forEach(each -> result.add(each.toString()));
        return new AdminAdapter.Returned(found, result);
    }

    private AdminAdapter.Returned commit(JsonNode call)
            throws AdminAdapter.Raised, AdminAdapter.Unsupported {
        if (call.path("offsets").isObject()) {
            throw new AdminAdapter.Unsupported("Streams leaves no choice of the offsets");
        }
        long ends = System.nanoTime() + commitMs() * 1_000_000;
        StreamsRun from = running();
        if (from.commit(ends)) {
            return AdminAdapter.Returned.NOTHING;
        }
        if (from.ended() != null) {
            throw new AdminAdapter.Raised(from.report());
        }
        throw new AdminAdapter.Unsupported(
            "ProcessorContext.commit returns no outcome, and Streams reported none");
    }

    /** Within the limit that the suite has for a call. */
    private long commitMs() {
        return 2L * timeoutMs + 5000;
    }

    private AdminAdapter.Returned committed(JsonNode call)
            throws AdminAdapter.Raised, AdminAdapter.Unsupported {
        StreamsRun from = running();
        var offsets = AdminAdapter.asked(from::committed);
        ObjectNode found = JSON.createObjectNode();
        for (JsonNode each : AdminAdapter.array(call, "partitions")) {
            found.put(each.asText(), offsets.get(AdminAdapter.partition(each.asText())));
        }
        return new AdminAdapter.Returned(offsets, found);
    }

    private AdminAdapter.Returned closeConsumer()
            throws AdminAdapter.Raised, AdminAdapter.Unsupported {
        StreamsRun ending = running();
        run = null;
        boolean isClosed = AdminAdapter.asked(() -> ending.close(timeoutMs));
        return new AdminAdapter.Returned(isClosed, JSON.nullNode());
    }

    private AdminAdapter.Returned produce(JsonNode call)
            throws AdminAdapter.Raised, AdminAdapter.Unsupported {
        List<StreamsRun.Outgoing> sent = new ArrayList<>();
        for (JsonNode each : AdminAdapter.array(call, "records")) {
            sent.add(new StreamsRun.Outgoing(
                each.get("topic").asText(),
                each.hasNonNull("partition") ? each.get("partition").asInt() : null,
                DataClients.bytes(each.get("key")),
                DataClients.bytes(each.get("value"))));
        }
        boolean hasNoSource = sources == null;
        if (hasNoSource) {
            // A topology has to read something before it can write.
            sources = new StreamsRun.Sources(List.of(sent.get(0).topic()), null, null);
        }
        long ends = System.nanoTime() + outcomeMs() * 1_000_000;
        StreamsRun to = running();
        to.send(sent, ends);
        if (hasNoSource && to.ended() instanceof MissingSourceTopicException) {
            close();
            throw new AdminAdapter.Unsupported("Streams has no topic to read before it writes");
        }
        if (to.ended() == null && !to.hadTask()) {
            throw new AdminAdapter.Unsupported(
                "Streams writes records in a task, and it was assigned none");
        }
        ArrayNode result = JSON.createArrayNode();
        Throwable ended = to.ended() == null ? null : to.report();
        sent.forEach(each -> result.add(outcome(each, ended)));
        return new AdminAdapter.Returned(result.toString(), result);
    }

    /** Less than the 15 seconds after which the suite ends an adapter. */
    private long outcomeMs() {
        long delivery = connected.path("producer").path("delivery_timeout_ms").asLong();
        return Math.min(delivery + timeoutMs + 4000, 13_000);
    }

    /** What the producer said of a record; otherwise what ended the instance before it did. */
    private static JsonNode outcome(StreamsRun.Outgoing sent, Throwable ended) {
        StreamsRun.Outcome outcome = sent.outcome();
        if (outcome != null && outcome.error() == null) {
            return JSON.createObjectNode()
                .put("topic", outcome.metadata().topic())
                .put("partition", outcome.metadata().partition())
                .put("offset", outcome.metadata().offset());
        }
        Throwable error = outcome == null ? ended : outcome.error();
        return error == null
            ? JSON.createObjectNode().put("pending", true)
            : AdminAdapter.failure(JSON.createObjectNode(), error);
    }
}
