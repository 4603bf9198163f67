import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Two share consumers read ten records of foo: even ones are released once, then accepted. */
public class ShareConsumers {
    private static final long PATIENCE_MS = 60_000;

    private static KafkaShareConsumer<String, String> consumer(String bootstrap, String mode) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", "g");
        settings.put("share.acknowledgement.mode", mode);
        return new KafkaShareConsumer<>(
            settings, new StringDeserializer(), new StringDeserializer());
    }

    public static void main(String[] arguments) {
        Map<Long, Integer> accepted = new TreeMap<>();
        long end = System.currentTimeMillis() + PATIENCE_MS;
        try (var one = consumer(arguments[0], "explicit");
             var other = consumer(arguments[0], "implicit")) {
            one.subscribe(List.of("foo"));
            while (accepted.size() < 10 && System.currentTimeMillis() < end) {
                for (ConsumerRecord<String, String> each : one.poll(Duration.ofMillis(200))) {
                    int count = each.deliveryCount().get();
                    boolean releases = count == 1 && each.offset() % 2 == 0;
                    one.acknowledge(
                        each, releases ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT);
                    if (!releases) {
                        accepted.put(each.offset(), count);
                    }
                }
                one.commitSync();
            }
            other.subscribe(List.of("bar"));
            int read = 0;
            while (read < 10 && System.currentTimeMillis() < end) {
                read += other.poll(Duration.ofMillis(200)).count();
            }
            other.commitSync();
            System.out.println(accepted + " " + read);
        }
    }
}
