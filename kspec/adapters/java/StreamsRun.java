import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Queue;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.BooleanSupplier;
import java.util.regex.Pattern;
import org.apache.kafka.clients.producer.ProducerInterceptor;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.TaskMetadata;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.StreamPartitioner;
import org.apache.kafka.streams.processor.TopicNameExtractor;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;

/**
 * One application of Kafka Streams: a source, a processor, and sinks that write where a record says.
 *
 * <p>The processor keeps what it reads until {@link #takeRead}, and forwards what {@link #send} hands
 * over. What becomes of those records is what the producer tells its interceptor. An exception that
 * Streams leaves to the application ends the instance, as it does without a handler.
 */
final class StreamsRun {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String THIS = "kspec.run";
    private static final Duration TURN = Duration.ofMillis(10);
    private static final long COMMIT_NANOS = 2_000_000_000L;

    /** Topics by name, or by a pattern if that is not null, and where to copy them, or null. */
    record Sources(List<String> topics, Pattern pattern, String copyTo) {
    }

    /** What the producer told of a record: an error, or where it is. */
    record Outcome(RecordMetadata metadata, Exception error) {
    }

    /** A record to write; {@code partition}, {@code key} and {@code value} may be null. */
    static final class Outgoing {
        private final String topic;
        private final Integer partition;
        private final byte[] key;
        private final byte[] value;
        private volatile Outcome outcome;

        Outgoing(String topic, Integer partition, byte[] key, byte[] value) {
            this.topic = topic;
            this.partition = partition;
            this.key = key;
            this.value = value;
        }

        String topic() {
            return topic;
        }

        /** Null while there is none. */
        Outcome outcome() {
            return outcome;
        }
    }

    private final KafkaStreams streams;
    private final Queue<ObjectNode> read = new ConcurrentLinkedQueue<>();
    private final Queue<Outgoing> toSend = new ConcurrentLinkedQueue<>();
    private volatile Outgoing inSink;
    private volatile Thread forwarding;
    private volatile boolean hasFailedRecord;
    private volatile Throwable ended;
    private volatile boolean isReported;
    private volatile int tasksMade;
    private volatile int commitsRequested;
    private volatile double commitsBefore;
    private final String copyTo;

    /** Starts it. {@code config} has the options of Streams. */
    StreamsRun(Properties config, Sources sources) {
        copyTo = sources.copyTo();
        config.put("producer.interceptor.classes", Outcomes.class.getName());
        config.put(THIS, this);
        streams = new KafkaStreams(topology(sources), config);
        streams.setUncaughtExceptionHandler(error -> {
            ended = error;
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.start();
    }

    private Topology topology(Sources sources) {
        Topology topology = new Topology();
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        if (sources.pattern() == null) {
            String[] topics = sources.topics().toArray(String[]::new);
            topology.addSource("source", bytes, bytes, topics);
        } else {
            topology.addSource("source", bytes, bytes, sources.pattern());
        }
        Serializer<Outgoing> keys = (topic, record) -> record.key;
        Serializer<Outgoing> values = (topic, record) -> {
            inSink = record;  // the producer gets it next, in this thread
            return record.value;
        };
        TopicNameExtractor<Outgoing, Outgoing> extractor = (key, value, context) -> value.topic;
        topology.addProcessor("processor", Reader::new, "source");
        topology.addSink("partition", extractor, keys, values, new Chosen(), "processor");
        topology.addSink("any partition", extractor, keys, values, "processor");
        return topology;
    }

    /** The partition that the record names. */
    private static final class Chosen implements StreamPartitioner<Outgoing, Outgoing> {
        @Override
        public Optional<Set<Integer>> partitions(
                String topic, Outgoing key, Outgoing value, int count) {
            return Optional.of(Set.of(value.partition));
        }

        /** Releases before 4.0 require it. */
        public Integer partition(String topic, Outgoing key, Outgoing value, int count) {
            return value.partition;
        }
    }

    /** The processor of one task. */
    private final class Reader implements Processor<byte[], byte[], Outgoing, Outgoing> {
        private ProcessorContext<Outgoing, Outgoing> context;
        private int requested = commitsRequested;

        @Override
        public void init(ProcessorContext<Outgoing, Outgoing> given) {
            context = given;
            tasksMade++;
            context.schedule(TURN, PunctuationType.WALL_CLOCK_TIME, this::takeTurn);
        }

        @Override
        public void process(Record<byte[], byte[]> record) {
            var at = context.recordMetadata().orElseThrow();
            ObjectNode found = JSON.createObjectNode();
            found.put("topic", at.topic()).put("partition", at.partition()).put("offset", at.offset());
            found.set("key", DataClients.text(record.key()));
            found.set("value", DataClients.text(record.value()));
            read.add(found);
            if (copyTo != null) {
                byte[] key = record.key();
                forward(new Outgoing(copyTo, at.partition(), key, record.value()), record.timestamp());
            }
        }

        /** Forwards what is to be sent. A record that cannot be forwarded stays. */
        private void takeTurn(long now) {
            for (Outgoing each = toSend.peek(); each != null; each = toSend.peek()) {
                forward(each, now);
                toSend.remove(each);
            }
            if (requested != commitsRequested) {
                requested = commitsRequested;
                commitsBefore = commits();
                context.commit();
            }
        }

        private void forward(Outgoing record, long now) {
            forwarding = Thread.currentThread();
            try {
                context.forward(
                    new Record<>(record, record, now),
                    record.partition == null ? "any partition" : "partition");
            } finally {
                forwarding = null;
            }
        }
    }

    private void noteOutcome(Outgoing record, Outcome outcome) {
        hasFailedRecord |= outcome.error != null;
        record.outcome = outcome;
    }

    /** Notes what the producer tells of each record. The producer makes it by its name. */
    public static final class Outcomes implements ProducerInterceptor<byte[], byte[]> {
        private final Map<Headers, Outgoing> sent =
            Collections.synchronizedMap(new IdentityHashMap<>());
        private StreamsRun run;

        @Override
        public void configure(Map<String, ?> config) {
            run = (StreamsRun) config.get(THIS);
        }

        @Override
        public ProducerRecord<byte[], byte[]> onSend(ProducerRecord<byte[], byte[]> record) {
            sent.put(record.headers(), run.inSink);
            return record;
        }

        /** Releases before 4.1 have no other, which does not tell the records apart. */
        @Override
        public void onAcknowledgement(RecordMetadata metadata, Exception error) {
        }

        /** A record that the producer does not take has a copy of its headers. */
        public void onAcknowledgement(RecordMetadata metadata, Exception error, Headers headers) {
            Outgoing known = sent.remove(headers);
            Outgoing record =
                known == null && run.forwarding == Thread.currentThread() ? run.inSink : known;
            if (record != null) {
                run.noteOutcome(record, new Outcome(metadata, error));
            }
        }

        @Override
        public void close() {
            sent.clear();
        }
    }

    /** Moves the records that were read into {@code found}. */
    void takeRead(ArrayNode found) {
        for (ObjectNode each = read.poll(); each != null; each = read.poll()) {
            found.add(each);
        }
    }

    /** The exception that ended the instance, or null. */
    Throwable ended() {
        return ended;
    }

    /** {@link #ended}, of which the caller tells the application. */
    Throwable report() {
        isReported = true;
        return ended;
    }

    boolean isReported() {
        return isReported;
    }

    boolean hadTask() {
        return tasksMade > 0;
    }

    /** Hands the records over and waits until each has an outcome, the instance has ended, or the
     * time is over. */
    void send(List<Outgoing> records, long ends) {
        toSend.addAll(records);
        await(ends, () -> isOver() || records.stream().allMatch(each -> each.outcome != null));
        toSend.removeAll(records);
    }

    /**
     * Has Streams commit if a record has failed since it last did: only then does it raise what it
     * kept of that failure, if it raises it at all. The application knows of it already.
     */
    void settle() {
        if (hasFailedRecord && ended == null) {
            int before = tasksMade;
            commit(System.nanoTime() + COMMIT_NANOS, () -> tasksMade != before);
        }
        isReported |= hasFailedRecord && ended != null;
        hasFailedRecord = false;
    }

    private boolean isOver() {
        return ended != null && streams.state().hasCompletedShutdown();
    }

    /** Has each task commit. False if Streams has not done it in time, or has ended. */
    boolean commit(long ends) {
        return commit(ends, () -> false);
    }

    private boolean commit(long ends, BooleanSupplier isVain) {
        commitsBefore = Double.POSITIVE_INFINITY;
        commitsRequested++;
        await(ends, () -> ended != null || commits() > commitsBefore || isVain.getAsBoolean());
        return commits() > commitsBefore;
    }

    private double commits() {
        return streams.metrics().values().stream()
            .filter(each -> each.metricName().name().equals("commit-total"))
            .filter(each -> each.metricName().group().equals("stream-thread-metrics"))
            .mapToDouble(each -> (double) each.metricValue()).sum();
    }

    /** The partitions of the tasks, ascending. */
    Set<TopicPartition> assignment() {
        Set<TopicPartition> found = new TreeSet<>(
            Comparator.comparing(TopicPartition::topic).thenComparing(TopicPartition::partition));
        tasks().forEach(each -> found.addAll(each.topicPartitions()));
        return found;
    }

    /** What the tasks have committed, as Streams describes them. */
    Map<TopicPartition, Long> committed() {
        Map<TopicPartition, Long> found = new HashMap<>();
        tasks().forEach(each -> found.putAll(each.committedOffsets()));
        return found;
    }

    private List<TaskMetadata> tasks() {
        return streams.metadataForLocalThreads().stream()
            .flatMap(each -> each.activeTasks().stream()).toList();
    }

    /** False if it was not closed in time. */
    boolean close(int ms) {
        return streams.close(Duration.ofMillis(ms));
    }

    private static void await(long ends, BooleanSupplier isDone) {
        while (!isDone.getAsBoolean() && System.nanoTime() < ends) {
            pause();
        }
    }

    static void pause() {
        try {
            Thread.sleep(5);
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }
}
