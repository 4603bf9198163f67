import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.config.ConfigDef;

/** Prints the configs of topics and brokers that a release defines, one a line: kind, name, type,
 * "internal" or "public", "dynamic" or "static" (of a broker), the default as DescribeConfigs writes
 * it, after an equals sign, or nothing for null, and how the validator describes itself, separated
 * by tabs. */
public final class ConfigFacts {
    public static void main(String[] args) throws Exception {
        ConfigDef broker = found("listeners", "org.apache.kafka.server.config.AbstractKafkaConfig", "kafka.server.KafkaConfig$",
            "kafka.server.KafkaConfig");
        ConfigDef topic = found("cleanup.policy", "org.apache.kafka.storage.internals.log.LogConfig", "kafka.log.LogConfig$",
            "kafka.log.LogConfig");
        TreeSet<String> dynamic = dynamic();
        print("topic", topic, new TreeSet<>());
        print("broker", broker, dynamic);
    }

    private static void print(String kind, ConfigDef def, TreeSet<String> dynamic) throws Exception {
        for (Map.Entry<String, ConfigDef.ConfigKey> each : new TreeMap<>(def.configKeys()).entrySet()) {
            ConfigDef.ConfigKey key = each.getValue();
            System.out.println(String.join("\t", kind, key.name, key.type.name(),
                isInternal(key) ? "internal" : "public",
                dynamic.contains(key.name) ? "dynamic" : "static", defaultOf(key),
                String.valueOf(key.validator)));
        }
    }

    private static boolean isInternal(ConfigDef.ConfigKey key) throws Exception {
        try {
            return key.getClass().getField("internalConfig").getBoolean(key);
        } catch (NoSuchFieldException before_0_11) {
            return false;
        }
    }

    private static String defaultOf(ConfigDef.ConfigKey key) {
        Object value = key.defaultValue;
        if (value == null || value == ConfigDef.NO_DEFAULT_VALUE) {
            return "";
        }
        if (value instanceof java.util.List) {
            java.util.StringJoiner joined = new java.util.StringJoiner(",");
            ((java.util.List<?>) value).forEach(each -> joined.add(String.valueOf(each)));
            return "=" + joined;
        }
        return "=" + (value instanceof Class ? ((Class<?>) value).getName() : value);
    }

    /** The largest definition with that config among the fields of the first class that has one. */
    private static ConfigDef found(String config, String... classes) throws Exception {
        for (String name : classes) {
            Class<?> type;
            try {
                type = Class.forName(name);
            } catch (ClassNotFoundException absent) {
                continue;
            }
            ConfigDef best = null;
            Object module = null;
            try {
                module = type.getField("MODULE$").get(null);
            } catch (NoSuchFieldException none) {
                // a class of Java
            }
            for (Field field : type.getDeclaredFields()) {
                if (ConfigDef.class.isAssignableFrom(field.getType())) {
                    field.setAccessible(true);
                    boolean isStatic = java.lang.reflect.Modifier.isStatic(field.getModifiers());
                    if (isStatic || module != null) {
                        ConfigDef def = (ConfigDef) field.get(isStatic ? null : module);
                        if (def.configKeys().containsKey(config) && (best == null || def.configKeys().size() > best.configKeys().size())) {
                            best = def;
                        }
                    }
                }
            }
            if (best != null) {
                return best;
            }
        }
        throw new IllegalStateException("none of " + String.join(", ", classes));
    }

    private static TreeSet<String> dynamic() throws Exception {
        TreeSet<String> found = new TreeSet<>();
        for (String name : new String[] {"kafka.server.DynamicBrokerConfig$",
            "org.apache.kafka.server.config.DynamicBrokerConfig", "kafka.server.DynamicBrokerConfig"}) {
            Class<?> type;
            try {
                type = Class.forName(name);
            } catch (ClassNotFoundException absent) {
                continue;
            }
            Object module = null;
            try {
                module = type.getField("MODULE$").get(null);
            } catch (NoSuchFieldException none) {
                // a class of Java
            }
            for (String member : new String[] {"AllDynamicConfigs", "ALL_DYNAMIC_CONFIGS"}) {
                for (Field field : type.getDeclaredFields()) {
                    if (field.getName().equals(member)) {
                        field.setAccessible(true);
                        String text = field.get(module).toString();
                        int start = Math.max(text.indexOf('('), text.indexOf('[')) + 1;
                        for (String each : text.substring(start, text.length() - 1).split(", ")) {
                            found.add(each.strip());
                        }
                    }
                }
            }
        }
        return found;
    }
}
