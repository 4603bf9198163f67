import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.*;
import org.apache.kafka.coordinator.group.generated.*;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import java.util.*;

// Prints the records that the group coordinator of kafka-group-coordinator 4.4.0 writes, as hex.
public class OffsetRecords {
    static void show(CoordinatorRecord record) {
        var serde = new GroupCoordinatorRecordSerde();
        byte[] value = serde.serializeValue(record);
        HexFormat hex = HexFormat.of();
        System.out.println(hex.formatHex(serde.serializeKey(record)) + " " + (value == null ? "null" : hex.formatHex(value)));
    }
    public static void main(String[] arguments) {
        for (OptionalLong end : List.of(OptionalLong.empty(), OptionalLong.of(9000)))
            show(GroupCoordinatorRecordHelpers.newOffsetCommitRecord("g", "foo", 2,
                new OffsetAndMetadata(5, OptionalInt.of(7), "m", 1000, end, new Uuid(1, 2))));
        show(GroupCoordinatorRecordHelpers.newOffsetCommitTombstoneRecord("g", "foo", 2));
        show(GroupCoordinatorRecordHelpers.newGroupMetadataTombstoneRecord("g"));
        show(CoordinatorRecord.record(new GroupMetadataKey().setGroup("g"), new ApiMessageAndVersion(
            new GroupMetadataValue().setProtocolType("consumer").setGeneration(3).setProtocol("range").setLeader("m-1")
                .setCurrentStateTimestamp(1000).setMembers(List.of(new GroupMetadataValue.MemberMetadata()
                    .setMemberId("m-1").setGroupInstanceId(null).setClientId("c").setClientHost("/127.0.0.1")
                    .setRebalanceTimeout(300000).setSessionTimeout(45000)
                    .setSubscription(new byte[]{1, 2}).setAssignment(new byte[]{3}))), (short) 3)));
    }
}
