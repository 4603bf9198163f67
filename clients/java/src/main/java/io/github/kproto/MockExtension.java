package io.github.kproto;

import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * Gives tests of JUnit 5 a parameter {@link MockClusters}, whose clusters end with the test. If the test fails, their
 * traffic is printed.
 *
 * <pre>{@code
 * @ExtendWith(MockExtension.class)
 * class RetryTest {
 *     @Test
 *     void retriesAfterALostAnswer(MockClusters clusters) {
 *         var mock = clusters.start(new ClusterOptions().topics("foo:1:3").strictFaults(true));
 *         mock.fault(new Fault().api("Produce").disconnect("after").times(1));
 *         ... // produces to mock.bootstrap()
 *         assertEquals(2, mock.requests("Produce").size());
 *     }
 * }
 * }</pre>
 */
public final class MockExtension implements ParameterResolver, AfterEachCallback {
    private static final Namespace NAMESPACE = Namespace.create(MockExtension.class);

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.getParameter().getType() == MockClusters.class && context.getTestMethod().isPresent();
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        String test = context.getRequiredTestClass().getSimpleName() + "." + context.getDisplayName();
        return context.getStore(NAMESPACE)
                .getOrComputeIfAbsent(MockClusters.class, type -> new MockClusters(test), MockClusters.class);
    }

    @Override
    public void afterEach(ExtensionContext context) {
        MockClusters started = context.getStore(NAMESPACE).get(MockClusters.class, MockClusters.class);
        if (started != null) {
            started.end(context.getExecutionException().isPresent());
        }
    }
}
