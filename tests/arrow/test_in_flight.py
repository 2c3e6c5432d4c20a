"""Several requests are under way at once: what goes wrong with one of them must not change any partition's order."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from millstream import arrow
from millstream.arrow.writer import BATCH_BYTES, CAUTIOUS_BYTES, TURN_BYTES, TURNS_MAX
from millstream.client import produce as produce_module
from millstream.client.errors import ConnectionLost, Refusal
from millstream.client.in_order import IN_FLIGHT_MAX
from millstream.protocol.errors import ErrorCode
from millstream.records.batch import read_header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from millstream.client.grouping import TopicPartition

ROWS = 12_000
PIECE = 1_000
PARTITIONS = 3


class Wire:
    """Stands before each Produce request: counts those under way, and lets some go wrong."""

    def __init__(
        self, accident: Callable[[Mapping[TopicPartition, Any]], str | None], *, until_two: bool = False
    ) -> None:
        """`until_two` holds a request back once, until another one to the same partition is under way."""
        self._until_two = until_two
        self._two = asyncio.Event()
        self._send = produce_module._send
        self._accident = accident
        self.under_way: Counter[TopicPartition] = Counter()
        self.acknowledged: Counter[TopicPartition] = Counter()
        self.most = 0
        self.most_before_the_first = 0
        self.accidents: Counter[str] = Counter()
        self._followed = asyncio.Event()
        self.bytes_under_way = 0
        self.most_bytes = 0
        self.partitions_in_a_request = 0
        self.batch_bytes: list[int] = []

    async def __call__(self, client: Any, node: int, batches: Any, *how: Any) -> Any:
        size = sum(map(len, batches.values()))
        self.bytes_under_way += size
        self.most_bytes = max(self.most_bytes, self.bytes_under_way)
        self.partitions_in_a_request = max(self.partitions_in_a_request, len(batches))
        self.batch_bytes += map(len, batches.values())
        for place in batches:
            self.under_way[place] += 1
            self.most = max(self.most, self.under_way[place])
            if self.under_way[place] == 2:
                self._two.set()
            if self.under_way[place] >= 3:
                self._followed.set()
            if not self.acknowledged[place]:
                self.most_before_the_first = max(self.most_before_the_first, self.under_way[place])
        try:
            if self._until_two and all(self.acknowledged[place] for place in batches):
                async with asyncio.timeout(60):
                    await self._two.wait()
            outcome = await self._with_accidents(client, node, batches, *how)
            self.acknowledged.update(place for place, each in outcome.items() if not isinstance(each, Refusal))
        finally:
            self.under_way.subtract(list(batches))
            self.bytes_under_way -= size
        return outcome

    async def _with_accidents(self, client: Any, node: int, batches: Any, *how: Any) -> Any:
        accident = self._accident(batches)
        if accident is not None:
            self.accidents[accident] += 1
        if accident == "lost":
            raise ConnectionLost("the request was lost on its way")
        if accident == "refused":
            # One partition has moved, the others have not.
            place, *others = batches
            sent = await self._send(client, node, {each: batches[each] for each in others}, *how) if others else {}
            return {place: Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER), **sent}
        if accident == "too large":
            if self.accidents[accident] == 1:
                await self._until_others_follow()
            return dict.fromkeys(batches, Refusal(ErrorCode.MESSAGE_TOO_LARGE))
        outcome = await self._send(client, node, batches, *how)
        if accident == "unheard":
            raise ConnectionLost("the answer was lost on its way")
        return outcome

    async def _until_others_follow(self) -> None:
        self._followed.clear()
        if max(self.under_way.values()) < 3:
            async with asyncio.timeout(60):
                await self._followed.wait()


def pieces() -> Iterator[pa.RecordBatch]:
    for first in range(0, ROWS, PIECE):
        numbers = [b"%06d" % number for number in range(first, first + PIECE)]
        yield pa.record_batch({"key": numbers, "value": numbers})


def write(bootstrap: str, topic: str, **how: Any) -> dict[tuple[str, int], arrow.Written]:
    return arrow.write(
        {"bootstrap.servers": bootstrap, "retry.backoff.ms": "1"}, topic, pieces(), batch_bytes=1_000, **how
    )


def by_partition(bootstrap: str, topic: str) -> dict[int, list[bytes]]:
    table = arrow.read(bootstrap, topic, columns=["value", "partition", "offset"])
    ordered = table.sort_by([("partition", "ascending"), ("offset", "ascending")]).to_pydict()
    found: dict[int, list[bytes]] = {}
    for value, partition in zip(ordered["value"], ordered["partition"], strict=True):
        found.setdefault(partition, []).append(value)
    return found


@pytest.mark.parametrize("period", [3, 7, 10])
def test_lost_requests_lost_answers_and_moved_leaders_change_no_order(
    bootstrap: str, make_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch, period: int
) -> None:
    topic = make_topic(PARTITIONS)
    kinds = itertools.cycle(("lost", "refused", "unheard"))
    requests = itertools.count(1)
    wire = Wire(lambda _: next(kinds) if next(requests) % period == 0 else None)
    monkeypatch.setattr(produce_module, "_send", wire)
    written = write(bootstrap, topic)
    assert set(wire.accidents) == {"lost", "refused", "unheard"}
    # How many are under way beside an accident is a matter of luck; `until_two` leaves nothing to it elsewhere.
    assert wire.most <= IN_FLIGHT_MAX
    found = by_partition(bootstrap, topic)
    assert all(values == sorted(values) for values in found.values())
    assert sorted(value for values in found.values() for value in values) == [b"%06d" % index for index in range(ROWS)]
    assert sum(each.records for each in written.values()) == ROWS


def test_a_partitions_first_batch_goes_alone(
    bootstrap: str, make_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that has never heard of a producer takes any number from it, so it could take the second batch first."""
    topic = make_topic(PARTITIONS)
    wire = Wire(lambda _: None, until_two=True)
    monkeypatch.setattr(produce_module, "_send", wire)
    write(bootstrap, topic)
    assert wire.most_before_the_first == 1
    assert 1 < wire.most <= IN_FLIGHT_MAX


def test_without_numbers_a_partition_has_one_batch_under_way(
    bootstrap: str, make_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = make_topic(PARTITIONS)
    wire = Wire(lambda _: None)
    monkeypatch.setattr(produce_module, "_send", wire)
    write(bootstrap, topic, acks=1)
    assert wire.most == 1
    assert all(values == sorted(values) for values in by_partition(bootstrap, topic).values())


def test_after_a_refusal_for_good_nothing_is_written_behind_it(
    bootstrap: str, make_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whether others are sent behind it before it is refused is a matter of luck: until they were.
    for attempt in range(20):
        if _refuse_one_for_good(bootstrap, make_topic(1, f"-{attempt}"), monkeypatch):
            return
    pytest.fail("nothing was under way behind it")


def _refuse_one_for_good(bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch) -> bool:
    numbers: list[int] = []

    def twentieth(batches: Mapping[TopicPartition, Any]) -> str | None:
        """The same batch whenever it is sent; those behind it reach the broker."""
        numbers.append(read_header(batches[topic, 0]).base_sequence)
        return "too large" if len(numbers) >= 20 and numbers[-1] == numbers[19] else None

    with monkeypatch.context() as patched:
        patched.setattr(produce_module, "_send", Wire(twentieth))
        with pytest.raises(Refusal, match="MESSAGE_TOO_LARGE"):
            write(bootstrap, topic)
    values = by_partition(bootstrap, topic)[0]
    assert values == [b"%06d" % index for index in range(len(values))], "a gap, or out of order"
    assert len(values) < ROWS
    return len(numbers) > 21


def test_what_is_under_way_is_bounded_and_partitions_share_a_request(
    bootstrap: str, make_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = make_topic(PARTITIONS)
    wire = Wire(lambda _: None)
    monkeypatch.setattr(produce_module, "_send", wire)
    large = pa.record_batch({"value": [b"x" * 1000] * 10_000})
    arrow.write(bootstrap, topic, [large] * 4)
    # Those that are full have a request to themselves, those that are not go together.
    arrow.write(bootstrap, topic, large.slice(0, 600), partition_by="round_robin")
    assert wire.partitions_in_a_request == PARTITIONS
    assert BATCH_BYTES < wire.most_bytes <= TURNS_MAX * (TURN_BYTES + BATCH_BYTES)


@pytest.mark.parametrize("value_bytes", [0, 10, 60, 100, 1_000, 19_900])
def test_rows_without_a_key_fill_the_batches_that_they_are_meant_for(
    bootstrap: str, make_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch, value_bytes: int
) -> None:
    """What goes to one partition in a row, if it were a little more than a batch, would leave a small one over."""
    wire = Wire(lambda _: None)
    monkeypatch.setattr(produce_module, "_send", wire)
    batch_bytes = 100_000
    count = 12 * (batch_bytes // (value_bytes + 12))
    topic = make_topic(PARTITIONS)
    arrow.write(bootstrap, topic, pa.table({"value": [b"x" * value_bytes] * count}), batch_bytes=batch_bytes)
    # A record is a little smaller than it is taken for, so that those without a value need fewer.
    assert 8 <= len(wire.batch_bytes) <= 12 + 1


def test_batches_are_smaller_where_nobody_says_how_large_they_may_be(
    bootstrap: str, make_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def untold(_client: Any, _topic: str) -> None:
        """As where the broker does not let us see the topic's settings."""

    wire = Wire(lambda _: None)
    monkeypatch.setattr(produce_module, "_send", wire)
    monkeypatch.setattr("millstream.arrow.writer.batch_bytes_max", untold)
    arrow.write(bootstrap, make_topic(1), pa.table({"value": [b"x" * 1000] * 3_000}))
    assert CAUTIOUS_BYTES // 2 < max(wire.batch_bytes) <= CAUTIOUS_BYTES
