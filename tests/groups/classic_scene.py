"""A shard of groups on virtual time, without sockets: what `runtime/shard.py` does, in few lines that tests can bend.

Records go through Kafka's bytes before a replay sees them. `fail_writes` makes appends fail, `crash` throws everything
away that is not in the log.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from millstream.groups.classic.joining import decide_join
from millstream.groups.classic.leaving import decide_heartbeat, decide_leave
from millstream.groups.classic.member import Client
from millstream.groups.classic.syncing import decide_sync
from millstream.groups.machine import GroupMachine
from millstream.metadata.image import EMPTY_IMAGE
from millstream.protocol.coordinator_frame import (
    decode_coordinator_key,
    decode_coordinator_value,
    encode_coordinator_key,
    encode_coordinator_value,
)
from millstream.protocol.errors import BrokerError, ErrorCode
from millstream.protocol.messages.heartbeat import HeartbeatRequest
from millstream.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from millstream.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from millstream.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from millstream.protocol.uuid import Uuid
from millstream.replicated import Schedule
from millstream.settings.effective import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from millstream.groups.classic.group import ClassicGroup
    from millstream.replicated import Decision

GROUP = "g"
SESSION_MS = 10_000
REBALANCE_MS = 60_000


class Pending:
    """A request under way: `answer` is None while it waits."""

    def __init__(self, kind: str, member_id: str) -> None:
        self.kind = kind
        self.member_id = member_id
        self.answer: Any = None

    @property
    def error(self) -> ErrorCode | None:
        return None if self.answer is None else ErrorCode(self.answer.error_code)

    def __repr__(self) -> str:
        return f"<{self.kind} of {self.member_id or 'somebody'}: {'waits' if self.answer is None else self.error}>"


class Scene:
    def __init__(self, **settings: str | int) -> None:
        told = {"group.initial.rebalance.delay.ms": 0} | {
            name.replace("_", "."): value for name, value in settings.items()
        }
        self.settings = Settings({name: str(value) for name, value in told.items()})
        self.now_ms = 1_000_000
        self.log: list[tuple[bytes, bytes | None]] = []
        self.requests: dict[int, Pending] = {}
        self.fail_writes: type[BrokerError] | None = None
        self._uuids = count(1)
        self._tokens = count(1)
        self._timers: dict[Hashable, int] = {}
        self.machine = self._empty_machine()
        self._set_timers(self.machine.loaded(self.now_ms))

    def _empty_machine(self) -> GroupMachine:
        return GroupMachine(lambda: self.settings, lambda: EMPTY_IMAGE, lambda: Uuid(next(self._uuids).to_bytes(16)))

    @property
    def group(self) -> ClassicGroup:
        return self.machine.groups[GROUP]  # type: ignore[return-value]

    @property
    def state(self) -> str:
        return self.group.state.value

    def stored(self) -> list[Any]:
        """The group's values in the log, tombstones as None."""
        found = []
        for key_bytes, value in self.log:
            key = decode_coordinator_key("groups", key_bytes)
            if getattr(key, "group", None) == GROUP and type(key).__name__ == "GroupMetadataKey":
                found.append(None if value is None else decode_coordinator_value("groups", key, value)[0])
        return found

    # --- the shard

    def submit(self, kind: str, member_id: str, decide: Callable[[int], Decision[Any]], refuse: Any) -> Pending:
        token = next(self._tokens)
        pending = self.requests[token] = Pending(kind, member_id)
        try:
            decision = decide(token)
        except BrokerError as refusal:
            pending.answer = refuse(refusal.code)
        else:
            self._carry_out(decision, token, refuse)
        return pending

    def _carry_out(self, decision: Decision[Any], token: int | None = None, refuse: Any = None) -> None:
        if decision.records and self.fail_writes is not None:
            code = self.fail_writes.code
            if decision.undo is not None:
                self._carry_out(decision.undo(code))
            if token is not None and self.requests[token].answer is None:
                self.requests[token].answer = refuse(code)
            return
        for record in decision.records:
            value = None if record.value is None else encode_coordinator_value(record.value, record.version)
            self.log.append((encode_coordinator_key(record.key), value))
            self.machine.apply(record.key, record.value, transaction=None, offset=len(self.log) - 1)
        self._set_timers(decision.timers)
        for reply in decision.replies:
            waiting = self.requests[reply.token]
            assert waiting.answer is None, f"{waiting} is answered twice"
            waiting.answer = reply.response
        if token is not None and decision.response is not None:
            assert self.requests[token].answer is None, "answered twice"
            self.requests[token].answer = decision.response

    def _set_timers(self, timers: Any) -> None:
        for timer in timers:
            self._timers.pop(timer.key, None)
            if isinstance(timer, Schedule):
                self._timers[timer.key] = self.now_ms + max(0, timer.delay_ms)

    def pass_ms(self, duration_ms: int) -> None:
        """Let time pass; timers ring in their order."""
        end_ms = self.now_ms + duration_ms
        while self._timers and min(self._timers.values()) <= end_ms:
            key, at_ms = min(self._timers.items(), key=lambda item: item[1])
            del self._timers[key]
            self.now_ms = max(self.now_ms, at_ms)
            self._carry_out(self.machine.on_timer(key, self.now_ms))
        self.now_ms = end_ms

    def crash(self) -> None:
        """The broker is gone, and with it everybody's waiting requests; it starts again from the log."""
        self.requests.clear()
        self._timers.clear()
        self.machine = self.replayed()
        self._set_timers(self.machine.loaded(self.now_ms))

    def replayed(self) -> GroupMachine:
        machine = self._empty_machine()
        for offset, (key_bytes, value_bytes) in enumerate(self.log):
            key = decode_coordinator_key("groups", key_bytes)
            value = None if value_bytes is None else decode_coordinator_value("groups", key, value_bytes)[0]
            machine.apply(key, value, transaction=None, offset=offset)
        return machine

    # --- requests

    def join(
        self,
        member_id: str = "",
        *,
        version: int = 9,
        instance_id: str | None = None,
        protocols: dict[str, bytes] | None = None,
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        client_id: str = "client",
    ) -> Pending:
        told = {"range": b"metadata"} if protocols is None else protocols
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in told.items()],
        )
        client = Client(client_id, "/127.0.0.1")
        from millstream.groups.classic.answers import join_answer

        return self.submit(
            "join",
            member_id,
            lambda token: decide_join(self.machine, request, version, client, token, self.now_ms),
            lambda code: join_answer(version, member_id=member_id, error=code),
        )

    def join_new(self, **options: Any) -> Pending:
        """A dynamic member's two steps: it is told its id, and joins with it."""
        told = self.join(**options)
        assert told.error is ErrorCode.MEMBER_ID_REQUIRED, told
        return self.join(told.answer.member_id, **options)

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        *,
        instance_id: str | None = None,
        protocol_type: str | None = "consumer",
        protocol: str | None = "range",
    ) -> Pending:
        from millstream.groups.classic.answers import sync_answer

        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocol_name=protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=each, assignment=assignment)
                for each, assignment in (assignments or {}).items()
            ],
        )
        return self.submit(
            "sync",
            member_id,
            lambda token: decide_sync(self.machine, request, 5, token, self.now_ms),
            lambda code: sync_answer(error=code),
        )

    def heartbeat(self, member_id: str, generation: int, instance_id: str | None = None) -> ErrorCode:
        from millstream.protocol.messages.heartbeat import HeartbeatResponse

        request = HeartbeatRequest(
            group_id=GROUP, generation_id=generation, member_id=member_id, group_instance_id=instance_id
        )
        pending = self.submit(
            "heartbeat",
            member_id,
            lambda _: decide_heartbeat(self.machine, request),
            lambda code: HeartbeatResponse(error_code=code),
        )
        assert pending.error is not None
        return pending.error

    def leave(self, *members: tuple[str, str | None]) -> list[ErrorCode] | ErrorCode:
        """Leave by (member id, instance id); each one's result, or that of the request."""
        from millstream.protocol.messages.leave_group import LeaveGroupResponse

        request = LeaveGroupRequest(
            group_id=GROUP,
            members=[MemberIdentity(member_id=each, group_instance_id=instance_id) for each, instance_id in members],
        )
        pending = self.submit(
            "leave",
            "",
            lambda _: decide_leave(self.machine, request, self.now_ms),
            lambda code: LeaveGroupResponse(error_code=code),
        )
        assert pending.answer is not None
        if pending.answer.error_code:
            return ErrorCode(pending.answer.error_code)
        return [ErrorCode(member.error_code) for member in pending.answer.members]

    # --- scenes to start from

    def stable(self, count_: int = 1, **options: Any) -> list[str]:
        """A stable group of that many dynamic members, the first one leading; their ids."""
        joins = [self.join_new(**options)]
        self.pass_ms(0)
        ids = [joins[0].answer.member_id]
        for _ in range(count_ - 1):
            newcomer = self.join_new(**options)
            joins = [self.join(each, **options) for each in ids] + [newcomer]
            ids.append(newcomer.answer.member_id)
        self.settle(ids)
        return ids

    def settle(self, ids: list[str]) -> dict[str, Pending]:
        """All of these members sync; the leader assigns each of them its own name."""
        generation = self.group.generation
        leader = self.group.leader
        order = sorted(ids, key=lambda each: each == leader)
        syncs = {
            each: self.sync(
                each, generation, {name: b"for " + name.encode() for name in ids} if each == leader else None
            )
            for each in order
        }
        assert self.state == "Stable"
        return syncs
