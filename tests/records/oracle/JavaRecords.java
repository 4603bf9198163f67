import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.KRaftVersionRecord;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.message.SnapshotFooterRecord;
import org.apache.kafka.common.message.SnapshotHeaderRecord;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.*;
import org.apache.kafka.common.record.internal.*;
import org.apache.kafka.common.utils.*;
import org.apache.kafka.common.utils.internals.*;

/**
 * Kafka's own record batches behind a pipe: build them, read them.
 *
 * Standard input carries questions, standard output an answer to each, in order. Integers are
 * big-endian; "bytes" is an int32 length (-1: null), then the bytes.
 *
 *   question  int8 operation, bytes
 *   answer    int8 status (0 done, 1 failed), bytes (of a failure: its text)
 *
 *   operation 0  BUILD    see `build` -> the batch
 *   operation 1  READ     records -> text: a line for every batch and for every record, see `read`
 *   operation 2  CONTROL  see `control` -> the batch
 *
 * Ends when its input does.
 */
public final class JavaRecords {
    public static void main(String[] args) throws Exception {
        DataOutputStream out = new DataOutputStream(
            new BufferedOutputStream(new FileOutputStream(FileDescriptor.out), 1 << 16));
        // Whatever a library prints must not get between two answers.
        System.setOut(new PrintStream(new FileOutputStream(FileDescriptor.err), true));
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 16));
        while (true) {
            byte operation;
            try {
                operation = in.readByte();
            } catch (EOFException e) {
                return;
            }
            byte[] question = new byte[in.readInt()];
            in.readFully(question);
            int status = 0;
            byte[] answer;
            try {
                answer = perform(operation, ByteBuffer.wrap(question));
            } catch (Throwable e) { // hostile bytes may exhaust the heap, too
                status = 1;
                String text = e.getClass().getSimpleName() + ": " + e.getMessage();
                answer = text.getBytes(StandardCharsets.UTF_8);
            }
            out.writeByte(status);
            out.writeInt(answer.length);
            out.write(answer);
            out.flush();
        }
    }

    private static byte[] perform(byte operation, ByteBuffer question) {
        switch (operation) {
            case 0:
                return build(question);
            case 1:
                return read(question).getBytes(StandardCharsets.UTF_8);
            case 2:
                return bytesOf(control(question));
            default:
                throw new IllegalArgumentException("no operation " + operation);
        }
    }

    private static byte[] build(ByteBuffer in) {
        byte magic = in.get();
        Compression codec = Compression.of(CompressionType.forId(in.get())).build();
        byte type = in.get();
        TimestampType timestampType = type < 0 ? TimestampType.NO_TIMESTAMP_TYPE
            : TimestampType.values()[type + 1];
        long baseOffset = in.getLong();
        long logAppendTime = in.getLong();
        long producerId = in.getLong();
        short producerEpoch = in.getShort();
        int baseSequence = in.getInt();
        boolean isTransactional = in.get() != 0;
        boolean isControl = in.get() != 0;
        int leaderEpoch = in.getInt();
        long deleteHorizon = in.getLong();
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
            new ByteBufferOutputStream(4096), magic, codec, timestampType, baseOffset, logAppendTime,
            producerId, producerEpoch, baseSequence, isTransactional, isControl, leaderEpoch,
            Integer.MAX_VALUE, deleteHorizon);
        for (int count = in.getInt(); count > 0; count--) {
            long offset = in.getLong();
            long timestamp = in.getLong();
            byte[] key = bytes(in);
            byte[] value = bytes(in);
            Header[] headers = new Header[in.getInt()];
            for (int i = 0; i < headers.length; i++) {
                String name = new String(bytes(in), StandardCharsets.UTF_8);
                headers[i] = new RecordHeader(name, bytes(in));
            }
            builder.appendWithOffset(offset, timestamp, key, value, headers);
        }
        return bytesOf(builder.build());
    }

    private static MemoryRecords control(ByteBuffer in) {
        short kind = in.getShort();
        long offset = in.getLong();
        long timestamp = in.getLong();
        int epoch = in.getInt();
        if (kind < 2) {
            long producerId = in.getLong();
            short producerEpoch = in.getShort();
            ControlRecordType type = kind == 0 ? ControlRecordType.ABORT : ControlRecordType.COMMIT;
            return MemoryRecords.withEndTransactionMarker(offset, timestamp, epoch, producerId,
                producerEpoch, new EndTransactionMarker(type, in.getInt()));
        }
        ByteBuffer into = ByteBuffer.allocate(4096);
        ByteBufferAccessor message = new ByteBufferAccessor(in.slice());
        short version = 0;
        switch (kind) {
            case 2:
                return MemoryRecords.withLeaderChangeMessage(
                    offset, timestamp, epoch, into, new LeaderChangeMessage(message, version));
            case 3:
                return MemoryRecords.withSnapshotHeaderRecord(
                    offset, timestamp, epoch, into, new SnapshotHeaderRecord(message, version));
            case 4:
                return MemoryRecords.withSnapshotFooterRecord(
                    offset, timestamp, epoch, into, new SnapshotFooterRecord(message, version));
            case 5:
                return MemoryRecords.withKRaftVersionRecord(
                    offset, timestamp, epoch, into, new KRaftVersionRecord(message, version));
            case 6:
                return MemoryRecords.withVotersRecord(
                    offset, timestamp, epoch, into, new VotersRecord(message, version));
            default:
                throw new IllegalArgumentException("no kind " + kind);
        }
    }

    /**
     * "batch" and its header's facts, then "record", offset, timestamp, key, value and each header's
     * key and value for its records. Bytes are "x" and hex digits, null is "-".
     */
    private static String read(ByteBuffer in) {
        StringBuilder text = new StringBuilder();
        for (RecordBatch batch : MemoryRecords.readableRecords(in).batches()) {
            batch.ensureValid();
            line(text, "batch", batch.magic(), batch.baseOffset(), batch.lastOffset(),
                batch.compressionType().id, batch.timestampType().id, batch.maxTimestamp(),
                batch.partitionLeaderEpoch(), batch.producerId(), batch.producerEpoch(),
                batch.baseSequence(), batch.lastSequence(), batch.isTransactional(),
                batch.isControlBatch(), batch.deleteHorizonMs().orElse(-1), batch.checksum(),
                batch.sizeInBytes());
            for (var record : batch) { // its name alone could be java.lang.Record
                record.ensureValid();
                StringBuilder headers = new StringBuilder();
                for (Header header : record.headers()) {
                    byte[] key = header.key().getBytes(StandardCharsets.UTF_8);
                    headers.append(hex(ByteBuffer.wrap(key))).append('=');
                    byte[] value = header.value();
                    headers.append(hex(value == null ? null : ByteBuffer.wrap(value))).append(',');
                }
                line(text, "record", record.offset(), record.timestamp(), hex(record.key()),
                    hex(record.value()), headers);
            }
        }
        return text.toString();
    }

    private static void line(StringBuilder text, Object... fields) {
        for (Object field : fields) {
            text.append(field).append(' ');
        }
        text.setCharAt(text.length() - 1, '\n');
    }

    private static String hex(ByteBuffer bytes) {
        if (bytes == null) {
            return "-";
        }
        StringBuilder text = new StringBuilder("x");
        while (bytes.hasRemaining()) {
            byte value = bytes.get();
            text.append(Character.forDigit(value >> 4 & 15, 16));
            text.append(Character.forDigit(value & 15, 16));
        }
        return text.toString();
    }

    private static byte[] bytes(ByteBuffer in) {
        int length = in.getInt();
        if (length < 0) {
            return null;
        }
        byte[] value = new byte[length];
        in.get(value);
        return value;
    }

    private static byte[] bytesOf(MemoryRecords records) {
        ByteBuffer buffer = records.buffer();
        byte[] value = new byte[buffer.remaining()];
        buffer.get(value);
        return value;
    }
}
