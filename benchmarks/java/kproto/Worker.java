package kproto;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Properties;
import org.apache.kafka.common.protocol.ApiMessage;

/**
 * Times Kafka's own classes at its parent's pace: the protocol is that of benchmarks/worker.py.
 * The clock is this thread's processor time; what the collector and the compiler take in theirs is
 * not counted.
 */
public final class Worker {
    private static final ThreadMXBean CLOCK = ManagementFactory.getThreadMXBean();

    /** Where results go, so that the compiler cannot find them unused. */
    private static Object sink;

    private final Body body;

    private Worker(Body body) {
        this.body = body;
    }

    public static void main(String[] args) throws IOException {
        Worker worker = new Worker(new Body(args[0], Short.parseShort(args[1]), Path.of(args[2])));
        System.out.println("kafka-clients " + release() + ", Java " + Runtime.version());
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] asked = line.split(" ");
            int loops = Integer.parseInt(asked[1]);
            long taken = asked[0].equals("decode") ? worker.decode(loops) : worker.encode(loops);
            System.out.println((double) taken / loops);
        }
    }

    private long decode(int loops) {
        long began = CLOCK.getCurrentThreadCpuTime();
        for (int i = 0; i < loops; i++) {
            sink = body.decode();
        }
        return CLOCK.getCurrentThreadCpuTime() - began;
    }

    private long encode(int loops) {
        long began = CLOCK.getCurrentThreadCpuTime();
        for (int i = 0; i < loops; i++) {
            sink = body.encode();
        }
        return CLOCK.getCurrentThreadCpuTime() - began;
    }

    private static String release() throws IOException {
        Properties known = new Properties();
        try (InputStream file =
                ApiMessage.class.getResourceAsStream("/kafka/kafka-version.properties")) {
            known.load(file);
        }
        return known.getProperty("version");
    }
}
