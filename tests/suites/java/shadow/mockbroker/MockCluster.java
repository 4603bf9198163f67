package mockbroker;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.URI;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * A mock cluster in a process whose control port is at the system property {@code mockbroker.control}.
 * Broker ids are those of Kafka's test kit: 0 and up. The first broker is the controller, and has the
 * configs of the controller 3000 of Kafka's test kit.
 */
public final class MockCluster implements AutoCloseable {
    /** The test needs what a mock cluster does not have. */
    public static final class NotMocked extends UnsupportedOperationException {
        public NotMocked(String what) {
            super(what);
        }
    }

    public static final int CONTROLLER = 3000;

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Pattern USER = Pattern.compile("user_([^\\s=]+)=\"([^\"]*)\"");

    private final int brokers;
    private final Map<String, String> configs;
    private final Map<String, Object> options = new TreeMap<>();
    private final Map<Integer, String> addresses = new TreeMap<>();
    private final Set<Integer> shutDown = new HashSet<>();
    private String id;

    /** {@code configs} are static configs of every broker. */
    public MockCluster(int brokers, Map<String, String> configs) {
        this.brokers = brokers;
        this.configs = new TreeMap<>(configs);
        // Three seconds by default, which the tests of groups would spend waiting.
        this.configs.putIfAbsent("group.initial.rebalance.delay.ms", "0");
        options.put("brokers", "0-" + (brokers - 1));
        options.put("broker_configs", this.configs);
        options.put("auto_create_topics", !"false".equals(configs.get("auto.create.topics.enable")));
        options.put("auto_progress_ms", 100);
        options.put("auto_retention_ms",
            Long.valueOf(this.configs.getOrDefault("log.retention.check.interval.ms", "300000")));
        options.put("profile", System.getProperty("mockbroker.profile"));
        // The reporters of tests are receivers of clients' metrics; those of a mock cluster keep them.
        options.put("client_telemetry", configs.containsKey("metric.reporters"));
    }

    // ---- what it is made of --------------------------------------------------------------------

    /** As Kafka formats the storage of a cluster: the metadata version decides on other features. */
    public void setFeatures(MetadataVersion version, Map<Feature, Short> chosen) {
        Map<String, Integer> levels = new TreeMap<>();
        Feature.PRODUCTION_FEATURES.forEach(each ->
            levels.put(each.featureName(), (int) each.defaultLevel(version)));
        chosen.forEach((each, level) -> levels.put(each.featureName(), (int) level));
        levels.put(MetadataVersion.FEATURE_NAME, (int) version.featureLevel());
        options.put("features", levels);
    }

    /** Static configs of single servers, by their ids. */
    public void setConfigsOfServers(Map<Integer, Map<String, String>> overrides) {
        Map<String, Map<String, String>> own = new TreeMap<>();
        Map<String, String> racks = new TreeMap<>();
        overrides.forEach((server, given) -> {
            if (server > CONTROLLER) {
                throw new NotMocked("configs of another controller");
            }
            String broker = String.valueOf(server == CONTROLLER ? 0 : server);
            Map<String, String> merged = own.computeIfAbsent(broker, each -> new TreeMap<>());
            merged.putAll(given);
            String rack = merged.remove("broker.rack");
            if (rack != null) {
                racks.put(broker, rack);
            }
        });
        options.put("own_broker_configs", own);
        options.put("racks", racks);
    }

    /** Requires clients to log in with PLAIN, and enforces access rules. */
    public void setUsers(Map<String, String> passwords, List<String> superUsers) {
        List<String> users = new ArrayList<>();
        passwords.forEach((user, password) -> users.add("PLAIN:" + user + ":" + password));
        options.put("sasl", users);
        options.put("authorizer", Map.of("super_users", superUsers));
    }

    /** The security of a listener, by the configs of its brokers. */
    public void setSecurity(String listener) {
        switch (protocolOf(listener)) {
            case PLAINTEXT -> { }
            case SASL_PLAINTEXT -> {
                String login = "listener.name." + listener.toLowerCase() + ".plain.sasl.jaas.config";
                Map<String, String> passwords = new HashMap<>();
                Matcher users = USER.matcher(configs.getOrDefault(login, ""));
                while (users.find()) {
                    passwords.put(users.group(1), users.group(2));
                }
                setUsers(passwords, List.of(configs.getOrDefault("super.users", "").split(";")));
            }
            default -> throw new NotMocked("listeners with " + protocolOf(listener));
        }
    }

    private SecurityProtocol protocolOf(String listener) {
        String protocols = configs.getOrDefault("listener.security.protocol.map", "");
        for (String each : protocols.split(",")) {
            String[] pair = each.trim().split(":");
            if (pair[0].equals(listener)) {
                return SecurityProtocol.forName(pair[1]);
            }
        }
        return SecurityProtocol.PLAINTEXT;
    }

    // ---- start and stop ------------------------------------------------------------------------

    public void start() {
        if (id == null) {
            JsonNode made = call("POST", "/clusters", options);
            id = made.get("id").asText();
            made.get("brokers").fields().forEachRemaining(
                each -> addresses.put(Integer.valueOf(each.getKey()), each.getValue().asText()));
        }
    }

    @Override
    public void close() {
        if (id != null && !addresses.isEmpty()) {
            call("DELETE", "/clusters/" + id, null);
            addresses.clear();
        }
    }

    public boolean started() {
        return id != null;
    }

    public boolean stopped() {
        return id != null && addresses.isEmpty();
    }

    public void shutDown(int broker) {
        step("stop-broker", broker);
        shutDown.add(broker);
    }

    public void startUp(int broker) {
        step("start-broker", broker);
        shutDown.remove(broker);
    }

    public boolean isShutDown(int broker) {
        return shutDown.contains(broker);
    }

    private void step(String name, int broker) {
        call("POST", "/clusters/" + id + "/" + name, Map.of("broker", broker));
    }

    // ---- addresses -----------------------------------------------------------------------------

    public Set<Integer> brokerIds() {
        return Collections.unmodifiableSet(addresses.keySet());
    }

    public List<Integer> ports() {
        return addresses.values().stream()
            .map(each -> Integer.valueOf(each.substring(each.lastIndexOf(':') + 1))).toList();
    }

    public String bootstrapServers() {
        return String.join(",", addresses.values());
    }

    private static JsonNode call(String method, String path, Object body) {
        String control = System.getProperty("mockbroker.control");
        if (control == null) {
            throw new NotMocked("a cluster where no mock runs");
        }
        try {
            // No java.net.http and no kept connection: the tests look for threads that live on.
            HttpURLConnection connection =
                (HttpURLConnection) URI.create(control).resolve(path).toURL().openConnection();
            connection.setRequestMethod(method);
            connection.setRequestProperty("Content-Type", "application/json");
            connection.setRequestProperty("Connection", "close");
            if (body != null) {
                connection.setDoOutput(true);
                connection.getOutputStream().write(JSON.writeValueAsBytes(body));
            }
            if (connection.getResponseCode() >= 300) {
                String answer = new String(connection.getErrorStream().readAllBytes());
                throw new IllegalStateException(method + " " + path + ": " + answer);
            }
            return JSON.readTree(connection.getInputStream());
        } catch (IOException problem) {
            throw new IllegalStateException(method + " " + path, problem);
        }
    }
}
