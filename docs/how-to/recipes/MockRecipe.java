// A Java program against a mock Kafka cluster: copy Mock into your tests, and change main.
//
// Needs `mockbroker` on PATH (docs/how-to/install.md), org.apache.kafka:kafka-clients for the
// client shown here, and com.fasterxml.jackson.core:jackson-databind for JSON. Java 17 or newer.
// With both in a pom.xml:
//
//   mvn dependency:copy-dependencies -DoutputDirectory=lib
//   java -cp 'lib/*' MockRecipe.java

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.common.TopicPartition;

public class MockRecipe {

    /** A running cluster. It ends with close, and with this process in any case. */
    static class Mock implements AutoCloseable {
        private static final ObjectMapper JSON = new ObjectMapper();
        private final HttpClient http = HttpClient.newHttpClient();
        private final Process process;
        private final String control;
        final String bootstrap;

        Mock(String... options) throws IOException {
            List<String> command = new ArrayList<>(
                List.of("mockbroker", "serve", "--control", "127.0.0.1:0", "--exit-with-parent"));
            command.addAll(List.of(options));
            process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
            // The first line comes when every broker listens.
            String first = new BufferedReader(new InputStreamReader(process.getInputStream())).readLine();
            if (first == null) {
                throw new IOException("mockbroker did not start");
            }
            JsonNode ready = JSON.readTree(first);
            bootstrap = ready.get("bootstrap").asText();
            control = ready.get("control").asText();
        }

        JsonNode get(String path) throws Exception {
            return ask(HttpRequest.newBuilder(URI.create(control + path)).GET());
        }

        JsonNode post(String path, Map<String, ?> body) throws Exception {
            return ask(HttpRequest.newBuilder(URI.create(control + path))
                .header("Content-Type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString(JSON.writeValueAsString(body))));
        }

        private JsonNode ask(HttpRequest.Builder request) throws Exception {
            HttpResponse<String> response =
                http.send(request.build(), HttpResponse.BodyHandlers.ofString());
            JsonNode answer = JSON.readTree(response.body());
            if (response.statusCode() >= 300) {
                throw new IOException(answer.get("error").asText());
            }
            return answer;
        }

        @Override
        public void close() throws InterruptedException {
            process.destroy();
            process.waitFor();
        }
    }

    static void check(boolean holds, String otherwise) {
        if (!holds) {
            throw new AssertionError(otherwise);
        }
    }

    public static void main(String[] arguments) throws Exception {
        try (Mock mock = new Mock("--brokers", "4", "--topic", "foo=1,2,3");
                Admin admin = Admin.create(Map.<String, Object>of(
                    "bootstrap.servers", mock.bootstrap, "client.id", "recipe",
                    "default.api.timeout.ms", 30_000, "request.timeout.ms", 10_000))) {

            // The first time the broker says that the controller has moved.
            mock.post("/faults", Map.of("name", "moved", "api", "AlterPartitionReassignments",
                "error", "NOT_CONTROLLER", "times", 1));
            admin.alterPartitionReassignments(Map.of(new TopicPartition("foo", 0),
                Optional.of(new NewPartitionReassignment(List.of(2, 3, 4))))).all().get();

            // Nothing goes on until the test says so: broker 4 catches up, and it is done.
            mock.post("/join-isr", Map.of("partition", "foo-0", "broker", 4));
            JsonNode partition = mock.get("/state").at("/topics/foo/0");
            check(partition.get("replicas").toString().equals("[2,3,4]"), "foo-0 is " + partition);
            check(partition.get("adding").isEmpty(), "foo-0 is " + partition);

            // What the client said on the wire: it was refused once, and tried again.
            mock.get("/faults/moved/wait?hits=1");
            JsonNode said = mock.get("/journal?api=45&direction=request&client_id=recipe");
            check(said.size() == 2, said.size() + " requests, not 2: " + said);
            check(said.at("/1/body/topics/0/partitions/0/replicas").toString().equals("[2,3,4]"),
                "it asked for " + said.get(1));
        }
        System.out.println("It was refused once, and tried again.");
    }
}
