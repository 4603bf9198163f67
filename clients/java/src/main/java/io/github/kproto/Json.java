package io.github.kproto;

import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Map.Entry;
import java.util.stream.Collectors;

/**
 * JSON as values of the JDK: Map, List, String, Integer or Long or Double, Boolean and null; and these as records. It
 * reads what the control port writes, and is no validator.
 */
final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    // ---- text to values ----

    static Object parse(String text) {
        Json json = new Json(text);
        Object found = json.value();
        if (json.peek() != 0) {
            throw json.unexpected();
        }
        return found;
    }

    private Object value() {
        char first = peek();
        if (first == '{') {
            return object();
        }
        if (first == '[') {
            return array();
        }
        if (first == '"') {
            return string();
        }
        int start = at;
        while (at < text.length() && ",]} \t\r\n".indexOf(text.charAt(at)) < 0) {
            at++;
        }
        String word = text.substring(start, at);
        return switch (word) {
            case "null" -> null;
            case "true" -> true;
            case "false" -> false;
            default -> number(word);
        };
    }

    private Object number(String word) {
        try {
            if (!word.matches("-?[0-9]+")) {
                return Double.valueOf(word);
            }
            long whole = Long.parseLong(word);
            // Tests compare with literals, which are int.
            return whole == (int) whole ? (Object) (int) whole : (Object) whole;
        } catch (NumberFormatException error) {
            throw unexpected();
        }
    }

    private Map<String, Object> object() {
        Map<String, Object> found = new LinkedHashMap<>();
        at++;
        while (peek() != '}') {
            String name = string();
            skip(':');
            found.put(name, value());
            skipComma('}');
        }
        at++;
        return found;
    }

    private List<Object> array() {
        List<Object> found = new ArrayList<>();
        at++;
        while (peek() != ']') {
            found.add(value());
            skipComma(']');
        }
        at++;
        return found;
    }

    private String string() {
        skip('"');
        StringBuilder found = new StringBuilder();
        while (character() != '"') {
            char each = text.charAt(at++);
            found.append(each == '\\' ? escaped() : each);
        }
        at++;
        return found.toString();
    }

    private char escaped() {
        char escape = character();
        at++;
        switch (escape) {
            case 'b':
                return '\b';
            case 'f':
                return '\f';
            case 'n':
                return '\n';
            case 'r':
                return '\r';
            case 't':
                return '\t';
            case 'u':
                if (at + 4 > text.length()) {
                    throw unexpected();
                }
                at += 4;
                return (char) Integer.parseInt(text.substring(at - 4, at), 16);
            default:
                return escape;
        }
    }

    /** The character here; 0 at the end, white space skipped. */
    private char peek() {
        while (at < text.length() && text.charAt(at) <= ' ') {
            at++;
        }
        return at < text.length() ? text.charAt(at) : 0;
    }

    private char character() {
        if (at == text.length()) {
            throw unexpected();
        }
        return text.charAt(at);
    }

    private void skip(char expected) {
        if (peek() != expected) {
            throw unexpected();
        }
        at++;
    }

    private void skipComma(char end) {
        if (peek() != end) {
            skip(',');
        }
    }

    private IllegalArgumentException unexpected() {
        return new IllegalArgumentException("not JSON at character " + at + ": " + text);
    }

    // ---- values to records ----

    @SuppressWarnings("unchecked")
    static <T> T read(String text, Type type) {
        return (T) as(type, parse(text));
    }

    private static Object as(Type type, Object value) {
        if (value == null) {
            return null;
        }
        if (type instanceof ParameterizedType generic) {
            Type[] arguments = generic.getActualTypeArguments();
            Type item = arguments[arguments.length - 1];
            if (value instanceof List<?> list) {
                return list.stream().map(each -> as(item, each)).toList();
            }
            Map<Object, Object> found = new LinkedHashMap<>();
            ((Map<?, ?>) value).forEach((name, each) -> found.put(name, as(item, each)));
            return found;
        }
        if (type == long.class || type == Long.class) {
            return ((Number) value).longValue();
        }
        if (type == double.class || type == Double.class) {
            return ((Number) value).doubleValue();
        }
        return type instanceof Class<?> known && known.isRecord() ? record(known, (Map<?, ?>) value) : value;
    }

    private static Object record(Class<?> type, Map<?, ?> members) {
        RecordComponent[] components = type.getRecordComponents();
        Class<?>[] types = new Class<?>[components.length];
        Object[] values = new Object[components.length];
        Map<Object, Object> others = new LinkedHashMap<>(members);
        for (int i = 0; i < components.length; i++) {
            String name = components[i].getName().replaceAll("([A-Z])", "_$1").toLowerCase();
            types[i] = components[i].getType();
            values[i] = name.equals("others") ? others : as(components[i].getGenericType(), members.get(name));
            others.remove(name);
        }
        try {
            return type.getDeclaredConstructor(types).newInstance(values);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    // ---- values to text ----

    static String write(Object value) {
        if (value instanceof Members<?> built) {
            return write(built.members);
        }
        if (value instanceof Map<?, ?> map) {
            return map.entrySet().stream().map(Json::member).collect(Collectors.joining(",", "{", "}"));
        }
        if (value instanceof Collection<?> list) {
            return list.stream().map(Json::write).collect(Collectors.joining(",", "[", "]"));
        }
        if (value instanceof Number || value instanceof Boolean || value == null) {
            return String.valueOf(value);
        }
        return quoted(value.toString());
    }

    private static String member(Entry<?, ?> entry) {
        return quoted(String.valueOf(entry.getKey())) + ":" + write(entry.getValue());
    }

    private static String quoted(String text) {
        StringBuilder found = new StringBuilder("\"");
        for (char each : text.toCharArray()) {
            if (each == '"' || each == '\\') {
                found.append('\\').append(each);
            } else if (each < ' ') {
                found.append(String.format("\\u%04x", (int) each));
            } else {
                found.append(each);
            }
        }
        return found.append('"').toString();
    }
}
