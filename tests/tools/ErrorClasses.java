import org.apache.kafka.common.protocol.Errors;

/** Prints each error code and the class of its exception. */
public class ErrorClasses {
    public static void main(String[] arguments) {
        for (Errors error : Errors.values()) {
            if (error.exception() != null) {
                System.out.println(error.code() + " " + error.exception().getClass().getName());
            }
        }
    }
}
