"""The metadata log of this node: `__cluster_metadata-0`, the quorum that commits it, and its durability.

The driver of the pure QuorumNode: it feeds events in and carries effects out. Appending writes to the file at once and
returns; a commit comes later, when fsync has reached the file (Kafka's raft syncs every append, too) and the quorum
agrees. All appends that arrive while a sync is under way share the next one, so a burst of topic creations costs a few
syncs, and the event loop waits for none of them.

A failing disk ends it: what was not committed never will be, everybody who waits is told, and nothing more is accepted.
A node without its metadata log is of no use to a cluster. A full disk is another matter: what does not fit is refused
and taken back, and the node goes on, so that records can still be read and topics deleted once there is space again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from millstream.broker.metadata_batches import (
    control_batch,
    encode_values,
    leader_change,
    metadata_batch,
    voter_messages,
)
from millstream.broker.metadata_replay import METADATA_DIRECTORY, ReplayedMetadata, replay_log, replay_snapshot
from millstream.broker.metadata_snapshot import PART, SnapshotId
from millstream.log.config import DAY_MS, LogConfig
from millstream.log.log import Log
from millstream.log.producers import Origin
from millstream.metadata.record_types import BeginTransactionRecord, EndTransactionRecord
from millstream.protocol.errors import NotController, StorageError
from millstream.protocol.uuid import METADATA_TOPIC_ID, Uuid
from millstream.quorum.election_state import ElectionState, decode_election_state, encode_election_state
from millstream.quorum.events import (
    AwaitElection,
    Commit,
    Effect,
    Event,
    Flushed,
    Follow,
    Lead,
    Persist,
    RequestVotes,
    Started,
    VotersChanged,
)
from millstream.quorum.node import QuorumNode
from millstream.quorum.voters import DYNAMIC, Voter, VoterEndpoint, VoterSet

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millstream.log.flushing import SyncTarget
    from millstream.metadata.image import MetadataImage
    from millstream.metadata.record_types import MetadataRecord
    from millstream.runtime.ports import Ports

QUORUM_STATE = "quorum-state"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataLogConfig:
    """Kafka's metadata.log.* and metadata.max.* settings, with its defaults."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * DAY_MS
    record_bytes_between_snapshots_max: int = 20 << 20
    snapshot_interval_max_ms: int = 60 * 60 * 1000
    retention_bytes_max: int = 100 << 20
    retention_ms_max: int = 7 * DAY_MS


class FramedRecords(NamedTuple):
    """Records ready to be appended: `groups` holds their values, one list for each batch."""

    records: Sequence[MetadataRecord]
    groups: list[list[bytes]]


class MetadataLog:
    """See the module's docstring. Made by `MetadataLog.open`; `start` makes it lead."""

    def __init__(
        self,
        ports: Ports,
        directory: str,
        log: Log,
        quorum: QuorumNode,
        replayed: ReplayedMetadata,
        *,
        on_commit: Callable[[int], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._ports = ports
        self.directory = directory
        self.log = log
        self.quorum = quorum
        self.replayed = replayed
        self.latest_snapshot = replayed.snapshot
        self._on_commit = on_commit
        self._on_failure = on_failure
        self._flushing: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None
        self._voters_to_write: VoterSet | None = None

    @classmethod
    def open(
        cls,
        ports: Ports,
        metadata_log_dir: str,
        *,
        node_id: int,
        directory_id: Uuid,
        controller_endpoints: tuple[VoterEndpoint, ...],
        config: MetadataLogConfig,
        on_commit: Callable[[int], None],
        on_failure: Callable[[BaseException], None],
    ) -> MetadataLog:
        """Open (and recover) the log, and replay it. The caller holds the lock of the directory."""
        disk = ports.disk
        directory = f"{metadata_log_dir}/{METADATA_DIRECTORY}"
        if not disk.exists(directory):
            disk.make_directory(directory)
            disk.sync_directory(metadata_log_dir)
        for name in disk.list_directory(directory):
            if name.endswith(PART):
                disk.remove(f"{directory}/{name}")
        replayed = replay_snapshot(disk, directory)
        end_of_snapshot = replayed.snapshot.end_offset if replayed.snapshot else 0
        now_ms = ports.clock.wall_ms()
        log = Log.open(
            disk,
            directory,
            log_config(config),
            topic_id=METADATA_TOPIC_ID,
            clean=False,
            recovery_point=end_of_snapshot,
            log_start_offset=0,
            now_ms=now_ms,
        )
        if end_of_snapshot > log.end_offset:
            # A follower that died between fetching a snapshot and starting its log behind it.
            log.truncate_fully_and_start_at(end_of_snapshot, now_ms)
        replayed = replay_log(replayed, log)
        quorum = QuorumNode(
            node_id=node_id,
            directory_id=directory_id,
            voters=replayed.voters or VoterSet((Voter(node_id),)),
            kraft_version=replayed.kraft_version,
            state=_read_election_state(ports, directory),
            jitter_ms=ports.random.below,
        )
        opened = cls(ports, directory, log, quorum, replayed, on_commit=on_commit, on_failure=on_failure)
        opened._voters_to_write = _voters_to_write(replayed, node_id, controller_endpoints)
        return opened

    def start(self) -> None:
        """Enter the quorum. Alone in it, this node leads a new epoch when the call returns."""
        self._step(Started(self.log.end_offset, max(self.log.epochs.latest_epoch, self.replayed.image.epoch)))

    @property
    def image(self) -> MetadataImage:
        """The state as replayed from disk."""
        return self.replayed.image

    @property
    def epoch(self) -> int:
        return self.quorum.epoch

    @property
    def end_offset(self) -> int:
        return self.log.end_offset

    @property
    def high_watermark(self) -> int:
        return self.quorum.high_watermark

    def note_snapshot(self, snapshot: SnapshotId) -> None:
        """A snapshot was written."""
        self.latest_snapshot = snapshot

    def forget_before(self, offset: int) -> int:
        """Let the log begin at `offset`, which a snapshot covers; returns how many bytes of whole segments went."""
        before = self.log.size_bytes
        now_ms = self._ports.clock.wall_ms()
        self.log.advance_start_offset(offset)
        self.log.enforce_retention(now_ms)
        self.log.remove_due(now_ms)
        return before - self.log.size_bytes

    def frame(self, records: Sequence[MetadataRecord], level: int) -> FramedRecords:
        """Encode records for one atomic batch, or where they are too many for a metadata transaction of several."""
        groups = list(encode_values(records, level))
        if len(groups) > 1:
            records = [BeginTransactionRecord(), *records, EndTransactionRecord()]
            groups = list(encode_values(records, level))
        return FramedRecords(records, [values for values, _ in groups])

    def append(self, framed: FramedRecords, timestamp_ms: int) -> int:
        """Write the records and ask for their commit; returns how many bytes they take."""
        if self._failure is not None:
            raise StorageError(f"the metadata log is offline: {self._failure}")
        if not self.quorum.leads:
            raise NotController(f"The active controller is node {self.quorum.leader_id}.")
        size = 0
        begin = self.end_offset
        try:
            for values in framed.groups:
                batch = metadata_batch(values, base_offset=self.end_offset, epoch=self.epoch, timestamp_ms=timestamp_ms)
                self._write(batch, timestamp_ms)
                size += len(batch)
        except StorageError as error:
            if not self.log.take_back_what_did_not_fit(begin, timestamp_ms):
                self._fail(error)
            raise
        self._request_flush()
        return size

    def _write(self, batch: bytearray, timestamp_ms: int) -> None:
        self.log.append_as_leader(batch, self.epoch, timestamp_ms, origin=Origin.RAFT_LEADER)

    # The quorum's effects

    def _step(self, event: Event) -> None:
        effects = self.quorum.step(event, self._ports.clock.monotonic_ms())
        for effect, following in zip_longest(effects, effects[1:]):
            # Of two states in a row only the second need be found after a crash: nothing happened in between.
            if not (isinstance(effect, Persist) and isinstance(following, Persist)):
                self._carry_out(effect)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Persist(state):
                self._persist(state)
            case Lead(epoch, voter_ids, granting_ids):
                self._begin_epoch(epoch, voter_ids, granting_ids)
            case Commit(high_watermark):
                self.log.advance_high_watermark(high_watermark)
                self._on_commit(high_watermark)
            case RequestVotes() | AwaitElection() | Follow():
                raise AssertionError(f"a quorum of one never asks for {effect}")

    def _persist(self, state: ElectionState) -> None:
        content = encode_election_state(
            state, kraft_version=self.quorum.kraft_version, voter_ids=self.quorum.voters.ids()
        )
        self._ports.disk.replace_file(f"{self.directory}/{QUORUM_STATE}", content)

    def _begin_epoch(self, epoch: int, voter_ids: tuple[int, ...], granting_ids: tuple[int, ...]) -> None:
        now_ms = self._ports.clock.wall_ms()
        change = leader_change(self.quorum.node_id, voter_ids, granting_ids)
        voters, self._voters_to_write = self._voters_to_write, None
        messages = [change] if voters is None else [change, *voter_messages(voters)]
        self._write(control_batch(messages, base_offset=self.end_offset, epoch=epoch, timestamp_ms=now_ms), now_ms)
        if voters is not None:
            self._step(VotersChanged(voters, DYNAMIC))
        self._request_flush()

    # Durability

    def _request_flush(self) -> None:
        if self._flushing is None:
            self._flushing = asyncio.get_running_loop().create_task(self._flush())

    async def _flush(self) -> None:
        try:
            while self._failure is None and self.log.recovery_point < self.log.end_offset:
                end_offset = self.log.end_offset
                targets = self.log.sync_targets()
                await self._ports.workers.in_thread(_sync_all, targets)
                self.log.synced(end_offset)
                self._step(Flushed(end_offset))
        except Exception as error:  # noqa: BLE001  # whatever it is, those who wait for a commit must hear of it
            if isinstance(error, OSError):
                self.log.mark_offline(error)
            self._fail(error)
        finally:
            self._flushing = None

    def _fail(self, error: BaseException) -> None:
        if self._failure is None:
            self._failure = error
            self._on_failure(error)

    async def close(self) -> None:
        """Everything that was appended is durable and committed afterwards, unless the disk has failed."""
        while self._flushing is not None:
            await asyncio.wait((self._flushing,))
        self.log.close()


def _sync_all(targets: list[SyncTarget]) -> None:
    for target in targets:
        target.sync()


def log_config(config: MetadataLogConfig) -> LogConfig:
    """The log's own retention never applies: only what a snapshot covers may go."""
    return LogConfig(
        segment_bytes=config.segment_bytes,
        segment_ms=config.segment_ms,
        max_message_bytes=(1 << 31) - 1,
        retention_ms=-1,
        retention_bytes=-1,
        # Nobody reads a metadata segment while it goes: replay happens at the start only.
        file_delete_delay_ms=0,
    )


def _read_election_state(ports: Ports, directory: str) -> ElectionState:
    path = f"{directory}/{QUORUM_STATE}"
    return decode_election_state(ports.disk.read_file(path)) if ports.disk.exists(path) else ElectionState()


def _voters_to_write(replayed: ReplayedMetadata, node_id: int, endpoints: tuple[VoterEndpoint, ...]) -> VoterSet | None:
    """A dynamic quorum's voters go into the log with its first epoch, and again when this node's address changed."""
    voters = replayed.voters
    if voters is None:
        return None
    own = voters.find(node_id)
    if own is None or not endpoints or own.endpoints == endpoints:
        return None if replayed.voters_logged else voters
    return VoterSet(tuple(replace(each, endpoints=endpoints) if each is own else each for each in voters))
