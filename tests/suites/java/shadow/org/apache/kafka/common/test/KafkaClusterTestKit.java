package org.apache.kafka.common.test;

import java.io.File;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import mockbroker.MockCluster;
import mockbroker.MockCluster.NotMocked;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.metadata.BrokerState;
import org.mockito.Mockito;

/**
 * Takes the place of Kafka's class of this name, on which the embedded clusters of the tests of Kafka
 * Streams and Connect rely: a mock cluster with the brokers and the configs of the test.
 */
public class KafkaClusterTestKit implements AutoCloseable {
    public static class Builder {
        private final TestKitNodes nodes;
        private final Map<String, String> configs = new HashMap<>();

        public Builder(TestKitNodes nodes) {
            this.nodes = nodes;
        }

        public Builder setConfigProp(String key, Object value) {
            configs.put(key, value instanceof Password hidden ? hidden.value() : String.valueOf(value));
            return this;
        }

        public KafkaClusterTestKit build() {
            return new KafkaClusterTestKit(nodes, configs);
        }
    }

    private final TestKitNodes nodes;
    private final MockCluster cluster;
    private final MockFaultHandler fatalFaults = new MockFaultHandler("fatalFaultHandler");
    private final MockFaultHandler nonFatalFaults = new MockFaultHandler("nonFatalFaultHandler");
    private final Map<Integer, BrokerServer> brokers = new TreeMap<>();

    private KafkaClusterTestKit(TestKitNodes nodes, Map<String, String> configs) {
        this.nodes = nodes;
        Map<Integer, Map<String, String>> overrides = new TreeMap<>();
        nodes.controllerNodes().forEach((id, node) -> overrides.put(id, node.propertyOverrides()));
        nodes.brokerNodes().forEach((id, node) -> overrides.put(id, node.propertyOverrides()));
        cluster = new MockCluster(nodes.brokerNodes().size(), configs);
        cluster.setFeatures(nodes.bootstrapMetadata().metadataVersion(), Map.of());
        cluster.setConfigsOfServers(overrides);
        cluster.setSecurity(nodes.brokerListenerName().value());
        nodes.brokerNodes().keySet().forEach(id -> brokers.put(id, broker(id)));
    }

    /** A broker that tests may stop and start, but not look into. */
    private BrokerServer broker(int id) {
        return Mockito.mock(BrokerServer.class, call -> switch (call.getMethod().getName()) {
            case "brokerState" ->
                cluster.isShutDown(id) ? BrokerState.NOT_RUNNING : BrokerState.RUNNING;
            case "isShutdown" -> cluster.isShutDown(id);
            case "shutdown" -> {
                cluster.shutDown(id);
                yield null;
            }
            case "startup" -> {
                cluster.startUp(id);
                yield null;
            }
            case "awaitShutdown" -> null;
            case "hashCode" -> id;
            case "toString" -> "broker " + id;
            default -> throw new NotMocked("objects of a broker");
        });
    }

    public void format() {
    }

    public void startup() {
        cluster.start();
    }

    public void waitForReadyBrokers() {
    }

    public String bootstrapServers() {
        return cluster.bootstrapServers();
    }

    public Map<Integer, BrokerServer> brokers() {
        return Collections.unmodifiableMap(brokers);
    }

    public Map<Integer, ControllerServer> controllers() {
        throw new NotMocked("objects of a controller");
    }

    public TestKitNodes nodes() {
        return nodes;
    }

    public MockFaultHandler fatalFaultHandler() {
        return fatalFaults;
    }

    public MockFaultHandler nonFatalFaultHandler() {
        return nonFatalFaults;
    }

    @Override
    public void close() throws Exception {
        cluster.close();
        Utils.delete(new File(nodes.baseDirectory()));
    }
}
