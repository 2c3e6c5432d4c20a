"""A query's options, checked as a whole when it starts.

Names, defaults and forms are those of Spark's Kafka source and sink. What Spark would find out later, or never, is said
here: an unknown name (with the one that was probably meant), two ways to choose topics, a place that makes no sense in
this kind of query.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from millstream.client.errors import BadOption
from millstream.client.options import Options
from millstream.spark.offsets import Offsets, parse_assignment, parse_offsets, parse_timestamps
from millstream.spark.option_names import (
    BOOTSTRAP,
    CONNECTION,
    MEANINGFUL,
    PREFIX,
    READ_OPTIONS,
    REFUSED_FOR_READS,
    REFUSED_FOR_WRITES,
    SPARKS_OWN,
    WITHOUT_EFFECT,
    WRITE_OPTIONS,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.client.grouping import TopicPartition

EARLIEST: Final = -2
LATEST: Final = -1
# failOnDataLoss for who reads a table: what has expired is no part of it, and all else has to be there.
UNLESS_EXPIRED: Final = "unlessexpired"
_UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
# Larger fetches than a consumer's: a task reads one partition, and each answer becomes one Arrow batch.
_FETCH_BYTES: Final = 8 * 1024 * 1024


@dataclass(frozen=True)
class Selection:
    """Which topics: names, a pattern that whole names match, or single partitions; one of the three."""

    names: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()

    def includes(self, place: TopicPartition) -> bool:
        """Whether it would be read, if it exists."""
        if self.pattern is not None:
            return re.fullmatch(self.pattern, place[0]) is not None
        return place[0] in self.names or place in self.partitions


@dataclass(frozen=True)
class Bound:
    """Where reading starts or ends: one special offset or time for all partitions, or one for each."""

    everywhere: int | None = None
    """EARLIEST or LATEST."""
    offsets: Offsets | None = None
    timestamp_ms: int | None = None
    timestamps_ms: Mapping[TopicPartition, int] | None = None
    option: str = ""


@dataclass(frozen=True)
class ReadOptions:
    """What and how to read."""

    connection: dict[str, str]
    selection: Selection
    start: Bound
    end: Bound
    latest_if_too_young: bool
    """Where no record is as young as the starting time: begin at the end, or fail."""
    read_committed: bool
    check_crcs: bool
    fetch_bytes: int
    fail_on_data_loss: bool
    fail_if_expired: bool
    """Whether records are missed that retention took, or somebody who deleted them up to an offset."""
    include_headers: bool
    offsets_max: int | None
    offsets_min: int | None
    trigger_delay_ms_max: int
    partitions_min: int | None
    records_per_partition_max: int | None
    poll_timeout_ms: int


@dataclass(frozen=True)
class WriteOptions:
    """Where and how to write."""

    connection: dict[str, str]
    topic: str | None
    acks: int
    compression: str
    batch_bytes: int | None
    """None: as the writer likes it; 0, as for Java's producer: a batch for each record."""


class _Given:
    """The options as they came, under lower-case names: Spark does not keep the case."""

    def __init__(self, given: Mapping[str, str], known: tuple[str, ...], refused: Mapping[str, str], use: str) -> None:
        self._given = {name.lower(): value for name, value in given.items()}
        self._use = use
        for name in given:
            self._check(name, known, refused)
        self.kafka = {name[len(PREFIX) :]: value for name, value in self._given.items() if name.startswith(PREFIX)}
        if not self._given.get(BOOTSTRAP):
            raise BadOption(f"{BOOTSTRAP} is missing: name at least one broker, such as localhost:9092")
        self.connection = {
            name: value
            for name, value in self.kafka.items()
            if name in CONNECTION or name.startswith(("ssl.", "sasl."))
        }

    def _check(self, name: str, known: tuple[str, ...], refused: Mapping[str, str]) -> None:
        lower = name.lower()
        if lower in {each.lower() for each in (*known, *SPARKS_OWN)}:
            return
        if lower.startswith(PREFIX):
            bare = lower[len(PREFIX) :]
            if bare in refused:
                raise BadOption(f"{name} cannot be set: {refused[bare]}")
            others = (*REFUSED_FOR_READS, *REFUSED_FOR_WRITES)
            if bare in (*CONNECTION, *MEANINGFUL, *WITHOUT_EFFECT, *others) or bare.startswith(("ssl.", "sasl.")):
                return
        elsewhere = {each.lower(): each for each in (*READ_OPTIONS, *WRITE_OPTIONS)}
        if lower in elsewhere:
            raise BadOption(f"{elsewhere[lower]} has no meaning for a {self._use}")
        raise BadOption(f"there is no option {name}{_nearest(lower, known)}")

    def text(self, name: str) -> str | None:
        return self._given.get(name.lower())

    def integer(self, name: str, *, at_least: int) -> int | None:
        text = self.text(name)
        if text is None:
            return None
        try:
            value = int(text)
        except ValueError:
            raise BadOption(f"{name} must be a whole number, not {text!r}") from None
        if value < at_least:
            raise BadOption(f"{name} must be at least {at_least}, but is {value}")
        return value

    def boolean(self, name: str, *, default: bool) -> bool:
        text = self.text(name)
        if text is None:
            return default
        if text.lower() not in ("true", "false"):
            raise BadOption(f"{name} must be true or false, not {text!r}")
        return text.lower() == "true"

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """One of these; the first is the default."""
        text = (self.text(name) or choices[0]).lower()
        if text not in choices:
            raise BadOption(f"{name} must be one of {', '.join(choices)}, not {text!r}")
        return text


def parse_read(given: Mapping[str, str], *, streaming: bool) -> ReadOptions:
    """The options of a read; BadOption says which one makes no sense."""
    use = "streaming read" if streaming else "batch read"
    found = _Given(given, READ_OPTIONS, REFUSED_FOR_READS, use)
    Options.parse(found.connection)
    offsets_max = found.integer("maxOffsetsPerTrigger", at_least=1)
    offsets_min = found.integer("minOffsetsPerTrigger", at_least=1)
    if offsets_max is not None and offsets_min is not None and offsets_min > offsets_max:
        raise BadOption(f"minOffsetsPerTrigger ({offsets_min}) is larger than maxOffsetsPerTrigger ({offsets_max})")
    loss = found.choice("failOnDataLoss", ("true", "false", UNLESS_EXPIRED))
    return ReadOptions(
        connection=found.connection,
        selection=_selection(found),
        start=_start(found, streaming=streaming),
        end=_end(found, streaming=streaming),
        latest_if_too_young=found.choice("startingOffsetsByTimestampStrategy", ("error", "latest")) == "latest",
        read_committed=found.choice("kafka.isolation.level", ("read_uncommitted", "read_committed"))
        == "read_committed",
        check_crcs=found.boolean("kafka.check.crcs", default=True),
        fetch_bytes=_fetch_bytes(found),
        fail_on_data_loss=loss != "false",
        fail_if_expired=loss == "true",
        include_headers=found.boolean("includeHeaders", default=False),
        offsets_max=offsets_max,
        offsets_min=offsets_min,
        trigger_delay_ms_max=parse_duration_ms("maxTriggerDelay", found.text("maxTriggerDelay") or "15m"),
        partitions_min=found.integer("minPartitions", at_least=1),
        records_per_partition_max=found.integer("maxRecordsPerPartition", at_least=1),
        poll_timeout_ms=found.integer("kafkaConsumer.pollTimeoutMs", at_least=1) or 120_000,
    )


def parse_write(given: Mapping[str, str]) -> WriteOptions:
    """The options of a write, batch or streaming; BadOption says which one makes no sense."""
    found = _Given(given, WRITE_OPTIONS, REFUSED_FOR_WRITES, "write")
    delivery_timeout = found.text("kafka.delivery.timeout.ms")
    if delivery_timeout is not None:
        found.connection.setdefault("default.api.timeout.ms", delivery_timeout)
    Options.parse(found.connection)
    found.boolean("includeHeaders", default=False)
    if found.boolean("kafka.partitioner.ignore.keys", default=False):
        raise BadOption(
            "kafka.partitioner.ignore.keys cannot be true: here a row with a key goes where the key says; "
            "a column 'partition' says otherwise"
        )
    acks = found.choice("kafka.acks", ("all", "-1", "0", "1"))
    return WriteOptions(
        connection=found.connection,
        topic=found.text("topic"),
        acks=-1 if acks == "all" else int(acks),
        compression=found.choice("kafka.compression.type", ("none", "gzip", "snappy", "lz4", "zstd")),
        batch_bytes=found.integer("kafka.batch.size", at_least=0),
    )


def parse_duration_ms(name: str, text: str) -> int:
    """`15m`, `500ms`, `30s`; a bare number is milliseconds, as for Spark."""
    found = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip().lower())
    if found is None or (found[2] or "ms") not in _UNITS_MS:
        raise BadOption(f"{name} must be a duration such as 30s or 15m, not {text!r}")
    return int(found[1]) * _UNITS_MS[found[2] or "ms"]


def _selection(found: _Given) -> Selection:
    ways = {name: found.text(name) for name in ("assign", "subscribe", "subscribePattern")}
    chosen = {name: text.strip() for name, text in ways.items() if text is not None}
    if len(chosen) != 1:
        said = " and ".join(chosen) or "none of them"
        raise BadOption(f"one of assign, subscribe and subscribePattern must say what to read, but {said} does")
    name, text = chosen.popitem()
    if name == "assign":
        partitions = parse_assignment(name, text)
        if not partitions:
            raise BadOption("assign names no partition")
        return Selection(partitions=partitions)
    if name == "subscribe":
        names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
        if not names:
            raise BadOption("subscribe names no topic")
        return Selection(names=names)
    try:
        re.compile(text)
    except re.error as error:
        raise BadOption(f"subscribePattern {text!r} is no regular expression: {error}") from None
    if not text:
        raise BadOption("subscribePattern is empty")
    return Selection(pattern=text)


def _start(found: _Given, *, streaming: bool) -> Bound:
    bound = _bound(found, "startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
    if bound is None:
        return Bound(everywhere=LATEST if streaming else EARLIEST, option="startingOffsets")
    if not streaming and (bound.everywhere == LATEST or LATEST in _places(bound)):
        raise BadOption("startingOffsets cannot be latest (-1) in a batch read: nothing would be read")
    return bound


def _end(found: _Given, *, streaming: bool) -> Bound:
    bound = _bound(found, "endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
    if bound is None:
        return Bound(everywhere=LATEST, option="endingOffsets")
    if streaming:
        raise BadOption(f"{bound.option} has no meaning for a streaming read, which has no end")
    if bound.everywhere == EARLIEST or EARLIEST in _places(bound):
        raise BadOption("endingOffsets cannot be earliest (-2): nothing would be read")
    return bound


def _bound(found: _Given, timestamp: str, timestamps: str, offsets: str) -> Bound | None:
    """The first of these that was given, in the order in which Spark prefers them."""
    number = found.integer(timestamp, at_least=0)
    if number is not None:
        return Bound(timestamp_ms=number, option=timestamp)
    text = found.text(timestamps)
    if text is not None:
        return Bound(timestamps_ms=parse_timestamps(timestamps, text), option=timestamps)
    text = found.text(offsets)
    if text is None:
        return None
    named = {"earliest": EARLIEST, "latest": LATEST}.get(text.strip().lower())
    if named is not None:
        return Bound(everywhere=named, option=offsets)
    places = parse_offsets(offsets, text)
    wrong = [place for place, offset in places.places.items() if offset < EARLIEST]
    if wrong:
        raise BadOption(f"{offsets} has {places.places[wrong[0]]} for {wrong[0]}, which is no offset")
    return Bound(offsets=places, option=offsets)


def _places(bound: Bound) -> list[int]:
    return [] if bound.offsets is None else list(bound.offsets.places.values())


def _fetch_bytes(found: _Given) -> int:
    asked = found.integer("kafka.max.partition.fetch.bytes", at_least=1)
    return asked or found.integer("kafka.fetch.max.bytes", at_least=1) or _FETCH_BYTES


def _nearest(name: str, known: tuple[str, ...]) -> str:
    """Looked for only when something is wrong: starting a query should not pay for it."""
    from difflib import get_close_matches

    kafkas = (PREFIX + each for each in (*CONNECTION, *MEANINGFUL, *WITHOUT_EFFECT))
    spelled = {each.lower(): each for each in (*known, *kafkas)}
    near = get_close_matches(name, spelled, n=1)
    return f", did you mean {spelled[near[0]]}?" if near else ""
