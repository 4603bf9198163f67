package io.github.kproto;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/**
 * Starts mock Kafka clusters: a cluster per test, which any client connects to, and which the test disturbs and
 * inspects. Tests may run in parallel.
 *
 * <pre>{@code
 * try (var mock = Kproto.start(new ClusterOptions().topics("foo:1:3").strictFaults(true))) {
 *     mock.fault(new Fault().api("Produce").disconnect("after").times(1));
 *     ... // produces to mock.bootstrap()
 *     assertEquals(2, mock.requests("Produce").size());
 * }
 * }</pre>
 *
 * The first cluster of a JVM starts one server, the command mockbroker, which ends with the JVM, however that ends.
 *
 * @see MockExtension
 */
public final class Kproto {
    private static final String URL_VARIABLE = "KPROTO_MOCKBROKER_URL";
    private static final String COMMAND_VARIABLE = "KPROTO_MOCKBROKER";
    private static final String INSTALL = "uv tool install 'kproto[mock] @ git+https://github.com/kproto/kproto'";

    /** Its standard input is open as long as this process runs, and the server ends when that closes. */
    private static Process process;

    private static URI url;

    private Kproto() {}

    /** Starts a cluster of three brokers of the newest release. */
    public static Mock start() {
        return start(new ClusterOptions());
    }

    /**
     * Starts a cluster, which ends with {@link Mock#close}.
     *
     * @throws RefusedException if the server does not accept the options
     */
    public static Mock start(ClusterOptions options) {
        ControlPort server = new ControlPort(server());
        return new Mock(server, server.post("/clusters?timeout=1m", options, Mock.Cluster.class));
    }

    private static synchronized URI server() {
        if (url == null) {
            String running = System.getenv(URL_VARIABLE);
            url = URI.create(running != null ? running.replaceAll("/$", "") : startServer());
        }
        return url;
    }

    private static String startServer() {
        String named = System.getenv(COMMAND_VARIABLE);
        String command = named != null ? named : "mockbroker";
        try {
            process = new ProcessBuilder(
                            command, "serve", "--no-cluster", "--control", "127.0.0.1:0", "--exit-on-stdin-eof")
                    .redirectError(ProcessBuilder.Redirect.INHERIT)
                    .start();
        } catch (IOException error) {
            if (named != null) {
                throw new UncheckedIOException(error);
            }
            throw new IllegalStateException(
                    "there is no mockbroker on PATH, in " + COMMAND_VARIABLE + " or at " + URL_VARIABLE
                            + "; install it: " + INSTALL,
                    error);
        }
        try {
            String first = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))
                    .readLine();
            if (first == null) {
                throw new IllegalStateException(command + " did not start");
            }
            return (String) ((Map<?, ?>) Json.parse(first)).get("control");
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
