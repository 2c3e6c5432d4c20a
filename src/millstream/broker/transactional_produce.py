"""What a Produce request of a transactional producer needs before its batches are appended.

Which batches are transactional is read from the batches, never from the request: a client that may not use the
transactional id must not get around the check by leaving the id out (CVE-2018-17196), nor by naming another one (the
coordinator knows which producer id belongs to it).
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from millstream.broker.participation import has_ongoing, participation
from millstream.protocol.errors import ErrorCode
from millstream.records.batch import HEADER_BYTES, TRANSACTIONAL_BIT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.broker.node import Node
    from millstream.broker.participation import Participation
    from millstream.broker.partition import Partition
    from millstream.runtime.ports import Buffer

    Place = tuple[str, int]

ADDS_SINCE = 12
ABORTABLE_SINCE = 11
# The byte of a batch's attributes that has the bit.
ATTRIBUTES_BYTE = 22
_PRODUCER = Struct(">qhi")
_PRODUCER_AT = 43


def is_transactional(records: Buffer) -> bool:
    """Whether the batch says that it is part of a transaction; whether it is well formed, the log finds out."""
    return len(records) >= HEADER_BYTES and bool(records[ATTRIBUTES_BYTE] & TRANSACTIONAL_BIT)


class Batch(NamedTuple):
    """A transactional batch and where it goes."""

    place: Place
    partition: Partition
    records: Buffer

    @property
    def is_of_ongoing(self) -> bool:
        """Whether its transaction has records in its partition already."""
        producer_id, epoch, _ = _PRODUCER.unpack_from(self.records, _PRODUCER_AT)
        return has_ongoing(self.partition, producer_id, epoch)


class Check(NamedTuple):
    """What is known before the coordinator is asked: partitions that are refused, and the question for others."""

    refused: dict[Place, ErrorCode]
    question: Participation | None


def check_batches(node: Node, transactional_id: str, batches: Iterable[Batch], version: int) -> Check:
    """Find out which partitions are new to the transaction."""
    add = version >= ADDS_SINCE
    refused: dict[Place, ErrorCode] = {}
    new: dict[Place, Partition] = {}
    producer: tuple[int, int] | None = None
    for place, partition, records in batches:
        producer_id, epoch, sequence = _PRODUCER.unpack_from(records, _PRODUCER_AT)
        if producer is not None and producer != (producer_id, epoch):
            refused[place] = ErrorCode.INVALID_PRODUCER_ID_MAPPING
            continue
        producer = (producer_id, epoch)
        if has_ongoing(partition, producer_id, epoch):
            continue
        if add and sequence != 0 and partition.log.producers.get(producer_id) is None:
            # Every transaction begins with sequence 0 in its epoch, so a first batch that does not lost its forerunner.
            refused[place] = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            continue
        new[place] = partition
    if producer is None or not new:
        return Check(refused, None)
    return Check(
        refused,
        participation(
            node,
            transactional_id,
            *producer,
            new,
            add=add,
            abortable=version >= ABORTABLE_SINCE,
            # The one error that every producer repeats the batch after without looking for another leader.
            retriable=ErrorCode.NOT_ENOUGH_REPLICAS,
        ),
    )
