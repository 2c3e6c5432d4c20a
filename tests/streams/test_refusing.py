"""What would fail at the first record, or after Spark has started, is refused before."""

from __future__ import annotations

import sys
from subprocess import run
from typing import TYPE_CHECKING, Any

import pytest

from millstream.streams import (
    Application,
    JoinWindows,
    StreamsBuilder,
    Topology,
    TopologyError,
    TopologyTestDriver,
    col,
    hopping,
    session,
    sliding,
    tumbling,
    within,
)
from millstream.streams.application import NotRunning
from millstream.streams.interpret.errors import NoTopic
from millstream.streams.serdes import (
    LONG_SERDE,
    STRING_SERDE,
    JsonSerde,
    SessionWindowedSerde,
    TimeWindowedSerde,
    json,
    serde_of,
)
from millstream.streams.settings import UnknownSetting, checked_trigger, settings_of
from millstream.streams.types import BINARY, LONG, STRING, Array, Map, Struct

if TYPE_CHECKING:
    from collections.abc import Callable

    Write = Callable[[StreamsBuilder], object]


def both(one: Any, other: Any) -> Any:
    return one, other


def topology() -> Topology:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    return builder.build()


@pytest.mark.parametrize(
    ("write", "reason"),
    [
        (lambda b: b.stream("a").filter("x > 1"), "'x > 1' is neither a function nor a column"),
        (lambda b: b.table("a").filter("x > 1"), "neither a function nor a column"),
        (lambda b: b.stream("a").map_values(5), "5 is neither a function nor a column"),
        (lambda b: b.stream("a").map_values(None), "None is neither a function nor a column"),
        (lambda b: b.stream("a").map("x"), "neither a function nor a column"),
        (lambda b: b.stream("a").select_key("user"), "'user' is neither"),
        (lambda b: b.stream("a").peek(3), "neither a function nor a column"),
        (lambda b: b.stream("a").join(b.table("b"), "x"), "neither a function nor a column"),
        (lambda b: b.stream("a").group_by_key().reduce(1), "neither a function nor a column"),
        (lambda b: b.stream("a").group_by_key().aggregate(0, both), "0 is neither a function nor a column"),
        (lambda b: b.stream("a").branch("x"), "neither a function nor a column"),
        (lambda b: b.stream("a").to(5), "5 is neither a function nor a column"),
        (lambda b: b.stream("a").group_by_key().windowed_by(5), "windowed_by takes windows"),
        (lambda b: b.stream("a").group_by_key().cogroup(both).windowed_by(5), "windowed_by takes windows"),
        (lambda b: b.stream("a").join(b.stream("b"), both, 5), "needs windows such as"),
        (lambda b: b.stream("a").repartition(partitions=0), "cannot have 0 partitions"),
        (lambda b: b.stream("a", partitions=-1), "cannot have -1 partitions"),
        (lambda b: b.stream("a b"), "a topic cannot be called 'a b'"),
        (lambda b: b.stream("a").to("x/y"), "a topic cannot be called 'x/y'"),
        (lambda b: b.stream("a").to(""), "without a name"),
        (lambda b: b.table(".."), r"a topic cannot be called '\.\.'"),
        (lambda b: b.global_table("x" * 250), "a topic cannot be called"),
        (lambda b: (b.stream("a").split().branch(both), b.build()), "nobody gets the branches"),
        (lambda b: b.stream("a").merge(StreamsBuilder().stream("b")), "the same builder"),
        (lambda b: b.stream("a").join(StreamsBuilder().table("b"), both), "the same builder"),
        (lambda b: b.stream("a").join(StreamsBuilder().stream("b"), both, within(1)), "the same builder"),
        (lambda b: b.stream("a").join(StreamsBuilder().global_table("b"), both, on=both), "the same builder"),
        (lambda b: b.table("a").join(StreamsBuilder().table("b"), both), "the same builder"),
        (
            lambda b: (
                b.stream("a").group_by_key().cogroup(both).cogroup(StreamsBuilder().stream("b").group_by_key(), both)
            ),
            "the same builder",
        ),
    ],
)
def test_what_would_fail_at_the_first_record_is_refused(write: Write, reason: str) -> None:
    with pytest.raises(TopologyError, match=reason):
        write(StreamsBuilder())


def test_keys_in_windows_join_only_keys_in_windows() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("a").group_by_key()
    windowed = grouped.windowed_by(tumbling(10)).count()
    plain = builder.table("b")
    for one, other in ((windowed, plain), (plain, windowed), (windowed.to_stream(), plain)):
        with pytest.raises(TopologyError, match="keys in windows never equal"):
            one.join(other, both)
    windowed.join(grouped.windowed_by(tumbling(20)).count(), both)
    windowed.join(builder.table("c", key=TimeWindowedSerde(STRING_SERDE, 10)), both)
    sessions = grouped.windowed_by(session(10)).count()
    sessions.join(builder.table("d", key=SessionWindowedSerde(STRING_SERDE)), both)
    windowed.to_stream(lambda key, _value: key.key, key=str).join(plain, both)


@pytest.mark.parametrize(
    "make",
    [
        lambda: tumbling(1.5),  # type: ignore[arg-type]
        lambda: hopping(10, 2.5),  # type: ignore[arg-type]
        lambda: sliding("10"),  # type: ignore[arg-type]
        lambda: session(None),  # type: ignore[arg-type]
        lambda: tumbling(10, grace_ms=0.5),  # type: ignore[arg-type]
        lambda: JoinWindows(0.5, 0.5),  # type: ignore[arg-type]
    ],
)
def test_times_of_windows_are_whole_milliseconds(make: Callable[[], object]) -> None:
    with pytest.raises(TypeError, match="whole number of milliseconds"):
        make()


@pytest.mark.parametrize("choose", [lambda _key, value: value["to"], col("to")])
def test_a_record_for_which_no_topic_is_chosen_stops_the_driver(choose: Any) -> None:
    builder = StreamsBuilder()
    builder.stream("in", value=Struct({"to": STRING})).to(choose)
    with TopologyTestDriver(builder.build()) as driver:
        driver.input_topic("in").pipe_input("k", {"to": "out"})
        assert driver.produced_topic_names() == ["out"]
        with pytest.raises(NoTopic, match="the record with key 'k' is None"):
            driver.input_topic("in").pipe_input("k", {"to": None})


@pytest.mark.parametrize("application_id", ["", "a b", "a/b", "..", "x" * 250, None])
def test_an_application_is_called_what_topics_can_be_named_after(application_id: Any) -> None:
    with pytest.raises(UnknownSetting, match="an application's id cannot be"):
        Application(topology(), application_id)


def test_an_application_runs_a_topology_and_not_its_builder() -> None:
    with pytest.raises(TypeError, match=r"builder\.build\(\)"):
        Application(StreamsBuilder(), "shop")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("topic.retentoin.ms", "did you mean 'topic.retention.ms'"),
        ("topic.cleanup.polcy", "did you mean 'topic.cleanup.policy'"),
        ("topic.nonsense", "no setting 'topic.nonsense' of topics"),
    ],
)
def test_a_setting_of_topics_that_nobody_knows_is_refused(name: str, hint: str) -> None:
    with pytest.raises(UnknownSetting, match=hint):
        settings_of("shop", None, {name: "1"})


def test_a_store_is_asked_for_once_the_application_was_started() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().count(store="counts")
    app = Application(builder.build(), "shop", bootstrap_servers="localhost:1")
    with pytest.raises(NotRunning, match="'shop' has not been started"):
        app.store("counts")


@pytest.mark.parametrize("trigger", ["soon", "availableNow", "1", "1 month", "-1 second", "", 5])
def test_a_wrong_trigger_is_refused_before_spark_starts(trigger: Any) -> None:
    with pytest.raises(UnknownSetting, match="a time between micro-batches such as '1 second'"):
        Application(topology(), "shop", bootstrap_servers="localhost:1").start(trigger=trigger)


@pytest.mark.parametrize(
    "trigger", [None, "available_now", "1 second", "500 milliseconds", "1 minute 30 seconds", "interval 2 SECONDS"]
)
def test_triggers_are_understood(trigger: str | None) -> None:
    assert checked_trigger(trigger) == trigger


def test_what_has_a_data_type_has_a_serde() -> None:
    assert serde_of(list[str]) == JsonSerde(Array(STRING))
    assert serde_of(dict[str, int]) == JsonSerde(Map(STRING, LONG))
    assert serde_of(str | None) is STRING_SERDE
    assert serde_of(int | None) is LONG_SERDE
    with pytest.raises(TypeError, match="says nothing of a serde"):
        serde_of(int | str)
    with pytest.raises(TypeError, match="says nothing of a serde"):
        serde_of(object())


def test_bytes_in_json_come_back_as_bytes() -> None:
    serde = json(Struct({"b": BINARY, "n": LONG}))
    row = {"b": b"\x00\xff", "n": 1}
    assert serde.deserialize(serde.serialize(row)) == row
    assert serde.deserialize(serde.serialize({"b": None})) == {"b": None}


def test_the_package_runs_as_the_command_does() -> None:
    shown = run([sys.executable, "-m", "millstream", "--help"], capture_output=True, text=True, timeout=60, check=True)
    assert "millstream" in shown.stdout
