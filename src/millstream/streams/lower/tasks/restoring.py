"""Reading changelogs back into a task, up to where the driver says that everything is committed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from millstream.arrow.schema import schema_of
from millstream.spark.loss import DataLost
from millstream.spark.options import UNLESS_EXPIRED, parse_read
from millstream.spark.ranges import Range
from millstream.spark.reading import read_range
from millstream.streams.errors import StateLost
from millstream.streams.lower.tasks.stores import LoggedWindows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from millstream.client.grouping import TopicPartition
    from millstream.streams.lower.subtopologies import SubTopology
    from millstream.streams.lower.tasks.partition import PartitionTask

    Row = tuple[bytes | None, bytes | None, int]

_COLUMNS: Final = schema_of(["key", "value", "timestamp"])


@dataclass(frozen=True)
class Restorable:
    """What holds the state at the start of a micro-batch: topics, and how far to read each partition of them."""

    # Topic -> store, for changelogs and for the topics of tables.
    stores: Mapping[str, str]
    tasks_topic: str
    global_topics: tuple[str, ...]
    ends: Mapping[TopicPartition, int]
    ids: Mapping[str, str]
    # How long to wait for a record that must come.
    patience_ms: int = 0


def catch_up(
    task: PartitionTask,
    number: int,
    partition: int,
    state: Restorable,
    read: Callable[[str, int, int, int], Iterator[Row]],
) -> None:
    """Read what the task does not know yet; `read` gives the records of (topic, partition, start, end)."""
    kept_changed = not task.read_to
    for (topic, index), end in state.ends.items():
        if index != partition and topic not in state.global_topics:
            continue
        start = task.read_to.get((topic, index), 0)
        task.read_to[topic, index] = end
        if start < end:
            rows = read(topic, index, start, end)
            kept_changed |= _apply(task, topic, rows, number.to_bytes(4), state)
    for store in task.stores.values():
        if isinstance(store, LoggedWindows):
            store.caught_up()
    if kept_changed:
        task.load_kept()


def _apply(task: PartitionTask, topic: str, rows: Iterator[Row], own: bytes, state: Restorable) -> bool:
    """Put the records of one topic back; whether they say something of what operators know besides stores."""
    if topic in state.stores:
        put = task.stores[state.stores[topic]].put_back
        for key, value, timestamp_ms in rows:
            if key is not None:
                put(key, value, timestamp_ms)
        return False
    if topic in state.global_topics:
        for key, value, timestamp_ms in rows:
            task.feed_global(topic, key, value, timestamp_ms)
        return False
    for key, value, _ in rows:
        if key is not None and key.startswith(own):
            task.put_back(key[len(own) :], value)
    return True


def reading_options(connection: Mapping[str, str], topic: str, patience_ms: int) -> dict[str, str]:
    """How state is read: what is committed and has not expired or been compacted, all of it. Behind a transaction of
    another sub-topology it waits for that to end; a record that does not come is an error, not left out."""
    return {
        **{f"kafka.{name}": value for name, value in connection.items()},
        "subscribe": topic,
        "kafka.isolation.level": "read_committed",
        "failOnDataLoss": UNLESS_EXPIRED,
        "kafkaConsumer.pollTimeoutMs": str(patience_ms),
    }


def read_back(
    ids: Mapping[str, str],
    connection: Mapping[str, str],
    patience_ms: int,
    topic: str,
    partition: int,
    start: int,
    end: int,
) -> Iterator[Row]:
    """The records of a partition, up to an end that was committed when it was planned; StateLost if one is missing."""
    options = parse_read(reading_options(connection, topic, patience_ms), streaming=False)
    try:
        for batch in read_range(Range(topic, ids[topic], partition, start, end), _COLUMNS, options):
            keys, values, times = (batch.column(name) for name in ("key", "value", "timestamp"))
            times_ms = times.cast("int64").to_pylist()
            for key, value, time_us in zip(keys.to_pylist(), values.to_pylist(), times_ms, strict=True):
                yield key, value, time_us // 1000
    except DataLost as lost:
        raise StateLost(f"state cannot be read back whole: {lost.what}") from lost


def stores_by_topic(part: SubTopology, application_id: str) -> dict[str, str]:
    """Which store each changelog, and each topic of a table, belongs to."""
    found = {part.changelog(store, application_id): store.name for store in part.logged}
    found.update({topic: store.name for topic, store in part.table_stores})
    return found
