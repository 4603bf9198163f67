package kproto;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.protocol.ApiMessage;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/** The same two calls under JMH: average wall time on one thread, a process for each pair. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class CodecBenchmark {
    /** Name, version and file, with blanks between: what the worker has as its arguments. */
    @Param("")
    public String workload;

    private Body body;

    @Setup
    public void read() throws IOException {
        String[] parts = workload.split(" ", 3);
        body = new Body(parts[0], Short.parseShort(parts[1]), Path.of(parts[2]));
    }

    @Benchmark
    public ApiMessage decode() {
        return body.decode();
    }

    @Benchmark
    public ByteBuffer encode() {
        return body.encode();
    }
}
