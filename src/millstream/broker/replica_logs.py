"""What a follower does to its log: the effects of replication/follower.py, on disk.

Cutting a log goes through its directory, whose checkpoints must not promise what was cut off. Some of what replication
brings is a surprise worth telling: cutting below the high watermark means that an election lost what was committed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.log.following import UnexpectedOffset
from millstream.protocol.errors import BrokerError, ErrorCode
from millstream.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from millstream.replication.follower import AdvanceHighWatermark, AdvanceStart, Append, StartAnew, Truncate
from millstream.runtime.logs import Logger
from millstream.settings import MILLSTREAM_ACKS_FSYNC, REPLICA_SOCKET_TIMEOUT_MS

if TYPE_CHECKING:
    from millstream.broker.node import Node
    from millstream.broker.partition import Partition
    from millstream.broker.peers import Peer
    from millstream.log.directory import LogDirectory
    from millstream.replication.follower import Effect, Position

_log = Logger("millstream.replication")

_LATEST = -1
_EARLIEST = -2
_LIST_OFFSETS_VERSION = 9


class LeaderRefused(BrokerError, code=ErrorCode.UNKNOWN_SERVER_ERROR):
    """The leader does not tell where its log begins and ends."""


class ReplicaLogs:
    """The logs of this broker, as its fetchers change them."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def carry_out(self, partition: Partition, effect: Effect) -> str | None:
        """Change the log; what went wrong, if something did."""
        now_ms = self._node.ports.clock.wall_ms()
        log = partition.log
        try:
            match effect:
                case Append(records):
                    self._node.metrics.replicated_bytes += len(records)
                    if partition.append_as_follower(records, now_ms):
                        self._node.durability.make_durable(partition)
                case AdvanceHighWatermark(offset):
                    partition.advance_as_follower(offset)
                case AdvanceStart(offset):
                    log.advance_start_offset(min(offset, log.high_watermark))
                case Truncate(offset):
                    self._truncate(partition, offset)
                case StartAnew(offset):
                    _log.warning(
                        "a log begins anew where its leader's does", topic=partition.topic, partition=partition.index,
                        offset=offset, end=log.end_offset,
                    )  # fmt: skip
                    self._directory(partition).start_anew(partition.topic, partition.index, offset)
        except (BrokerError, UnexpectedOffset) as problem:
            _log.error(
                "a partition could not be replicated", topic=partition.topic, partition=partition.index,
                error=str(problem),
            )  # fmt: skip
            return str(problem)
        return None

    def _truncate(self, partition: Partition, offset: int) -> None:
        log = partition.log
        details = {"topic": partition.topic, "partition": partition.index, "offset": offset, "end": log.end_offset}
        if offset < log.high_watermark:
            _log.warning("committed records are cut off: the leader lacks them", mark=log.high_watermark, **details)
        else:
            _log.info("the log is cut where the leader's is another", **details)
        self._directory(partition).truncate(partition.topic, partition.index, offset)

    def _directory(self, partition: Partition) -> LogDirectory:
        key = (partition.topic, partition.index)
        for directory in self._node.log_directories:
            if directory.logs.get(key) is partition.log:
                return directory
        raise LeaderRefused("the log has left its directory")

    def waits_for_sync(self, partition: Partition) -> bool:
        """Whether what is in the log counts only once it is on disk."""
        log = partition.log
        return log.recovery_point < log.end_offset and (
            self._node.settings[MILLSTREAM_ACKS_FSYNC] or log.config.flush_messages == 1
        )

    async def ask_for_offsets(self, leader: Peer, partition: Partition, position: Position) -> tuple[int, int]:
        """(start, end) of the leader's log."""
        start = await self._offset(leader, partition, position, _EARLIEST)
        return start, await self._offset(leader, partition, position, _LATEST)

    async def _offset(self, leader: Peer, partition: Partition, position: Position, timestamp: int) -> int:
        wanted = ListOffsetsPartition(
            partition_index=partition.index, current_leader_epoch=position.leader_epoch, timestamp=timestamp
        )
        request = ListOffsetsRequest(
            replica_id=self._node.node_id, topics=[ListOffsetsTopic(name=partition.topic, partitions=[wanted])]
        )
        answer = await leader.ask(
            request, version=_LIST_OFFSETS_VERSION, timeout_ms=self._node.settings[REPLICA_SOCKET_TIMEOUT_MS]
        )
        found = answer.topics[0].partitions[0]
        if found.error_code != ErrorCode.NONE:
            raise LeaderRefused(ErrorCode(found.error_code).name)
        offset: int = found.offset
        return offset
