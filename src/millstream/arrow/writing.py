"""Tables to topics.

Writes are idempotent unless `acks` says otherwise: what is sent again is not written twice. A write that fails for
good raises; in a transaction nothing of it will be seen, otherwise what was acknowledged before stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from millstream.arrow.routing import STICKY
from millstream.arrow.sources import Parts, each_batch, split_by_topic
from millstream.arrow.writer import BATCH_BYTES, Writer, Written, begin
from millstream.client.groups import Committed
from millstream.client.options import options_from
from millstream.client.produce import ALL_IN_SYNC
from millstream.client.sync import SyncClient
from millstream.records.codecs import Codec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.arrow.routing import PartitionBy
    from millstream.arrow.sources import Source
    from millstream.client.grouping import TopicPartition
    from millstream.client.options import Bootstrap

Acks = Literal["all", -1, 0, 1, "-1", "0", "1"]
Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]
_ACKS: Final = {"all": ALL_IN_SYNC, "-1": ALL_IN_SYNC, "0": 0, "1": 1}


@dataclass(frozen=True, slots=True)
class Commit:
    """Offsets to store for a group together with what is written, `stream.offsets` for instance."""

    group: str
    offsets: Mapping[TopicPartition, int]
    metadata: str = ""


def write(
    bootstrap: Bootstrap,
    topic: str | None,
    table_or_batches: Source,
    *,
    key: str | None = "key",
    value: str | None = "value",
    headers: str | None = "headers",
    partition_by: PartitionBy = STICKY,
    timestamp: str | None = "timestamp",
    compression: Compression | None = "none",
    acks: Acks = "all",
    transactional_id: str | None = None,
    commit: Commit | None = None,
    batch_bytes: int = BATCH_BYTES,
) -> dict[TopicPartition, Written]:
    """Write rows to a topic; the answer says where they are.

    `table_or_batches` is a table, a record batch, an iterable of them, or anything that speaks Arrow's stream protocol.
    `key`, `value`, `headers` and `timestamp` name columns; None leaves the part out, and so does a missing column of
    the default name (except the value's). Without a topic, the column `topic` says where each row goes. With a
    transactional id all of it is one transaction, committed at the end together with the offsets of `commit`.
    """
    codec = _codec(compression)
    if str(acks) not in _ACKS:
        raise ValueError(f"acks is 'all', 0 or 1, not {acks!r}")
    acks_wanted = _ACKS[str(acks)]
    if transactional_id is not None and acks_wanted != ALL_IN_SYNC:
        raise ValueError("a transaction needs acks='all'")
    parts = Parts(key, value, headers, timestamp)
    with SyncClient(options_from(bootstrap)) as client:
        transaction = None if transactional_id is None else client.run(begin, transactional_id)
        writer = Writer(
            client,
            codec=codec,
            acks=acks_wanted,
            partition_by=partition_by,
            transaction=transaction,
            batch_bytes=batch_bytes,
        )
        try:
            for batch in each_batch(table_or_batches):
                for name, rows in [(topic, batch)] if topic is not None else split_by_topic(batch):
                    writer.write(name, rows, parts.of(rows))
            written = writer.finish()
            if commit is not None:
                offsets = {place: Committed(offset, commit.metadata) for place, offset in commit.offsets.items()}
                writer.commit(commit.group, offsets)
            writer.end(committed=True)
        except BaseException:
            writer.give_up()
            raise
        return written


def _codec(name: str | None) -> Codec:
    try:
        return Codec[(name or "none").upper()]
    except KeyError:
        known = ", ".join(codec.name.lower() for codec in Codec)
        raise ValueError(f"there is no compression {name!r}, there are {known}") from None
