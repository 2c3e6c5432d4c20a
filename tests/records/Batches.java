// Apache Kafka's own code for record batches, driven over lines of text: the reference for tests/records.
//
//   write                         prints "name<TAB>hex" of batches that Java builds, one for each codec and kind
//   read      (hex per line)      prints every record of each batch
//   validate  (hex<TAB>compacted<TAB>logAppendTime<TAB>beforeMs<TAB>afterMs<TAB>nowMs per line)
//                                 prints the error code by which a broker would refuse it, or NONE
//
// Run as `java -cp 'jars/*' Batches.java MODE`.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.function.Supplier;
import org.apache.kafka.common.InvalidRecordException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.PrimitiveRef;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;
import org.apache.kafka.storage.internals.log.RecordValidationException;

public class Batches {
    static final HexFormat HEX = HexFormat.of();
    static final long T0 = 1_700_000_000_000L;

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("write")) {
            write();
            return;
        }
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(arguments[0].equals("read") ? read(line) : validate(line.split("\t")));
            System.out.flush();
        }
    }

    static void write() {
        for (CompressionType type : CompressionType.values()) {
            MemoryRecordsBuilder builder = MemoryRecords.builder(
                ByteBuffer.allocate(1024), (byte) 2, Compression.of(type).build(), TimestampType.CREATE_TIME,
                7L, RecordBatch.NO_TIMESTAMP, 11L, (short) 3, 41, false, 5);
            builder.append(T0, "key".getBytes(), "value".getBytes(), new Header[] {
                new RecordHeader("trace", new byte[] {1, 2, 3}), new RecordHeader("none", null), new RecordHeader("", new byte[0])});
            builder.append(T0 - 1000, null, new byte[0]);
            builder.append(T0 + 90_000_000_000L, new byte[0], null);
            for (int i = 0; i < (type == CompressionType.NONE ? 20 : 2000); i++) {
                builder.append(T0 + i, ("k" + i % 10).getBytes(), ("some text that repeats itself, number " + i).getBytes());
            }
            print(type.name, builder.build());
        }
        print("commit", MemoryRecords.withEndTransactionMarker(
            9L, T0, 4, 77L, (short) 2, new EndTransactionMarker(ControlRecordType.COMMIT, 13)));
        print("abort", MemoryRecords.withEndTransactionMarker(
            10L, T0, 4, 78L, (short) 0, new EndTransactionMarker(ControlRecordType.ABORT, 14)));
        for (String key : new String[] {"", "a", "ab", "abc", "abcd", "21", "foobar", "a-little-bit-longer", "käse"}) {
            System.out.println("murmur2\t" + key + "\t" + Utils.murmur2(key.getBytes(StandardCharsets.UTF_8)));
        }
    }

    static void print(String name, MemoryRecords records) {
        System.out.println(name + "\t" + hex(records.buffer()));
    }

    static String hex(ByteBuffer buffer) {
        if (buffer == null) {
            return "null";
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return HEX.formatHex(bytes);
    }

    static String read(String line) {
        StringBuilder out = new StringBuilder();
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(HEX.parseHex(line))).batches()) {
            batch.ensureValid();
            for (Record record : batch) {
                out.append(record.offset()).append(' ').append(record.timestamp()).append(' ').append(hex(record.key()))
                    .append(' ').append(hex(record.value()));
                for (Header header : record.headers()) {
                    out.append(' ').append(HEX.formatHex(header.key().getBytes(StandardCharsets.UTF_8))).append('=')
                        .append(header.value() == null ? "null" : HEX.formatHex(header.value()));
                }
                out.append(';');
            }
        }
        return out.toString();
    }

    static String validate(String[] fields) {
        try {
            MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(HEX.parseHex(fields[0])));
            Iterator<MutableRecordBatch> batches = records.batches().iterator();
            if (!batches.hasNext()) {
                throw new InvalidRecordException("no batch");
            }
            RecordBatch batch = batches.next();
            if (batches.hasNext() || batch.magic() != 2 || batch.baseOffset() != 0) {
                throw new InvalidRecordException("not one batch of magic 2 from offset 0");
            }
            batch.ensureValid();
            new LogValidator(
                records, new TopicPartition("topic", 0), new Fixed(Long.parseLong(fields[5])), batch.compressionType(),
                Compression.of(batch.compressionType()).build(), fields[1].equals("1"), (byte) 2,
                fields[2].equals("1") ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME,
                Long.parseLong(fields[3]), Long.parseLong(fields[4]), 7, AppendOrigin.CLIENT
            ).validateMessagesAndAssignOffsets(PrimitiveRef.ofLong(100L), new Silent(), BufferSupplier.NO_CACHING);
            return "NONE";
        } catch (RecordValidationException refused) {
            StringBuilder out = new StringBuilder(Errors.forException(refused.invalidException()).name());
            refused.recordErrors().forEach(error -> out.append(' ').append(error.batchIndex));
            return out.toString();
        } catch (Throwable failure) {
            return Errors.forException(failure).name();
        }
    }

    record Fixed(long now) implements Time {
        public long milliseconds() { return now; }
        public long nanoseconds() { return now * 1_000_000; }
        public void sleep(long ms) { }
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) { }
        public org.apache.kafka.common.utils.Timer timer(long timeoutMs) { return null; }
    }

    static class Silent implements LogValidator.MetricsRecorder {
        public void recordInvalidMagic() { }
        public void recordInvalidOffset() { }
        public void recordInvalidSequence() { }
        public void recordInvalidChecksums() { }
        public void recordNoKeyCompactedTopic() { }
    }
}
