"""Markers: the control batches that end a transaction in each of its partitions.

A round writes the markers of one transaction. It keeps at it until every partition has its own: one whose log is
offline, or whose group coordinator is still loading, is tried again; one whose topic was deleted needs none. When all
markers are committed, the coordinator writes that the transaction is complete. A round that dies with its broker is
begun anew after the replay (`decide_resume`), and partitions that had their marker get it twice, which harms nobody.

Markers go to leaders on this broker at once; those on other brokers get WriteTxnMarkers from the same round.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from millstream.broker.led_partitions import led_partition
from millstream.broker.marker_requests import leader_of, write_elsewhere
from millstream.log.producers import Origin
from millstream.metadata.image import NO_LEADER
from millstream.metadata.names import OFFSETS_TOPIC
from millstream.protocol.errors import (
    BrokerError,
    CoordinatorFenced,
    ErrorCode,
    InvalidProducerEpoch,
    InvalidRequest,
    NotCoordinator,
    UnknownTopicOrPartition,
)
from millstream.records.building import end_transaction_marker
from millstream.runtime.logs import Logger
from millstream.runtime.shard import Stage
from millstream.transactions.ending import decide_complete

if TYPE_CHECKING:
    from millstream.broker.node import Node
    from millstream.broker.partition import Partition
    from millstream.runtime.shard import Shard
    from millstream.transactions.ending import WriteMarkers
    from millstream.transactions.machine import TransactionMachine

# How long a round waits before it tries again: longer each time, up to the maximum.
RETRY_S = 0.1
RETRY_S_MAX = 2.0

# No partition: a round that has given up is never complete.
_NEVER = ("", -1)
_log = Logger("millstream.transactions")


class Marker(NamedTuple):
    """What is the same in all partitions of a transaction. `transaction_version` says how strictly epochs count."""

    producer_id: int
    epoch: int
    coordinator_epoch: int
    committed: bool
    transaction_version: int


class Written(NamedTuple):
    """A marker in a log; it counts once its offset is committed."""

    partition: Partition
    offset: int

    @property
    def is_committed(self) -> bool:
        return self.partition.is_committed(self.offset)


def write_marker(node: Node, topic: str, index: int, marker: Marker) -> Written:
    """Append the marker to a partition that this broker leads; BrokerError if it cannot be."""
    if marker.producer_id < 0 or marker.epoch < 0:
        raise InvalidRequest(f"there is no producer {marker.producer_id} with epoch {marker.epoch}")
    partition = led_partition(node, topic, index)
    partition.log.producers.check_marker(
        marker.producer_id, marker.epoch, marker.coordinator_epoch, transaction_version=marker.transaction_version
    )
    now_ms = node.ports.clock.wall_ms()
    batch = end_transaction_marker(
        commit=marker.committed,
        producer_id=marker.producer_id,
        producer_epoch=marker.epoch,
        coordinator_epoch=marker.coordinator_epoch,
        timestamp=now_ms,
    )
    if topic != OFFSETS_TOPIC:
        # Not `append_internal`: however small the topic's `max.message.bytes`, a marker has to fit.
        return Written(partition, partition.append(batch, -1, now_ms, origin=Origin.COORDINATOR).last_offset)
    shard = node.groups.shards.get(index)
    if shard is None:
        raise NotCoordinator
    return Written(
        partition, shard.end_transaction(batch, marker.producer_id, marker.epoch, committed=marker.committed)
    )


class MarkerRound:
    """The markers of one transaction, until it is complete or this broker coordinates it no longer."""

    __slots__ = ("_elsewhere", "_marker", "_node", "_order", "_pause_s", "_shard", "_to_commit", "_to_write", "_waits")

    def __init__(
        self, node: Node, shard: Shard[TransactionMachine], order: WriteMarkers, coordinator_epoch: int
    ) -> None:
        self._node = node
        self._shard = shard
        self._order = order
        self._marker = Marker(
            order.producer_id, order.epoch, coordinator_epoch, order.committed, order.transaction_version
        )
        self._to_write = dict(order.partitions)
        self._to_commit: dict[tuple[str, int], None] = {}
        # Those that another broker was asked to write, and has not answered for yet.
        self._elsewhere: dict[tuple[str, int], None] = {}
        self._pause_s = RETRY_S
        self._waits = False

    def attempt(self) -> None:
        """Write what is not written yet; what fails is tried again in a while."""
        self._waits = False
        if self._shard.stage is not Stage.ACTIVE:
            return
        places, self._to_write = self._to_write, {}
        elsewhere: dict[int, dict[tuple[str, int], None]] = {}
        for place in places:
            leader = leader_of(self._node, place)
            if leader is not None and leader not in (NO_LEADER, self._node.node_id):
                elsewhere.setdefault(leader, {})[place] = None
                continue
            try:
                self._write(place)
            except CoordinatorFenced:
                self._give_up()
                return
            except BrokerError as failure:
                self._to_write[place] = None
                _log.warning("a marker must wait", topic=place[0], partition=place[1], error=str(failure))
        for broker_id, their_places in elsewhere.items():
            self._elsewhere |= their_places
            self._node.background(self._send(broker_id, their_places))
        if self._to_write:
            self._try_again()
        self._complete_if_done()

    async def _send(self, broker_id: int, places: dict[tuple[str, int], None]) -> None:
        results = await write_elsewhere(self._node, broker_id, self._marker, places)
        for place, code in results.items():
            self._elsewhere.pop(place, None)
            if code is ErrorCode.TRANSACTION_COORDINATOR_FENCED:
                self._give_up()
                return
            # As in `_write`: what is open there is of a later epoch, so nothing of this transaction is.
            if code not in (ErrorCode.NONE, ErrorCode.INVALID_PRODUCER_EPOCH):
                self._to_write[place] = None
        if self._to_write:
            self._try_again()
        self._complete_if_done()

    def _give_up(self) -> None:
        """Whoever coordinates now ends the transaction."""
        self._elsewhere[_NEVER] = None
        _log.warning("a newer coordinator ends this transaction", transactional_id=self._order.transactional_id)

    def _try_again(self) -> None:
        if not self._waits:
            self._waits = True
            self._node.loop.call_later(self._pause_s, self.attempt)
            self._pause_s = min(2 * self._pause_s, RETRY_S_MAX)

    def _write(self, place: tuple[str, int]) -> None:
        try:
            written = write_marker(self._node, *place, self._marker)
        except UnknownTopicOrPartition:
            return  # the topic was deleted: there is nothing to end
        except InvalidProducerEpoch as newer:
            # What is open there is of a later epoch; nothing of this transaction is.
            _log.warning("a marker came too late", topic=place[0], partition=place[1], error=str(newer))
            return
        if not written.is_committed:
            self._to_commit[place] = None
            written.partition.when_committed(written.offset, partial(self._settled, place, written))

    def _settled(self, place: tuple[str, int], written: Written) -> None:
        """The marker was committed, or its leader resigned before it was."""
        del self._to_commit[place]
        if not written.is_committed:
            self._to_write[place] = None
            self._try_again()
        self._complete_if_done()

    def _complete_if_done(self) -> None:
        if self._to_write or self._to_commit or self._elsewhere or self._shard.stage is not Stage.ACTIVE:
            return
        order = self._order
        self._shard.run(
            lambda machine, now_ms: decide_complete(
                machine, order.transactional_id, order.producer_id, order.epoch, now_ms
            )
        )
