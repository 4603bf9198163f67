import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;

/**
 * The lines of the protocol of docs/reference/adapters.md: a greeting, then one JSON object per line
 * in, one answer per line out. It knows nothing of the clients behind {@link Performer}.
 */
final class AdapterLines {
    private static final ObjectMapper JSON = new ObjectMapper();

    private AdapterLines() {
    }

    /** Makes one call. */
    interface Performer {
        AdminAdapter.Returned perform(JsonNode call)
            throws AdminAdapter.Raised, AdminAdapter.Unsupported;
    }

    /** Greets, and answers each line until the input ends. {@code options} are the client's. */
    static void serve(
            String client, String version, List<String> capabilities, List<String> records,
            Map<String, Object> options, Performer performer) throws IOException {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        ObjectNode greeting = JSON.createObjectNode();
        greeting.put("client", client).put("version", version).put("language", "java");
        greeting.set("capabilities", JSON.valueToTree(capabilities.stream().sorted().toList()));
        greeting.putArray("connect").add("tls").add("oauthbearer");
        greeting.set("records", JSON.valueToTree(records));
        Map<String, Object> given = new LinkedHashMap<>(options);
        given.put("JVM", String.join(" ", ManagementFactory.getRuntimeMXBean().getInputArguments()));
        given.put("JVM's largest heap", (Runtime.getRuntime().maxMemory() >> 20) + " MiB");
        given.replaceAll((name, value) -> value.toString());
        greeting.set("options", JSON.valueToTree(given));
        out.println(greeting);
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(answer(JSON.readTree(line), performer));
        }
    }

    /** The release, from a resource that a jar of Kafka has. */
    static String version(String resource) throws IOException {
        try (InputStream in = ClassLoader.getSystemResourceAsStream(resource)) {
            Properties properties = new Properties();
            properties.load(in);
            return properties.getProperty("version");
        }
    }

    private static ObjectNode answer(JsonNode call, Performer performer) {
        ObjectNode answer = JSON.createObjectNode();
        try {
            AdminAdapter.Returned returned = performer.perform(call);
            answer.put("ok", true).put("raw", String.valueOf(returned.raw()));
            answer.set("result", returned.result());
        } catch (AdminAdapter.Unsupported unsupported) {
            answer.put("unsupported", unsupported.getMessage());
        } catch (AdminAdapter.Raised raised) {
            AdminAdapter.failure(answer.put("ok", false), raised.getCause());
            if (raised.records != null) {
                answer.set("records", raised.records);
            }
        } catch (Exception own) {
            answer.removeAll();
            AdminAdapter.failure(answer.putObject("adapter_error"), own);
        }
        return answer;
    }

    /** Makes all calls in parallel, each in its own thread; answers are in the order of calls. */
    static AdminAdapter.Returned together(JsonNode calls, Performer performer) {
        List<CompletableFuture<ObjectNode>> asked = new ArrayList<>();
        calls.forEach(each ->
            asked.add(CompletableFuture.supplyAsync(() -> answer(each, performer))));
        List<ObjectNode> answers = asked.stream().map(CompletableFuture::join).toList();
        return new AdminAdapter.Returned(null, JSON.valueToTree(answers));
    }
}
