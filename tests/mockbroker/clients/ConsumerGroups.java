import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import java.util.function.BooleanSupplier;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/**
 * Consumers of both protocols in one group: it is upgraded by a rolling restart, grows, shrinks, has
 * a static member that comes back, and is downgraded again.
 */
public final class ConsumerGroups {
    private static final String TOPIC = "foo";
    private static final long PATIENCE_MS = 60_000;

    private static String bootstrap;
    private static final List<KafkaConsumer<String, String>> open = new ArrayList<>();

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        KafkaConsumer<String, String> oldOne = consumer("classic", null);
        KafkaConsumer<String, String> oldTwo = consumer("classic", null);
        shared("classic", oldOne, oldTwo);

        KafkaConsumer<String, String> newOne = consumer("consumer", null);
        until("three", () -> poll() && sizes(1, oldOne, oldTwo, newOne) == 4);
        leave(oldOne);
        shared("mixed", oldTwo, newOne);
        KafkaConsumer<String, String> newTwo = consumer("consumer", "one");
        leave(oldTwo);
        shared("upgraded", newOne, newTwo);
        newOne.commitSync();

        Set<TopicPartition> had = new HashSet<>(newTwo.assignment());
        leave(newTwo);
        KafkaConsumer<String, String> back = consumer("consumer", "one");
        until("the static member is back", () -> poll() && back.assignment().equals(had));
        check("the other one", newOne.assignment().size(), 2);

        KafkaConsumer<String, String> matching = unsubscribed("consumer", null);
        matching.subscribe(Pattern.compile("fo+"));
        open.add(matching);
        until("a pattern", () -> poll() && sizes(1, newOne, back, matching) == 4);
        leave(matching);
        shared("shrunk", newOne, back);

        KafkaConsumer<String, String> late = consumer("classic", null);
        until("a late one", () -> poll() && sizes(1, newOne, back, late) == 4);
        leave(newOne);
        KafkaConsumer<String, String> replacing = consumer("classic", "one");
        open.remove(back);
        back.close();
        shared("downgraded", late, replacing);
        leave(late);
        until("all", () -> poll() && replacing.assignment().size() == 4);
        leave(replacing);
        System.out.println("ok");
    }

    private static void shared(
        String what, KafkaConsumer<String, String> one, KafkaConsumer<String, String> two) {
        until(what, () -> poll() && one.assignment().size() == 2 && two.assignment().size() == 2);
        Set<TopicPartition> both = new HashSet<>(one.assignment());
        both.addAll(two.assignment());
        check("partitions of both, " + what, both.size(), 4);
    }

    /** Every consumer is polled, as in programs of their own. */
    private static boolean poll() {
        open.forEach(each -> each.poll(Duration.ofMillis(50)));
        return true;
    }

    /** The number of partitions that they have together, if each has as many as that. */
    @SafeVarargs
    private static int sizes(int least, KafkaConsumer<String, String>... consumers) {
        Set<TopicPartition> all = new HashSet<>();
        for (KafkaConsumer<String, String> each : consumers) {
            if (each.assignment().size() < least) {
                return 0;
            }
            all.addAll(each.assignment());
        }
        return all.size();
    }

    private static void leave(KafkaConsumer<String, String> consumer) {
        open.remove(consumer);
        consumer.close();
    }

    private static KafkaConsumer<String, String> consumer(String protocol, String instance) {
        KafkaConsumer<String, String> made = unsubscribed(protocol, instance);
        made.subscribe(List.of(TOPIC));
        open.add(made);
        return made;
    }

    private static KafkaConsumer<String, String> unsubscribed(String protocol, String instance) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", "readers");
        settings.put("group.protocol", protocol);
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        if (instance != null) {
            settings.put("group.instance.id", instance);
        }
        if (protocol.equals("classic")) {
            settings.put("heartbeat.interval.ms", "200");
            settings.put("session.timeout.ms", "10000");
        }
        settings.put("metadata.max.age.ms", "500");
        settings.put("key.deserializer",
            "org.apache.kafka.common.serialization.StringDeserializer");
        settings.put("value.deserializer",
            "org.apache.kafka.common.serialization.StringDeserializer");
        return new KafkaConsumer<>(settings);
    }

    private static void until(String what, BooleanSupplier done) {
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        while (!done.getAsBoolean()) {
            if (System.currentTimeMillis() > deadline) {
                List<Object> found = new ArrayList<>();
                open.forEach(each -> found.add(each.assignment()));
                throw new IllegalStateException("in vain: " + what + ": " + found);
            }
        }
    }

    private static void check(String what, Object found, Object expected) {
        if (!found.equals(expected)) {
            throw new IllegalStateException(what + ": " + found + ", expected " + expected);
        }
    }
}
