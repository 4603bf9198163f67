package org.apache.kafka.common.test.junit;

import java.util.List;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.junit.jupiter.api.extension.AfterTestExecutionCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.Extension;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;

/**
 * Takes the place of Kafka's class of this name, which starts a cluster in the process of the tests.
 * Each invocation of a test gets a mock cluster of its own: see {@link MockClusterInstance}.
 */
public class RaftClusterInvocationContext implements TestTemplateInvocationContext {
    private final String testName;
    private final ClusterConfig config;
    private final boolean combined;

    public RaftClusterInvocationContext(
            String baseDisplayName, ClusterConfig clusterConfig, boolean isCombined) {
        testName = baseDisplayName;
        config = clusterConfig;
        combined = isCombined;
    }

    @Override
    public String getDisplayName(int invocationIndex) {
        return testName + " [" + invocationIndex + "]";
    }

    @Override
    public List<Extension> getAdditionalExtensions() {
        MockClusterInstance cluster = new MockClusterInstance(config);
        if (combined && config.clusterTypes().contains(Type.KRAFT)) {
            // Where controllers run makes no difference to a mock cluster, and the same test runs
            // with controllers of their own.
            ExecutionCondition never = context ->
                ConditionEvaluationResult.disabled("brokers that are controllers, too");
            return List.of(never, new ClusterInstanceParameterResolver(cluster));
        }
        BeforeEachCallback start = context -> {
            if (config.isAutoStart()) {
                cluster.start();
            }
        };
        AfterTestExecutionCallback stop = context -> cluster.stop();
        return List.of(start, stop, new ClusterInstanceParameterResolver(cluster));
    }
}
