import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import java.util.TreeMap;

/** Reads texts, each after its length, and prints what java.util.Properties finds in each: a line of
 * hexadecimal names and values in the order of the names, or "refused". */
public final class PropertiesOracle {
    public static void main(String[] args) throws Exception {
        DataInputStream in = new DataInputStream(System.in);
        for (int size = in.readInt(); size >= 0; size = in.readInt()) {
            byte[] text = new byte[size];
            in.readFully(text);
            Properties found = new Properties();
            StringBuilder line = new StringBuilder();
            try {
                found.load(new ByteArrayInputStream(text));
                TreeMap<String, String> sorted = new TreeMap<>();
                found.forEach((name, value) -> sorted.put(hex((String) name), hex((String) value)));
                sorted.forEach((name, value) -> line.append(name).append('=').append(value).append(' '));
            } catch (IllegalArgumentException refused) {
                line.append("refused");
            }
            System.out.println(line.toString().strip());
        }
    }

    private static String hex(String text) {
        StringBuilder found = new StringBuilder();
        for (byte each : text.getBytes(StandardCharsets.UTF_16BE)) {
            found.append(String.format("%02x", each));
        }
        return found.toString();
    }
}
