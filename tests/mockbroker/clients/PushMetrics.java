import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** A producer that pushes its metrics while it sends records. Prints its client instance id. */
public final class PushMetrics {
    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final int RECORDS = 20;

    public static void main(String[] arguments) throws Exception {
        Properties configs = new Properties();
        configs.put("bootstrap.servers", arguments[0]);
        configs.put("client.id", "pusher");
        configs.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        configs.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(configs)) {
            String id = producer.clientInstanceId(PATIENCE).toString();
            for (int number = 0; number < RECORDS; number++) {
                producer.send(new ProducerRecord<>("foo", "value " + number)).get();
                Thread.sleep(50);
            }
            System.out.println(id);
        }
    }
}
