// Prints placement.json: [id, String.hashCode, Utils.abs(hash) % 50] of eight chosen and 200 random
// ids. Made by OpenJDK 17.0.15 with kafka-clients 4.4.0 on the class path, through `java Placement`.
import org.apache.kafka.common.utils.Utils;
import java.util.*;

public class Placement {
    public static void main(String[] arguments) {
        Random random = new Random(20261124);
        List<String> ids = new ArrayList<>(List.of("", "g", "my-group", "a.b_c-d", "polygenelubricants", "\u00e9\u00e8", "\ud83d\ude00", "DESIGNING WORKHOUSES"));
        while (ids.size() < 208) {
            StringBuilder text = new StringBuilder();
            int length = 1 + random.nextInt(40);
            for (int i = 0; i < length; i++) {
                int kind = random.nextInt(10);
                text.appendCodePoint(kind < 7 ? 0x21 + random.nextInt(0x5e) : kind < 9 ? 0xa1 + random.nextInt(0x2000) : 0x1f300 + random.nextInt(0x300));
            }
            ids.add(text.toString());
        }
        System.out.println("[");
        for (int i = 0; i < ids.size(); i++) {
            String id = ids.get(i);
            StringBuilder quoted = new StringBuilder();
            for (char c : id.toCharArray())
                quoted.append(c < 0x7f && c != '"' && c != '\\' ? String.valueOf(c) : String.format("\\u%04x", (int) c));
            System.out.printf("  [\"%s\", %d, %d]%s%n", quoted, id.hashCode(), Utils.abs(id.hashCode()) % 50, i + 1 < ids.size() ? "," : "");
        }
        System.out.println("]");
    }
}
