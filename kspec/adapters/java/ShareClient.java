import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Drives Kafka's consumer of share groups (KIP-932).
 *
 * <p>Release 3.9 has an early one that no released broker serves; records have no delivery count there, which is
 * looked up by reflection.
 */
final class ShareClient {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Optional<Method> DELIVERY_COUNT = deliveryCount();

    private final KafkaShareConsumer<byte[], byte[]> consumer;
    private final int timeoutMs;
    private final boolean isExplicit;
    private final Map<String, ConsumerRecord<byte[], byte[]>> polled = new HashMap<>();

    ShareClient(Properties config, int timeoutMs) throws AdminAdapter.Raised {
        this.timeoutMs = timeoutMs;
        this.isExplicit = "explicit".equals(config.get("share.acknowledgement.mode"));
        this.consumer = AdminAdapter.asked(() -> new KafkaShareConsumer<>(
            config, new ByteArrayDeserializer(), new ByteArrayDeserializer()));
    }

    /** Whether the client's release has share groups that released brokers serve. */
    static boolean isOffered() {
        return DELIVERY_COUNT.isPresent();
    }

    private static Optional<Method> deliveryCount() {
        try {
            return Optional.of(ConsumerRecord.class.getMethod("deliveryCount"));
        } catch (NoSuchMethodException early) {
            return Optional.empty();
        }
    }

    void close(Duration timeout) {
        consumer.close(timeout);
    }

    AdminAdapter.Returned perform(JsonNode call)
            throws AdminAdapter.Raised, AdminAdapter.Unsupported {
        switch (call.get("op").asText()) {
            case "subscribe":
                if (call.has("pattern")) {
                    throw new AdminAdapter.Unsupported("a share group takes no pattern");
                }
                List<String> topics = new ArrayList<>();
                call.get("topics").forEach(each -> topics.add(each.asText()));
                return done(() -> consumer.subscribe(topics));
            case "unsubscribe":
                return done(consumer::unsubscribe);
            case "poll":
                return poll(call);
            case "acknowledge":
                return acknowledge(call.get("records"));
            case "commit":
                return commit();
            default:
                throw new AdminAdapter.Unsupported("a share group has no call for " + call.get("op"));
        }
    }

    /** Closes the consumer as an application does when it is done. */
    AdminAdapter.Returned end() throws AdminAdapter.Raised {
        return done(() -> consumer.close(Duration.ofMillis(timeoutMs)));
    }

    private static AdminAdapter.Returned done(Runnable action) throws AdminAdapter.Raised {
        AdminAdapter.asked(() -> {
            action.run();
            return null;
        });
        return AdminAdapter.Returned.NOTHING;
    }

    private AdminAdapter.Returned poll(JsonNode call) throws AdminAdapter.Raised {
        long ends = System.nanoTime() + call.get("ms").asLong() * 1_000_000;
        int wanted = isExplicit ? 1 : call.get("records").asInt();
        ArrayNode found = JSON.createArrayNode();
        while (found.size() < wanted) {
            long left = ends - System.nanoTime();
            if (left <= 0) {
                break;
            }
            try {
                var records = AdminAdapter.asked(() -> consumer.poll(Duration.ofNanos(left)));
                for (var each : records) {
                    polled.put(key(each.topic() + "-" + each.partition(), each.offset()), each);
                    found.add(record(each));
                }
            } catch (AdminAdapter.Raised raised) {
                throw new AdminAdapter.Raised(raised.getCause(), found);
            }
        }
        return new AdminAdapter.Returned(found.toString(), found);
    }

    private static String key(String partition, long offset) {
        return partition + "@" + offset;
    }

    private static ObjectNode record(ConsumerRecord<byte[], byte[]> record) {
        ObjectNode found = DataClients.record(record);
        DELIVERY_COUNT.ifPresent(method -> {
            try {
                ((Optional<?>) method.invoke(record))
                    .ifPresent(count -> found.put("delivery_count", ((Number) count).intValue()));
            } catch (ReflectiveOperationException impossible) {
                throw new IllegalStateException(impossible);
            }
        });
        return found;
    }

    private AdminAdapter.Returned acknowledge(JsonNode records) throws AdminAdapter.Raised {
        return done(() -> records.properties().forEach(
            partition -> partition.getValue().properties().forEach(each -> consumer.acknowledge(
                polled.get(key(partition.getKey(), Long.parseLong(each.getKey()))),
                AcknowledgeType.valueOf(each.getValue().asText().toUpperCase(Locale.ROOT))))));
    }

    private AdminAdapter.Returned commit() throws AdminAdapter.Raised {
        var outcomes = AdminAdapter.asked(() -> consumer.commitSync(Duration.ofMillis(timeoutMs)));
        ObjectNode found = JSON.createObjectNode();
        outcomes.forEach((partition, error) -> found.set(
            partition.topicPartition().toString(),
            error.<JsonNode>map(each -> failure(each)).orElseGet(JSON::nullNode)));
        return new AdminAdapter.Returned(outcomes, found);
    }

    private static ObjectNode failure(KafkaException error) {
        return AdminAdapter.failure(JSON.createObjectNode(), error);
    }
}
