import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.util.Base64;
import java.util.Properties;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;

/** Reads properties files from standard input, each as a line of base64, and prints a line for each:
 * "ok" and what the broker's config says of its listeners, or "refused" and the message of the
 * exception, separated by tabs. */
public final class ListenerFacts {
    public static void main(String[] args) throws Exception {
        Class<?> type = Class.forName("kafka.server.KafkaConfig");
        Method fromProps = type.getMethod("fromProps", Properties.class);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Properties given = new Properties();
            given.load(new StringReader(new String(Base64.getDecoder().decode(line), StandardCharsets.UTF_8)));
            System.out.println(answer(type, fromProps, given).replace("\n", "\\n"));
        }
    }

    private static String answer(Class<?> type, Method fromProps, Properties given) throws Exception {
        try {
            Object config = fromProps.invoke(null, given);
            return "ok\t" + of(config, "listeners") + "\t"
                + of(config, "effectiveAdvertisedBrokerListeners", "effectiveAdvertisedListeners", "advertisedListeners")
                + "\t" + of(config, "interBrokerListenerName");
        } catch (java.lang.reflect.InvocationTargetException failed) {
            Throwable cause = failed.getCause();
            return "refused\t" + cause.getMessage();
        }
    }

    private static String of(Object config, String... names) throws Exception {
        for (String name : names) {
            Object found;
            try {
                found = config.getClass().getMethod(name).invoke(config);
            } catch (NoSuchMethodException other) {
                continue;
            }
            return String.valueOf(found);
        }
        throw new IllegalStateException(String.join(", ", names));
    }
}
