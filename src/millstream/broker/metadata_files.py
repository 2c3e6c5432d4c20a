"""The metadata log on disk, as the quorum reads and writes it.

`__cluster_metadata-0` with its segments, its snapshots and the file `quorum-state`. What is written here is durable
after the next flush; the election state at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.metadata_replay import (
    METADATA_DIRECTORY,
    ControlAt,
    ReplayedMetadata,
    control_records,
    replay_log,
    replay_snapshot,
)
from millstream.broker.metadata_snapshot import PART, SnapshotId, list_snapshots
from millstream.log.config import LogConfig
from millstream.log.log import Log
from millstream.log.producers import Origin
from millstream.protocol.messages.data.kraft_version_record import KRaftVersionRecord
from millstream.protocol.messages.data.voters_record import VotersRecord
from millstream.protocol.uuid import METADATA_TOPIC_ID
from millstream.quorum.election_state import ElectionState, decode_election_state, encode_election_state
from millstream.quorum.positions import LogPosition
from millstream.quorum.voter_history import VoterHistory
from millstream.quorum.voters import VoterSet

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.broker.metadata_log import MetadataLogConfig
    from millstream.runtime.ports import Ports

QUORUM_STATE = "quorum-state"


class MetadataFiles:
    """The log, its snapshots and who votes by it. Made by `MetadataFiles.open`."""

    def __init__(self, ports: Ports, directory: str, log: Log, replayed: ReplayedMetadata, fixed: VoterSet) -> None:
        self._ports = ports
        self.directory = directory
        self.log = log
        self.replayed = replayed
        self.snapshots = list_snapshots(ports.disk, directory)
        self._fixed = fixed
        self.history = self._history_from_snapshot()
        self._note_control(replayed.control)

    @classmethod
    def open(cls, ports: Ports, metadata_log_dir: str, config: MetadataLogConfig, fixed: VoterSet) -> MetadataFiles:
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
        log.advance_high_watermark(end_of_snapshot)
        opened = cls(ports, directory, log, replay_log(replayed, log), fixed)
        if opened.snapshots and opened.snapshots[0].end_offset > log.start_offset:
            log.advance_start_offset(opened.snapshots[0].end_offset)
        return opened

    # What the quorum reads (LogView)

    @property
    def end(self) -> LogPosition:
        latest_epoch = self.log.epochs.latest_epoch
        if latest_epoch < 0:
            latest_epoch = self.snapshots[-1].epoch if self.snapshots else 0
        return LogPosition(self.log.end_offset, latest_epoch)

    @property
    def start_offset(self) -> int:
        return self.log.start_offset

    @property
    def latest_snapshot(self) -> LogPosition | None:
        return LogPosition(*self.snapshots[-1]) if self.snapshots else None

    @property
    def earliest_snapshot(self) -> LogPosition | None:
        return LogPosition(*self.snapshots[0]) if self.snapshots else None

    def end_of_epoch(self, epoch: int) -> LogPosition:
        known, offset = self.log.end_offset_for_epoch(epoch)
        if offset >= 0:
            return LogPosition(offset, known)
        # A newer epoch than any here, or nothing here but a snapshot.
        return self.end

    # The log

    @property
    def now_ms(self) -> int:
        return self._ports.clock.wall_ms()

    def append_as_leader(self, batch: bytearray, epoch: int, timestamp_ms: int) -> None:
        self.log.append_as_leader(batch, epoch, timestamp_ms, origin=Origin.RAFT_LEADER)

    def append_fetched(self, records: bytes | memoryview) -> bool:
        """Write what the leader sent; whether the voters are others now."""
        begin = self.log.end_offset
        self.log.append_as_follower(records, self.now_ms)
        appended = [each for each in control_records(records) if begin <= each.offset < self.log.end_offset]
        return self._note_control(appended)

    def truncate(self, offset: int) -> None:
        self.log.truncate_to(offset, self.now_ms)
        self.history.truncate(offset)

    def begin_behind(self, snapshot: SnapshotId) -> ReplayedMetadata:
        """A snapshot of the leader's is in its place: forget the log, and begin anew behind it."""
        self.log.truncate_fully_and_start_at(snapshot.end_offset, self.now_ms)
        self.log.flush()
        disk = self._ports.disk
        for older in self.snapshots:
            if older != snapshot:
                disk.remove(f"{self.directory}/{older.file_name}")
        self.snapshots = [snapshot]
        self.replayed = replay_snapshot(disk, self.directory)
        self.history = self._history_from_snapshot()
        return self.replayed

    def _history_from_snapshot(self) -> VoterHistory:
        """Who votes where the log begins: as the snapshot says; one of a static quorum does not."""
        replayed = self.replayed
        if replayed.snapshot is None or replayed.snapshot_voters is None:
            return VoterHistory(self._fixed)
        return VoterHistory(replayed.snapshot_voters, replayed.snapshot_kraft_version, replayed.snapshot.end_offset - 1)

    def forget_before(self, offset: int) -> int:
        """Let the log begin at `offset`, which a snapshot covers; returns how many bytes of whole segments went."""
        before = self.log.size_bytes
        self.log.advance_start_offset(offset)
        self.log.enforce_retention(self.now_ms)
        self.log.remove_due(self.now_ms)
        self.history.forget_before(offset)
        return before - self.log.size_bytes

    def _note_control(self, control: Iterable[ControlAt]) -> bool:
        changed = False
        for offset, message in control:
            if isinstance(message, KRaftVersionRecord):
                self.history.add_version(offset, message.k_raft_version)
                changed = True
            elif isinstance(message, VotersRecord):
                self.history.add_voters(offset, VoterSet.from_record(message))
                changed = True
        return changed

    # The election state

    def read_election_state(self) -> ElectionState:
        path = f"{self.directory}/{QUORUM_STATE}"
        disk = self._ports.disk
        return decode_election_state(disk.read_file(path)) if disk.exists(path) else ElectionState()

    def write_election_state(self, state: ElectionState, *, kraft_version: int, voter_ids: tuple[int, ...]) -> None:
        content = encode_election_state(state, kraft_version=kraft_version, voter_ids=voter_ids)
        self._ports.disk.replace_file(f"{self.directory}/{QUORUM_STATE}", content)


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
