import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.coordinator.transaction.TransactionLog;
import org.apache.kafka.coordinator.transaction.TransactionState;
import org.apache.kafka.coordinator.transaction.TxnTransitMetadata;
import org.apache.kafka.server.common.TransactionVersion;

// Prints the records that the transaction coordinator of Kafka 4.4.0 writes, as hex: the key, and the
// value of an open and of an empty transaction at the levels 0 and 2 of transaction.version.
public class TransactionRecords {
    public static void main(String[] arguments) {
        HexFormat hex = HexFormat.of();
        System.out.println(hex.formatHex(TransactionLog.keyToBytes("t")));
        var partitions = new HashSet<>(List.of(new TopicPartition("foo", 0), new TopicPartition("foo", 2)));
        for (TransactionVersion level : List.of(TransactionVersion.TV_0, TransactionVersion.TV_2)) {
            System.out.println(hex.formatHex(TransactionLog.valueToBytes(new TxnTransitMetadata(
                1000, 999, 1001, (short) 7, (short) 6, 100000, TransactionState.ONGOING, partitions,
                8, 9, level), level)));
            System.out.println(hex.formatHex(TransactionLog.valueToBytes(new TxnTransitMetadata(
                1000, -1, -1, (short) 0, (short) -1, 100000, TransactionState.EMPTY, new HashSet<>(),
                -1, 9, TransactionVersion.TV_0), level)));
        }
    }
}
