import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;

/** Kafka's own transactional producer: commits, aborts, offsets of a group, fencing. */
public final class Transactions {
    private static final long PATIENCE_MS = 60_000;

    private static String bootstrap;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        List<String> committed = new ArrayList<>();
        try (KafkaProducer<String, String> producer = producer("writer")) {
            producer.initTransactions();
            for (int number = 0; number < 6; number++) {
                producer.beginTransaction();
                for (int index = 0; index < 5; index++) {
                    String value = number + "." + index;
                    producer.send(new ProducerRecord<>("foo", index % 4, null, value));
                    if (number % 2 == 0) {
                        committed.add(value);
                    }
                }
                if (number % 2 == 0) {
                    producer.commitTransaction();
                } else {
                    producer.flush();
                    producer.abortTransaction();
                }
            }
            producer.beginTransaction();
            producer.commitTransaction();
            producer.beginTransaction();
            producer.abortTransaction();
        }
        check("committed", read("foo", "read_committed", committed.size()), committed);
        check("all", read("foo", "read_uncommitted", 30).size(), 30);
        move(committed.size());
        check("moved", read("bar", "read_committed", committed.size()).size(), committed.size());
        fence();
        describe();
        System.out.println("ok " + committed.size());
    }

    /** Read from foo and write to bar, with the offsets in the same transactions. */
    private static void move(int count) throws Exception {
        int moved = 0;
        boolean failed = false;
        while (moved < count) {
            try (KafkaProducer<String, String> producer = producer("mover");
                    KafkaConsumer<String, String> consumer = consumer("movers", "read_committed")) {
                producer.initTransactions();
                consumer.subscribe(List.of("foo"));
                long end = System.currentTimeMillis() + PATIENCE_MS;
                while (moved < count && System.currentTimeMillis() < end) {
                    var records = consumer.poll(Duration.ofMillis(200));
                    if (records.isEmpty()) {
                        continue;
                    }
                    producer.beginTransaction();
                    Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                    for (ConsumerRecord<String, String> record : records) {
                        producer.send(new ProducerRecord<>("bar", record.value()));
                        offsets.put(
                            new TopicPartition(record.topic(), record.partition()),
                            new OffsetAndMetadata(record.offset() + 1));
                    }
                    producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                    if (!failed) {  // the next attempt begins where this one did
                        failed = true;
                        producer.abortTransaction();
                        break;
                    }
                    producer.commitTransaction();
                    moved += records.count();
                }
            }
        }
        check("moved records", moved, count);
    }

    /** A second producer of the same id fences the first. */
    private static void fence() {
        try (KafkaProducer<String, String> first = producer("twin");
                KafkaProducer<String, String> second = producer("twin")) {
            first.initTransactions();
            first.beginTransaction();
            first.send(new ProducerRecord<>("bar", "zombie"));
            first.flush();
            second.initTransactions();
            try {
                first.commitTransaction();
                throw new IllegalStateException("the first producer is not fenced");
            } catch (ProducerFencedException | InvalidProducerEpochException expected) {
                // that is what fencing is for
            } catch (KafkaException other) {
                if (!(other.getCause() instanceof ProducerFencedException)
                        && !(other.getCause() instanceof InvalidProducerEpochException)) {
                    throw other;
                }
            }
            second.beginTransaction();
            second.send(new ProducerRecord<>("bar", "second"));
            second.commitTransaction();
        }
    }

    private static void describe() throws ExecutionException, InterruptedException {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        try (Admin admin = Admin.create(properties)) {
            var listed = admin.listTransactions().all().get();
            check("listed", listed.size(), 3);
            var described = admin.describeTransactions(List.of("writer", "twin")).all().get();
            check("state", described.get("twin").state(), TransactionState.COMPLETE_COMMIT);
            check("coordinators", described.get("writer").coordinatorId() > 0, true);
        }
    }

    private static KafkaProducer<String, String> producer(String transactionalId) {
        Properties properties = strings("serializer", "org.apache.kafka.common.serialization.StringSerializer");
        properties.put("transactional.id", transactionalId);
        properties.put("linger.ms", "0");
        return new KafkaProducer<>(properties);
    }

    private static KafkaConsumer<String, String> consumer(String group, String isolation) {
        Properties properties = strings("deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        properties.put("group.id", group);
        properties.put("isolation.level", isolation);
        properties.put("auto.offset.reset", "earliest");
        properties.put("enable.auto.commit", "false");
        return new KafkaConsumer<>(properties);
    }

    private static Properties strings(String kind, String name) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("key." + kind, name);
        properties.put("value." + kind, name);
        return properties;
    }

    /** The values of a topic in the order of their transactions, as many as these at least. */
    private static List<String> read(String topic, String isolation, int count) {
        List<String> values = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = consumer("readers-" + isolation, isolation)) {
            List<TopicPartition> partitions = consumer.partitionsFor(topic).stream()
                .map(each -> new TopicPartition(topic, each.partition())).toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            long end = System.currentTimeMillis() + PATIENCE_MS;
            while (values.size() < count && System.currentTimeMillis() < end) {
                consumer.poll(Duration.ofMillis(200)).forEach(record -> values.add(record.value()));
            }
            consumer.poll(Duration.ofMillis(200)).forEach(record -> values.add(record.value()));
        }
        values.sort(null);
        return values;
    }

    private static void check(String what, Object found, Object wanted) {
        if (!found.equals(wanted)) {
            throw new IllegalStateException(what + ": " + found + ", not " + wanted);
        }
    }
}
