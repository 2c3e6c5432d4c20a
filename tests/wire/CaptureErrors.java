import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

/** Prints every error code that Apache Kafka knows: number, name, and whether its exception may be retried. */
public class CaptureErrors {
    public static void main(String[] arguments) {
        for (Errors error : Errors.values()) {
            System.out.print(error.code() + " " + error.name() + " "
                + (error.exception() instanceof RetriableException ? "retriable" : "final") + "\n");
        }
    }
}
