// A target of Jazzer: Kafka's own generated classes read ListPartitionReassignments' answer, version 0.
//
//   mockbroker fuzz seeds --format jazzer --api 46 --version 0 --mutated 200 --out corpus
//   mvn -q dependency:copy-dependencies -DoutputDirectory=lib          (with the pom.xml beside this)
//   javac -d classes -cp 'lib/*' FrameFuzzer.java
//   java -cp 'classes:lib/*' com.code_intelligence.jazzer.Jazzer --target_class=FrameFuzzer \
//       '--instrumentation_includes=org.apache.kafka.common.message.**:org.apache.kafka.common.protocol.**' \
//       -runs=0 corpus/ListPartitionReassignmentsResponse              (every seed once)
//
// In place of Kafka's classes stands your decoder. What holds: what they refuse they refuse by a
// RuntimeException, and what they write they read again to an equal value. They read unknown tags in
// any order, and refuse to write them so.

import java.nio.ByteBuffer;
import org.apache.kafka.common.message.ListPartitionReassignmentsResponseData;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.Readable;

public final class FrameFuzzer {
    private static final short HEADER = 1;
    private static final short VERSION = 0;

    public static void fuzzerTestOneInput(byte[] frame) {
        ListPartitionReassignmentsResponseData read;
        ByteBuffer written;
        try {
            ByteBuffer data = ByteBuffer.wrap(frame);
            if (data.getInt() != data.remaining()) {
                return;
            }
            Readable in = new ByteBufferAccessor(data);
            new ResponseHeaderData(in, HEADER);
            read = new ListPartitionReassignmentsResponseData(in, VERSION);
            written = MessageUtil.toByteBufferAccessor(read, VERSION).buffer();
        } catch (RuntimeException refused) {
            return;
        }
        Readable again = new ByteBufferAccessor(written);
        if (!read.equals(new ListPartitionReassignmentsResponseData(again, VERSION))) {
            throw new AssertionError("read, written, and read otherwise");
        }
    }
}
