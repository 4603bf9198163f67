import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** Kafka's own producer and consumer: every codec, a group that grows and shrinks, seeks by time. */
public final class RoundTrip {
    private static final String TOPIC = "foo";
    private static final long BASE = 1_700_000_000_000L;
    private static final long PATIENCE_MS = 60_000;

    private static String bootstrap;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        Set<String> sent = new TreeSet<>();
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            sent.addAll(produce(codec));
        }
        try (KafkaConsumer<String, String> first = consumer("readers")) {
            Set<String> read = new TreeSet<>();
            until("read everything", () -> {
                first.poll(Duration.ofMillis(100)).forEach(record -> read.add(record.value()));
                return read.size() == sent.size();
            });
            check("what was read", read, sent);
            first.commitSync();
            try (KafkaConsumer<String, String> second = consumer("readers")) {
                until("share", () -> {
                    first.poll(Duration.ofMillis(50));
                    second.poll(Duration.ofMillis(50));
                    return first.assignment().size() == 2 && second.assignment().size() == 2;
                });
                Set<TopicPartition> both = new HashSet<>(first.assignment());
                both.addAll(second.assignment());
                check("partitions of both", both.size(), 4);
            }
            until("take over", () -> {
                first.poll(Duration.ofMillis(50));
                return first.assignment().size() == 4;
            });
        }
        long committed = 0;
        try (KafkaConsumer<String, String> later = consumer("readers")) {
            Set<TopicPartition> partitions = new HashSet<>();
            later.partitionsFor(TOPIC)
                .forEach(each -> partitions.add(new TopicPartition(TOPIC, each.partition())));
            for (OffsetAndMetadata each : later.committed(partitions).values()) {
                committed += each.offset();
            }
            check("committed", committed, (long) sent.size());
            List<String> late = produce("none");
            Set<String> read = new TreeSet<>();
            until("read on", () -> {
                later.poll(Duration.ofMillis(100)).forEach(record -> read.add(record.value()));
                return read.size() >= late.size();
            });
            check("what came later", read, new TreeSet<>(late));
            Map<TopicPartition, Long> times = new HashMap<>();
            partitions.forEach(each -> times.put(each, BASE + 5));
            var found = later.offsetsForTimes(times);
            check("partitions with a time", found.size(), 4);
            check("ends", later.endOffsets(partitions).values().stream().mapToLong(x -> x).sum(),
                (long) (sent.size() + late.size()));
            for (var each : found.entrySet()) {
                if (each.getValue() != null && each.getValue().timestamp() < BASE + 5) {
                    throw new IllegalStateException("found " + each);
                }
            }
        }
        System.out.println("ok " + sent.size());
    }

    private static List<String> produce(String codec) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("compression.type", codec);
        settings.put("linger.ms", "5");
        settings.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        settings.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        List<String> values = new ArrayList<>();
        String run = Long.toString(System.nanoTime());
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            List<java.util.concurrent.Future<?>> results = new ArrayList<>();
            for (int i = 0; i < 12; i++) {
                String value = codec + "-" + run + "-" + i;
                values.add(value);
                results.add(producer.send(
                    new ProducerRecord<>(TOPIC, i % 4, BASE + i, "key-" + i, value)));
            }
            for (var each : results) {
                each.get();
            }
        }
        return values;
    }

    private static KafkaConsumer<String, String> consumer(String group) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", group);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("heartbeat.interval.ms", "200");
        settings.put("session.timeout.ms", "10000");
        settings.put("key.deserializer",
            "org.apache.kafka.common.serialization.StringDeserializer");
        settings.put("value.deserializer",
            "org.apache.kafka.common.serialization.StringDeserializer");
        KafkaConsumer<String, String> made = new KafkaConsumer<>(settings);
        made.subscribe(List.of(TOPIC));
        return made;
    }

    private static void until(String what, BooleanSupplier done) {
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        while (!done.getAsBoolean()) {
            if (System.currentTimeMillis() > deadline) {
                throw new IllegalStateException("in vain: " + what);
            }
        }
    }

    private static void check(String what, Object found, Object expected) {
        if (!found.equals(expected)) {
            throw new IllegalStateException(what + ": " + found + ", expected " + expected);
        }
    }
}
