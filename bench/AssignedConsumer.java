import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Reads a topic of `count` records from its beginning with all partitions assigned, with as many consumers side by
 * side as the last argument says; prints records per second of all of them, until the last one has read everything.
 */
public class AssignedConsumer implements Callable<Long> {
    private final String servers;
    private final String topic;
    private final long count;
    private final CyclicBarrier together;

    AssignedConsumer(String servers, String topic, long count, CyclicBarrier together) {
        this.servers = servers;
        this.topic = topic;
        this.count = count;
        this.together = together;
    }

    /** When it had read everything. All begin together, each with its partitions known. */
    @Override
    public Long call() throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", servers, "enable.auto.commit", "false");
        var bytes = new ByteArrayDeserializer();
        try (var consumer = new KafkaConsumer<byte[], byte[]>(settings, bytes, bytes)) {
            var partitions = consumer.partitionsFor(topic).stream()
                    .map(each -> new TopicPartition(topic, each.partition()))
                    .collect(Collectors.toList());
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            together.await();
            long patienceEnds = System.nanoTime() + Duration.ofSeconds(300).toNanos();
            long seen = 0;
            long size = 0;
            while (seen < count) {
                if (System.nanoTime() > patienceEnds) {
                    throw new IllegalStateException("only " + seen + " of " + count + " records came");
                }
                for (ConsumerRecord<byte[], byte[]> each : consumer.poll(Duration.ofMillis(1000))) {
                    size += each.serializedValueSize();
                    seen++;
                }
            }
            if (size < seen) {
                throw new IllegalStateException("empty records");
            }
            return System.nanoTime();
        }
    }

    public static void main(String[] arguments) throws Exception {
        long count = Long.parseLong(arguments[2]);
        int consumers = Integer.parseInt(arguments[3]);
        long[] start = new long[1];
        var together = new CyclicBarrier(consumers, () -> start[0] = System.nanoTime());
        List<AssignedConsumer> readers = new ArrayList<>();
        for (int number = 0; number < consumers; number++) {
            readers.add(new AssignedConsumer(arguments[0], arguments[1], count, together));
        }
        var threads = Executors.newFixedThreadPool(consumers);
        long end = 0;
        for (Future<Long> each : threads.invokeAll(readers)) {
            end = Math.max(end, each.get());
        }
        threads.shutdown();
        System.out.println(consumers * count * 1e9 / (end - start[0]));
    }
}
