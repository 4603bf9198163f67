// The situations of ../situations.txt with kafka-clients.

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.kproto.ClusterOptions;
import io.github.kproto.Fault;
import io.github.kproto.Mock;
import io.github.kproto.MockClusters;
import io.github.kproto.MockExtension;
import io.github.kproto.NewRecord;
import io.github.kproto.NewRecords;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

@ExtendWith(MockExtension.class)
@Execution(ExecutionMode.CONCURRENT)
@Timeout(value = 2, unit = TimeUnit.MINUTES)
class SituationsTest {
    private static final TopicPartition FOO = new TopicPartition("foo", 0);

    private static ClusterOptions topics(String... topics) {
        return new ClusterOptions().topics(topics);
    }

    private static Map<String, Object> configs(Mock mock, Map<String, ?> more) {
        Map<String, Object> found = new HashMap<>(more);
        found.put("bootstrap.servers", mock.bootstrap());
        return found;
    }

    private static Producer<String, String> producer(Mock mock, Map<String, ?> more) {
        return new KafkaProducer<>(configs(mock, more), new StringSerializer(), new StringSerializer());
    }

    private static Producer<String, String> producer(Mock mock) {
        return producer(mock, Map.of());
    }

    private static Consumer<String, String> consumer(Mock mock, Map<String, ?> more) {
        Map<String, Object> configs = configs(mock, more);
        configs.put("auto.offset.reset", "earliest");
        configs.put("enable.auto.commit", false);
        return new KafkaConsumer<>(configs, new StringDeserializer(), new StringDeserializer());
    }

    private static Consumer<String, String> assigned(Mock mock) {
        Consumer<String, String> made = consumer(mock, Map.of());
        made.assign(List.of(FOO));
        return made;
    }

    private static Consumer<String, String> member(Mock mock) {
        Consumer<String, String> made = consumer(mock, Map.of("group.id", "g", "heartbeat.interval.ms", 100));
        made.subscribe(List.of("foo"));
        return made;
    }

    private static Admin admin(Mock mock) {
        return Admin.create(configs(mock, Map.of()));
    }

    private static void send(Producer<String, String> producer, String value) throws Exception {
        producer.send(new ProducerRecord<>("foo", value)).get();
    }

    private static List<String> values(Consumer<String, String> consumer, int count) {
        List<String> found = new ArrayList<>();
        while (found.size() < count) {
            consumer.poll(Duration.ofMillis(100)).forEach(record -> found.add(record.value()));
        }
        return found;
    }

    private static Map<TopicPartition, Optional<NewPartitionReassignment>> reassigned(Integer... replicas) {
        return Map.of(FOO, Optional.of(new NewPartitionReassignment(List.of(replicas))));
    }

    @Test
    void happyPath(MockClusters clusters) throws Exception {
        var mock = clusters.start(topics("foo:1:3"));
        // What JSON escapes, in both directions.
        String odd = "\"quoted\" \\ \t\n\u0001 \u00fc \ud83d\ude00";
        mock.append("foo-0", new NewRecords().records(new NewRecord().value(odd)));
        try (var producer = producer(mock); var consumer = assigned(mock)) {
            send(producer, "a");
            assertEquals(List.of(odd, "a"), values(consumer, 2));
        }
        assertEquals(List.of(odd, "a"), mock.records("foo-0").stream().map(Mock.Record::value).toList());
        assertEquals(-1, Mock.at(mock.requests("Produce").get(0).body(), "acks"));
    }

    @Test
    void lostAcknowledgement(MockClusters clusters) throws Exception {
        var mock = clusters.start(topics("foo:1:3").strictFaults(true));
        mock.fault(new Fault().api("Produce").disconnect("after").times(1));
        try (var producer = producer(mock)) {
            send(producer, "a");
        }
        assertEquals(2, mock.requests("Produce").size());
        assertEquals(1, mock.records("foo-0").size());
    }

    @Test
    void fencedProducer(MockClusters clusters) throws Exception {
        var mock = clusters.start(topics("foo:1:3", "__transaction_state:1:3"));
        Map<String, ?> configs = Map.of("transactional.id", "t");
        try (var first = producer(mock, configs); var second = producer(mock, configs)) {
            first.initTransactions();
            first.beginTransaction();
            send(first, "a");
            second.initTransactions();
            second.beginTransaction();
            send(second, "b");
            assertThrows(ProducerFencedException.class, first::commitTransaction);
            second.commitTransaction();
            assertEquals(1, mock.committedRecords("foo-0").size());
            assertEquals("b", mock.committedRecords("foo-0").get(0).value());
        }
    }

    @Test
    void rebalanceInMidBatch(MockClusters clusters) throws Exception {
        var mock = clusters.start(topics("foo:1:3"));
        try (var producer = producer(mock); var consumer = member(mock)) {
            send(producer, "a");
            assertEquals(List.of("a"), values(consumer, 1));
            var before = mock.waitForGroup("g", "Stable", 1);
            mock.rebalance("g");
            assertEquals(List.of("a"), values(consumer, 1)); // it was not committed
            assertTrue(mock.groups().get("g").generation() > before.generation());
            send(producer, "b");
            assertEquals(List.of("b"), values(consumer, 1));
            consumer.commitSync();
        }
        assertEquals(2, mock.committed("g").get("foo-0").offset());
    }

    @Test
    void leaderChange(MockClusters clusters) throws Exception {
        var mock = clusters.start(topics("foo:1:3"));
        try (var producer = producer(mock)) {
            send(producer, "a");
            int leader = mock.state().topics().get("foo").get("0").leader();
            mock.stopBroker(leader);
            send(producer, "b");
            assertNotEquals(leader, mock.state().topics().get("foo").get("0").leader());
        }
        assertEquals(2, mock.records("foo-0").size());
    }

    @Test
    void coordinatorMove(MockClusters clusters) throws Exception {
        var mock = clusters.start(topics("foo:1:3"));
        try (var producer = producer(mock); var consumer = member(mock)) {
            send(producer, "a");
            values(consumer, 1);
            int to = mock.requests("JoinGroup").get(0).brokerId() % 3 + 1;
            mock.moveCoordinator("group", "g", to);
            consumer.commitSync();
            mock.waitFor("OffsetCommit", Map.of("broker", to));
        }
        assertEquals(1, mock.committed("g").get("foo-0").offset());
    }

    @Test
    void throttle(MockClusters clusters) throws Exception {
        var mock = clusters.start(topics("foo:1:3").strictFaults(true));
        mock.fault(new Fault().api("Produce").throttle("200ms").times(1));
        try (var producer = producer(mock)) {
            send(producer, "a");
            send(producer, "b");
        }
        var sent = mock.requests("Produce");
        assertTrue(sent.get(1).timestampNs() - sent.get(0).timestampNs() > 150_000_000);
    }

    @Test
    void unsupportedVersion(MockClusters clusters) {
        var mock = clusters.start(topics("foo:1:3").apis(Map.of("45", "off")));
        try (var admin = admin(mock)) {
            var altered = admin.alterPartitionReassignments(reassigned(2, 3, 1)).all();
            var error = assertThrows(ExecutionException.class, altered::get);
            assertInstanceOf(UnsupportedVersionException.class, error.getCause());
        }
        assertEquals(List.of(), mock.requests("45"));
    }

    /** The oldest release that Kafka's own clients of today accept. */
    @Test
    void oldRelease(MockClusters clusters) throws Exception {
        var mock = clusters.start(topics("foo:1:3").profile("kafka-2.1"));
        try (var producer = producer(mock); var consumer = assigned(mock)) {
            send(producer, "a");
            assertEquals(List.of("a"), values(consumer, 1));
        }
        assertEquals(7, mock.requests("Produce").get(0).apiVersion());
    }

    @Test
    void reassignmentWatched(MockClusters clusters) throws Exception {
        var mock = clusters.start(topics("foo=1,2,3").brokers(4).strictFaults(true));
        mock.fault(new Fault().api("AlterPartitionReassignments").error("NOT_CONTROLLER").times(1));
        try (var admin = admin(mock)) {
            admin.alterPartitionReassignments(reassigned(2, 3, 4)).all().get();
        }
        assertEquals(List.of(4), mock.state().topics().get("foo").get("0").adding());
        mock.joinIsr("foo-0", 4);
        assertEquals(List.of(2, 3, 4), mock.state().topics().get("foo").get("0").replicas());
        assertEquals(2, mock.requests("AlterPartitionReassignments").size());
    }

    @Test
    void poisonRecord(MockClusters clusters) throws Exception {
        var mock = clusters.start(topics("foo:1:3"));
        try (var producer = producer(mock); var consumer = assigned(mock)) {
            send(producer, "poison");
            mock.corruptBatch("foo-0", 0, "crc");
            mock.append("foo-0", new NewRecords().records(new NewRecord().value("good")));
            assertThrows(KafkaException.class, () -> values(consumer, 1));
            consumer.seek(FOO, 1);
            assertEquals(List.of("good"), values(consumer, 1));
        }
    }

    @RepeatedTest(50)
    void fiftyInParallel(MockClusters clusters) throws Exception {
        var mock = clusters.start(topics("foo:1:3"));
        try (var producer = producer(mock)) {
            send(producer, "a");
        }
        assertEquals(1, mock.records("foo-0").size());
    }
}
