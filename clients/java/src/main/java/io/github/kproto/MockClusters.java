package io.github.kproto;

import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;

/** The clusters of a test or of a class of tests, by {@link MockExtension}. */
public final class MockClusters {
    private final String test;
    private final List<Mock> started = new CopyOnWriteArrayList<>();
    private volatile boolean failed;

    MockClusters(String test) {
        this.test = test;
    }

    /** Starts a cluster of three brokers of the newest release, which ends with the test or the class. */
    public Mock start() {
        return start(new ClusterOptions());
    }

    /** Starts a cluster that ends with the test or the class. */
    public Mock start(ClusterOptions options) {
        options.members.putIfAbsent("labels", Map.of("test", test));
        Mock mock = Kproto.start(options);
        started.add(mock);
        return mock;
    }

    /** Prints the traffic when the clusters end. */
    void fail() {
        failed = true;
    }

    /** Ends all of them. */
    void end() {
        AssertionError problems = null;
        for (Mock mock : started) {
            if (failed) {
                System.err.println("the journal of the mock cluster of " + test + ":\n" + journalOf(mock));
            }
            try {
                mock.close();
            } catch (AssertionError | RuntimeException problem) {
                if (problems == null) {
                    problems = problem instanceof AssertionError error ? error : new AssertionError(problem);
                } else {
                    problems.addSuppressed(problem);
                }
            }
        }
        if (problems != null) {
            throw problems;
        }
    }

    private static String journalOf(Mock mock) {
        try {
            return mock.journalText();
        } catch (RuntimeException problem) {
            return problem.getMessage();
        }
    }
}
