import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.streams.tests.SmokeTestClient;
import org.apache.kafka.streams.tests.SmokeTestDriver;

/**
 * Kafka Streams' own smoke test, with instances that come and go while its driver produces. The
 * arguments are the bootstrap servers, the group protocol, the number of keys, the records of each
 * key, and the seconds that the driver takes to produce them.
 */
public final class SmokeTest {
    private static final int INSTANCES = 4;

    private static final int PARTITIONS = 4;

    private static final short REPLICAS = 3;

    private static final Duration TURN = Duration.ofSeconds(3);

    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0];
        String protocol = arguments[1];
        int keys = Integer.parseInt(arguments[2]);
        int records = Integer.parseInt(arguments[3]);
        Duration duration = Duration.ofSeconds(Long.parseLong(arguments[4]));
        createTopics(bootstrap);
        CompletableFuture<Map<String, Set<Integer>>> produced =
            CompletableFuture.supplyAsync(
                () -> SmokeTestDriver.generate(bootstrap, keys, records, duration));
        Path folder = Files.createTempDirectory("smoke");
        Deque<SmokeTestClient> running = new ArrayDeque<>();
        int started = 0;
        while (started < INSTANCES || !produced.isDone()) {
            if (started < INSTANCES) {
                SmokeTestClient client = new SmokeTestClient("instance-" + started);
                client.start(settings(bootstrap, protocol, folder.resolve("state-" + started)));
                running.addLast(client);
                started++;
            }
            if (running.size() > 2) {
                running.removeFirst().closeAsync();
            }
            Thread.sleep(TURN.toMillis());
        }
        boolean passed =
            SmokeTestDriver.verify(bootstrap, produced.get(), records, true).passed();
        boolean failed = running.stream().anyMatch(SmokeTestClient::error);
        running.forEach(SmokeTestClient::close);
        System.out.println(passed && !failed ? "passed" : "failed");
        System.exit(passed && !failed ? 0 : 1);
    }

    private static void createTopics(String bootstrap) throws Exception {
        List<NewTopic> topics = Stream.of(SmokeTestDriver.topics())
            .map(name -> new NewTopic(name, PARTITIONS, REPLICAS)).toList();
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.createTopics(topics).all().get();
        }
    }

    private static Properties settings(String bootstrap, String protocol, Path folder) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("application.id", "SmokeTest");
        settings.put("processing.guarantee", "exactly_once_v2");
        settings.put("state.dir", folder.toString());
        settings.put("num.stream.threads", "2");
        settings.put("commit.interval.ms", "200");
        settings.put("statestore.cache.max.bytes", "0");
        settings.put("auto.offset.reset", "earliest");
        if (protocol.equals("classic")) {
            settings.put("heartbeat.interval.ms", "300");
            settings.put("session.timeout.ms", "10000");
        }
        settings.put("group.protocol", protocol);
        return settings;
    }
}
