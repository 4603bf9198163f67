import io.github.kproto.MockKafkaContainer;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.Admin;

/** Runs the command of a container as a process, and publishes its ports as a container engine would. */
class ContainerProgram {
    static class Published extends MockKafkaContainer {
        private String first;

        Published() {
            super("kproto/mockbroker");
            withBrokers(2).withOptions("--topic", "foo:1:2");
            configure();
        }

        @Override
        public String getHost() {
            return "localhost";
        }

        /** Where the process listens, in place of the port in the container. */
        @Override
        public Integer getMappedPort(int port) {
            if (!getExposedPorts().contains(port)) {
                throw new IllegalArgumentException("port " + port + " is not exposed");
            }
            String place = port == 8080 ? "\"control\": \"http://127.0.0.1" : "\"" + (port - 9091) + "\": \"127.0.0.1";
            Matcher found = Pattern.compile(Pattern.quote(place) + ":([0-9]+)").matcher(first);
            if (!found.find()) {
                throw new IllegalStateException(place + " is not in " + first);
            }
            return Integer.valueOf(found.group(1));
        }

        void use() throws Exception {
            List<String> command = new ArrayList<>(List.of(
                    System.getenv("KPROTO_MOCKBROKER"), "serve", "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0",
                    "--exit-on-stdin-eof"));
            command.addAll(List.of(getCommandParts()));
            var builder = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT);
            builder.environment().putAll(getEnvMap());
            Process process = builder.start();
            first = new BufferedReader(new InputStreamReader(process.getInputStream())).readLine();
            containerIsStarted(null);
            try (var admin = Admin.create(Map.of("bootstrap.servers", getBootstrapServers()))) {
                for (var node : admin.describeCluster().nodes().get()) {
                    System.out.println(node.id() + " " + node.host() + " " + (node.port() == getMappedPort(9091 + node.id())));
                }
                mock().stopBroker(2);
                System.out.println(admin.describeCluster().nodes().get().size());
            }
            System.out.println(mock().requests("DescribeCluster").isEmpty());
            process.getOutputStream().close();
            process.waitFor();
        }
    }

    public static void main(String[] arguments) throws Exception {
        new Published().use();
    }
}
