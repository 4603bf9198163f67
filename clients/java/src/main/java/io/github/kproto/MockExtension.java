package io.github.kproto;

import java.lang.reflect.Method;
import java.util.Optional;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * Gives tests of JUnit 5 a parameter {@link MockClusters}, whose clusters end with the test. If the test fails, their
 * traffic is printed. Methods with BeforeEach have those of the test; clusters of methods with BeforeAll are shared by
 * the tests of the class, and end with it.
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
public final class MockExtension implements ParameterResolver, AfterEachCallback, AfterAllCallback {
    private static final Namespace NAMESPACE = Namespace.create(MockExtension.class);

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.getParameter().getType() == MockClusters.class
                && parameter.getDeclaringExecutable() instanceof Method;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        String name = context.getRequiredTestClass().getSimpleName();
        String test = context.getTestMethod().isPresent() ? name + "." + context.getDisplayName() : name;
        return context.getStore(NAMESPACE)
                .getOrComputeIfAbsent(context.getUniqueId(), id -> new MockClusters(test), MockClusters.class);
    }

    @Override
    public void afterEach(ExtensionContext context) {
        end(context);
    }

    @Override
    public void afterAll(ExtensionContext context) {
        end(context);
    }

    private static void end(ExtensionContext context) {
        if (context.getExecutionException().isPresent()) {
            for (var each = Optional.of(context); each.isPresent(); each = each.get().getParent()) {
                clusters(each.get()).ifPresent(MockClusters::fail);
            }
        }
        clusters(context).ifPresent(MockClusters::end);
    }

    private static Optional<MockClusters> clusters(ExtensionContext context) {
        // By its id, because a store also has what those of its parents have.
        return Optional.ofNullable(context.getStore(NAMESPACE).get(context.getUniqueId(), MockClusters.class));
    }
}
