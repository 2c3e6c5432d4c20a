"""A Kafka Streams application with exactly_once_v2: repartitioning, a state store with its changelog, two threads.

It is killed and started again in the middle, and so is the broker. Each word's counts must come out as 1, 2, 3, …: a
record lost, read twice or written in an aborted transaction would show.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.kafka_applications import JavaProcess, application_jars
from tests.support.maven import compiled_class
from tests.support.topics import create_topics, in_the_middle, read_committed, stable_ends, write
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from tests.support.running import RunningBroker

pytestmark = [pytest.mark.clients, pytest.mark.java, pytest.mark.slow]

PARTITIONS = 3
WORDS = ("mill", "stream", "stone", "water", "wheel", "grain", "flour")


def word_count(broker: RunningBroker, directory: Path) -> JavaProcess:
    jars = application_jars()
    classes = compiled_class(Path(__file__).with_name("WordCount.java"), jars)
    arguments = (broker.bootstrap_servers, "word-count", str(directory / "state"), "lines", "counts")
    return JavaProcess(
        "WordCount", *arguments, log_path=directory / "word-count.log", class_path=[str(classes), f"{jars}/*"]
    )


def some_lines(seed: int, count: int) -> list[str]:
    dice = random.Random(seed)
    return [" ".join(dice.choices(WORDS, k=dice.randint(1, 6))) for _ in range(count)]


def words_in(lines: list[str]) -> Counter[str]:
    return Counter(word for line in lines for word in line.split())


def counts_seen(broker: RunningBroker) -> dict[str, list[int]]:
    """Every count that was committed for a word, in order."""
    seen: dict[str, list[int]] = defaultdict(list)
    for record in read_committed(broker, "counts", PARTITIONS):
        assert record.key is not None
        assert record.value is not None
        seen[record.key.decode()].append(int.from_bytes(record.value))
    return seen


def assert_counted_exactly_once(broker: RunningBroker, application: JavaProcess, lines: list[str]) -> None:
    expected = words_in(lines)

    def complete() -> bool:
        application.assert_alive()
        return sum(map(len, counts_seen(broker).values())) >= expected.total()

    try:
        wait_until(complete, "all words to be counted", within_s=180, every_s=0.2)
    except TimeoutError as late:
        raise AssertionError(f"{late}: {counts_seen(broker)}\n{application.said()[-6000:]}") from late
    assert counts_seen(broker) == {word: list(range(1, count + 1)) for word, count in expected.items()}


def test_words_are_counted_exactly_once_whatever_is_killed(own_broker: RunningBroker, tmp_path: Path) -> None:
    create_topics(own_broker, "lines", "counts", partitions=PARTITIONS)
    lines: list[str] = []

    def say(count: int) -> int:
        """So many lines more; how many words those are."""
        more = some_lines(len(lines), count)
        write(own_broker, "lines", more)
        lines.extend(more)
        return words_in(more).total()

    words = say(1500)
    with word_count(own_broker, tmp_path) as application:
        application.start()
        in_the_middle(own_broker, "counts", PARTITIONS, before=0, of=words, feed=lambda words: say(words // 3))
        application.kill()
        say(400)
        application.start()
        assert_counted_exactly_once(own_broker, application, lines)

        before = stable_ends(own_broker, "counts", PARTITIONS)
        words = say(1000)
        in_the_middle(own_broker, "counts", PARTITIONS, before=before, of=words, feed=lambda words: say(words // 3))
        own_broker.kill()
        own_broker.start()
        assert_counted_exactly_once(own_broker, application, lines)

        say(50)
        assert application.stop() in (0, 143)
        application.start()
        assert_counted_exactly_once(own_broker, application, lines)
