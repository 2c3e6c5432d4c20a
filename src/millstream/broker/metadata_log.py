"""The metadata log of this node: `__cluster_metadata-0`, the quorum that commits it, and its durability.

The driver of the pure QuorumNode: it feeds events in and carries effects out. What goes to files is done here; what
goes to other nodes is handed to `outside` (quorum_driver.py). Appending writes to the file at once and returns; a
commit comes later, when fsync has reached the file (Kafka's raft syncs every append, too) and the quorum agrees. All
appends that arrive while a sync is under way share the next one, so a burst of topic creations costs a few syncs, and
the event loop waits for none of them.

A failing disk ends it: what was not committed never will be, everybody who waits is told, and nothing more is accepted.
A node without its metadata log is of no use to a cluster. A full disk is another matter: what does not fit is refused
and taken back, and the node goes on, so that records can still be read and topics deleted once there is space again.
Not for ever, where there are others: a node that falls behind the metadata answers clients by what was once true.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from millstream.broker.metadata_batches import (
    control_batch,
    leader_change,
    metadata_batch,
    voter_messages,
)
from millstream.broker.metadata_files import QUORUM_STATE, MetadataFiles
from millstream.broker.metadata_log_terms import FramedRecords, MetadataLogConfig, Room
from millstream.log.cutting import NO_SPACE
from millstream.log.following import UnexpectedOffset
from millstream.protocol.errors import CorruptMessage, NotController, StorageError
from millstream.quorum.events import (
    Answer,
    AnswerFetch,
    Append,
    Commit,
    Effect,
    Event,
    Flushed,
    Lead,
    Persist,
    SnapshotLoaded,
    Started,
    StepDown,
    Stopping,
    Truncate,
    VotersChanged,
    Wake,
)
from millstream.quorum.node import QuorumNode
from millstream.quorum.positions import LogPosition
from millstream.quorum.voters import DYNAMIC, VoterEndpoint, VoterSet
from millstream.runtime.logs import Logger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.broker.metadata_batches import ControlMessage
    from millstream.broker.metadata_log_terms import Follower, Outside
    from millstream.broker.metadata_snapshot import SnapshotId
    from millstream.broker.quorum_config import QuorumConfig
    from millstream.log.flushing import SyncTarget
    from millstream.log.log import Log
    from millstream.protocol.uuid import Uuid
    from millstream.runtime.ports import Ports

__all__ = ["QUORUM_STATE", "FramedRecords", "MetadataLog", "MetadataLogConfig"]

_TRY_AGAIN_MS = 1000
_log = Logger("millstream.metadata")


class MetadataLog:
    """See the module's docstring. Made by `MetadataLog.open`; `start` enters the quorum."""

    def __init__(self, ports: Ports, files: MetadataFiles, quorum: QuorumNode, follower: Follower) -> None:
        self._ports = ports
        self.files = files
        self.log: Log = files.log
        self.quorum = quorum
        self.replayed = files.replayed
        self._follower = follower
        self.outside: Outside | None = None
        self._flushing: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None
        self._own_endpoints: tuple[VoterEndpoint, ...] = ()
        self._room = Room(ports.clock)

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
        quorum: QuorumConfig,
        follower: Follower,
    ) -> MetadataLog:
        """Open (and recover) the log, and replay it. The caller holds the lock of the directory."""
        files = MetadataFiles.open(ports, metadata_log_dir, config, quorum.voters_without_a_record(node_id))
        latest = files.history.latest
        node = QuorumNode(
            node_id=node_id,
            directory_id=directory_id,
            voters=latest.voters,
            kraft_version=latest.kraft_version,
            state=files.read_election_state(),
            log=files,
            jitter_ms=ports.random.below,
            timeouts=quorum.timeouts,
            may_stand=quorum.is_controller,
            voters_offset=latest.offset,
            former_voters=files.history.former,
        )
        opened = cls(ports, files, node, follower)
        opened._own_endpoints = controller_endpoints
        return opened

    def start(self) -> None:
        """Enter the quorum. Alone in it, this node leads a new epoch when the call returns."""
        if self.log.recovery_point < self.log.end_offset:
            # A killed process leaves what it wrote, not necessarily on disk: no fetch may speak for it before it is.
            self._request_flush()
        self.step(Started())

    @property
    def directory(self) -> str:
        return self.files.directory

    @property
    def epoch(self) -> int:
        return self.quorum.epoch

    @property
    def end_offset(self) -> int:
        return self.log.end_offset

    @property
    def high_watermark(self) -> int:
        return self.quorum.high_watermark

    @property
    def latest_snapshot(self) -> SnapshotId | None:
        return self.files.snapshots[-1] if self.files.snapshots else None

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
                self.files.append_as_leader(batch, self.epoch, timestamp_ms)
                size += len(batch)
        except StorageError as error:
            self._could_not_append(error, begin, timestamp_ms)
            raise
        self._appended()
        return size

    def append_voters(self, voters: VoterSet) -> int:
        """Write another set of voters, which counts at once; returns its offset."""
        offset = self._append_control([voters.to_record()])
        self.files.history.add_voters(offset, voters)
        self._voters_changed()
        self._appended()
        return offset

    def append_upgrade(self, voters: VoterSet) -> int:
        """Write kraft.version 1 with the voters that were fixed until now; returns the offset of the last record."""
        offset = self._append_control(voter_messages(voters))
        self.files.history.add_version(offset, DYNAMIC)
        self.files.history.add_voters(offset + 1, voters)
        self._voters_changed()
        self._appended()
        return offset + 1

    def _append_control(self, messages: Sequence[ControlMessage]) -> int:
        """A batch of the leader's about the quorum itself; returns its first offset."""
        offset, now_ms = self.end_offset, self._ports.clock.wall_ms()
        batch = control_batch(messages, base_offset=offset, epoch=self.epoch, timestamp_ms=now_ms)
        try:
            self.files.append_as_leader(batch, self.epoch, now_ms)
        except StorageError as error:
            self._could_not_append(error, offset, now_ms)
            raise
        return offset

    def _could_not_append(self, error: StorageError, begin: int, timestamp_ms: int) -> None:
        if not self.log.take_back_what_did_not_fit(begin, timestamp_ms):
            self._fail(error)
        elif len(self.quorum.voters) > 1:
            # A controller that can write nothing would keep everybody else from deciding anything either.
            _log.warning("the metadata log has no space: another controller shall take over", error=str(error))
            self.step(Stopping())

    # The quorum's effects

    def step(self, event: Event) -> Answer | AnswerFetch | None:
        """Feed the quorum and do what it wants done; the answer, where the event was a request."""
        if self._failure is not None:
            raise StorageError(f"the metadata log is offline: {self._failure}")
        answer: Answer | AnswerFetch | None = None
        before = self.quorum.remember()
        done = 0
        try:
            effects = self.quorum.step(event, self._ports.clock.monotonic_ms())
            for effect, following in zip_longest(effects, effects[1:]):
                if isinstance(effect, Answer | AnswerFetch):
                    answer = effect
                # Of two states in a row only the second need be found after a crash: nothing happened in between.
                elif not (isinstance(effect, Persist) and isinstance(following, Persist)):
                    self._carry_out(effect)
                    done += 1
        except Exception as error:
            if not done and isinstance(error, OSError) and error.errno in NO_SPACE:
                # Nothing has happened yet but that the new state could not be written: then it is not entered.
                self.quorum.go_back(before)
                self._tell_outside_to_wake()
                self._had_no_room(error)
                raise StorageError(f"there is no space for the state of the quorum: {error}") from error
            # Whatever else could not be done, nobody knows what state that leaves: the node must not go on.
            self._fail(error)
            if isinstance(error, OSError):
                raise StorageError(f"the metadata log failed: {error}") from error
            raise
        return answer

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Persist(state):
                self.files.write_election_state(
                    state, kraft_version=self.quorum.kraft_version, voter_ids=self.quorum.voters.ids()
                )
                self._room.found()
            case Lead(epoch, voter_ids, granting_ids):
                self._begin_epoch(epoch, voter_ids, granting_ids)
            case Commit(high_watermark):
                self.log.advance_high_watermark(high_watermark)
                self._follower.committed(high_watermark)
                self._tell_outside()
            case Append(records):
                self._append_fetched(records)
            case Truncate(offset):
                self.files.truncate(offset)
                self._follower.truncated(offset)
                self._voters_changed()
            case StepDown():
                self._follower.stepped_down()
                self._tell_outside()
            case _:
                if self.outside is not None:
                    self.outside.carry_out(effect)

    def _append_fetched(self, records: bytes | memoryview) -> None:
        begin = self.end_offset
        try:
            voters_changed = self.files.append_fetched(records)
        except (CorruptMessage, UnexpectedOffset) as error:
            _log.warning("the quorum's leader sent records that do not fit", error=str(error))
            return
        except StorageError as error:
            # What does not fit on a full disk is fetched again, until there is space.
            if not self.log.take_back_what_did_not_fit(begin, self._ports.clock.wall_ms()):
                raise
            self._had_no_room(error)
            return
        self._room.found()
        if voters_changed:
            self._voters_changed()
        self._request_flush()

    def _begin_epoch(self, epoch: int, voter_ids: tuple[int, ...], granting_ids: tuple[int, ...]) -> None:
        now_ms = self._ports.clock.wall_ms()
        change = leader_change(self.quorum.node_id, voter_ids, granting_ids)
        voters = self._voters_to_write()
        messages = [change] if voters is None else [change, *voter_messages(voters)]
        offset = self.end_offset
        self.files.append_as_leader(
            control_batch(messages, base_offset=offset, epoch=epoch, timestamp_ms=now_ms), epoch, now_ms
        )
        if voters is not None:
            self.files.history.add_version(offset + 1, DYNAMIC)
            self.files.history.add_voters(offset + 2, voters)
            self._voters_changed()
        self._follower.leads()
        self._appended()

    def _voters_to_write(self) -> VoterSet | None:
        """A dynamic quorum's voters go into the log with its first epoch, and again when this node has moved."""
        latest = self.files.history.latest
        if latest.kraft_version < DYNAMIC:
            return None
        own = latest.voters.find(self.quorum.node_id)
        endpoints = self._own_endpoints
        if own is None or not endpoints or own.endpoints == endpoints:
            # An offset below zero: only the snapshot that formatting wrote says so.
            return None if latest.offset >= 0 else latest.voters
        return VoterSet(tuple(replace(each, endpoints=endpoints) if each is own else each for each in latest.voters))

    def _voters_changed(self) -> None:
        latest = self.files.history.latest
        if (latest.voters, latest.kraft_version) != (self.quorum.voters, self.quorum.kraft_version):
            former = self.files.history.former
            self.step(VotersChanged(latest.voters, latest.kraft_version, latest.offset, former))

    def begin_behind(self, snapshot: SnapshotId) -> None:
        """A snapshot that was fetched from the leader is complete and in its place."""
        try:
            replayed = self.files.begin_behind(snapshot)
        except (OSError, StorageError) as error:
            self._fail(error)
            raise
        self._voters_changed()
        self._follower.began_anew(replayed)
        self.step(SnapshotLoaded(LogPosition(*snapshot)))

    # Durability

    def _appended(self) -> None:
        self._request_flush()
        self._tell_outside()

    def _tell_outside_to_wake(self) -> None:
        if self.outside is not None:
            self.outside.carry_out(Wake(self._ports.clock.monotonic_ms() + _TRY_AGAIN_MS))

    def _tell_outside(self) -> None:
        if self.outside is not None:
            self.outside.log_changed()

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
                # Not `end_offset`: the log may have been cut off and have grown again meanwhile.
                self.step(Flushed(self.log.recovery_point))
        except Exception as error:  # noqa: BLE001  # whatever it is, those who wait for a commit must hear of it
            if isinstance(error, OSError):
                self.log.mark_offline(error)
            self._fail(error)
        finally:
            self._flushing = None

    async def flushed(self) -> None:
        """Wait until what was appended so far is on disk."""
        while self._flushing is not None:
            await asyncio.wait((self._flushing,))

    def _had_no_room(self, error: Exception) -> None:
        """What others decide cannot be written down here."""
        if self._room.has_been_missing_for_long():
            _log.error("the metadata log has had no space for long: this node no longer knows the cluster")
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if self._failure is None:
            self._failure = error
            self._follower.failed(error)

    @property
    def has_failed(self) -> bool:
        return self._failure is not None

    async def close(self) -> None:
        """Everything that was appended is durable afterwards, unless the disk has failed."""
        await self.flushed()
        if self._failure is None:
            # Who still asks hears that there is nothing to be had.
            self._failure = StorageError("it was closed")
        self.log.close()


def _sync_all(targets: list[SyncTarget]) -> None:
    for target in targets:
        target.sync()
