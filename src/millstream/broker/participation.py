"""Whether partitions may take a producer's records as part of its transaction (KIP-890).

A transactional batch that comes late, after its transaction has ended, would begin a transaction in the log that nobody
knows of and nobody ends: readers of committed records would stand still there for ever. So the first batch of a
transaction in a partition goes to the log only when the coordinator says that the partition is part of the transaction.
With transaction.version 2 the question itself makes it so.

Where the coordinator is on this broker and its log needs no waiting, the answer is there at once. Where it is not, the
transaction may end while the answer is on its way: then the log has a marker that it had not when the question was
put, and the batch is refused.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from millstream.broker.remote_participation import take_part
from millstream.log.producers import NO_OFFSET
from millstream.protocol.errors import ErrorCode
from millstream.settings import (
    ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MAX_MS,
    ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MS,
    TRANSACTION_PARTITION_VERIFICATION_ENABLE,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.broker.dispatch import Deferred
    from millstream.broker.node import Node
    from millstream.broker.partition import Partition

    Place = tuple[str, int]

# The coordinator's own passing states: a producer would not know what to do with them.
_PASSING = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


def has_ongoing(partition: Partition, producer_id: int, epoch: int) -> bool:
    """Whether the producer's transaction has records in this partition already."""
    producer = partition.log.producers.get(producer_id)
    return producer is not None and producer.txn_first_offset != NO_OFFSET and producer.epoch == epoch


def participation(
    node: Node,
    transactional_id: str,
    producer_id: int,
    epoch: int,
    partitions: Mapping[Place, Partition],
    *,
    add: bool,
    abortable: bool,
    retriable: ErrorCode,
) -> Participation | None:
    """The question for these partitions; None if nobody wants to know."""
    if not add and not node.settings[TRANSACTION_PARTITION_VERIFICATION_ENABLE]:
        return None
    return Participation(
        node, transactional_id, producer_id, epoch, partitions, add=add, abortable=abortable, retriable=retriable
    )


class Participation:
    """One question to the coordinator. `add` makes the partitions part of the transaction instead of only asking.

    `abortable`: the client knows TRANSACTION_ABORTABLE. `retriable`: what it hears where asking again will help.
    """

    __slots__ = (
        "_abortable", "_add", "_asked", "_epoch", "_markers", "_node", "_partitions", "_producer_id", "_retriable",
        "_roles", "_transactional_id",
    )  # fmt: skip

    def __init__(
        self,
        node: Node,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Mapping[Place, Partition],
        *,
        add: bool,
        abortable: bool,
        retriable: ErrorCode,
    ) -> None:
        self._node = node
        self._transactional_id = transactional_id
        self._producer_id = producer_id
        self._epoch = epoch
        self._partitions = partitions
        self._add = add
        self._abortable = abortable
        self._retriable = retriable
        self._asked: Deferred | None = None
        self._markers: dict[Place, int] = {}
        self._roles: dict[Place, int] = {}

    def ask(self) -> None:
        """Put the question, or put it again: markers that came before do not count against this answer."""
        self._markers = self._last_markers()
        self._roles = {place: partition.role_changes for place, partition in self._partitions.items()}
        self._asked = take_part(
            self._node, self._transactional_id, self._producer_id, self._epoch, list(self._partitions), add=self._add
        )

    def is_about(self, place: Place) -> bool:
        return place in self._partitions

    @property
    def is_settled(self) -> bool:
        """Whether the answer is there and need not be asked for again."""
        return self._asked is not None and self._asked.done and not self._must_ask_again

    @property
    def _must_ask_again(self) -> bool:
        # The producer was told that its last transaction has ended: that its markers are still under way is for the
        # brokers to sort out (KIP-890).
        assert self._asked is not None
        return self._add and ErrorCode.CONCURRENT_TRANSACTIONS in self._asked.response.values()

    async def wait(self) -> None:
        """Until the answer is there. What was read from the connection must have been copied before."""
        settings = self._node.settings
        pause_s = settings[ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MS] / 1000
        left_s = settings[ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MAX_MS] / 1000
        if self._asked is None:
            self.ask()
        while True:
            assert self._asked is not None
            await self._asked.wait()
            if not self._must_ask_again or left_s <= 0:
                return
            await asyncio.sleep(pause_s)
            left_s -= pause_s
            self.ask()

    def refusals(self) -> dict[Place, ErrorCode]:
        """By partition, why it must not take the records; those that are not named may."""
        assert self._asked is not None
        refused: dict[Place, ErrorCode] = {}
        for place, code in self._asked.response.items():
            if code is not ErrorCode.NONE:
                refused[place] = self._for_client(code)
            elif self._partitions[place].role_changes != self._roles[place]:
                # Markers may have come from another leader, who is the one to judge by them.
                refused[place] = self._retriable
            elif self._was_overtaken(place):
                refused[place] = ErrorCode.INVALID_TXN_STATE
        return refused

    def _last_markers(self) -> dict[Place, int]:
        return {
            place: partition.log.producers.last_marker_of(self._producer_id)
            for place, partition in self._partitions.items()
        }

    def _was_overtaken(self, place: Place) -> bool:
        """Whether a marker has come since, and may have ended the very transaction that was asked for."""
        producer = self._partitions[place].log.producers.get(self._producer_id)
        if producer is None or producer.last_marker == self._markers[place]:
            return False
        # With transaction.version 2 a marker carries the epoch of the next transaction: one of this epoch has ended the
        # one before, and was on its way when the coordinator was asked.
        return not (self._add and producer.epoch == self._epoch)

    def _for_client(self, code: ErrorCode) -> ErrorCode:
        if code in _PASSING:
            return self._retriable
        if code is ErrorCode.PRODUCER_FENCED:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if code is ErrorCode.TRANSACTION_ABORTABLE and not self._abortable:
            return ErrorCode.INVALID_TXN_STATE
        return code
