import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.platform.engine.DiscoverySelector;
import org.junit.platform.engine.FilterResult;
import org.junit.platform.engine.TestDescriptor;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.PostDiscoveryFilter;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.TestPlan;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * Runs JUnit tests and prints a line of JSON for each test method that ends. Arguments: the package of
 * the classes, a file with the names of tests to run, and JUnit's parameters as NAME=VALUE. A name is
 * {@code PACKAGE.Class#method}, without the package given; {@code Class#*} names all methods that the
 * file does not name with a leading minus. What the tests print goes into the file tests.log.
 */
public final class TestRunner implements TestExecutionListener {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String ALL = "#*";

    private final PrintStream out;
    private final String prefix;
    /** By test: the worst status of its invocations, and what they reported. */
    private final Map<String, String> statuses = new HashMap<>();
    private final Map<String, StringBuilder> outputs = new HashMap<>();

    private TestRunner(PrintStream out, String prefix) {
        this.out = out;
        this.prefix = prefix;
    }

    public static void main(String[] arguments) throws IOException {
        PrintStream out = System.out;
        // Apart from the results: a test may print at any time, from any thread.
        PrintStream log = new PrintStream(new FileOutputStream("tests.log"), true);
        System.setOut(log);
        System.setErr(log);
        String prefix = arguments[0];
        Set<String> chosen = new HashSet<>();
        Set<String> leftOut = new HashSet<>();
        for (String line : Files.readAllLines(Path.of(arguments[1]))) {
            if (line.startsWith("-")) {
                leftOut.add(line.substring(1));
            } else {
                chosen.add(line);
            }
        }
        List<DiscoverySelector> classes = new ArrayList<>();
        chosen.stream().map(each -> each.substring(0, each.indexOf('#'))).distinct().sorted()
            .forEach(each -> classes.add(DiscoverySelectors.selectClass(prefix + each)));
        PostDiscoveryFilter filter = descriptor -> {
            String name = nameOf(descriptor, prefix);
            return FilterResult.includedIf(name == null || !leftOut.contains(name)
                && (chosen.contains(name) || chosen.contains(classOf(name) + ALL)));
        };
        LauncherDiscoveryRequestBuilder request = LauncherDiscoveryRequestBuilder.request()
            .selectors(classes).filters(filter);
        for (int i = 2; i < arguments.length; i++) {
            String[] pair = arguments[i].split("=", 2);
            request.configurationParameter(pair[0], pair[1]);
        }
        LauncherDiscoveryRequest built = request.build();
        LauncherFactory.create().execute(built, new TestRunner(out, prefix));
        System.exit(0);
    }

    private static String classOf(String name) {
        return name.substring(0, name.indexOf('#'));
    }

    /** The name of a method's test, null for a class. */
    private static String nameOf(TestDescriptor descriptor, String prefix) {
        return descriptor.getSource().map(source -> nameOf(source, prefix)).orElse(null);
    }

    private static String nameOf(Object source, String prefix) {
        if (!(source instanceof MethodSource)) {
            return null;
        }
        MethodSource method = (MethodSource) source;
        return method.getClassName().substring(prefix.length()) + "#" + method.getMethodName();
    }

    @Override
    public void executionSkipped(TestIdentifier test, String reason) {
        end(test, "skipped", reason);
    }

    @Override
    public void executionFinished(TestIdentifier test, TestExecutionResult result) {
        String text = result.getThrowable().map(TestRunner::trace).orElse("");
        switch (result.getStatus()) {
            case SUCCESSFUL -> end(test, "passed", text);
            case ABORTED -> end(test, "skipped", text);
            default -> end(test, "failed", text);
        }
    }

    /**
     * A test of several invocations ends with its container; each of them may decide its status. Tests of
     * several classes may run at once.
     */
    private synchronized void end(TestIdentifier test, String status, String text) {
        String name = test.getSource().map(source -> nameOf(source, prefix)).orElse(null);
        if (name == null) {
            return;
        }
        boolean whole = test.getParentIdObject()
            .map(parent -> !parent.getLastSegment().getType().contains("template")).orElse(true);
        boolean counts = !test.isContainer() || !status.equals("passed");
        if (counts) {
            statuses.merge(name, status, TestRunner::worse);
            outputs.computeIfAbsent(name, key -> new StringBuilder()).append(text);
        }
        if (whole) {
            String output = outputs.getOrDefault(name, new StringBuilder()).toString();
            print(name, statuses.getOrDefault(name, status), output);
        }
    }

    /** An invocation that is skipped leaves the status to the others. */
    private static String worse(String one, String other) {
        if (one.equals("failed") || other.equals("failed")) {
            return "failed";
        }
        return one.equals("passed") || other.equals("passed") ? "passed" : "skipped";
    }

    private void print(String name, String status, String output) {
        try {
            out.println(JSON.writeValueAsString(
                Map.of("name", name, "status", status, "output", output)));
            out.flush();
        } catch (IOException problem) {
            throw new IllegalStateException(problem);
        }
    }

    private static String trace(Throwable problem) {
        StringWriter text = new StringWriter();
        problem.printStackTrace(new PrintWriter(text));
        return text.toString();
    }
}
