import static java.util.Map.entry;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Drives Kafka's own producer and consumer, each made by its first call. */
final class DataClients {
    private static final List<String> CALLS = List.of(
        "produce", "send", "begin_transaction", "send_offsets", "commit_transaction",
        "abort_transaction", "assign", "seek", "pause", "resume", "subscribe", "unsubscribe",
        "assignment", "poll", "position", "commit", "committed", "close_consumer");

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<String, String> PRODUCER = Map.of(
        "acks", "acks",
        "idempotence", "enable.idempotence",
        "compression", "compression.type",
        "linger_ms", "linger.ms",
        "batch_bytes", "batch.size",
        "max_in_flight", "max.in.flight.requests.per.connection",
        "delivery_timeout_ms", "delivery.timeout.ms",
        "transactional_id", "transactional.id",
        "transaction_timeout_ms", "transaction.timeout.ms",
        "metadata_age_ms", "metadata.max.age.ms");
    private static final Map<String, String> CONSUMER = Map.ofEntries(
        entry("group", "group.id"),
        entry("offset_reset", "auto.offset.reset"),
        entry("isolation", "isolation.level"),
        entry("max_wait_ms", "fetch.max.wait.ms"),
        entry("partition_max_bytes", "max.partition.fetch.bytes"),
        entry("rack", "client.rack"),
        entry("metadata_age_ms", "metadata.max.age.ms"),
        entry("protocol", "group.protocol"),
        entry("instance_id", "group.instance.id"),
        entry("session_timeout_ms", "session.timeout.ms"),
        entry("heartbeat_ms", "heartbeat.interval.ms"),
        entry("max_poll_ms", "max.poll.interval.ms"),
        entry("assignors", "partition.assignment.strategy"),
        entry("remote_assignor", "group.remote.assignor"),
        entry("auto_commit_ms", "auto.commit.interval.ms"),
        entry("acknowledgement", "share.acknowledgement.mode"));
    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", RangeAssignor.class.getName(),
        "roundrobin", RoundRobinAssignor.class.getName(),
        "sticky", StickyAssignor.class.getName(),
        "cooperative-sticky", CooperativeStickyAssignor.class.getName());

    private final Properties common;
    private final int timeoutMs;
    private final JsonNode forProducer;
    private final JsonNode forConsumer;
    private KafkaProducer<byte[], byte[]> producer;
    private boolean isReady;
    private KafkaConsumer<byte[], byte[]> consumer;
    private ShareClient sharing;

    /** Makes no client yet. {@code common} has the addresses and the time-outs. */
    DataClients(Properties common, JsonNode call) {
        this.common = common;
        this.timeoutMs = call.get("timeout_ms").asInt();
        this.forProducer = call.path("producer");
        this.forConsumer = call.path("consumer");
    }

    static List<String> capabilities() {
        List<String> calls = new ArrayList<>(CALLS);
        if (ShareClient.isOffered()) {
            calls.add("acknowledge");
        }
        return calls;
    }

    /** Options that differ from the clients' defaults. */
    static Map<String, Object> options() {
        Map<String, Object> options = new LinkedHashMap<>();
        options.put("max.block.ms of the producer", "timeout_ms, three times that with a transactional.id");
        options.put("enable.auto.commit of the consumer", "false, but with auto_commit_ms");
        return options;
    }

    void close() {
        if (producer != null) {
            closed(() -> producer.close(Duration.ofMillis(200)));
            producer = null;
        }
        if (consumer != null) {
            closed(() -> consumer.close(Duration.ofMillis(200)));
            consumer = null;
        }
        if (sharing != null) {
            closed(() -> sharing.close(Duration.ofMillis(200)));
            sharing = null;
        }
    }

    /** The state of a client may not allow a clean close. */
    private static void closed(Runnable close) {
        try {
            close.run();
        } catch (RuntimeException unclean) {
            // nothing is left to be done with it
        }
    }

    AdminAdapter.Returned perform(JsonNode call)
            throws AdminAdapter.Raised, AdminAdapter.Unsupported {
        if (forConsumer.path("protocol").asText().equals("share") && isForSharing(call)) {
            return share(call);
        }
        switch (call.get("op").asText()) {
            case "produce":
                return produce(call);
            case "send":
                return send(call);
            case "begin_transaction":
                return beginTransaction();
            case "send_offsets":
                return sendOffsets(call);
            case "commit_transaction":
                return endTransaction(KafkaProducer::commitTransaction);
            case "abort_transaction":
                return endTransaction(KafkaProducer::abortTransaction);
            case "assign":
                return assign(call);
            case "seek":
                return seek(call);
            case "pause":
                return onPartitions(call, KafkaConsumer::pause);
            case "resume":
                return onPartitions(call, KafkaConsumer::resume);
            case "subscribe":
                return subscribe(call);
            case "unsubscribe":
                return unsubscribe();
            case "assignment":
                return assignment();
            case "close_consumer":
                return closeConsumer();
            case "poll":
                return poll(call);
            case "position":
                return position(call);
            case "commit":
                return commit(call);
            case "committed":
                return committed(call);
            default:
                throw new AdminAdapter.Unsupported("no public call for " + call.get("op"));
        }
    }

    /** A consumer of a share group has none of the calls about positions. */
    private static boolean isForSharing(JsonNode call) {
        String op = call.get("op").asText();
        return !op.equals("produce") && !op.equals("send") && !op.endsWith("_transaction");
    }

    private AdminAdapter.Returned share(JsonNode call)
            throws AdminAdapter.Raised, AdminAdapter.Unsupported {
        if (sharing == null) {
            Properties config = config(forConsumer, CONSUMER);
            config.remove("group.protocol");
            sharing = new ShareClient(config, timeoutMs);
        }
        if (!call.get("op").asText().equals("close_consumer")) {
            return sharing.perform(call);
        }
        ShareClient ending = sharing;
        sharing = null;
        return ending.end();
    }

    private Properties config(JsonNode given, Map<String, String> names)
            throws AdminAdapter.Unsupported {
        Properties config = new Properties();
        config.putAll(common);
        for (var each : given.properties()) {
            if (each.getKey().equals("partitioner")) {
                continue; // the client's own
            }
            if (!names.containsKey(each.getKey())) {
                throw new AdminAdapter.Unsupported("the client has no option for " + each.getKey());
            }
            config.put(names.get(each.getKey()), value(each.getValue()));
        }
        return config;
    }

    /** A list has the names of assignors. */
    private static String value(JsonNode given) {
        if (!given.isArray()) {
            return given.asText();
        }
        List<String> names = new ArrayList<>();
        given.forEach(each -> names.add(ASSIGNORS.get(each.asText())));
        return String.join(",", names);
    }

    private KafkaProducer<byte[], byte[]> producer()
            throws AdminAdapter.Raised, AdminAdapter.Unsupported {
        if (producer == null) {
            Properties config = config(forProducer, PRODUCER);
            config.put("max.block.ms",
                config.containsKey("transactional.id") ? 3 * timeoutMs : timeoutMs);
            producer = AdminAdapter.asked(() -> new KafkaProducer<>(
                config, new ByteArraySerializer(), new ByteArraySerializer()));
        }
        return producer;
    }

    private KafkaConsumer<byte[], byte[]> consumer()
            throws AdminAdapter.Raised, AdminAdapter.Unsupported {
        if (consumer == null) {
            Properties config = config(forConsumer, CONSUMER);
            config.put("enable.auto.commit", Boolean.toString(forConsumer.has("auto_commit_ms")));
            consumer = AdminAdapter.asked(() -> new KafkaConsumer<>(
                config, new ByteArrayDeserializer(), new ByteArrayDeserializer()));
        }
        return consumer;
    }

    private AdminAdapter.Returned produce(JsonNode call)
            throws AdminAdapter.Raised, AdminAdapter.Unsupported {
        KafkaProducer<byte[], byte[]> to = producer();
        long ends = System.nanoTime() + outcomeMs() * 1_000_000;
        List<Object> sent = new ArrayList<>();
        for (JsonNode each : call.get("records")) {
            try {
                sent.add(AdminAdapter.asked(() -> to.send(newRecord(each))));
            } catch (AdminAdapter.Raised raised) {
                sent.add(raised);
            }
        }
        ArrayNode result = JSON.createArrayNode();
        for (Object each : sent) {
            result.add(outcome(each, ends));
        }
        return new AdminAdapter.Returned(result.toString(), result);
    }

    private static ProducerRecord<byte[], byte[]> newRecord(JsonNode given) {
        ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(
            given.get("topic").asText(),
            given.hasNonNull("partition") ? given.get("partition").asInt() : null,
            bytes(given.get("key")),
            bytes(given.get("value")));
        given.path("headers").forEach(
            each -> record.headers().add(each.get(0).asText(), bytes(each.get(1))));
        return record;
    }

    private AdminAdapter.Returned send(JsonNode call)
            throws AdminAdapter.Raised, AdminAdapter.Unsupported {
        KafkaProducer<byte[], byte[]> to = producer();
        for (JsonNode each : call.get("records")) {
            AdminAdapter.asked(() -> to.send(newRecord(each)));
        }
        return AdminAdapter.Returned.NOTHING;
    }

    private AdminAdapter.Returned beginTransaction()
            throws AdminAdapter.Raised, AdminAdapter.Unsupported {
        KafkaProducer<byte[], byte[]> to = producer();
        AdminAdapter.asked(() -> {
            if (!isReady) {
                to.initTransactions();
                isReady = true;
            }
            to.beginTransaction();
            return null;
        });
        return AdminAdapter.Returned.NOTHING;
    }

    private AdminAdapter.Returned sendOffsets(JsonNode call)
            throws AdminAdapter.Raised, AdminAdapter.Unsupported {
        KafkaProducer<byte[], byte[]> to = producer();
        KafkaConsumer<byte[], byte[]> from = consumer();
        Map<TopicPartition, OffsetAndMetadata> offsets = offsets(call.get("offsets"));
        AdminAdapter.asked(() -> {
            to.sendOffsetsToTransaction(offsets, from.groupMetadata());
            return null;
        });
        return AdminAdapter.Returned.NOTHING;
    }

    private AdminAdapter.Returned endTransaction(Consumer<KafkaProducer<byte[], byte[]>> end)
            throws AdminAdapter.Raised, AdminAdapter.Unsupported {
        KafkaProducer<byte[], byte[]> to = producer();
        AdminAdapter.asked(() -> {
            end.accept(to);
            return null;
        });
        return AdminAdapter.Returned.NOTHING;
    }

    private static Map<TopicPartition, OffsetAndMetadata> offsets(JsonNode given) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        given.properties().forEach(each -> offsets.put(
            AdminAdapter.partition(each.getKey()), new OffsetAndMetadata(each.getValue().asLong())));
        return offsets;
    }

    /** Less than the 15 seconds after which the suite ends an adapter. */
    private long outcomeMs() {
        return Math.min(forProducer.path("delivery_timeout_ms").asLong() + timeoutMs + 4000, 13_000);
    }

    private static JsonNode outcome(Object sent, long ends) {
        try {
            if (sent instanceof AdminAdapter.Raised raised) {
                throw raised;
            }
            Future<?> future = (Future<?>) sent;
            long left = Math.max(ends - System.nanoTime(), 1);
            RecordMetadata found = AdminAdapter.asked(
                () -> (RecordMetadata) future.get(left, TimeUnit.NANOSECONDS));
            return JSON.createObjectNode()
                .put("topic", found.topic())
                .put("partition", found.partition())
                .put("offset", found.offset());
        } catch (AdminAdapter.Raised raised) {
            if (sent instanceof Future<?> future && !future.isDone()) {
                return JSON.createObjectNode().put("pending", true);
            }
            return AdminAdapter.failure(JSON.createObjectNode(), raised.getCause());
        }
    }

    private AdminAdapter.Returned assign(JsonNode call)
            throws AdminAdapter.Raised, AdminAdapter.Unsupported {
        KafkaConsumer<byte[], byte[]> from = consumer();
        Map<TopicPartition, JsonNode> wanted = new LinkedHashMap<>();
        call.get("offsets").properties()
            .forEach(each -> wanted.put(AdminAdapter.partition(each.getKey()), each.getValue()));
        AdminAdapter.asked(() -> {
            from.assign(wanted.keySet());
            wanted.forEach((partition, offset) -> {
                if (!offset.isNull()) {
                    from.seek(partition, offset.asLong());
                }
            });
            return null;
        });
        return AdminAdapter.Returned.NOTHING;
    }

    private AdminAdapter.Returned seek(JsonNode call)
            throws AdminAdapter.Raised, AdminAdapter.Unsupported {
        KafkaConsumer<byte[], byte[]> from = consumer();
        AdminAdapter.asked(() -> {
            call.get("offsets").properties().forEach(
                each -> from.seek(AdminAdapter.partition(each.getKey()), each.getValue().asLong()));
            return null;
        });
        return AdminAdapter.Returned.NOTHING;
    }

    private AdminAdapter.Returned onPartitions(
            JsonNode call, BiConsumer<KafkaConsumer<byte[], byte[]>, List<TopicPartition>> method)
            throws AdminAdapter.Raised, AdminAdapter.Unsupported {
        KafkaConsumer<byte[], byte[]> from = consumer();
        List<TopicPartition> partitions = new ArrayList<>();
        call.get("partitions").forEach(each -> partitions.add(AdminAdapter.partition(each.asText())));
        AdminAdapter.asked(() -> {
            method.accept(from, partitions);
            return null;
        });
        return AdminAdapter.Returned.NOTHING;
    }

    private AdminAdapter.Returned subscribe(JsonNode call)
            throws AdminAdapter.Raised, AdminAdapter.Unsupported {
        KafkaConsumer<byte[], byte[]> from = consumer();
        List<String> topics = new ArrayList<>();
        call.path("topics").forEach(each -> topics.add(each.asText()));
        AdminAdapter.asked(() -> {
            if (call.has("pattern")) {
                from.subscribe(Pattern.compile(call.get("pattern").asText()));
            } else {
                from.subscribe(topics);
            }
            return null;
        });
        return AdminAdapter.Returned.NOTHING;
    }

    private AdminAdapter.Returned unsubscribe()
            throws AdminAdapter.Raised, AdminAdapter.Unsupported {
        KafkaConsumer<byte[], byte[]> from = consumer();
        AdminAdapter.asked(() -> {
            from.unsubscribe();
            return null;
        });
        return AdminAdapter.Returned.NOTHING;
    }

    private AdminAdapter.Returned assignment()
            throws AdminAdapter.Raised, AdminAdapter.Unsupported {
        KafkaConsumer<byte[], byte[]> from = consumer();
        var found = AdminAdapter.asked(() -> from.assignment());
        var order = Comparator.comparing(TopicPartition::topic)
            .thenComparing(TopicPartition::partition);
        ArrayNode result = JSON.createArrayNode();
        found.stream().sorted(order).forEach(each -> result.add(each.toString()));
        return new AdminAdapter.Returned(found, result);
    }

    private AdminAdapter.Returned closeConsumer()
            throws AdminAdapter.Raised, AdminAdapter.Unsupported {
        KafkaConsumer<byte[], byte[]> ending = consumer();
        consumer = null;
        AdminAdapter.asked(() -> {
            ending.close(Duration.ofMillis(timeoutMs));
            return null;
        });
        return AdminAdapter.Returned.NOTHING;
    }

    private AdminAdapter.Returned poll(JsonNode call)
            throws AdminAdapter.Raised, AdminAdapter.Unsupported {
        KafkaConsumer<byte[], byte[]> from = consumer();
        long ends = System.nanoTime() + call.get("ms").asLong() * 1_000_000;
        ArrayNode found = JSON.createArrayNode();
        while (found.size() < call.get("records").asInt()) {
            long left = ends - System.nanoTime();
            if (left <= 0) {
                break;
            }
            try {
                var polled = AdminAdapter.asked(() -> from.poll(Duration.ofNanos(left)));
                polled.forEach(each -> found.add(record(each)));
            } catch (AdminAdapter.Raised raised) {
                throw new AdminAdapter.Raised(raised.getCause(), found);
            }
        }
        return new AdminAdapter.Returned(found.toString(), found);
    }

    static ObjectNode record(ConsumerRecord<byte[], byte[]> record) {
        ObjectNode found = JSON.createObjectNode();
        found.put("topic", record.topic());
        found.put("partition", record.partition());
        found.put("offset", record.offset());
        found.put("timestamp", record.timestamp());
        found.set("key", text(record.key()));
        found.set("value", text(record.value()));
        ArrayNode headers = found.putArray("headers");
        record.headers().forEach(
            each -> headers.addArray().add(each.key()).add(text(each.value())));
        return found;
    }

    private AdminAdapter.Returned position(JsonNode call)
            throws AdminAdapter.Raised, AdminAdapter.Unsupported {
        KafkaConsumer<byte[], byte[]> from = consumer();
        ObjectNode found = JSON.createObjectNode();
        for (JsonNode each : call.get("partitions")) {
            TopicPartition partition = AdminAdapter.partition(each.asText());
            found.put(each.asText(), AdminAdapter.asked(() -> from.position(partition)));
        }
        return new AdminAdapter.Returned(found.toString(), found);
    }

    private AdminAdapter.Returned commit(JsonNode call)
            throws AdminAdapter.Raised, AdminAdapter.Unsupported {
        KafkaConsumer<byte[], byte[]> from = consumer();
        JsonNode given = call.path("offsets");
        AdminAdapter.asked(() -> {
            if (given.isObject()) {
                from.commitSync(offsets(given));
            } else {
                from.commitSync();
            }
            return null;
        });
        return AdminAdapter.Returned.NOTHING;
    }

    private AdminAdapter.Returned committed(JsonNode call)
            throws AdminAdapter.Raised, AdminAdapter.Unsupported {
        KafkaConsumer<byte[], byte[]> from = consumer();
        LinkedHashSet<TopicPartition> wanted = new LinkedHashSet<>();
        call.get("partitions").forEach(each -> wanted.add(AdminAdapter.partition(each.asText())));
        var offsets = AdminAdapter.asked(() -> from.committed(wanted));
        ObjectNode found = JSON.createObjectNode();
        offsets.forEach((partition, offset) ->
            found.put(partition.toString(), offset == null ? null : offset.offset()));
        return new AdminAdapter.Returned(offsets, found);
    }

    static byte[] bytes(JsonNode text) {
        return text == null || text.isNull() ? null : text.asText().getBytes(StandardCharsets.UTF_8);
    }

    /** Text, or {@code {"hex": ...}} for bytes that are no UTF-8. */
    static JsonNode text(byte[] data) {
        if (data == null) {
            return JSON.nullNode();
        }
        try {
            var decoder = StandardCharsets.UTF_8.newDecoder();
            return JSON.getNodeFactory().textNode(decoder.decode(ByteBuffer.wrap(data)).toString());
        } catch (CharacterCodingException notText) {
            return JSON.createObjectNode().put("hex", HexFormat.of().formatHex(data));
        }
    }
}
