"""Taking a snapshot of the metadata from the leader, piece by piece (KIP-630), and giving pieces of our own.

Pieces go into a `.part` file and the whole is checked before it gets its name: a snapshot that is there is complete.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.broker.metadata_snapshot import CHECKPOINT, PART, SnapshotId, read_snapshot
from millstream.metadata.names import METADATA_TOPIC
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages import fetch_snapshot
from millstream.protocol.messages.fetch_snapshot import FetchSnapshotRequest

if TYPE_CHECKING:
    from millstream.broker.peers import Peer
    from millstream.quorum.roles import ReplicaKey
    from millstream.runtime.ports import File, Ports


class SnapshotUnavailable(Exception):
    """The leader does not have the snapshot (any more), or is not the leader (any more)."""


class SnapshotDownload:
    """One snapshot on its way here."""

    def __init__(
        self,
        ports: Ports,
        leader: Peer,
        directory: str,
        snapshot: SnapshotId,
        *,
        cluster_id: str,
        own: ReplicaKey,
        epoch: int,
        bytes_max: int,
        timeout_ms: int,
    ) -> None:
        self._ports = ports
        self._leader = leader
        self._directory = directory
        self._snapshot = snapshot
        self._cluster_id = cluster_id
        self._own = own
        self._epoch = epoch
        self._bytes_max = bytes_max
        self._timeout_ms = timeout_ms
        self._path = f"{directory}/{snapshot.file_name}"
        self._part = self._path.removesuffix(CHECKPOINT) + PART
        self._file: File | None = ports.disk.create(self._part)
        self._position = 0

    async def next_piece(self) -> bool:
        """Fetch and write a piece; True if it was the last."""
        assert self._file is not None
        response = await self._leader.ask(self._request(), timeout_ms=self._timeout_ms)
        if response.error_code or not response.topics or not response.topics[0].partitions:
            raise SnapshotUnavailable(f"the leader refused with the code {response.error_code}")
        answer: Any = response.topics[0].partitions[0]
        if answer.error_code != ErrorCode.NONE or answer.position != self._position:
            raise SnapshotUnavailable(f"the leader refused with the code {answer.error_code}")
        piece = answer.unaligned_records
        self._file.append(piece)
        self._position += len(piece)
        if not piece and self._position < answer.size:
            raise SnapshotUnavailable("the leader sent nothing")
        return bool(self._position >= answer.size)

    def _request(self) -> FetchSnapshotRequest:
        return FetchSnapshotRequest(
            cluster_id=self._cluster_id,
            replica_id=self._own.id,
            max_bytes=self._bytes_max,
            topics=[
                fetch_snapshot.TopicSnapshot(
                    name=METADATA_TOPIC,
                    partitions=[
                        fetch_snapshot.PartitionSnapshot(
                            partition=0,
                            current_leader_epoch=self._epoch,
                            snapshot_id=fetch_snapshot.SnapshotId(
                                end_offset=self._snapshot.end_offset, epoch=self._snapshot.epoch
                            ),
                            position=self._position,
                            replica_directory_id=self._own.directory_id,
                        )
                    ],
                )
            ],
        )

    async def finish(self) -> None:
        """All pieces are here: check the whole, and give it its name, durably."""
        assert self._file is not None
        read_snapshot(self._file.read(0, self._position))
        await self._ports.workers.in_thread(self._file.sync)
        self._file.close()
        self._file = None
        self._ports.disk.rename(self._part, self._path)
        await self._ports.workers.in_thread(self._ports.disk.sync_directory, self._directory)

    def close(self) -> None:
        """Give up what is not finished."""
        if self._file is not None:
            self._file.close()
            self._file = None
            self._ports.disk.remove(self._part)
