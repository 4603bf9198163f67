import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;

/**
 * Runs main methods of Kafka's command-line tools in one process: a JVM's start takes longer than
 * most of them do. A line in is a class name, the standard input in base64 and the arguments,
 * separated by U+001F; a line out is the exit code, standard output and standard error, the latter
 * two in base64.
 */
public class ToolRunner {
    private static final class Exited extends Error {
        Exited(int code) {
            super("exit " + code, null, false, false);
        }
    }

    private static final ByteArrayOutputStream out = new ByteArrayOutputStream();
    private static final ByteArrayOutputStream err = new ByteArrayOutputStream();

    /** Of the first exit: some tools catch what it throws here, and then exit again. */
    private static Integer exitCode;

    /** What a tool does when its process ends: the console producer sends its last batch then. */
    private static final List<Runnable> shutdownHooks = new ArrayList<>();

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        // Set once for all commands: Scala's Console keeps the streams that it finds at first.
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        replaceExits();
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\u001f", -1);
            out.reset();
            err.reset();
            exitCode = null;
            shutdownHooks.clear();
            System.setIn(new ByteArrayInputStream(Base64.getDecoder().decode(words[1])));
            int code = run(words[0], Arrays.copyOfRange(words, 2, words.length));
            shutdownHooks.forEach(Runnable::run);
            System.out.flush();
            System.err.flush();
            answers.println(code + " " + encode(out) + " " + encode(err));
            answers.flush();
        }
    }

    /** By reflection: Exit has another package since 4.4, and knows no hooks in old releases. */
    private static void replaceExits() throws ReflectiveOperationException {
        String exit = "org.apache.kafka.common.utils.internals.Exit";
        try {
            Class.forName(exit);
        } catch (ClassNotFoundException before) {
            exit = "org.apache.kafka.common.utils.Exit";
        }
        set(exit, "setExitProcedure", "$Procedure", (proxy, method, arguments) -> {
            if (exitCode == null) {
                exitCode = (Integer) arguments[0];
            }
            throw new Exited((Integer) arguments[0]);
        });
        try {
            set(exit, "setShutdownHookAdder", "$ShutdownHookAdder", (proxy, method, arguments) -> {
                shutdownHooks.add((Runnable) arguments[1]);
                return null;
            });
        } catch (ClassNotFoundException absent) {
            return;
        }
    }

    private static void set(String exit, String setter, String kind, InvocationHandler handler)
        throws ReflectiveOperationException {
        Class<?> wanted = Class.forName(exit + kind);
        Object made =
            Proxy.newProxyInstance(wanted.getClassLoader(), new Class<?>[] {wanted}, handler);
        Class.forName(exit).getMethod(setter, wanted).invoke(null, made);
    }

    private static int run(String name, String[] words) {
        try {
            Class.forName(name).getMethod("main", String[].class).invoke(null, (Object) words);
        } catch (InvocationTargetException problem) {
            if (exitCode == null) {
                problem.getCause().printStackTrace();
                return 1;
            }
        } catch (ReflectiveOperationException | LinkageError wrongClassPath) {
            wrongClassPath.printStackTrace();
            return 1;
        }
        return exitCode == null ? 0 : exitCode;
    }

    private static String encode(ByteArrayOutputStream stream) {
        // A text may be empty, and the line must still have three words.
        return "=" + Base64.getEncoder().encodeToString(stream.toByteArray());
    }
}
