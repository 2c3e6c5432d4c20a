// Kafka Streams' own TopologyTestDriver, asked through standard input: which topology, which records; it answers with the
// topology's description and with what came out, as bytes. What the topologies are is in the table at the end; the
// same ones in Python are in reference_cases.py.
//
//   run <case> <number of lines> <topic>    then so many lines: topic, key, value, timestamp; a null is \N; what comes
//                                           out of <topic> is told after each
//   wall clock: "@advance <ms>" in place of a record
//   topics <case>                           the internal topics that it would make, each with its settings
//   settings                                the names of Kafka Streams' settings

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.internals.InternalTopologyBuilder;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

public class Topologies {
    static final Map<String, Consumer<StreamsBuilder>> CASES = new TreeMap<>();

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        declare();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            if (!words[0].equals("run")) {
                if (words[0].equals("topics")) {
                    topics(CASES.get(words[1]), out);
                } else {
                    StreamsConfig.configDef().names().stream().sorted().forEach(out::println);
                }
                out.println("END");
                out.flush();
                continue;
            }
            List<String[]> records = new ArrayList<>();
            for (int i = 0; i < Integer.parseInt(words[2]); i++) {
                records.add(in.readLine().split("\t", -1));
            }
            try {
                run(CASES.get(words[1]), records, words[3], out, arguments[0]);
            } catch (Exception failed) {
                Throwable cause = failed.getCause() == null ? failed : failed.getCause();
                out.println("failed: " + cause.toString().replace('\n', ' '));
                out.println("END");
            }
            out.flush();
        }
    }

    // There is no public way to ask without a cluster; this is what its manager of internal topics asks.
    static void topics(Consumer<StreamsBuilder> make, PrintStream out) throws Exception {
        StreamsBuilder builder = new StreamsBuilder();
        make.accept(builder);
        var held = Topology.class.getDeclaredField("internalTopologyBuilder");
        held.setAccessible(true);
        InternalTopologyBuilder built = (InternalTopologyBuilder) held.get(builder.build());
        built.rewriteTopology(new StreamsConfig(settings()));
        built.buildTopology();
        for (var part : built.subtopologyToTopicsInfo().values()) {
            for (var topics : List.of(part.repartitionSourceTopics, part.stateChangelogTopics)) {
                topics.values().forEach(topic ->
                    out.println(topic.name() + " " + new TreeMap<>(topic.properties(Map.of(), Duration.ofDays(1).toMillis()))));
            }
        }
    }

    static Properties settings() {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "app");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "none:1");
        return settings;
    }

    static void run(Consumer<StreamsBuilder> make, List<String[]> records, String topic, PrintStream out, String directory) {
        StreamsBuilder builder = new StreamsBuilder();
        make.accept(builder);
        Topology topology = builder.build();
        Properties settings = settings();
        settings.put(StreamsConfig.STATE_DIR_CONFIG, directory);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class.getName());
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class.getName());
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        // Kafka Streams looks for closed windows once a second of wall-clock time; here with every record.
        settings.put("__emit.interval.ms.kstreams.outer.join.spurious.results.fix__", 0L);
        settings.put("__emit.interval.ms.kstreams.windowed.aggregation__", 0L);
        out.print(topology.describe().toString());
        out.println("END OF DESCRIPTION");
        try (TopologyTestDriver driver = new TopologyTestDriver(topology, settings, java.time.Instant.ofEpochMilli(0))) {
            Map<String, TestInputTopic<String, String>> inputs = new HashMap<>();
            var output = driver.createOutputTopic(topic, new ByteArrayDeserializer(), new ByteArrayDeserializer());
            for (String[] record : records) {
                if (record[0].startsWith("@advance ")) {
                    driver.advanceWallClockTime(Duration.ofMillis(Long.parseLong(record[0].substring(9))));
                } else {
                    inputs.computeIfAbsent(record[0], name ->
                            driver.createInputTopic(name, new StringSerializer(), new StringSerializer()))
                        .pipeInput(text(record[1]), text(record[2]), Long.parseLong(record[3]));
                }
                output.readRecordsToList().forEach(each ->
                    out.println(hex(each.key()) + " " + hex(each.value()) + " " + each.timestamp()));
                out.println("-");
            }
        }
        out.println("END");
    }

    static String text(String field) {
        return field.equals("\\N") ? null : field;
    }

    static String hex(byte[] content) {
        return content == null ? "null" : "x" + HexFormat.of().formatHex(content);
    }

    static String join(String left, String right) {
        return left + "|" + right;
    }

    static final Consumed<String, String> TEXTS = Consumed.with(Serdes.String(), Serdes.String());

    static KStream<String, String> stream(StreamsBuilder builder, String topic) {
        return builder.stream(topic, TEXTS);
    }

    static KTable<String, String> table(StreamsBuilder builder, String topic) {
        return builder.table(topic, TEXTS);
    }

    static Duration ms(long count) {
        return Duration.ofMillis(count);
    }

    static JoinWindows window() {
        return JoinWindows.ofTimeDifferenceAndGrace(ms(10), ms(5)).before(ms(7)).after(ms(12));
    }

    // With its own default retention Kafka Streams loses final results after a pause: see the test of that name.
    static <V> Materialized<String, V, WindowStore<Bytes, byte[]>> kept(Serde<V> values) {
        return Materialized.<String, V, WindowStore<Bytes, byte[]>>with(Serdes.String(), values).withRetention(Duration.ofDays(1));
    }

    static <K> void longs(KTable<K, Long> table) {
        table.toStream().to("out", Produced.valueSerde(Serdes.Long()));
    }

    static <K> void texts(KTable<K, String> table) {
        table.toStream().to("out");
    }

    static String maybe(String key, String value) {
        return value == null || value.endsWith("2") ? null : value.substring(0, 1);
    }

    static KeyValue<String, String> regroup(String key, String value) {
        return KeyValue.pair(value.substring(0, 1), key + value);
    }

    static void declare() {
        CASES.put("stateless", b -> stream(b, "left")
            .filter((k, v) -> v != null && !v.equals("a1"))
            .filterNot((k, v) -> v.equals("b2"))
            .mapValues(v -> v + "!")
            .flatMapValues(v -> Arrays.asList(v, v + "?"))
            .map((k, v) -> KeyValue.pair(v, k))
            .flatMap((k, v) -> Arrays.asList(KeyValue.pair(v, k), KeyValue.pair(k, v)))
            .selectKey((k, v) -> k + v)
            .peek((k, v) -> { })
            .to("out"));
        CASES.put("branches", b -> {
            Map<String, KStream<String, String>> found = stream(b, "left").split()
                .branch((k, v) -> v == null)
                .branch((k, v) -> v.startsWith("a"), Branched.as("-letter-a"))
                .defaultBranch();
            KStream<String, String> one = found.get("KSTREAM-BRANCH-00000000011");
            KStream<String, String> a = found.get("KSTREAM-BRANCH-0000000001-letter-a");
            KStream<String, String> rest = found.get("KSTREAM-BRANCH-00000000010");
            one.mapValues(v -> "nothing").merge(a).merge(rest.mapValues(v -> "rest " + v)).to("out");
        });
        CASES.put("repartition", b -> stream(b, "left").selectKey((k, v) -> v).repartition().to("out"));
        CASES.put("repartition-named", b -> stream(b, "left").repartition(Repartitioned.as("mine")).to("out"));
        CASES.put("count", b -> longs(stream(b, "left").groupByKey().count()));
        CASES.put("count-of-two", b -> longs(b.stream(Arrays.asList("left", "right"), TEXTS).groupByKey().count()));
        CASES.put("count-of-pattern", b -> longs(b.stream(Pattern.compile("left|r.*"), TEXTS).groupByKey().count()));
        CASES.put("count-named", b -> longs(stream(b, "left")
            .groupBy((k, v) -> v, Grouped.as("by-value")).count(Named.as("counting"), Materialized.as("counts"))));
        CASES.put("group-count", b -> longs(stream(b, "left").groupBy((k, v) -> v).count()));
        CASES.put("group-count-store", b -> longs(stream(b, "left").groupBy((k, v) -> v).count(Materialized.as("counts"))));
        CASES.put("reduce", b -> texts(stream(b, "left").groupByKey().reduce((x, y) -> x + y)));
        CASES.put("aggregate", b -> texts(stream(b, "left").groupByKey()
            .aggregate(() -> "0", (k, v, x) -> v.equals("a1") ? null : x + v)));
        CASES.put("tumbling", b -> longs(stream(b, "left").groupByKey()
            .windowedBy(TimeWindows.ofSizeAndGrace(ms(10), ms(15))).count()));
        CASES.put("hopping", b -> texts(stream(b, "left").groupByKey()
            .windowedBy(TimeWindows.ofSizeAndGrace(ms(10), ms(0)).advanceBy(ms(3))).reduce((x, y) -> x + y)));
        CASES.put("hopping-aggregate", b -> texts(stream(b, "left").groupByKey()
            .windowedBy(TimeWindows.ofSizeAndGrace(ms(9), ms(7)).advanceBy(ms(3))).aggregate(() -> "0", (k, v, x) -> x + v)));
        CASES.put("sliding", b -> texts(stream(b, "left").groupByKey()
            .windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(ms(10), ms(12))).aggregate(() -> "0", (k, v, x) -> x + v)));
        CASES.put("sliding-count", b -> longs(stream(b, "left").groupByKey()
            .windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(ms(4), ms(0))).count()));
        CASES.put("session", b -> texts(stream(b, "left").groupByKey()
            .windowedBy(SessionWindows.ofInactivityGapAndGrace(ms(5), ms(8)))
            .aggregate(() -> "0", (k, v, x) -> x + v, (k, x, y) -> x + y)));
        CASES.put("session-count", b -> longs(stream(b, "left").groupByKey()
            .windowedBy(SessionWindows.ofInactivityGapAndGrace(ms(3), ms(0))).count()));
        CASES.put("session-reduce", b -> texts(stream(b, "left").groupByKey()
            .windowedBy(SessionWindows.ofInactivityGapAndGrace(ms(4), ms(30))).reduce((x, y) -> x + y)));
        CASES.put("tumbling-suppressed", b -> longs(stream(b, "left").groupByKey()
            .windowedBy(TimeWindows.ofSizeAndGrace(ms(10), ms(6))).count()
            .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()))));
        CASES.put("session-suppressed", b -> longs(stream(b, "left").groupByKey()
            .windowedBy(SessionWindows.ofInactivityGapAndGrace(ms(5), ms(8))).count()
            .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()))));
        CASES.put("sliding-suppressed", b -> longs(stream(b, "left").groupByKey()
            .windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(ms(6), ms(9))).count()
            .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()))));
        CASES.put("table-suppressed", b -> texts(table(b, "left")
            .suppress(Suppressed.untilTimeLimit(ms(9), Suppressed.BufferConfig.maxRecords(2)))));
        CASES.put("suppressed-grouped", b -> longs(stream(b, "left").groupByKey().count()
            .suppress(Suppressed.untilTimeLimit(ms(9), Suppressed.BufferConfig.unbounded()))
            .groupBy((k, v) -> KeyValue.pair("all", v), Grouped.with(Serdes.String(), Serdes.Long()))
            .reduce(Long::sum, (x, y) -> x - y)));
        CASES.put("tumbling-final", b -> texts(stream(b, "left").groupByKey()
            .windowedBy(TimeWindows.ofSizeAndGrace(ms(10), ms(6))).emitStrategy(EmitStrategy.onWindowClose())
            .reduce((x, y) -> x + y, kept(Serdes.String()))));
        CASES.put("tumbling-final-lost", b -> longs(stream(b, "left").groupByKey()
            .windowedBy(TimeWindows.ofSizeAndGrace(ms(10), ms(6))).emitStrategy(EmitStrategy.onWindowClose()).count()));
        CASES.put("hopping-final", b -> texts(stream(b, "left").groupByKey()
            .windowedBy(TimeWindows.ofSizeAndGrace(ms(10), ms(2)).advanceBy(ms(5))).emitStrategy(EmitStrategy.onWindowClose())
            .reduce((x, y) -> x + y, kept(Serdes.String()))));
        CASES.put("sliding-final", b -> longs(stream(b, "left").groupByKey()
            .windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(ms(10), ms(6))).emitStrategy(EmitStrategy.onWindowClose()).count(kept(Serdes.Long()))));
        CASES.put("session-final", b -> longs(stream(b, "left").groupByKey()
            .windowedBy(SessionWindows.ofInactivityGapAndGrace(ms(5), ms(6))).emitStrategy(EmitStrategy.onWindowClose()).count()));
        CASES.put("join", b -> stream(b, "left").join(stream(b, "right"), Topologies::join, window()).to("out"));
        CASES.put("left-join", b -> stream(b, "left").leftJoin(stream(b, "right"), Topologies::join, window()).to("out"));
        CASES.put("outer-join", b -> stream(b, "left").outerJoin(stream(b, "right"), Topologies::join, window()).to("out"));
        CASES.put("outer-join-narrow", b -> stream(b, "left").outerJoin(stream(b, "right"), Topologies::join,
            JoinWindows.ofTimeDifferenceAndGrace(ms(4), ms(0))).to("out"));
        CASES.put("left-join-after", b -> stream(b, "left").leftJoin(stream(b, "right"), Topologies::join,
            JoinWindows.ofTimeDifferenceAndGrace(ms(6), ms(3)).before(ms(0))).to("out"));
        CASES.put("join-rekeyed", b -> stream(b, "left").selectKey((k, v) -> v)
            .join(stream(b, "right").selectKey((k, v) -> v), Topologies::join, window()).to("out"));
        CASES.put("left-join-rekeyed", b -> stream(b, "left").selectKey((k, v) -> v)
            .leftJoin(stream(b, "right").selectKey((k, v) -> v), Topologies::join, window()).to("out"));
        CASES.put("join-named", b -> stream(b, "left").selectKey((k, v) -> v).outerJoin(stream(b, "right"),
            Topologies::join, window(), StreamJoined.<String, String, String>as("stores").withName("pairs")).to("out"));
        CASES.put("self-join", b -> {
            KStream<String, String> left = stream(b, "left");
            left.join(left, Topologies::join, window()).to("out");
        });
        CASES.put("stream-table", b -> stream(b, "left").join(table(b, "right"), Topologies::join).to("out"));
        CASES.put("stream-table-left", b -> stream(b, "left").leftJoin(table(b, "right"), Topologies::join).to("out"));
        CASES.put("stream-table-rekeyed", b -> stream(b, "left").selectKey((k, v) -> v)
            .join(table(b, "right"), Topologies::join).to("out"));
        CASES.put("stream-table-left-rekeyed", b -> stream(b, "left").selectKey((k, v) -> v)
            .leftJoin(table(b, "right"), Topologies::join).to("out"));
        CASES.put("stream-table-derived", b -> stream(b, "left").leftJoin(
            table(b, "right").filter((k, v) -> !v.startsWith("b")).mapValues(v -> v + "'"), Topologies::join).to("out"));
        CASES.put("stream-global", b -> {
            GlobalKTable<String, String> table = b.globalTable("right", TEXTS);
            stream(b, "left").join(table, (k, v) -> v == null ? null : v.substring(0, 1), Topologies::join).to("out");
        });
        CASES.put("stream-global-left", b -> {
            GlobalKTable<String, String> table = b.globalTable("right", TEXTS);
            stream(b, "left").leftJoin(table, (k, v) -> v == null || v.equals("c1") ? null : v.substring(0, 1), Topologies::join).to("out");
        });
        CASES.put("table-join", b -> texts(table(b, "left").join(table(b, "right"), Topologies::join)));
        CASES.put("table-left-join", b -> texts(table(b, "left").leftJoin(table(b, "right"), Topologies::join)));
        CASES.put("table-outer-join", b -> texts(table(b, "left").outerJoin(table(b, "right"), Topologies::join)));
        CASES.put("table-join-store", b -> texts(table(b, "left").outerJoin(table(b, "right"),
            Topologies::join, Materialized.as("joined"))));
        CASES.put("table-join-grouped", b -> longs(table(b, "left").leftJoin(table(b, "right"), Topologies::join)
            .groupBy((k, v) -> KeyValue.pair(v, k)).count()));
        CASES.put("table-joins", b -> texts(table(b, "left").join(table(b, "right"), Topologies::join)
            .outerJoin(table(b, "third").mapValues(v -> v + "'"), Topologies::join)));
        CASES.put("table-filter", b -> texts(table(b, "left").filter((k, v) -> v.startsWith("a"))));
        CASES.put("table-filter-store", b -> texts(b.table("left", TEXTS, Materialized.as("kept"))
            .filter((k, v) -> v.startsWith("a")).mapValues(v -> v + "'")));
        CASES.put("table-filter-own-store", b -> texts(table(b, "left")
            .filterNot((k, v) -> v.startsWith("a"), Materialized.as("kept"))));
        CASES.put("table-map-filter", b -> texts(table(b, "left").mapValues(v -> v + "'", Materialized.as("mapped"))
            .filter((k, v) -> v.startsWith("a"))));
        CASES.put("table-count", b -> longs(table(b, "left").groupBy(Topologies::regroup).count()));
        CASES.put("table-count-named", b -> longs(table(b, "left").groupBy(Topologies::regroup, Grouped.as("groups"))
            .count(Named.as("counting"), Materialized.as("counts"))));
        CASES.put("table-aggregate", b -> texts(table(b, "left").filter((k, v) -> !v.equals("c2")).groupBy(Topologies::regroup)
            .aggregate(() -> "0", (k, v, x) -> x + "+" + v, (k, v, x) -> x + "-" + v)));
        CASES.put("table-reduce", b -> texts(table(b, "left").groupBy(Topologies::regroup)
            .reduce((x, y) -> x + "+" + y, (x, y) -> x + "-" + y)));
        CASES.put("count-regrouped", b -> longs(stream(b, "left").groupByKey().count()
            .groupBy((k, v) -> KeyValue.pair("all", v), Grouped.with(Serdes.String(), Serdes.Long()))
            .reduce(Long::sum, (x, y) -> x - y)));
        CASES.put("tumbling-regrouped", b -> longs(stream(b, "left").groupByKey()
            .windowedBy(TimeWindows.ofSizeAndGrace(ms(10), ms(15))).count()
            .groupBy((k, v) -> KeyValue.pair(k.key(), v), Grouped.with(Serdes.String(), Serdes.Long()))
            .reduce(Long::sum, (x, y) -> x - y)));
        CASES.put("session-regrouped", b -> longs(stream(b, "left").groupByKey()
            .windowedBy(SessionWindows.ofInactivityGapAndGrace(ms(4), ms(30))).count()
            .groupBy((k, v) -> KeyValue.pair(k.key(), v), Grouped.with(Serdes.String(), Serdes.Long()))
            .reduce(Long::sum, (x, y) -> x - y)));
        CASES.put("sliding-regrouped", b -> longs(stream(b, "left").groupByKey()
            .windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(ms(5), ms(30))).count()
            .groupBy((k, v) -> KeyValue.pair(k.key(), v), Grouped.with(Serdes.String(), Serdes.Long()))
            .reduce(Long::sum, (x, y) -> x - y)));
        CASES.put("to-table", b -> texts(stream(b, "left").toTable()));
        CASES.put("to-table-rekeyed", b -> texts(stream(b, "left").selectKey((k, v) -> v).toTable(Materialized.as("kept"))
            .filter((k, v) -> v.startsWith("a"))));
        CASES.put("foreign-key", b -> texts(table(b, "left").join(table(b, "right"),
            v -> v.equals("c1") ? null : v.substring(0, 1), Topologies::join)));
        CASES.put("foreign-key-left", b -> texts(table(b, "left").leftJoin(table(b, "right"),
            v -> v.equals("c1") ? null : v.substring(0, 1), Topologies::join)));
        CASES.put("foreign-key-grouped", b -> longs(table(b, "left").join(table(b, "right"),
            v -> v.substring(0, 1), Topologies::join).groupBy((k, v) -> KeyValue.pair(v, k)).count()));
        CASES.put("foreign-key-named", b -> texts(table(b, "left").join(table(b, "right"),
            v -> v.substring(0, 1), Topologies::join, TableJoined.as("orders"), Materialized.as("joined"))));
        CASES.put("cogroup", b -> texts(stream(b, "left").groupByKey()
            .<String>cogroup((k, v, x) -> x + v).cogroup(stream(b, "right").groupByKey(), (k, v, x) -> x + "/" + v)
            .aggregate(() -> "0")));
        CASES.put("cogroup-tumbling", b -> stream(b, "left").groupByKey()
            .<String>cogroup((k, v, x) -> x + v).cogroup(stream(b, "right").groupByKey(), (k, v, x) -> x + "/" + v)
            .windowedBy(TimeWindows.ofSizeAndGrace(ms(10), ms(5))).aggregate(() -> "0")
            .toStream().to("out", Produced.keySerde(WindowedSerdes.timeWindowedSerdeFrom(String.class, 10))));
        CASES.put("cogroup-session", b -> stream(b, "left").groupByKey()
            .<String>cogroup((k, v, x) -> x + v).cogroup(stream(b, "right").groupByKey(), (k, v, x) -> x + "/" + v)
            .windowedBy(SessionWindows.ofInactivityGapAndGrace(ms(4), ms(5))).aggregate(() -> "0", (k, x, y) -> x + y)
            .toStream().to("out", Produced.keySerde(WindowedSerdes.sessionWindowedSerdeFrom(String.class))));
        CASES.put("cogroup-regrouped", b -> texts(stream(b, "left").groupBy((k, v) -> v, Grouped.as("one"))
            .<String>cogroup((k, v, x) -> x + v).cogroup(stream(b, "right").groupByKey(), (k, v, x) -> x + "/" + v)
            .aggregate(() -> "0", Named.as("both"), Materialized.as("all"))));
        CASES.put("cogroup-sliding", b -> stream(b, "left").groupByKey()
            .<String>cogroup((k, v, x) -> x + v).cogroup(stream(b, "right").groupByKey(), (k, v, x) -> x + "/" + v)
            .windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(ms(6), ms(5))).aggregate(() -> "0")
            .toStream().to("out", Produced.keySerde(WindowedSerdes.timeWindowedSerdeFrom(String.class, 6))));
        CASES.put("stream-table-suppressed", b -> stream(b, "left").leftJoin(
            table(b, "right").suppress(Suppressed.untilTimeLimit(ms(9), Suppressed.BufferConfig.unbounded())), Topologies::join).to("out"));
        CASES.put("counts-joined", b -> texts(stream(b, "left").groupByKey().count().outerJoin(
            stream(b, "right").groupByKey().count(), (x, y) -> x + "|" + y)));
        CASES.put("windows-joined", b -> stream(b, "left").groupByKey().windowedBy(TimeWindows.ofSizeAndGrace(ms(10), ms(15))).count().leftJoin(
                stream(b, "right").groupByKey().windowedBy(TimeWindows.ofSizeAndGrace(ms(10), ms(15))).count(), (x, y) -> x + "|" + y)
            .toStream().to("out", Produced.keySerde(WindowedSerdes.timeWindowedSerdeFrom(String.class, 10))));
        CASES.put("foreign-key-derived", b -> texts(table(b, "left").mapValues(v -> v + "'").filter((k, v) -> !v.startsWith("b")).leftJoin(
            table(b, "right").filter((k, v) -> v.endsWith("1")), v -> v.substring(0, 1), Topologies::join).mapValues(v -> v + "!")));
        CASES.put("outer-join-filtered", b -> texts(table(b, "left").filter((k, v) -> !v.startsWith("b")).outerJoin(
            table(b, "right").mapValues(v -> v.equals("c1") ? null : v), Topologies::join).filter((k, v) -> !v.endsWith("2"))));
        CASES.put("table-twice", b -> {
            KTable<String, String> left = table(b, "left");
            KTable<String, String> first = left.filter((k, v) -> v.startsWith("a"));
            left.join(table(b, "right"), Topologies::join).toStream().to("out");
            first.toStream().to("out");
            left.filter((k, v) -> v.startsWith("b")).toStream().to("out");
        });
        CASES.put("branches-joined", b -> {
            KStream<String, String> left = stream(b, "left");
            KStream<String, String> moved = left.filter((k, v) -> v != null).selectKey((k, v) -> v.substring(0, 1));
            moved.join(table(b, "right"), Topologies::join).to("out");
            moved.groupByKey().reduce((x, y) -> x + y).toStream().to("out");
            moved.leftJoin(stream(b, "third"), Topologies::join, window()).to("out");
        });
        CASES.put("join-null-keys", b -> stream(b, "left").selectKey(Topologies::maybe).join(stream(b, "right").selectKey(Topologies::maybe),
            Topologies::join, window()).to("out"));
        CASES.put("left-join-null-keys", b -> stream(b, "left").selectKey(Topologies::maybe).leftJoin(stream(b, "right").selectKey(Topologies::maybe),
            Topologies::join, window()).to("out"));
        CASES.put("outer-join-null-keys", b -> stream(b, "left").selectKey(Topologies::maybe).outerJoin(stream(b, "right").selectKey(Topologies::maybe),
            Topologies::join, window()).to("out"));
        CASES.put("stream-table-null-keys", b -> stream(b, "left").selectKey(Topologies::maybe).join(table(b, "right"), Topologies::join).to("out"));
        CASES.put("stream-table-left-null-keys", b -> stream(b, "left").selectKey(Topologies::maybe).leftJoin(table(b, "right"), Topologies::join).to("out"));
        CASES.put("repartition-left-join", b -> stream(b, "left").selectKey(Topologies::maybe).repartition()
            .leftJoin(table(b, "right"), Topologies::join).to("out"));
        CASES.put("repartition-left-join-global", b -> stream(b, "left").selectKey(Topologies::maybe).repartition()
            .leftJoin(b.globalTable("right", TEXTS), (k, v) -> v == null ? null : v.substring(0, 1), Topologies::join).to("out"));
        CASES.put("grouped-twice", b -> {
            KGroupedStream<String, String> grouped = stream(b, "left").groupBy((k, v) -> v);
            texts(grouped.reduce((x, y) -> x + y));
            longs(grouped.count());
        });
        CASES.put("grouped-twice-named", b -> {
            KGroupedStream<String, String> grouped = stream(b, "left").groupBy((k, v) -> v, Grouped.with("groups", Serdes.String(), Serdes.String()));
            texts(grouped.reduce((x, y) -> x + y));
            longs(grouped.windowedBy(TimeWindows.ofSizeAndGrace(ms(10), ms(15))).count());
        });
        CASES.put("table-grouped-twice", b -> {
            KGroupedTable<String, String> grouped = table(b, "left").groupBy(Topologies::regroup);
            longs(grouped.count());
            texts(grouped.reduce((x, y) -> x + "+" + y, (x, y) -> x + "-" + y));
        });
        CASES.put("process", b -> {
            b.addStateStore(Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("seen"), Serdes.String(), Serdes.String()));
            stream(b, "left").filter((k, v) -> k != null).process(Remembering::new, "seen").to("out");
        });
    }

    static class Remembering extends ContextualProcessor<String, String, String, String> {
        @Override
        public void init(ProcessorContext<String, String> context) {
            super.init(context);
            KeyValueStore<String, String> seen = context.getStateStore("seen");
            context.schedule(ms(10), PunctuationType.STREAM_TIME, now -> dump("stream", seen, now));
            context.schedule(ms(7), PunctuationType.WALL_CLOCK_TIME, now -> dump("wall", seen, now));
        }

        void dump(String kind, KeyValueStore<String, String> seen, long now) {
            try (var all = seen.all()) {
                while (all.hasNext()) {
                    var each = all.next();
                    context().forward(new Record<>(kind, each.key + "=" + each.value, now));
                }
            }
        }

        @Override
        public void process(Record<String, String> record) {
            KeyValueStore<String, String> seen = context().getStateStore("seen");
            String before = seen.get(record.key());
            seen.put(record.key(), record.value());
            context().forward(record.withValue(before + ">" + record.value()));
        }
    }
}
