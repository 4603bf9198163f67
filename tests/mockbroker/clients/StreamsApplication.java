import java.nio.file.Files;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.Stores;

/**
 * Counts words with exactly-once semantics, through a repartition topic and a changelog.
 *
 * <p>The application fails once in the middle of a transaction, is closed and started again, and
 * gets a second instance. Whoever reads committed records must see each word counted 1, 2, 3, ...
 * with nothing left out and nothing twice. Arguments: bootstrap servers and group protocol.
 */
public final class StreamsApplication {
    private static final String APPLICATION = "counter";
    private static final long PATIENCE_MS = 120_000;
    private static final int WORDS = 7;
    private static final int ROUNDS = 20;

    private static String bootstrap;
    private static String protocol;
    private static final AtomicBoolean failed = new AtomicBoolean();
    private static int sent;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        protocol = arguments[1];
        Map<String, List<Long>> counts = new TreeMap<>();
        try (KafkaConsumer<String, String> reader = consumer()) {
            List<TopicPartition> partitions = reader.partitionsFor("out").stream()
                .map(each -> new TopicPartition("out", each.partition())).toList();
            reader.assign(partitions);
            reader.seekToBeginning(partitions);

            produce();
            KafkaStreams first = start("first");
            await(reader, counts);
            check("the application failed", failed.get(), true);
            first.close(Duration.ofMillis(PATIENCE_MS));
            produce();
            first = start("first");
            KafkaStreams second = start("second");
            await(reader, counts);
            awaitTasks(first, second);
            produce();
            await(reader, counts);
            second.close(Duration.ofMillis(PATIENCE_MS));
            produce();
            await(reader, counts);
            first.close(Duration.ofMillis(PATIENCE_MS));
            reader.poll(Duration.ofMillis(200)).forEach(record -> add(counts, record));
        }
        List<Long> wanted = IntStream.rangeClosed(1, sent / WORDS).mapToObj(Long::valueOf).toList();
        check("words", counts.size(), WORDS);
        counts.forEach((word, found) -> check(word, found, wanted));
        System.out.println("ok " + sent);
        System.exit(0);
    }

    private static Topology topology() {
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream("in")
            .map((key, word) -> KeyValue.pair(word, word))
            .groupByKey(Grouped.as("by-word"))
            .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts"))
                .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()))
            .toStream()
            .map((word, count) -> KeyValue.pair(word, count.toString()))
            .peek((word, count) -> fail(word, count))
            .to("out");
        return builder.build();
    }

    /** Throws once, when records of the transaction have been sent already. */
    private static void fail(String word, String count) {
        if (word.equals("word-3") && count.equals("10") && failed.compareAndSet(false, true)) {
            throw new IllegalStateException("on purpose");
        }
    }

    private static KafkaStreams start(String name) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("application.id", APPLICATION);
        properties.put("client.id", name);
        if (!protocol.isEmpty()) {
            properties.put("group.protocol", protocol);
        }
        properties.put("processing.guarantee", "exactly_once_v2");
        properties.put("commit.interval.ms", "100");
        properties.put("statestore.cache.max.bytes", "0");
        properties.put("state.dir", Files.createTempDirectory("streams").toString());
        properties.put("default.key.serde", Serdes.StringSerde.class.getName());
        properties.put("default.value.serde", Serdes.StringSerde.class.getName());
        properties.put("auto.offset.reset", "earliest");
        if (!protocol.equals("streams")) {  // where the coordinator decides on these
            properties.put("heartbeat.interval.ms", "200");
            // Members of classic groups do not leave when they are closed.
            properties.put("session.timeout.ms", "3000");
        }
        KafkaStreams streams = new KafkaStreams(topology(), properties);
        streams.setUncaughtExceptionHandler(error -> StreamThreadExceptionResponse.REPLACE_THREAD);
        streams.start();
        return streams;
    }

    /** Wait until both instances are running, each with active tasks. */
    private static void awaitTasks(KafkaStreams... instances) throws InterruptedException {
        long end = System.currentTimeMillis() + PATIENCE_MS;
        for (KafkaStreams each : instances) {
            while (tasks(each) == 0) {
                if (System.currentTimeMillis() > end) {
                    throw new IllegalStateException("an instance has no tasks: " + each.state());
                }
                Thread.sleep(20);
            }
        }
    }

    private static int tasks(KafkaStreams streams) {
        return streams.state() != KafkaStreams.State.RUNNING ? 0
            : streams.metadataForLocalThreads().stream()
                .mapToInt(thread -> thread.activeTasks().size()).sum();
    }

    /** Each word as often as there are rounds. */
    private static void produce() {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        properties.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(properties)) {
            for (int number = 0; number < WORDS * ROUNDS; number++, sent++) {
                producer.send(new ProducerRecord<>("in", "key-" + sent, "word-" + sent % WORDS));
            }
        }
    }

    private static KafkaConsumer<String, String> consumer() {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("isolation.level", "read_committed");
        properties.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        properties.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        return new KafkaConsumer<>(properties);
    }

    /** Read until everything that was sent has been counted. */
    private static void await(KafkaConsumer<String, String> reader, Map<String, List<Long>> counts) {
        long end = System.currentTimeMillis() + PATIENCE_MS;
        while (counts.values().stream().mapToInt(List::size).sum() < sent) {
            if (System.currentTimeMillis() > end) {
                Map<String, Integer> sizes = new HashMap<>();
                counts.forEach((word, found) -> sizes.put(word, found.size()));
                throw new IllegalStateException("of " + sent + " records: " + sizes);
            }
            reader.poll(Duration.ofMillis(100)).forEach(record -> add(counts, record));
        }
    }

    private static void add(Map<String, List<Long>> counts, ConsumerRecord<String, String> record) {
        counts.computeIfAbsent(record.key(), word -> new ArrayList<>()).add(Long.valueOf(record.value()));
    }

    private static void check(String what, Object found, Object wanted) {
        if (!found.equals(wanted)) {
            throw new IllegalStateException(what + ": " + found + ", not " + wanted);
        }
    }
}
