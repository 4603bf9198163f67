package kproto;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData;
import org.apache.kafka.common.message.ApiVersionsResponseData;
import org.apache.kafka.common.message.HeartbeatRequestData;
import org.apache.kafka.common.message.LeaderAndIsrRequestData;
import org.apache.kafka.common.message.MetadataResponseData;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;

/** One message at one version, by the class that Kafka's own generator makes. */
final class Body {
    private interface Reader {
        ApiMessage read(Readable in, short version);
    }

    private final Reader reader;
    private final short version;
    private final byte[] bytes;
    private final ApiMessage message;

    /** Raises IllegalStateException where the class does not write the bytes it has read. */
    Body(String name, short version, Path file) throws IOException {
        this.reader = readerOf(name);
        this.version = version;
        this.bytes = Files.readAllBytes(file);
        this.message = decode();
        ByteBuffer again = encode();
        if (again.hasRemaining() || !again.flip().equals(ByteBuffer.wrap(bytes))) {
            throw new IllegalStateException(name + " v" + version + " does not round-trip");
        }
    }

    ApiMessage decode() {
        return reader.read(new ByteBufferAccessor(ByteBuffer.wrap(bytes)), version);
    }

    /** What a send has to do: the size, with what it caches, then the bytes in a new buffer. */
    ByteBuffer encode() {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        return buffer;
    }

    private static Reader readerOf(String name) {
        switch (name) {
            case "ApiVersionsResponse":
                return ApiVersionsResponseData::new;
            case "MetadataResponse":
                return MetadataResponseData::new;
            case "AlterPartitionReassignmentsRequest":
                return AlterPartitionReassignmentsRequestData::new;
            case "LeaderAndIsrRequest":
                return LeaderAndIsrRequestData::new;
            case "HeartbeatRequest":
                return HeartbeatRequestData::new;
            default:
                throw new IllegalArgumentException("no message " + name);
        }
    }
}
