package org.apache.kafka.common.test.junit;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.lang.reflect.Proxy;
import java.net.HttpURLConnection;
import java.net.URI;
import java.util.Collection;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.GroupProtocol;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.JaasUtils;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.fault.FaultHandlerException;
import org.apache.kafka.test.TestUtils;

/**
 * A mock cluster in a process whose control port is at the system property {@code mockbroker.control}.
 * Broker ids are those of Kafka's test kit: 0 and up. A test that looks into a broker's objects, or
 * whose config has what a mock cluster lacks, fails with {@link NotMocked}.
 */
final class MockClusterInstance implements ClusterInstance {
    /** The test needs what a mock cluster does not have. */
    static final class NotMocked extends UnsupportedOperationException {
        NotMocked(String what) {
            super(what);
        }
    }

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final URI CONTROL = URI.create(System.getProperty("mockbroker.control"));
    private static final int CONTROLLER = 3000;
    private static final String PROFILE = System.getProperty("mockbroker.profile");

    private final ClusterConfig config;
    private String id;
    private final Map<Integer, String> addresses = new TreeMap<>();
    private final Set<Integer> shutDown = new HashSet<>();

    MockClusterInstance(ClusterConfig config) {
        this.config = config;
    }

    // ---- start and stop ------------------------------------------------------------------------

    @Override
    public void start() {
        if (id != null) {
            return;
        }
        Map<String, String> configs = new TreeMap<>(config.serverProperties());
        // Three seconds by default, which the tests of groups would spend waiting.
        configs.putIfAbsent("group.initial.rebalance.delay.ms", "0");
        Map<String, Object> options = new TreeMap<>();
        options.put("brokers", "0-" + (config.numBrokers() - 1));
        options.put("broker_configs", configs);
        options.put("auto_create_topics", !"false".equals(configs.get("auto.create.topics.enable")));
        options.put("auto_progress_ms", 100);
        options.put("profile", PROFILE);
        options.put("features", featureLevels());
        // The reporters of tests are receivers of clients' metrics; those of a mock cluster keep them.
        options.put("client_telemetry", configs.containsKey("metric.reporters"));
        putConfigsOfBrokers(options);
        putSecurity(options);
        JsonNode made = call("POST", "/clusters", options);
        id = made.get("id").asText();
        made.get("brokers").fields().forEachRemaining(
            each -> addresses.put(Integer.valueOf(each.getKey()), each.getValue().asText()));
    }

    /** As Kafka formats the storage of a cluster: the metadata version decides on other features. */
    private Map<String, Integer> featureLevels() {
        Map<String, Integer> levels = new TreeMap<>();
        Feature.PRODUCTION_FEATURES.forEach(each ->
            levels.put(each.featureName(), (int) each.defaultLevel(config.metadataVersion())));
        config.features().forEach((each, level) -> levels.put(each.featureName(), (int) level));
        levels.put(MetadataVersion.FEATURE_NAME, (int) config.metadataVersion().featureLevel());
        return levels;
    }

    /** The first broker is a mock cluster's controller, and has the configs of a controller. */
    private void putConfigsOfBrokers(Map<String, Object> options) {
        Map<String, Map<String, String>> own = new TreeMap<>();
        Map<String, String> racks = new TreeMap<>();
        config.perServerOverrideProperties().forEach((server, overrides) -> {
            if (server > CONTROLLER) {
                throw new NotMocked("configs of another controller");
            }
            String id = String.valueOf(server == CONTROLLER ? 0 : server);
            Map<String, String> configs = own.computeIfAbsent(id, each -> new TreeMap<>());
            configs.putAll(overrides);
            String rack = configs.remove("broker.rack");
            if (rack != null) {
                racks.put(id, rack);
            }
        });
        options.put("own_broker_configs", own);
        options.put("racks", racks);
    }

    /** The users and the authorizer of Kafka's test kit. */
    private void putSecurity(Map<String, Object> options) {
        switch (config.brokerSecurityProtocol()) {
            case PLAINTEXT -> { }
            case SASL_PLAINTEXT -> {
                options.put("sasl", List.of(
                    "PLAIN:" + JaasUtils.KAFKA_PLAIN_ADMIN + ":" + JaasUtils.KAFKA_PLAIN_ADMIN_PASSWORD,
                    "PLAIN:" + JaasUtils.KAFKA_PLAIN_USER1 + ":" + JaasUtils.KAFKA_PLAIN_USER1_PASSWORD));
                options.put("authorizer", Map.of(
                    "super_users", List.of("User:" + JaasUtils.KAFKA_PLAIN_ADMIN)));
            }
            default -> throw new NotMocked("listeners with " + config.brokerSecurityProtocol());
        }
    }

    @Override
    public boolean started() {
        return id != null;
    }

    @Override
    public void stop() {
        if (id != null && !addresses.isEmpty()) {
            call("DELETE", "/clusters/" + id, null);
            addresses.clear();
        }
    }

    @Override
    public boolean stopped() {
        return id != null && addresses.isEmpty();
    }

    @Override
    public void shutdownBroker(int brokerId) {
        step("stop-broker", brokerId);
        shutDown.add(brokerId);
    }

    @Override
    public void startBroker(int brokerId) {
        step("start-broker", brokerId);
        shutDown.remove(brokerId);
    }

    private void step(String name, int brokerId) {
        call("POST", "/clusters/" + id + "/" + name, Map.of("broker", brokerId));
    }

    private static JsonNode call(String method, String path, Object body) {
        try {
            // No java.net.http and no kept connection: the tests look for threads that live on.
            HttpURLConnection connection =
                (HttpURLConnection) CONTROL.resolve(path).toURL().openConnection();
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

    // ---- what a cluster is ---------------------------------------------------------------------

    @Override
    public Type type() {
        return Type.KRAFT;
    }

    @Override
    public ClusterConfig config() {
        return config;
    }

    @Override
    public String bootstrapServers() {
        return String.join(",", addresses.values());
    }

    @Override
    public String bootstrapControllers() {
        throw new NotMocked("a controller's listener");
    }

    @Override
    public ListenerName clientListener() {
        return config.brokerListenerName();
    }

    @Override
    public ListenerName controllerListenerName() {
        return config.controllerListenerName();
    }

    @Override
    public String clusterId() {
        try (Admin admin = admin()) {
            return admin.describeCluster().clusterId().get();
        } catch (Exception problem) {
            throw new IllegalStateException(problem);
        }
    }

    @Override
    public Set<Integer> controllerIds() {
        return Set.of(CONTROLLER);
    }

    @Override
    public Set<Integer> brokerIds() {
        return Collections.unmodifiableSet(addresses.keySet());
    }

    @Override
    public List<Integer> brokerBoundPorts() {
        return addresses.values().stream()
            .map(each -> Integer.valueOf(each.substring(each.lastIndexOf(':') + 1))).toList();
    }

    @Override
    public Set<GroupProtocol> supportedGroupProtocols() {
        return Set.of(GroupProtocol.CLASSIC, GroupProtocol.CONSUMER);
    }

    @Override
    public Map<Integer, KafkaBroker> brokers() {
        return known(brokerIds());
    }

    @Override
    public Map<Integer, KafkaBroker> aliveBrokers() {
        Set<Integer> ids = new TreeSet<>(brokerIds());
        ids.removeAll(shutDown);
        return known(ids);
    }

    private Map<Integer, KafkaBroker> known(Set<Integer> ids) {
        Map<Integer, KafkaBroker> found = new TreeMap<>();
        ids.forEach(each -> found.put(each, broker(each)));
        return Collections.unmodifiableMap(found);
    }

    /** A broker that tests may stop and start, but not look into. */
    private KafkaBroker broker(int id) {
        return (KafkaBroker) Proxy.newProxyInstance(
            KafkaBroker.class.getClassLoader(), new Class<?>[] {KafkaBroker.class},
            (proxy, method, arguments) -> switch (method.getName()) {
                case "isShutdown" -> shutDown.contains(id);
                case "shutdown" -> {
                    shutdownBroker(id);
                    yield null;
                }
                case "startup" -> {
                    startBroker(id);
                    yield null;
                }
                case "awaitShutdown" -> null;
                default -> throw new NotMocked("objects of a broker");
            });
    }

    @Override
    public Map<Integer, ControllerServer> controllers() {
        throw new NotMocked("objects of a broker");
    }

    @Override
    public Optional<FaultHandlerException> firstFatalException() {
        return Optional.empty();
    }

    @Override
    public Optional<FaultHandlerException> firstNonFatalException() {
        return Optional.empty();
    }

    // ---- waiting: as clients see it ------------------------------------------------------------

    @Override
    public void waitForReadyBrokers() {
    }

    @Override
    public void waitTopicCreation(String topic, int partitions) throws InterruptedException {
        try (Admin admin = admin()) {
            TestUtils.waitForCondition(() -> {
                try {
                    return admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic)
                        .partitions().size() == partitions;
                } catch (java.util.concurrent.ExecutionException missing) {
                    return false;
                }
            }, topic + " was not created");
        }
    }

    @Override
    public void waitTopicDeletion(String topic) throws InterruptedException {
        try (Admin admin = admin()) {
            TestUtils.waitForCondition(
                () -> !admin.listTopics().names().get().contains(topic), topic + " was not deleted");
        }
    }

    @Override
    public void ensureConsistentMetadata() {
    }

    @Override
    public void waitAcls(AclBindingFilter filter, Collection<AccessControlEntry> entries)
            throws InterruptedException {
        try (Admin admin = admin()) {
            TestUtils.waitForCondition(() -> {
                List<AccessControlEntry> found = admin.describeAcls(filter).values().get().stream()
                    .map(each -> each.entry()).toList();
                return found.containsAll(entries) && entries.containsAll(found);
            }, "access rules are not " + entries);
        }
    }
}
