import java.util.Collections;
import java.util.Properties;
import java.util.Scanner;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** A producer and a consumer for as long as standard input has lines: for each line, one record of each. */
public final class OldClients {
    public static void main(String[] arguments) throws Exception {
        Properties configs = new Properties();
        configs.put("bootstrap.servers", arguments[0]);
        configs.put("group.id", "g");
        configs.put("auto.offset.reset", "earliest");
        configs.put("retries", "3");
        for (String part : new String[] {"key", "value"}) {
            String name = "org.apache.kafka.common.serialization.String";
            configs.put(part + ".serializer", name + "Serializer");
            configs.put(part + ".deserializer", name + "Deserializer");
        }
        KafkaProducer<String, String> producer = new KafkaProducer<>(configs);
        KafkaConsumer<String, String> consumer = new KafkaConsumer<>(configs);
        consumer.subscribe(Collections.singletonList("foo"));
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String value = lines.nextLine();
            try {
                producer.send(new ProducerRecord<>("foo", value)).get();
                System.out.println("produced " + value);
            } catch (Exception error) {
                System.out.println("not produced: " + error.getCause().getClass().getSimpleName());
            }
            System.out.println(consumed(consumer, value));
        }
        System.exit(0); // an old consumer that cannot reach its group waits as it closes
    }

    private static String consumed(KafkaConsumer<String, String> consumer, String value) {
        long patience = value.equals("refused") ? 3_000 : 60_000;
        long end = System.currentTimeMillis() + patience;
        while (System.currentTimeMillis() < end) {
            ConsumerRecords<String, String> found = consumer.poll(200);
            if (!found.isEmpty()) {
                return "consumed " + found.iterator().next().value();
            }
        }
        return "not consumed";
    }
}
