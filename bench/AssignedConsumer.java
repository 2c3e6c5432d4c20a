import java.time.Duration;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Reads a topic of `count` records from its beginning with all partitions assigned; prints records per second. */
public class AssignedConsumer {
    public static void main(String[] arguments) {
        Map<String, Object> settings = Map.of("bootstrap.servers", arguments[0], "enable.auto.commit", "false");
        String topic = arguments[1];
        long count = Long.parseLong(arguments[2]);
        var bytes = new ByteArrayDeserializer();
        try (var consumer = new KafkaConsumer<byte[], byte[]>(settings, bytes, bytes)) {
            var partitions = consumer.partitionsFor(topic).stream()
                    .map(each -> new TopicPartition(topic, each.partition()))
                    .collect(Collectors.toList());
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            long start = System.nanoTime();
            long patienceEnds = start + Duration.ofSeconds(300).toNanos();
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
            System.out.println(seen * 1e9 / (System.nanoTime() - start));
        }
    }
}
