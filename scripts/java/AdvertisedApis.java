import java.io.File;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Which versions of which APIs does a broker of a given release advertise to clients, and which a
 * KRaft controller?
 *
 * Usage: java AdvertisedApis.java SLF4J_JAR KAFKA_CLIENTS_JAR...
 *
 * Each kafka-clients jar is loaded in a class loader of its own, and its own ApiVersionsResponse is
 * asked through reflection, by the same call that the brokers of that era make. One line a jar and
 * broker mode ("controller" for a controller) goes to standard output: jar TAB mode TAB call TAB "key:min-max" separated by spaces.
 *
 * What every answer assumes: record format v2 between brokers where that era filters by it,
 * unstable API versions off, no client telemetry receiver, and, for a KRaft broker, that it has
 * heard from an active controller of the same release.
 */
public final class AdvertisedApis {
    private static final String REQUESTS = "org.apache.kafka.common.requests.";
    private static final String MESSAGE = "org.apache.kafka.common.message.";

    private final ClassLoader loader;
    private final Class<?> response;

    private AdvertisedApis(ClassLoader loader) throws ClassNotFoundException {
        this.loader = loader;
        this.response = Class.forName(REQUESTS + "ApiVersionsResponse", true, loader);
    }

    public static void main(String[] args) throws Exception {
        if (args.length < 2) {
            System.err.println("usage: AdvertisedApis SLF4J_JAR KAFKA_CLIENTS_JAR...");
            System.exit(2);
        }
        File slf4j = new File(args[0]);
        for (String path : Arrays.asList(args).subList(1, args.length)) {
            File jar = new File(path);
            URL[] urls = {jar.toURI().toURL(), slf4j.toURI().toURL()};
            ClassLoader platform = ClassLoader.getPlatformClassLoader();
            try (URLClassLoader loader = new URLClassLoader(urls, platform)) {
                new AdvertisedApis(loader).print(jar.getName());
            }
        }
    }

    private void print(String jar) throws Exception {
        if (listenerTypes() == null) {
            printBeforeListenerScopes(jar);
            return;
        }
        // 4.0 removed ZooKeeper and with it the ZK_BROKER scope.
        if (listenerType("ZK_BROKER") != null) {
            print(jar, "zk", "ApiVersionsResponse.filterApis(ZK_BROKER)",
                call("filterApis", "ZK_BROKER", null));
        }
        // A KRaft broker forwards some requests, and offers of those what its controller takes too.
        Map<Object, Object> controller = new LinkedHashMap<>();
        Object ofController = call("collectApis", "CONTROLLER", null);
        print(jar, "controller", "ApiVersionsResponse.collectApis(CONTROLLER)", ofController);
        for (Object api : (Iterable<?>) ofController) {
            controller.put(apiKey(read(api, "apiKey")), api);
        }
        print(jar, "kraft", "ApiVersionsResponse.intersectForwardableApis(BROKER, CONTROLLER's)",
            call("intersectForwardableApis", "BROKER", controller));
    }

    /** Before 2.8 a jar knows one kind of broker only. */
    private void printBeforeListenerScopes(String jar) throws Exception {
        Method best = null;
        for (Method method : response.getMethods()) {
            boolean fewer = best == null || method.getParameterCount() < best.getParameterCount();
            if (method.getName().equals("apiVersionsResponse") && fewer) {
                best = method;
            }
        }
        if (best == null) {
            print(jar, "zk", "ApiVersionsResponse.API_VERSIONS_RESPONSE",
                apis(response.getField("API_VERSIONS_RESPONSE").get(null)));
            return;
        }
        List<Object> arguments = new ArrayList<>();
        for (Class<?> type : best.getParameterTypes()) {
            if (type == int.class) {
                arguments.add(0); // throttle time
            } else if (type == byte.class) {
                arguments.add((byte) 2); // record format between brokers
            } else if (type.getSimpleName().equals("Features")) {
                arguments.add(type.getMethod("emptySupportedFeatures").invoke(null));
            } else {
                throw new IllegalStateException("unknown parameter in " + best);
            }
        }
        String shown = best.getParameterCount() == 0 ? "" : "magic 2";
        print(jar, "zk", "ApiVersionsResponse.apiVersionsResponse(" + shown + ")",
            apis(invoke(best, arguments.toArray())));
    }

    /** Calls the static method of that name; parameters are recognised by their types. */
    private Object call(String name, String listener, Map<Object, Object> controller)
            throws Exception {
        Method best = null;
        for (Method method : response.getMethods()) {
            boolean more = best == null || method.getParameterCount() > best.getParameterCount();
            if (method.getName().equals(name) && more) {
                best = method;
            }
        }
        if (best == null) {
            throw new IllegalStateException("this release has no ApiVersionsResponse." + name);
        }
        List<Object> arguments = new ArrayList<>();
        for (Class<?> type : best.getParameterTypes()) {
            if (type == boolean.class) {
                arguments.add(false); // unstable versions; client telemetry
            } else if (type == Map.class) {
                arguments.add(controller);
            } else if (type.getSimpleName().equals("ListenerType")) {
                arguments.add(listenerType(listener));
            } else if (type.getSimpleName().equals("RecordVersion")) {
                arguments.add(type.getMethod("current").invoke(null));
            } else if (type.getSimpleName().equals("Set") || type == Collection.class) {
                Class<?> keys = Class.forName("org.apache.kafka.common.protocol.ApiKeys", true, loader);
                Method scope = keys.getMethod("apisForListener", listenerTypes());
                arguments.add(scope.invoke(null, listenerType(listener)));
            } else {
                throw new IllegalStateException("unknown parameter in " + best);
            }
        }
        return invoke(best, arguments.toArray());
    }

    private Class<?> listenerTypes() {
        try {
            return Class.forName(MESSAGE + "ApiMessageType$ListenerType", true, loader);
        } catch (ClassNotFoundException e) {
            return null;
        }
    }

    private Object listenerType(String name) {
        for (Object type : listenerTypes().getEnumConstants()) {
            if (((Enum<?>) type).name().equals(name)) {
                return type;
            }
        }
        return null;
    }

    private Object apiKey(Object id) throws Exception {
        Class<?> keys = Class.forName("org.apache.kafka.common.protocol.ApiKeys", true, loader);
        return keys.getMethod("forId", int.class).invoke(null, ((Number) id).intValue());
    }

    /** The list of APIs inside a response object of any era. */
    private static Object apis(Object response) throws Exception {
        try {
            return response.getClass().getMethod("apiVersions").invoke(response);
        } catch (NoSuchMethodException e) {
            return read(read(response, "data"), "apiKeys");
        }
    }

    private static Object read(Object target, String name) throws Exception {
        try {
            return target.getClass().getMethod(name).invoke(target);
        } catch (NoSuchMethodException e) {
            Field field = target.getClass().getField(name);
            return field.get(target);
        }
    }

    private static Object invoke(Method method, Object[] arguments) throws Exception {
        try {
            return method.invoke(null, arguments);
        } catch (InvocationTargetException e) {
            throw new IllegalStateException(method + " failed", e.getCause());
        }
    }

    private static void print(String jar, String mode, String call, Object apis) throws Exception {
        TreeMap<Integer, String> ranges = new TreeMap<>();
        for (Object api : (Iterable<?>) apis) {
            int key = ((Number) read(api, "apiKey")).intValue();
            ranges.put(key, key + ":" + read(api, "minVersion") + "-" + read(api, "maxVersion"));
        }
        System.out.println(String.join("\t", jar, mode, call, String.join(" ", ranges.values())));
    }
}
