package io.github.kproto;

import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A running cluster. Methods throw {@link RefusedException} if the server refuses a request. */
public final class Mock extends Operations implements AutoCloseable {
    private static final int JOURNAL_LINES = 200;

    private final ControlPort port;
    private final Cluster cluster;

    Mock(ControlPort server, Cluster cluster) {
        this.port = server.ofCluster(cluster.id());
        this.cluster = cluster;
    }

    /** What the server says of the cluster. */
    public Cluster cluster() {
        return cluster;
    }

    /** The brokers' addresses, comma-separated, as {@code bootstrap.servers} takes them. */
    public String bootstrap() {
        return cluster.bootstrap();
    }

    /** Adds a fault rule in front of the existing ones. */
    public void fault(Fault rule) {
        port.post("/faults", Map.of("faults", List.of(rule)), Object.class);
    }

    /** The fault rules with their hits, in the order in which they are tried. */
    public List<Rule> rules() {
        return port.<Map<String, List<Rule>>>get("/faults", mapOf(listOf(Rule.class))).get("faults");
    }

    /** What the controller knows: brokers, and partitions by topic and number. */
    public State state() {
        return port.get("/state", State.class);
    }

    /** The recorded requests of an API, given by name or key. */
    public List<JournalEntry> requests(String api) {
        return requests(api, Map.of());
    }

    /** The recorded requests of an API that match the filters of {@link #journal}. */
    public List<JournalEntry> requests(String api, Map<String, ?> filters) {
        return journal(with(filters, "api", api, "direction", "request"));
    }

    /**
     * The recorded traffic. The filters are those of GET /journal: api, direction, client_id, broker, connection,
     * event, after, last.
     */
    public List<JournalEntry> journal(Map<String, ?> filters) {
        return port.get(ControlPort.path("/journal", filters), listOf(JournalEntry.class));
    }

    /** The newest traffic as text, one line a frame. */
    public String journalText() {
        return port.getText("/journal?last=" + JOURNAL_LINES);
    }

    /** The first request of an API, past or to come. */
    public JournalEntry waitFor(String api) {
        return waitFor(api, Map.of());
    }

    /**
     * The first request of an API, past or to come, that matches the filters of {@link #journal}. The filter timeout is
     * how long to wait: 30s by default, a minute at most.
     */
    public JournalEntry waitFor(String api, Map<String, ?> filters) {
        return waitForCount(1, api, filters).get(0);
    }

    /** The first so many requests of an API. */
    public List<JournalEntry> waitForCount(int count, String api) {
        return waitForCount(count, api, Map.of());
    }

    /** The first so many requests of an API that match the filters of {@link #waitFor(String, Map)}. */
    public List<JournalEntry> waitForCount(int count, String api, Map<String, ?> filters) {
        Map<String, Object> wanted = with(Map.of("timeout", "30s"), "api", api, "count", count);
        wanted.putAll(filters);
        return port.get(ControlPort.path("/journal/wait", wanted), listOf(JournalEntry.class));
    }

    /** The records of a partition such as foo-0. */
    public List<Record> records(String partition) {
        return records(partition, false);
    }

    /** Those that a consumer with read_committed gets, without the records of aborted transactions. */
    public List<Record> committedRecords(String partition) {
        return records(partition, true);
    }

    private List<Record> records(String partition, boolean committed) {
        String path = "/logs/" + ControlPort.encoded(partition) + "/records?max=10000&committed=" + committed;
        return port.<Records>get(path, Records.class).records();
    }

    /** The groups by id. */
    public Map<String, Group> groups() {
        return port.get("/groups", mapOf(Group.class));
    }

    /** A group, once it has a state, such as Stable, and so many members. */
    public Group waitForGroup(String group, String state, int members) {
        String path = "/groups/" + ControlPort.encoded(group) + "/wait";
        Map<String, ?> wanted = Map.of("state", state, "members", members, "timeout", "30s");
        return port.get(ControlPort.path(path, wanted), Group.class);
    }

    /** The committed offsets of a group by partition. */
    public Map<String, CommittedOffset> committed(String group) {
        return port.get("/offsets/" + ControlPort.encoded(group), mapOf(CommittedOffset.class));
    }

    /**
     * A part of a decoded body: {@code at(entry.body(), "topics", 0, "name")}.
     *
     * @throws IllegalArgumentException if the body has no such part
     */
    public static Object at(Object json, Object... path) {
        Object found = json;
        for (Object step : path) {
            if (found instanceof Map<?, ?> map && map.containsKey(step)) {
                found = map.get(step);
            } else if (found instanceof List<?> list && step instanceof Integer index && index < list.size()) {
                found = list.get(index);
            } else {
                throw new IllegalArgumentException("there is no " + step + " in " + found);
            }
        }
        return found;
    }

    /**
     * Ends the cluster.
     *
     * @throws AssertionError with strictFaults, if no request has hit one of the fault rules
     */
    @Override
    public void close() {
        List<String> problems = port.<RemovedCluster>delete("", RemovedCluster.class).problems();
        if (!problems.isEmpty()) {
            throw new AssertionError(String.join("; ", problems));
        }
    }

    @Override
    List<Action> carryOut(String operation, Object... namesAndValues) {
        Map<String, Object> body = with(Map.of(), namesAndValues);
        Type actions = mapOf(listOf(Action.class));
        return port.<Map<String, List<Action>>>post("/" + operation, body, actions).get("actions");
    }

    private static Map<String, Object> with(Map<String, ?> map, Object... namesAndValues) {
        Map<String, Object> found = new LinkedHashMap<>(map);
        for (int i = 0; i < namesAndValues.length; i += 2) {
            found.put((String) namesAndValues[i], namesAndValues[i + 1]);
        }
        return found;
    }

    private static Type listOf(Type item) {
        return new Generic(List.class, item);
    }

    private static Type mapOf(Type value) {
        return new Generic(Map.class, String.class, value);
    }

    private record Generic(Type getRawType, Type... getActualTypeArguments) implements ParameterizedType {
        @Override
        public Type getOwnerType() {
            return null;
        }
    }
}
