package org.apache.kafka.common.test.junit;

import java.lang.reflect.Proxy;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;
import mockbroker.MockCluster;
import mockbroker.MockCluster.NotMocked;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.GroupProtocol;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.JaasUtils;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.server.fault.FaultHandlerException;
import org.apache.kafka.test.TestUtils;

/**
 * A mock cluster for one invocation of a test. A test that looks into a broker's objects, or whose
 * config has what a mock cluster lacks, fails with {@link NotMocked}.
 */
final class MockClusterInstance implements ClusterInstance {
    private final ClusterConfig config;
    private final MockCluster cluster;

    MockClusterInstance(ClusterConfig config) {
        this.config = config;
        cluster = new MockCluster(config.numBrokers(), config.serverProperties());
        cluster.setFeatures(config.metadataVersion(), config.features());
    }

    // ---- start and stop ------------------------------------------------------------------------

    @Override
    public void start() {
        if (!cluster.started()) {
            cluster.setConfigsOfServers(config.perServerOverrideProperties());
            putSecurity();
            cluster.start();
        }
    }

    /** The users and the authorizer of Kafka's test kit. */
    private void putSecurity() {
        switch (config.brokerSecurityProtocol()) {
            case PLAINTEXT -> { }
            case SASL_PLAINTEXT -> cluster.setUsers(
                Map.of(
                    JaasUtils.KAFKA_PLAIN_ADMIN, JaasUtils.KAFKA_PLAIN_ADMIN_PASSWORD,
                    JaasUtils.KAFKA_PLAIN_USER1, JaasUtils.KAFKA_PLAIN_USER1_PASSWORD),
                List.of("User:" + JaasUtils.KAFKA_PLAIN_ADMIN));
            default -> throw new NotMocked("listeners with " + config.brokerSecurityProtocol());
        }
    }

    @Override
    public boolean started() {
        return cluster.started();
    }

    @Override
    public void stop() {
        cluster.close();
    }

    @Override
    public boolean stopped() {
        return cluster.stopped();
    }

    @Override
    public void shutdownBroker(int brokerId) {
        cluster.shutDown(brokerId);
    }

    @Override
    public void startBroker(int brokerId) {
        cluster.startUp(brokerId);
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
        return cluster.bootstrapServers();
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
        return Set.of(MockCluster.CONTROLLER);
    }

    @Override
    public Set<Integer> brokerIds() {
        return cluster.brokerIds();
    }

    @Override
    public List<Integer> brokerBoundPorts() {
        return cluster.ports();
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
        ids.removeIf(cluster::isShutDown);
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
                case "isShutdown" -> cluster.isShutDown(id);
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
