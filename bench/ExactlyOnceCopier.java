import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Copies records from one topic to another, exactly once: reads in a group, writes and commits its offsets in one
 * transaction per batch. Prints records per second of those after the warm-up.
 */
public class ExactlyOnceCopier {
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final KafkaProducer<byte[], byte[]> producer;
    private final String target;

    ExactlyOnceCopier(String servers, String source, String target, String batchSize) {
        this.target = target;
        var deserializer = new ByteArrayDeserializer();
        var serializer = new ByteArraySerializer();
        consumer = new KafkaConsumer<>(
                Map.of(
                        "bootstrap.servers", servers,
                        "group.id", "copiers-of-" + source,
                        "auto.offset.reset", "earliest",
                        "enable.auto.commit", "false",
                        "isolation.level", "read_committed",
                        "max.poll.records", batchSize),
                deserializer,
                deserializer);
        producer = new KafkaProducer<>(
                Map.of(
                        "bootstrap.servers", servers,
                        "transactional.id", "copier-of-" + source,
                        "linger.ms", "0",
                        "batch.size", "65536"),
                serializer,
                serializer);
        consumer.subscribe(List.of(source));
        producer.initTransactions();
    }

    long copy(long count) {
        long patienceEnds = System.nanoTime() + Duration.ofSeconds(600).toNanos();
        long copied = 0;
        while (copied < count) {
            if (System.nanoTime() > patienceEnds) {
                throw new IllegalStateException("only " + copied + " of " + count + " records were copied");
            }
            var records = consumer.poll(Duration.ofMillis(1000));
            if (records.isEmpty()) {
                continue;
            }
            Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
            producer.beginTransaction();
            for (ConsumerRecord<byte[], byte[]> each : records) {
                producer.send(new ProducerRecord<>(target, each.partition(), each.key(), transform(each.value())));
                next.put(
                        new TopicPartition(each.topic(), each.partition()),
                        new OffsetAndMetadata(each.offset() + 1));
            }
            producer.sendOffsetsToTransaction(next, consumer.groupMetadata());
            producer.commitTransaction();
            copied += records.count();
        }
        return copied;
    }

    private static byte[] transform(byte[] value) {
        byte[] changed = value.clone();
        changed[0] ^= 0x20;
        return changed;
    }

    public static void main(String[] arguments) {
        var copier = new ExactlyOnceCopier(arguments[0], arguments[1], arguments[2], arguments[5]);
        copier.copy(Long.parseLong(arguments[3]));
        long start = System.nanoTime();
        long copied = copier.copy(Long.parseLong(arguments[4]));
        System.out.println(copied * 1e9 / (System.nanoTime() - start));
        copier.producer.close();
        copier.consumer.close();
    }
}
