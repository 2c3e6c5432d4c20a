"""Ways to compact a log within a test: at once, or through the Compactor with a child that runs in this process."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from millstream.log import compact as child
from millstream.log import compaction, compaction_rewrite
from millstream.log.compaction_keys import BYTES_PER_KEY
from millstream.log.compaction_swap import Swap
from millstream.log.config import LogConfig
from millstream.log.log import Origin
from millstream.records.building import encode_batch, end_transaction_marker
from millstream.records.reading import each_batch
from tests.log.making import NOW_MS, commit, lossy_disk, open_log, records_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from millstream.log.compaction_plan import Plan, Result
    from millstream.log.log import Log
    from millstream.records.batch import BatchHeader
    from millstream.runtime.ports import Disk

COMPACTED = LogConfig(
    segment_bytes=600,
    index_interval_bytes=100,
    file_delete_delay_ms=1_000,
    delete=False,
    compact=True,
    delete_retention_ms=10_000,
    min_cleanable_dirty_ratio=0.0,
    message_timestamp_after_max_ms=1 << 50,
)


def compacted_log(**changes: Any) -> Log:
    return open_log(lossy_disk(), config=COMPACTED, **changes)


def headers_of(log: Log) -> list[BatchHeader]:
    return [header for segment in log.segments for _, header in each_batch(segment.file.read(0, segment.size))]


def put(log: Log, *pairs: tuple[bytes | None, bytes | None], timestamp: int = NOW_MS, **fields: Any) -> int:
    """Append (key, value) pairs as one batch and commit it; returns its base offset."""
    batch = encode_batch([(key, value, (("h", b"1"),), timestamp) for key, value in pairs], **fields)
    appended = log.append_as_leader(batch, 0, NOW_MS)
    commit(log)
    return appended.base_offset


def end_transaction(log: Log, producer_id: int, *, is_commit: bool, epoch: int = 0, timestamp: int = NOW_MS) -> int:
    marker = end_transaction_marker(
        commit=is_commit, producer_id=producer_id, producer_epoch=epoch, coordinator_epoch=0, timestamp=timestamp
    )
    appended = log.append_as_leader(marker, 0, NOW_MS, origin=Origin.COORDINATOR)
    commit(log)
    return appended.base_offset


def plan_for(log: Log, checkpoint: int | None = None, *, now_ms: int = NOW_MS, keys_max: int = 1_000) -> Plan:
    dirty = compaction.dirtiness(log, checkpoint, now_ms)
    return compaction.make_plan(log, dirty, now_ms, keys_max * BYTES_PER_KEY)


def compact_now(log: Log, checkpoint: int | None = None, *, now_ms: int = NOW_MS, keys_max: int = 1_000) -> Result:
    """One run over everything that may be cleaned."""
    plan = plan_for(log, checkpoint, now_ms=now_ms, keys_max=keys_max)
    swap = Swap(log, plan)
    result = compaction_rewrite.compact(log.disk, plan)
    for cleaned in result.cleaned:
        assert swap.still_fits(cleaned)
        swap.begin(cleaned)
        log.disk.sync_directory(log.directory)
        swap.finish(cleaned, now_ms)
    return result


def values_of(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(record.offset, record.key, record.value) for record in records_of(log)]


class InlineWorkers:
    """Children and threads run at once; `meanwhile` happens while the child is under way."""

    def __init__(self, disk: Disk, meanwhile: Callable[[], object] = lambda: None) -> None:
        self._disk = disk
        self._meanwhile = meanwhile
        self.children = 0

    def in_thread(self, call: Callable[..., Any], *arguments: object) -> Awaitable[Any]:
        async def work() -> Any:
            await asyncio.sleep(0)
            return call(*arguments)

        return work()

    async def in_child(self, module: str, arguments: Sequence[str]) -> None:
        assert module == child.__name__
        self.children += 1
        await asyncio.sleep(0)
        child.main(arguments, self._disk)
        self._meanwhile()

    def close(self) -> None:
        """There is nothing to end."""


class FixedClock:
    """A clock that a test moves."""

    def __init__(self, now_ms: int = NOW_MS) -> None:
        self.now_ms = now_ms

    def wall_ms(self) -> int:
        return self.now_ms

    def monotonic_ms(self) -> int:
        return self.now_ms
