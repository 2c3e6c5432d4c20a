"""A shard's machine and its log in memory: decisions are carried out, markers written, and the log replayed.

What is written are real batches, and what replays them is the broker's own loader.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from millstream.broker.shard_loading import load_shard
from millstream.groups.machine import GroupMachine
from millstream.groups.offsets.commit import OffsetCommit
from millstream.groups.offsets.delete import OffsetDelete
from millstream.groups.offsets.fetch import decide_offset_fetch
from millstream.groups.offsets.txn_commit import TxnOffsetCommit
from millstream.protocol.coordinator_frame import encode_coordinator_key, encode_coordinator_value
from millstream.protocol.errors import BrokerError, ErrorCode
from millstream.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from millstream.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from millstream.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from millstream.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from millstream.protocol.uuid import ZERO_UUID
from millstream.records.building import encode_batch, end_transaction_marker
from millstream.settings.effective import Settings
from tests.metadata.clusters import Dice, cluster, topic, with_topics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.metadata.image import MetadataImage
    from millstream.replicated import Decision
    from millstream.runtime.ports import Buffer

START_MS = 1_700_000_000_000
MINUTE_MS = 60_000
TOPICS = {"orders": 3, "payments": 2}


def everything_allowed(_name: str) -> bool:
    return True


class Journal:
    """The log of a shard, as its loader reads it."""

    start_offset = 0

    def __init__(self) -> None:
        self.end_offset = 0
        self._batches: list[tuple[int, bytes]] = []

    def append(self, batch: bytearray, count: int) -> int:
        """The first offset of the batch."""
        base_offset = self.end_offset
        batch[:8] = base_offset.to_bytes(8, "big")
        self._batches.append((base_offset + count, bytes(batch)))
        self.end_offset += count
        return base_offset

    def read(self, offset: int, size_max: int, _end: int, *, at_least_one_batch: bool) -> Buffer:
        assert at_least_one_batch
        found = b""
        for next_offset, batch in self._batches:
            if next_offset > offset and (not found or len(found) + len(batch) <= size_max):
                found += batch
        return found


class Scene:
    """One machine under test."""

    def __init__(self, topics: Mapping[str, int] | None = None, settings: Mapping[str, str] | None = None) -> None:
        self.image: MetadataImage = with_topics(
            cluster(), *(topic(name, partitions) for name, partitions in (topics or TOPICS).items())
        )
        self._settings = Settings(settings or {})
        self.journal = Journal()
        self.now_ms = START_MS
        self.machine = self._new_machine()

    def _new_machine(self) -> GroupMachine:
        return GroupMachine(lambda: self._settings, lambda: self.image, Dice().uuid)

    def carry_out(self, decision: Decision[Any]) -> Any:
        """What a shard does: append, apply, answer."""
        if decision.records:
            producer_id, producer_epoch = decision.transaction or (-1, -1)
            batch = encode_batch(
                [
                    (
                        encode_coordinator_key(record.key),
                        None if record.value is None else encode_coordinator_value(record.value, record.version),
                        (),
                        self.now_ms,
                    )
                    for record in decision.records
                ],
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                transactional=decision.transaction is not None,
            )
            offset = self.journal.append(batch, len(decision.records))
            for position, record in enumerate(decision.records):
                self.machine.apply(record.key, record.value, transaction=decision.transaction, offset=offset + position)
        return decision.response

    def replayed(self) -> GroupMachine:
        """A machine that read the log from its start."""
        machine = self._new_machine()
        asyncio.run(load_shard("groups", machine, self.journal))  # type: ignore[arg-type]
        return machine

    def crash(self) -> None:
        self.machine = self.replayed()

    # --- requests

    def commit(
        self,
        offset: int,
        *,
        group: str = "g",
        topic: str = "orders",
        partition: int = 0,
        version: int = 9,
        generation: int = -1,
        member: str = "",
        metadata: str | None = "",
        retention_ms: int = -1,
    ) -> ErrorCode:
        known = self.image.topics.by_name.get(topic)
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member,
            retention_time_ms=retention_ms,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic if version < 10 else "",
                    topic_id=known.id if known is not None and version >= 10 else ZERO_UUID,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=partition, committed_offset=offset, committed_metadata=metadata
                        )
                    ],
                )
            ],
        )
        commit = OffsetCommit(request, version, self.image, everything_allowed)
        response = commit.response
        if not commit.is_void:
            try:
                response = self.carry_out(commit.decide(self.machine, self.now_ms))
            except BrokerError as refusal:
                response = commit.refuse(refusal.code)
        return ErrorCode(response.topics[0].partitions[0].error_code)

    def txn_commit(
        self,
        offset: int,
        *,
        producer_id: int = 7,
        group: str = "g",
        topic: str = "orders",
        partition: int = 0,
        generation: int = -1,
    ) -> ErrorCode:
        request = TxnOffsetCommitRequest(
            transactional_id="t",
            group_id=group,
            producer_id=producer_id,
            producer_epoch=0,
            generation_id=generation,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=partition, committed_offset=offset, committed_metadata=None
                        )
                    ],
                )
            ],
        )
        commit = TxnOffsetCommit(request, 5, self.image, everything_allowed)
        response = commit.response
        if not commit.is_void:
            try:
                response = self.carry_out(commit.decide(self.machine, self.now_ms))
            except BrokerError as refusal:
                response = commit.refuse(refusal.code)
        return ErrorCode(response.topics[0].partitions[0].error_code)

    def end_transaction(self, *, commit: bool, producer_id: int = 7) -> None:
        marker = end_transaction_marker(
            commit=commit, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0, timestamp=self.now_ms
        )
        self.journal.append(marker, 1)
        self.machine.end_transaction(producer_id, 0, committed=commit)

    def delete(self, *, group: str = "g", topic: str = "orders", partition: int = 0) -> ErrorCode:
        """The error of the group, or of the partition."""
        request = OffsetDeleteRequest(
            group_id=group,
            topics=[
                OffsetDeleteRequestTopic(
                    name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=partition)]
                )
            ],
        )
        deletion = OffsetDelete(request, self.image, everything_allowed)
        try:
            response = self.carry_out(deletion.decide(self.machine))
        except BrokerError as refusal:
            return refusal.code
        return ErrorCode(response.topics[0].partitions[0].error_code)

    def fetch(
        self, *, group: str = "g", topic: str = "orders", partition: int = 0, stable: bool = False
    ) -> tuple[int, ErrorCode]:
        asked = OffsetFetchRequestGroup(
            group_id=group, topics=[OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])]
        )
        decision = decide_offset_fetch(self.machine, asked, 9, everything_allowed, require_stable=stable)
        assert decision.response is not None
        found = decision.response.topics[0].partitions[0]
        return found.committed_offset, ErrorCode(found.error_code)

    def run_expiry(self) -> int:
        """One whole round; the number of decisions that it took."""
        for turn in range(1, 1_000):
            decision = self.machine.on_timer(("offsets", "expiry"), self.now_ms)
            self.carry_out(decision)
            (timer,) = decision.timers
            if timer.delay_ms > 0:  # type: ignore[union-attr]
                return turn
        raise AssertionError("the expiry does not come to an end")


def offsets_in(machine: GroupMachine) -> dict[tuple[str, str, int], Any]:
    """Every committed offset, as it is stored."""
    return {
        (group_id, name, partition): value
        for group_id in machine.offsets.group_ids()
        for name, partitions in machine.offsets.of_group(group_id).items()
        for partition, value in partitions.items()
    }


def seen_in(machine: GroupMachine) -> Any:
    """All that anybody can learn of a machine's offsets."""
    unstable = {group_id: sorted(machine.offsets.open_partitions(group_id)) for group_id in machine.offsets.group_ids()}
    return offsets_in(machine), unstable, sorted(group.id for group in machine.all_groups())
