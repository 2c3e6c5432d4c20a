import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.WindowedSerdes;

/**
 * The topologies of streams_topologies.py in Kafka Streams, exactly once, with as many threads as the arguments say,
 * everything else at its defaults: stores in RocksDB, its cache, a commit every 100 ms.
 *
 * <p>KafkaStreamsRival servers topology applicationId stateDirectory threads source target [other source]. Prints
 * "running" when it is, and runs until its standard input ends.
 */
public class KafkaStreamsRival {
    private static final Duration GRACE = Duration.ofMillis(10_000);

    static Topology topology(String name, String source, String target, String other) {
        var builder = new StreamsBuilder();
        var texts = Serdes.String();
        var longs = Serdes.Long();
        KStream<String, String> stream = builder.stream(source, Consumed.with(texts, texts));
        switch (name) {
            case "mapped" -> stream.mapValues(value -> value + "|mapped").to(target, Produced.with(texts, texts));
            case "windowed_count" -> stream.groupByKey(Grouped.with(texts, texts))
                    .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMillis(10_000), GRACE))
                    .count()
                    .toStream()
                    .to(target, Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, 10_000), longs));
            case "sessions" -> stream.groupByKey(Grouped.with(texts, texts))
                    .windowedBy(SessionWindows.ofInactivityGapAndGrace(Duration.ofMillis(5_000), GRACE))
                    .count()
                    .toStream()
                    .to(target, Produced.with(WindowedSerdes.sessionWindowedSerdeFrom(String.class), longs));
            case "table_join" -> stream.join(
                            builder.table(other, Consumed.with(texts, texts)),
                            (left, right) -> left + "|" + right,
                            Joined.with(texts, texts, texts))
                    .to(target, Produced.with(texts, texts));
            case "stream_join" -> stream.join(
                            builder.stream(other, Consumed.with(texts, texts)),
                            (left, right) -> left + "|" + right,
                            JoinWindows.ofTimeDifferenceAndGrace(Duration.ofMillis(1_000), GRACE),
                            StreamJoined.with(texts, texts, texts))
                    .to(target, Produced.with(texts, texts));
            default -> throw new IllegalArgumentException(name);
        }
        return builder.build();
    }

    public static void main(String[] arguments) throws Exception {
        var settings = new Properties();
        settings.putAll(Map.of(
                "bootstrap.servers", arguments[0],
                "application.id", arguments[2],
                "state.dir", arguments[3],
                "num.stream.threads", arguments[4],
                "processing.guarantee", "exactly_once_v2",
                "auto.offset.reset", "earliest"));
        var other = arguments.length > 7 ? arguments[7] : null;
        try (var streams = new KafkaStreams(topology(arguments[1], arguments[5], arguments[6], other), settings)) {
            streams.setUncaughtExceptionHandler(failure -> {
                failure.printStackTrace();
                System.exit(1);
                return null;
            });
            streams.setStateListener((now, before) -> {
                if (now == KafkaStreams.State.RUNNING) {
                    System.out.println("running");
                }
            });
            streams.start();
            while (System.in.read() >= 0) {}
        }
    }
}
