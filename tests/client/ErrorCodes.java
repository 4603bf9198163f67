import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

/** Prints code, name, whether it is retriable, and the generic message, tab-separated. */
public class ErrorCodes {
    public static void main(String[] args) {
        for (Errors error : Errors.values()) {
            boolean retriable = error.exception() instanceof RetriableException;
            System.out.println(
                error.code() + "\t" + error.name() + "\t" + retriable + "\t" + error.message());
        }
    }
}
