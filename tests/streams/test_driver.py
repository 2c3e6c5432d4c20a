"""The driver: how a test puts records in, lets time pass, and looks at what came out and what is kept."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.streams import (
    JSON_SERDE,
    STRING_SERDE,
    KeyValueStore,
    PunctuationType,
    Record,
    StreamsBuilder,
    TopologyError,
    TopologyTestDriver,
    Window,
    Windowed,
    WindowStore,
    col,
    hopping,
    json,
    session,
    tumbling,
    until_window_closes,
    within,
)
from millstream.streams.interpret.errors import BufferFull, UnknownStore
from millstream.streams.plan.nodes import Sink


def counted() -> TopologyTestDriver:
    builder = StreamsBuilder(value=str)
    builder.stream("in").group_by_key().count(store="counts").to_stream().to("out")
    return TopologyTestDriver(builder.build(), wall_clock_ms=100)


def test_records_go_in_and_come_out_with_their_times_and_headers() -> None:
    builder = StreamsBuilder(value=str)
    builder.stream("in").map_values(str.upper, value=str).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.input_topic("in").pipe_input("k", "v", 17, (("trace", b"1"),))
        assert driver.output_topic("out").read_record() == Record("k", "V", 17, (("trace", b"1"),))
        with pytest.raises(IndexError, match="nothing more"):
            driver.output_topic("out").read_value()


def test_a_topic_gives_times_and_lets_them_advance() -> None:
    driver = counted()
    topic = driver.input_topic("in", start_ms=5, auto_advance_ms=10)
    topic.pipe_many([("a", "x"), ("a", "x"), ("a", "x", 3)])
    topic.advance_time(100)
    topic.pipe_input("a", "x")
    records = driver.output_topic("out").read_records_to_list()
    # An aggregate's time is the largest of its records'.
    assert [(record.value, record.timestamp_ms) for record in records] == [(1, 5), (2, 15), (3, 15), (4, 125)]
    assert driver.stream_time_ms == 125


def test_stores_are_read_by_key_and_by_range() -> None:
    driver = counted()
    driver.input_topic("in").pipe_many([(key, "x") for key in "cabca"])
    store = driver.store("counts")
    assert store.get("a") == 2
    assert store.get("z") is None
    assert list(store.all()) == [("a", 2), ("b", 1), ("c", 2)]
    assert list(store.range("a", "b")) == [("a", 2), ("b", 1)]
    assert [key for key, _ in store.range(None, None, reverse=True)] == ["c", "b", "a"]
    with pytest.raises(UnknownStore, match="did you mean 'counts'"):
        driver.store("count")


def test_window_stores_are_read_by_key_and_time() -> None:
    builder = StreamsBuilder(value=str)
    builder.stream("in").group_by_key().windowed_by(hopping(10, 5, grace_ms=20)).count(store="counts")
    driver = TopologyTestDriver(builder.build())
    driver.input_topic("in").pipe_many([("a", "x", 7), ("b", "x", 12)])
    store = driver.store("counts")
    assert store.fetch("a", 5) == 1
    assert store.fetch("a", 0, 100) == [(0, 1), (5, 1)]
    assert list(store.fetch_all(5, 9)) == [(Windowed("a", Window(5, 15)), 1), (Windowed("b", Window(5, 15)), 1)]


def test_records_that_are_left_out_are_counted_by_reason() -> None:
    builder = StreamsBuilder(value=str)
    builder.stream("in").group_by_key().windowed_by(tumbling(10)).count()
    driver = TopologyTestDriver(builder.build())
    driver.input_topic("in").pipe_many([("a", "x", 50), ("a", "x", 5), (None, "x", 60)])
    assert driver.dropped_records == {"late": 1, "null key": 1}


def test_a_topic_for_each_record() -> None:
    builder = StreamsBuilder(value=str)
    stream = builder.stream("in")
    stream.to(lambda key, _value: f"out-{key}")
    driver = TopologyTestDriver(builder.build())
    driver.input_topic("in").pipe_many([("a", "1"), ("b", "2"), ("a", "3")])
    assert driver.produced_topic_names() == ["out-a", "out-b"]
    assert driver.output_topic("out-a").read_values_to_list() == ["1", "3"]


def test_what_goes_through_a_topic_comes_back() -> None:
    builder = StreamsBuilder(value=str)
    builder.stream("in").through("between").map_values(str.upper, value=str).to("out")
    driver = TopologyTestDriver(builder.build())
    driver.input_topic("in").pipe_input("k", "v")
    assert driver.output_topic("between").read_key_value() == ("k", "v")
    assert driver.output_topic("out").read_key_value() == ("k", "V")


def test_an_aggregate_that_is_changed_in_place_is_still_sent_as_it_was() -> None:
    def collect(_key: str, value: str, held: list[str]) -> list[str]:
        held.append(value)
        return held

    builder = StreamsBuilder(value=str)
    lists = builder.stream("in").group_by_key().aggregate(list, collect, value=JSON_SERDE)
    lists.group_by(lambda _key, items: (str(len(items)), items), key=str, value=JSON_SERDE).count().to_stream().to(
        "out"
    )
    driver = TopologyTestDriver(builder.build())
    driver.input_topic("in").pipe_many([("a", "1"), ("a", "2")])
    # The key leaves the group of those with one item when it gets a second. That it first leaves the group of the
    # empty lists is as in Kafka Streams: the first aggregate replaces the initial one.
    assert driver.output_topic("out").read_key_values_to_list() == [("0", None), ("1", 1), ("1", 0), ("2", 1)]


def test_time_from_the_record() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", timestamp_of=lambda _key, value, _timestamp: value["at"])
    stream.group_by_key().windowed_by(tumbling(10)).count(store="counts")
    driver = TopologyTestDriver(builder.build())
    driver.input_topic("in").pipe_input("a", {"at": 42}, 0)
    assert [windowed.window for windowed, _ in driver.store("counts").all()] == [Window(40, 50)]
    assert driver.stream_time_ms == 42


def test_a_topic_that_is_not_read_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(TopologyError, match="did you mean 'in'"):
        counted().input_topic("inn")
    with pytest.raises(TopologyError, match="does not write"):
        counted().output_topic("nowhere")
    with pytest.raises(ValueError, match="below zero"):
        counted().input_topic("in").pipe_input("a", "x", -1)


class Timer:
    """Forwards the time at intervals of wall-clock time, three times."""

    def init(self, context: Any) -> None:
        self.context, self.ticks = context, 0
        self.timer = context.schedule(10, PunctuationType.WALL_CLOCK_TIME, self.tick)

    def tick(self, now_ms: int) -> None:
        self.ticks += 1
        self.context.forward(Record("tick", str(now_ms), now_ms))
        if self.ticks == 3:
            self.timer.cancel()

    def process(self, record: Record) -> None:
        metadata = self.context.record_metadata
        self.context.forward(record.with_value(f"{metadata.topic}-{metadata.partition}@{metadata.offset}"))


def test_wall_clock_time_passes_when_the_test_says_so() -> None:
    builder = StreamsBuilder(value=str)
    builder.stream("in").process(Timer, value=str).to("out")
    driver = TopologyTestDriver(builder.build(), wall_clock_ms=1_000)
    for by_ms in (9, 1, 35, 5, 100):
        driver.advance_wall_clock_time(by_ms)
    # What was missed is not made up for, and the rhythm stays.
    assert driver.output_topic("out").read_values_to_list() == ["1010", "1045", "1050"]
    driver.input_topic("in").pipe_many([("k", "v"), ("k", "v")])
    assert driver.output_topic("out").read_values_to_list() == ["in-0@0", "in-0@1"]


def test_a_processor_may_use_only_the_stores_it_was_given() -> None:
    class Curious:
        def init(self, context: Any) -> None:
            context.get_state_store("counts")

        def process(self, record: Record) -> None: ...

    builder = StreamsBuilder(value=str)
    builder.add_state_store(KeyValueStore("counts", STRING_SERDE, STRING_SERDE))
    builder.stream("in").process(Curious)
    with pytest.raises(TopologyError, match="was not given the store 'counts'"):
        TopologyTestDriver(builder.build())


def test_process_values_must_leave_the_key_alone() -> None:
    builder = StreamsBuilder(value=str)
    builder.stream("in").process_values(lambda: lambda record, context: context.forward(record.with_key("other")))
    driver = TopologyTestDriver(builder.build())
    with pytest.raises(TopologyError, match="must not change the key"):
        driver.input_topic("in").pipe_input("k", "v")


def test_processors_may_keep_windows() -> None:
    def remember(record: Record, context: Any) -> None:
        store = context.get_state_store("recent")
        store.put(record.key, record.value, record.timestamp_ms)
        recent = [value for _, value in store.fetch(record.key, record.timestamp_ms - 10, record.timestamp_ms)]
        context.forward(record.with_value(",".join(recent)))

    builder = StreamsBuilder(value=str)
    builder.add_state_store(WindowStore("recent", STRING_SERDE, STRING_SERDE, size_ms=10, retention_ms=20))
    builder.stream("in").process_values(lambda: remember, "recent", value=str).to("out")
    driver = TopologyTestDriver(builder.build())
    driver.input_topic("in").pipe_many([("k", "a", 0), ("k", "b", 5), ("k", "c", 15)])
    assert driver.output_topic("out").read_values_to_list() == ["a", "a,b", "b,c"]


def test_a_full_buffer_stops_a_final_suppression() -> None:
    builder = StreamsBuilder(value=str)
    counts = builder.stream("in").group_by_key().windowed_by(tumbling(10)).count()
    counts.suppress(until_window_closes(records_max=2)).to_stream().to("out")
    driver = TopologyTestDriver(builder.build())
    with pytest.raises(BufferFull, match="holds back 3 records"):
        driver.input_topic("in").pipe_many([("a", "x", 1), ("b", "x", 2), ("c", "x", 3)])


def test_columns_as_joiners_and_keys() -> None:
    from millstream.streams import left, right, struct

    builder = StreamsBuilder()
    orders, payments = builder.stream("orders"), builder.stream("payments")
    joined = orders.select_key(col("id"), key=str).left_join(
        payments.select_key(col("order"), key=str),
        struct(id=left("id"), due=left("cents") - right("cents")),
        within(10),
    )
    joined.to("out", value=json())
    driver = TopologyTestDriver(builder.build())
    driver.input_topic("orders").pipe_input(None, {"id": "1", "cents": 100}, 0)
    driver.input_topic("payments").pipe_input(None, {"order": "1", "cents": 30}, 5)
    driver.input_topic("orders").pipe_input(None, {"id": "2", "cents": 100}, 50)
    driver.input_topic("orders").pipe_input(None, {"id": "3", "cents": 100}, 100)
    assert driver.output_topic("out").read_values_to_list() == [{"id": "1", "due": 70}, {"id": "2", "due": None}]


def test_sessions_are_read_by_key() -> None:
    builder = StreamsBuilder(value=str)
    builder.stream("in").group_by_key().windowed_by(session(5, grace_ms=5)).count(store="sessions")
    driver = TopologyTestDriver(builder.build())
    driver.input_topic("in").pipe_many([("a", "x", 0), ("a", "x", 8), ("a", "x", 4)])
    assert driver.store("sessions").fetch("a") == [(Windowed("a", Window(0, 8)), 3)]


def test_print_and_foreach_end_a_stream(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[tuple[str, str]] = []
    builder = StreamsBuilder(value=str)
    stream = builder.stream("in")
    stream.print(label="in")
    stream.foreach(lambda key, value: seen.append((key, value)))
    driver = TopologyTestDriver(builder.build())
    driver.input_topic("in").pipe_input("k", "v")
    assert capsys.readouterr().out == "[in]: k, v\n"
    assert seen == [("k", "v")]


def test_unpaired_records_of_a_join_come_with_the_record_that_closes_their_window() -> None:
    """Kafka Streams looks for them once a second of wall-clock time, which stands still here."""
    builder = StreamsBuilder(key=str, value=str)
    pair = lambda one, other: f"{one}|{other}"  # noqa: E731  # as a user writes it
    builder.stream("left").left_join(builder.stream("right"), pair, within(5, grace_ms=0), result=str).to("out")
    with TopologyTestDriver(builder.build(), wall_clock_ms=0) as driver:
        lefts, out = driver.input_topic("left"), driver.output_topic("out")
        for at_ms in (0, 10, 20):
            lefts.pipe_input("k", f"v{at_ms}", at_ms)
        assert out.read_values_to_list() == ["v0|None", "v10|None"]


def test_a_sinks_partitioner_is_kept_in_the_plan_and_not_asked() -> None:
    def never(*_: object) -> int:
        raise AssertionError("topics have no partitions here")

    builder = StreamsBuilder(key=str, value=str)
    builder.stream("in").to("out", partitioner=never)
    topology = builder.build()
    assert [node.partitioner for node in topology.plan.nodes if isinstance(node, Sink)] == [never]
    with TopologyTestDriver(topology) as driver:
        driver.input_topic("in").pipe_input("k", "v", 0)
        assert driver.output_topic("out").read_value() == "v"
