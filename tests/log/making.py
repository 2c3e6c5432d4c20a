"""Short ways to make logs and batches, and to look at what a log holds."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

from millstream.log.config import LogConfig
from millstream.log.log import Log
from millstream.protocol.uuid import Uuid
from millstream.records.building import encode_batch
from millstream.records.reading import decode_records, each_batch
from millstream.testing.disk import LossyDisk

if TYPE_CHECKING:
    from millstream.records.batch import Record
    from millstream.runtime.ports import Disk

NOW_MS = 1_700_000_000_000
DAY_MS = 24 * 60 * 60 * 1000
TOPIC_ID = Uuid(bytes(range(16)))
FOLDER = "/logs/topic-0"
SMALL = LogConfig(segment_bytes=2_000, index_interval_bytes=200, file_delete_delay_ms=1_000)


def lossy_disk(seed: int = 1) -> LossyDisk:
    disk = LossyDisk(Random(seed))
    disk.make_directory("/logs")
    return disk


def open_log(
    disk: Disk,
    folder: str = FOLDER,
    *,
    config: LogConfig = SMALL,
    clean: bool = True,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    now_ms: int = NOW_MS,
    **changes: Any,
) -> Log:
    return Log.open(
        disk,
        folder,
        replace(config, **changes),
        topic_id=TOPIC_ID,
        clean=clean,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        now_ms=now_ms,
    )


def batch(count: int = 1, *, timestamp: int = NOW_MS, value: bytes = b"v" * 40, **fields: Any) -> bytearray:
    """A producer's batch of `count` records."""
    return encode_batch([(b"key", value, (), timestamp)] * count, **fields)


def fill(log: Log, batches: int, count: int = 3, *, epoch: int = 0, timestamp: int = NOW_MS) -> None:
    for _ in range(batches):
        log.append_as_leader(batch(count, timestamp=timestamp), epoch, max(NOW_MS, timestamp))


def commit(log: Log) -> None:
    log.advance_high_watermark(log.end_offset)


def records_of(log: Log, *, max_bytes: int = 1 << 20) -> list[Record]:
    """Everything readable, fetch by fetch, as a consumer sees it."""
    found: list[Record] = []
    offset = log.start_offset
    while offset < log.end_offset:
        fetched = log.read(offset, max_bytes, log.end_offset, at_least_one_batch=True)
        if fetched is None:
            break
        for position, header in each_batch(fetched):
            found += [record for record in decode_records(fetched, position, check_crc=True) if record.offset >= offset]
            offset = header.next_offset
    return found


def offsets_of(log: Log, *, max_bytes: int = 1 << 20) -> list[int]:
    return [record.offset for record in records_of(log, max_bytes=max_bytes)]


def files_of(disk: Disk, suffix: str, folder: str = FOLDER) -> list[str]:
    return [name for name in disk.list_directory(folder) if name.endswith(suffix)]
