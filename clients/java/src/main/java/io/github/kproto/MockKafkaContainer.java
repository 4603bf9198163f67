package io.github.kproto;

import com.github.dockerjava.api.command.InspectContainerResponse;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.wait.strategy.Wait;
import org.testcontainers.utility.DockerImageName;

/**
 * A mock cluster in a container, as a module of Testcontainers, of an image that was built with the repository's
 * Containerfile.
 *
 * <pre>{@code
 * @Container
 * MockKafkaContainer kafka = new MockKafkaContainer("kproto/mockbroker").withOptions("--topic", "foo:1:3");
 * ...
 * producer = new KafkaProducer<>(Map.of("bootstrap.servers", kafka.getBootstrapServers(), ...));
 * kafka.mock().stopBroker(2);
 * }</pre>
 */
public class MockKafkaContainer extends GenericContainer<MockKafkaContainer> {
    private static final int FIRST_PORT = 9092;
    private static final int CONTROL_PORT = 8080;

    private final String token = UUID.randomUUID().toString();
    private final List<String> options = new ArrayList<>();
    private int brokers = 3;
    private Mock mock;

    /** Takes the name of the image. */
    public MockKafkaContainer(String image) {
        this(DockerImageName.parse(image));
    }

    /** Takes the name of the image. */
    public MockKafkaContainer(DockerImageName image) {
        super(image);
        waitingFor(Wait.forLogMessage(".*\"bootstrap\".*\\n", 1));
    }

    /** How many brokers there are; three by default. */
    public MockKafkaContainer withBrokers(int brokers) {
        this.brokers = brokers;
        return this;
    }

    /** Adds options of mockbroker serve, such as --profile and kafka-3.9. */
    public MockKafkaContainer withOptions(String... options) {
        this.options.addAll(List.of(options));
        return this;
    }

    /** What bootstrap.servers takes. */
    public String getBootstrapServers() {
        return brokerIds().mapToObj(this::address).collect(Collectors.joining(","));
    }

    /** The cluster, for faults, operations and what it has recorded. */
    public Mock mock() {
        return mock;
    }

    @Override
    protected void configure() {
        addExposedPort(CONTROL_PORT);
        brokerIds().forEach(broker -> addExposedPort(FIRST_PORT + broker - 1));
        addEnv(ControlPort.TOKEN_VARIABLE, token);
        List<String> command = new ArrayList<>(List.of("--brokers", String.valueOf(brokers)));
        command.addAll(options);
        setCommandParts(command.toArray(String[]::new));
    }

    /** Clients are sent to published ports, which are known only now. */
    @Override
    protected void containerIsStarted(InspectContainerResponse info) {
        URI url = URI.create("http://" + getHost() + ":" + getMappedPort(CONTROL_PORT));
        ControlPort server = new ControlPort(url, token);
        mock = new Mock(server, server.get("/clusters/1", Mock.Cluster.class));
        brokerIds().forEach(broker -> mock.advertise(broker, address(broker)));
    }

    private IntStream brokerIds() {
        return IntStream.rangeClosed(1, brokers);
    }

    private String address(int broker) {
        return getHost() + ":" + getMappedPort(FIRST_PORT + broker - 1);
    }
}
