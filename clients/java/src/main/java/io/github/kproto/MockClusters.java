package io.github.kproto;

import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;

/** The clusters of a test, by {@link MockExtension}. */
public final class MockClusters {
    private final String test;
    private final List<Mock> started = new CopyOnWriteArrayList<>();

    MockClusters(String test) {
        this.test = test;
    }

    /** Starts a cluster of three brokers of the newest release, which ends with the test. */
    public Mock start() {
        return start(new ClusterOptions());
    }

    /** Starts a cluster that ends with the test. */
    public Mock start(ClusterOptions options) {
        options.members.putIfAbsent("labels", Map.of("test", test));
        Mock mock = Kproto.start(options);
        started.add(mock);
        return mock;
    }

    /** Ends all of them. */
    void end(boolean failed) {
        AssertionError problems = null;
        for (Mock mock : started) {
            try {
                if (failed) {
                    System.err.println("the journal of the mock cluster of " + test + ":\n" + mock.journalText());
                }
                mock.close();
            } catch (AssertionError problem) {
                problems = problem;
            }
        }
        if (problems != null) {
            throw problems;
        }
    }
}
