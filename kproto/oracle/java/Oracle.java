import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.File;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Enumeration;
import java.util.List;
import java.util.Properties;
import java.util.TreeMap;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Kafka's own generated message classes behind a pipe.
 *
 * Standard input carries batches, standard output one reply per batch, in order. Integers are
 * big-endian.
 *
 *   batch  int32 size of what follows, int32 count, then count times:
 *          int8 operation, int32 message, int16 version, int32 length, bytes
 *   reply  int32 size of what follows, int32 count, then count times:
 *          int8 status (0 done, 1 failed), int32 length, bytes (of a failure: its text)
 *
 *   operation 0  LIST      bytes ignored -> text: the release, then a line for every message class:
 *                          "name TAB package TAB lowest TAB highest version"; its place in the
 *                          list, from 0, is what `message` means in the other operations
 *   operation 1  ENCODE    Kafka's JSON -> the message's bytes
 *   operation 2  RECODE    bytes -> int32 number of bytes read, then the message written again
 *   operation 3  TO_JSON   bytes -> Kafka's JSON; fields of type records are empty
 *   operation 4  REWRITE   int16 another version, then bytes -> the message written at that version
 *
 * Exits at the end of its input.
 */
public final class Oracle {
    private static final String RELEASE = "/kafka/kafka-version.properties";
    private static final ObjectMapper JSON = new ObjectMapper();

    private final List<MessageClass> messages;

    private Oracle(List<MessageClass> messages) {
        this.messages = messages;
    }

    public static void main(String[] args) throws Exception {
        DataOutputStream out = new DataOutputStream(
            new BufferedOutputStream(new FileOutputStream(FileDescriptor.out), 1 << 16));
        // Output of libraries must not get between two replies.
        System.setOut(new PrintStream(new FileOutputStream(FileDescriptor.err), true));
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 16));
        Oracle oracle = new Oracle(MessageClass.onClassPath());
        while (oracle.serve(in, out)) {
            out.flush();
        }
    }

    private boolean serve(DataInputStream in, DataOutputStream out) throws IOException {
        byte[] batch;
        try {
            batch = new byte[in.readInt()];
        } catch (EOFException e) {
            return false;
        }
        in.readFully(batch);
        ByteBuffer operations = ByteBuffer.wrap(batch);
        ByteArrayOutputStream collected = new ByteArrayOutputStream(batch.length * 2);
        DataOutputStream reply = new DataOutputStream(collected);
        int count = operations.getInt();
        reply.writeInt(count);
        for (int i = 0; i < count; i++) {
            byte operation = operations.get();
            int message = operations.getInt();
            short version = operations.getShort();
            byte[] input = new byte[operations.getInt()];
            operations.get(input);
            int status = 0;
            byte[] output;
            try {
                output = perform(operation, message, version, input);
            } catch (Throwable e) { // hostile bytes may also exhaust stack or heap
                status = 1;
                output = describe(e).getBytes(StandardCharsets.UTF_8);
            }
            reply.writeByte(status);
            reply.writeInt(output.length);
            reply.write(output);
        }
        out.writeInt(collected.size());
        collected.writeTo(out);
        return true;
    }

    private byte[] perform(byte operation, int message, short version, byte[] input)
            throws Throwable {
        switch (operation) {
            case 0:
                return list();
            case 1: {
                JsonNode node = JSON.readTree(input);
                return write(messages.get(message).fromJson(node, version), version).array();
            }
            case 2: {
                ByteBuffer bytes = ByteBuffer.wrap(input);
                ApiMessage value = messages.get(message).read(bytes, version);
                ByteBuffer again = write(value, version);
                ByteBuffer output = ByteBuffer.allocate(4 + again.capacity());
                return output.putInt(bytes.position()).put(again.array()).array();
            }
            case 3: {
                MessageClass type = messages.get(message);
                ApiMessage value = type.read(ByteBuffer.wrap(input), version);
                return JSON.writeValueAsBytes(type.toJson(value, version));
            }
            case 4: {
                ByteBuffer bytes = ByteBuffer.wrap(input);
                short another = bytes.getShort();
                return write(messages.get(message).read(bytes, version), another).array();
            }
            default:
                throw new IllegalArgumentException("no operation " + operation);
        }
    }

    private byte[] list() throws IOException {
        Properties release = new Properties();
        try (InputStream file = ApiMessage.class.getResourceAsStream(RELEASE)) {
            release.load(file);
        }
        StringBuilder text = new StringBuilder(release.getProperty("version"));
        for (MessageClass message : messages) {
            text.append('\n').append(message.describe());
        }
        return text.toString().getBytes(StandardCharsets.UTF_8);
    }

    /** The bytes of a network send of this message; the class computes its size too. */
    private static ByteBuffer write(ApiMessage message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        if (buffer.hasRemaining()) {
            throw new IllegalStateException(buffer.remaining() + " bytes fewer than announced");
        }
        return buffer;
    }

    private static String describe(Throwable e) {
        return e.getClass().getSimpleName() + ": " + e.getMessage();
    }

    /** A generated message class and its JSON converter. */
    private static final class MessageClass {
        private final Class<? extends ApiMessage> type;
        private final short lowest;
        private final short highest;
        private final Method fromJson;
        private final Method toJson;

        MessageClass(Class<? extends ApiMessage> type) throws ReflectiveOperationException {
            this.type = type;
            ApiMessage instance = type.getDeclaredConstructor().newInstance();
            this.lowest = instance.lowestSupportedVersion();
            this.highest = instance.highestSupportedVersion();
            Class<?> converter =
                Class.forName(type.getName() + "JsonConverter", true, type.getClassLoader());
            this.fromJson = converter.getMethod("read", JsonNode.class, short.class);
            this.toJson = converter.getMethod("write", type, short.class, boolean.class);
        }

        /** Every generated message class of the jars that `oracle.jars` matches, by name. */
        static List<MessageClass> onClassPath() throws Exception {
            String jars = System.getProperty("oracle.jars");
            TreeMap<String, MessageClass> found = new TreeMap<>();
            for (String path : System.getProperty("java.class.path").split(File.pathSeparator)) {
                if (!new File(path).getName().matches(jars)) {
                    continue;
                }
                try (JarFile jar = new JarFile(path)) {
                    for (Enumeration<JarEntry> all = jar.entries(); all.hasMoreElements();) {
                        String name = className(all.nextElement().getName());
                        Class<?> type = name == null ? null : Class.forName(name);
                        if (type != null && isMessage(type)) {
                            found.put(name, new MessageClass(type.asSubclass(ApiMessage.class)));
                        }
                    }
                }
            }
            return new ArrayList<>(found.values());
        }

        /** The class of a jar's entry if it is in a package of generated messages. */
        private static String className(String entry) {
            boolean place = entry.startsWith("org/apache/kafka/common/message/")
                || entry.startsWith("org/apache/kafka/common/metadata/")
                || entry.contains("/generated/");
            if (!place || !entry.endsWith(".class") || entry.contains("$")) {
                return null;
            }
            return entry.substring(0, entry.length() - ".class".length()).replace('/', '.');
        }

        private static boolean isMessage(Class<?> type) {
            return ApiMessage.class.isAssignableFrom(type)
                && !type.isInterface() && !Modifier.isAbstract(type.getModifiers());
        }

        String describe() {
            String place = type.getPackage().getName();
            return type.getSimpleName() + "\t" + place + "\t" + lowest + "\t" + highest;
        }

        ApiMessage read(ByteBuffer bytes, short version) throws ReflectiveOperationException {
            checkVersion(version);
            ApiMessage value = type.getDeclaredConstructor().newInstance();
            value.read(new ByteBufferAccessor(bytes), version);
            return value;
        }

        ApiMessage fromJson(JsonNode node, short version) throws Throwable {
            checkVersion(version);
            return (ApiMessage) unwrapped(fromJson, node, version);
        }

        JsonNode toJson(ApiMessage value, short version) throws Throwable {
            return (JsonNode) unwrapped(toJson, value, version, true);
        }

        /** Not all generated read methods check this; the others would misread. */
        private void checkVersion(short version) {
            if (version < lowest || version > highest) {
                throw new IllegalArgumentException(
                    type.getSimpleName() + " has versions " + lowest + " to " + highest);
            }
        }

        private static Object unwrapped(Method method, Object... arguments) throws Throwable {
            try {
                return method.invoke(null, arguments);
            } catch (InvocationTargetException e) {
                throw e.getCause();
            }
        }
    }
}
