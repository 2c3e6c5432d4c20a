"""Kafka Streams' own TopologyTestDriver is given the same topologies and the same random records: the same bytes with
the same times must come out of both, record by record, and both must describe themselves with the same text."""

from __future__ import annotations

import os
import random
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest

from millstream.client.errors import BadOption
from millstream.streams import StreamsBuilder, TopologyTestDriver
from millstream.streams.lower.topics import settings_of_topic
from millstream.streams.queries import copy_of
from millstream.streams.queries.copies import Copy, KeyValueCopy, WindowCopy
from millstream.streams.settings import UnknownSetting, settings_of
from tests.streams.reference_cases import CASES
from tests.support.apache_kafka import QUICK_START, VERSION
from tests.support.maven import Artifact, compiled_class, fetched_jars
from tests.support.requirements import require

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

pytestmark = pytest.mark.java

ARTIFACTS = (
    Artifact("org.apache.kafka", "kafka-streams-test-utils", VERSION),
    Artifact("org.slf4j", "slf4j-nop", "1.7.36"),
)
Line = tuple[str, ...]
KEPT_MS = str(2 * 86_400_000)
SEEDS = range(50) if os.environ.get("HYPOTHESIS_PROFILE") == "soak" else range(2)


class KafkaStreams:
    """The program beside this file, answering case by case."""

    def __init__(self, directory: Path) -> None:
        jars = fetched_jars(f"kafka-streams-test-utils-{VERSION}", ARTIFACTS)
        classes = compiled_class(Path(__file__).with_name("Topologies.java"), jars)
        java = require("java", "Kafka Streams needs Java 17")
        self._process = subprocess.Popen(
            [java, "-Xmx256m", *QUICK_START, "-cp", f"{classes}:{jars}/*", "Topologies", str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def run(self, case: str, lines: Sequence[Line], topic: str = "out") -> tuple[str, list[list[str]]]:
        """The topology's description, and what each line brought out of the topic."""
        assert self._process.stdin is not None
        said = "".join("\t".join(line) + "\n" for line in lines)
        self._process.stdin.write(f"run {case} {len(lines)} {topic}\n{said}")
        self._process.stdin.flush()
        description = "\n".join(self._until("END OF DESCRIPTION")) + "\n"
        results: list[list[str]] = [[]]
        for line in self._until("END"):
            assert not line.startswith("failed: "), f"{case}: {line}"
            if line == "-":
                results.append([])
            else:
                results[-1].append(line)
        return description, results[:-1]

    def lines(self, question: str) -> list[str]:
        """The answer to a question of one line."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{question}\n")
        self._process.stdin.flush()
        return list(self._until("END"))

    def _until(self, end: str) -> Iterator[str]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.rstrip("\n") == end:
                return
            yield line.rstrip("\n")
        raise AssertionError("the Java program has ended")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=30)


@pytest.fixture(scope="module")
def kafka_streams(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaStreams]:
    with KafkaStreams(tmp_path_factory.mktemp("kafka-streams")) as running:
        yield running


def random_lines(seed: int, count: int) -> list[Line]:
    """Records that are late, early, without key or value; time goes on in small steps and sometimes leaps."""
    dice = random.Random(seed)
    lines: list[Line] = []
    now_ms = 0
    nulls = dice.choice((0.0, 0.1))
    late_ms = dice.choice((0, 5, 30))
    for _ in range(count):
        now_ms += dice.choice((0, 0, 1, 1, 2, 5)) if dice.random() < 0.97 else dice.randint(20, 60)
        key = "\\N" if dice.random() < nulls / 2 else dice.choice("abc")
        value = "\\N" if dice.random() < nulls else dice.choice("abc") + dice.choice("12")
        at_ms = max(0, now_ms - (dice.randint(0, late_ms) if dice.random() < 0.3 else 0))
        lines.append((dice.choice(("left", "right", "third")), key, value, str(at_ms)))
        if dice.random() < 0.1:
            lines.append((f"@advance {dice.randint(1, 20)}",))
    return lines


def here(case: str, lines: Sequence[Line]) -> tuple[str, list[list[str]]]:
    builder = StreamsBuilder(key=str, value=str)
    CASES[case](builder)
    topology = builder.build()
    results = []
    with TopologyTestDriver(topology) as driver:
        output = driver.output_topic("out", key=bytes, value=bytes)
        for line in lines:
            if line[0].startswith("@advance "):
                driver.advance_wall_clock_time(int(line[0].split()[1]))
            else:
                topic, key, value, time_ms = line
                driver.pipe_raw(topic, _bytes(key), _bytes(value), int(time_ms))
            results.append(
                [
                    f"{_hex(record.key)} {_hex(record.value)} {record.timestamp_ms}"
                    for record in output.read_records_to_list()
                ]
            )
    return topology.describe(), results


def _bytes(field: str) -> bytes | None:
    return None if field == "\\N" else field.encode()


def _hex(content: bytes | None) -> str:
    return "null" if content is None else "x" + content.hex()


def topics_of(case: str) -> set[str]:
    builder = StreamsBuilder(key=str, value=str)
    CASES[case](builder)
    return {topic for topic in ("left", "right", "third") if builder.draft.source_of(topic) is not None}


def in_any_order(description: str) -> list[str]:
    """A description in which lists of names are sorted: Kafka Streams has them in the order of Java's hashes."""

    def in_order(names: re.Match[str]) -> str:
        return names[1] + ", ".join(sorted(names[2].split(", "))) + names[3]

    return [re.sub(r"(--> |<-- |stores: \[)([^\]]*)(\]|$)", in_order, line) for line in description.splitlines()]


@pytest.mark.parametrize("case", sorted(CASES))
def test_what_comes_out_is_what_kafka_streams_sends(kafka_streams: KafkaStreams, case: str) -> None:
    read = topics_of(case)
    for seed in SEEDS:
        lines = [line for line in random_lines(seed, 100) if line[0] in read or line[0].startswith("@")]
        theirs_said, theirs = kafka_streams.run(case, lines)
        ours_said, ours = here(case, lines)
        for number, (expected, found) in enumerate(zip(theirs, ours, strict=True)):
            assert found == expected, f"seed {seed}, after {lines[: number + 1][-12:]}"
        assert in_any_order(ours_said) == in_any_order(theirs_said)


# What a pattern's sub-topology needs Kafka Streams knows only when there is a topic that matches.
@pytest.mark.parametrize("case", sorted(CASES.keys() - {"count-of-pattern"}))
def test_internal_topics_have_the_names_and_settings_that_kafka_streams_gives_them(
    kafka_streams: KafkaStreams, case: str
) -> None:
    builder = StreamsBuilder(key=str, value=str)
    CASES[case](builder)
    settings = settings_of("app", "none:1", {})
    ours = {topic.name: settings_of_topic(topic, settings) for topic in builder.build().internal_topics("app")}
    theirs = {}
    for line in kafka_streams.lines(f"topics {case}"):
        name, _, said = line.partition(" ")
        theirs[name] = dict(each.split("=") for each in re.split(r", (?=[a-z.]+=)", said[1:-1]))
    kept = {topic.name: topic.retention_ms for topic in builder.build().internal_topics("app")}
    for name, said in theirs.items():
        if "compact" in said["cleanup.policy"] or name.endswith("-changelog"):
            # Of windows what is old is deleted by stream time, after as long as Kafka Streams says (trimming.py); the
            # Java side of some cases asks for more than it would have got, see `kept` there.
            found = said.pop("retention.ms", None)
            assert found in (None if kept[name] is None else str(kept[name]), KEPT_MS)
            assert ours[name].pop("retention.ms", None) == (None if kept[name] is None else "-1")
    assert ours == theirs


def test_every_setting_of_kafka_streams_is_known(kafka_streams: KafkaStreams) -> None:
    """It does something, or nothing with a word in the log, or is refused with what to do instead."""
    theirs = kafka_streams.lines("settings")
    assert "processing.guarantee" in theirs
    assert [name for name in theirs if not is_known(name)] == []


def is_known(name: str) -> bool:
    try:
        settings_of("app", "none:1", {name: "1"})
    except (UnknownSetting, BadOption) as refused:
        return "there is no setting" not in str(refused)
    return True


def test_final_results_survive_a_pause_here_but_not_in_kafka_streams(kafka_streams: KafkaStreams) -> None:
    """The one difference on purpose: a window's final result is promised once, whatever the pause behind it.

    Kafka Streams reads the closed windows from a store in which by then the newest record has made them too old.
    """
    lines = [("left", "a", "a1", "0"), ("left", "b", "b1", "30")]
    assert kafka_streams.run("tumbling-final-lost", lines)[1] == [[], []]
    window = "x" + b"a".hex() + "00" * 8
    one = "x" + "00" * 7 + "01"
    assert here("tumbling-final", lines)[1] == [[], [f"{window} {'x' + b'a1'.hex()} 0"]]
    assert kafka_streams.run("tumbling-suppressed", lines)[1] == [[], [f"{window} {one} 0"]]


@pytest.mark.parametrize("case", ["count", "reduce", "tumbling", "sliding", "session", "table-count"])
def test_changelogs_of_kafka_streams_are_understood_by_the_copies_for_queries(
    kafka_streams: KafkaStreams, case: str
) -> None:
    """What Kafka Streams writes to a store's changelog makes a copy that holds what the store here holds."""
    builder = StreamsBuilder(key=str, value=str)
    CASES[case](builder)
    topology = builder.build()
    (name,) = [store for store in topology.plan.stores if "AGGREGATE" in store or "REDUCE" in store]
    lines = [line for line in random_lines(1, 60) if line[0] == "left"]
    _, changes = kafka_streams.run(case, lines, f"app-{name}-changelog")
    copy = copy_of(topology.plan.stores[name])
    for change in (change for line in changes for change in line):
        key, value, _ = change.split()
        copy.apply(bytes.fromhex(key[1:]), None if value == "null" else bytes.fromhex(value[1:]))
    with TopologyTestDriver(topology) as driver:
        for topic, key, value, time_ms in lines:
            driver.pipe_raw(topic, _bytes(key), _bytes(value), int(time_ms))
        held = dict(driver.store(name).all())
    assert held
    assert {key: found(copy, key) for key in held} == held


def found(copy: Copy, key: Any) -> Any:
    if isinstance(copy, KeyValueCopy):
        return copy.get(key)
    if isinstance(copy, WindowCopy):
        return copy.get(key.key, key.window.start_ms)
    return dict(copy.fetch(key.key)).get(key.window)
