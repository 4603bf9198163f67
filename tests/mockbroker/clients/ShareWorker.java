import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * A member of the share group g that accepts records of foo and prints each offset with its
 * delivery count. After so many it keeps the next ones without an acknowledgement.
 */
public class ShareWorker {
    public static void main(String[] arguments) throws InterruptedException {
        int most = Integer.parseInt(arguments[1]);
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", "g");
        settings.put("share.acknowledgement.mode", "explicit");
        settings.put("max.poll.records", "4");
        var consumer = new KafkaShareConsumer<String, String>(
            settings, new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of("foo"));
        int accepted = 0;
        while (true) {
            for (ConsumerRecord<String, String> each : consumer.poll(Duration.ofMillis(200))) {
                String verb = accepted < most ? "accepted" : "held";
                if (accepted < most) {
                    consumer.acknowledge(each);
                    consumer.commitSync();
                    accepted += 1;
                }
                System.out.println(verb + " " + each.offset() + " " + each.deliveryCount().get());
                if (verb.equals("held")) {
                    Thread.sleep(Long.MAX_VALUE);
                }
            }
        }
    }
}
