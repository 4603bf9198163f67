import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;

/** Kafka's own clients: the commands for transactions that words.py describes. */
public final class TransactionCommands {
    private static final Map<String, KafkaProducer<String, String>> PRODUCERS = new HashMap<>();
    private static final Map<String, KafkaConsumer<String, String>> CONSUMERS = new HashMap<>();

    private static String bootstrap;

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            List<String> words = List.of(line.split(" "));
            try {
                List<String> answer = new ArrayList<>(List.of("ok"));
                answer.addAll(run(words.get(0), words.subList(1, words.size())));
                System.out.println(String.join(" ", answer));
            } catch (Exception error) {
                error.printStackTrace();
                System.out.println("error " + error.toString().replaceAll("\\s+", " "));
            }
        }
        Runtime.getRuntime().halt(0);  // a client that is fenced might not end by itself
    }

    private static List<String> run(String command, List<String> words) throws Exception {
        if (command.equals("connect")) {
            bootstrap = words.get(0);
            return List.of();
        }
        if (command.equals("read")) {
            return read(words.get(0), words.get(1), words.get(2));
        }
        if (command.equals("open")) {
            open(words);
            return List.of();
        }
        KafkaProducer<String, String> producer = PRODUCERS.get(words.get(0));
        switch (command) {
            case "begin" -> producer.beginTransaction();
            case "send" -> send(producer, words.get(1), words.subList(2, words.size()));
            case "move" -> move(words.get(0), words.get(1), words.get(2));
            case "commit" -> producer.commitTransaction();
            case "abort" -> producer.abortTransaction();
            case "close" -> {
                CONSUMERS.remove(words.get(0)).close();
                producer.close();
            }
            default -> throw new IllegalArgumentException(command);
        }
        return List.of();
    }

    private static void open(List<String> words) {
        Properties properties = strings("serializer", "StringSerializer");
        properties.put("transactional.id", words.get(1));
        properties.put("transaction.timeout.ms", words.get(2));
        properties.put("linger.ms", "0");
        KafkaProducer<String, String> producer = new KafkaProducer<>(properties);
        producer.initTransactions();
        PRODUCERS.put(words.get(0), producer);
        if (words.size() > 3) {
            KafkaConsumer<String, String> consumer = consumer("read_committed", words.get(3));
            consumer.subscribe(List.of(words.get(4)));
            CONSUMERS.put(words.get(0), consumer);
        }
    }

    private static void send(
            KafkaProducer<String, String> producer, String topic, List<String> values)
            throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (String value : values) {
            sent.add(producer.send(new ProducerRecord<>(topic, 0, null, value)));
        }
        for (Future<RecordMetadata> each : sent) {
            each.get();
        }
    }

    private static void move(String name, String target, String last) throws Exception {
        KafkaConsumer<String, String> consumer = CONSUMERS.get(name);
        KafkaProducer<String, String> producer = PRODUCERS.get(name);
        send(producer, target, values(consumer, last));
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (TopicPartition each : consumer.assignment()) {
            offsets.put(each, new OffsetAndMetadata(consumer.position(each)));
        }
        producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
    }

    private static List<String> read(String topic, String isolation, String last) {
        try (KafkaConsumer<String, String> consumer = consumer(isolation, null)) {
            List<TopicPartition> partition = List.of(new TopicPartition(topic, 0));
            consumer.assign(partition);
            consumer.seekToBeginning(partition);
            return values(consumer, last);
        }
    }

    private static List<String> values(KafkaConsumer<String, String> consumer, String last) {
        List<String> values = new ArrayList<>();
        while (values.isEmpty() || !values.get(values.size() - 1).equals(last)) {
            for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                values.add(record.value());
            }
        }
        return values;
    }

    private static KafkaConsumer<String, String> consumer(String isolation, String group) {
        Properties properties = strings("deserializer", "StringDeserializer");
        if (group != null) {
            properties.put("group.id", group);
        }
        properties.put("isolation.level", isolation);
        properties.put("auto.offset.reset", "earliest");
        properties.put("enable.auto.commit", "false");
        return new KafkaConsumer<>(properties);
    }

    private static Properties strings(String kind, String name) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("key." + kind, "org.apache.kafka.common.serialization." + name);
        properties.put("value." + kind, "org.apache.kafka.common.serialization." + name);
        return properties;
    }
}
