"""JoinGroup: a member enters a classic group, or comes back for the next generation.

Who comes without an id is given one. A dynamic member is then asked to join again with it (MEMBER_ID_REQUIRED,
KIP-394), so that clients which give up half-way leave no members behind; older clients (before version 4) become
members at once.
A static member (KIP-345) is known by its instance id: coming without a member id it takes the place of its former self,
who is fenced, and if the group is Stable and would not choose another protocol, it does so without a rebalance.

A request of somebody without an id creates the group, and the log hears of it, whatever becomes of the request; unless
offsets were committed for the group before: then there is one already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.groups.classic.answers import join_answer, joined_answer
from millstream.groups.classic.config import NEW_MEMBER_JOIN_TIMEOUT_MS, ClassicConfig
from millstream.groups.classic.group import ClassicGroup
from millstream.groups.classic.member import ClassicMember, Waiting, protocols_of
from millstream.groups.classic.rebalance import complete_join_if_all_came, rebalance_or_go_on, start_rebalance
from millstream.groups.classic.state import GroupState
from millstream.groups.classic.step import Step
from millstream.groups.consumer.classic_members import decide_classic_join
from millstream.groups.consumer.group import ConsumerGroup
from millstream.protocol.errors import (
    ErrorCode,
    InvalidGroupId,
    InvalidSessionTimeout,
    UnknownMember,
)
from millstream.replicated import Decision

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.groups.classic.member import Client, Protocols
    from millstream.groups.machine import GroupMachine
    from millstream.protocol.messages.join_group import JoinGroupRequest
    from millstream.replicated import Token

MEMBER_ID_REQUIRED_SINCE = 4
REBALANCE_TIMEOUT_SINCE = 1
SKIP_ASSIGNMENT_SINCE = 9


def decide_join(
    machine: GroupMachine, request: JoinGroupRequest, version: int, client: Client, token: Token, now_ms: int
) -> Decision[Any]:
    config = ClassicConfig.of(machine.settings)
    if not request.group_id:
        raise InvalidGroupId
    if not config.session_timeout_min_ms <= request.session_timeout_ms <= config.session_timeout_max_ms:
        raise InvalidSessionTimeout(
            f"the session timeout has to be between {config.session_timeout_min_ms} and "
            f"{config.session_timeout_max_ms} ms, not {request.session_timeout_ms}"
        )
    known = machine.groups.get(request.group_id)
    if isinstance(known, ConsumerGroup) and not known.is_empty:
        return decide_classic_join(machine, known, request, version, client, now_ms)
    # A consumer group that has lost all its members gives way to a classic one.
    emptied = known if isinstance(known, ConsumerGroup) else None
    known = known if isinstance(known, ClassicGroup) else None
    if known is None and request.member_id:
        raise UnknownMember(f"there is no group '{request.group_id}'")
    group = known or ClassicGroup(request.group_id, now_ms)
    join = _Join(machine, group, request, version, client, token, Step(config, now_ms))
    return join.decide() if known is not None else join.decide_on_new_group(emptied)


class _Join:
    """One JoinGroup and what it does to its group."""

    def __init__(
        self,
        machine: GroupMachine,
        group: ClassicGroup,
        request: JoinGroupRequest,
        version: int,
        client: Client,
        token: Token,
        step: Step,
    ) -> None:
        self.machine = machine
        self.group = group
        self.request = request
        self.version = version
        self.client = client
        self.waiting = Waiting(token, version)
        self.step = step
        self.protocols: Protocols = protocols_of(request.protocols)
        self.rebalance_timeout_ms = (
            request.rebalance_timeout_ms if version >= REBALANCE_TIMEOUT_SINCE else request.session_timeout_ms
        )
        self._undo: Callable[[ErrorCode], Decision[Any]] | None = None

    def decide_on_new_group(self, emptied: ConsumerGroup | None) -> Decision[Any]:
        group, groups = self.group, self.machine.groups
        groups[group.id] = group
        answer = self._enter()
        if emptied is not None:
            self.step.records += emptied.tombstones()
        if emptied is not None or group.id not in self.machine.simple_groups:
            self.step.records.append(group.founding_record())

        def forget(_: ErrorCode) -> Decision[Any]:
            # Nobody but this request knows of the group, and the request is refused by the shard.
            if groups.get(group.id) is group:
                del groups[group.id]
                if emptied is not None:
                    groups[group.id] = emptied
            return Decision()

        return self.step.decision(answer, undo=forget)

    def decide(self) -> Decision[Any]:
        answer = self._enter()
        return self.step.decision(answer, undo=self._undo)

    def _refused(self, code: ErrorCode, member_id: str) -> Any:
        return join_answer(self.version, member_id=member_id, error=code)

    def _enter(self) -> Any | None:
        """The answer, if there is one at once."""
        group, request = self.group, self.request
        if not self._has_room():
            group.remove(request.member_id)
            return self._refused(ErrorCode.GROUP_MAX_SIZE_REACHED, "")
        if not group.supports(request.protocol_type, self.protocols):
            return self._refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
        if request.member_id:
            return self._known_member_joins()
        if request.group_instance_id is not None:
            self._static_member_joins(request.group_instance_id)
            return None
        return self._new_member_joins()

    def _has_room(self) -> bool:
        """Whether the group takes in one more, or has taken in this one already."""
        group, size_max = self.group, self.step.config.size_max
        member = group.members.get(self.request.member_id)
        match group.state:
            case GroupState.PREPARING_REBALANCE:
                # Those who have joined count, not those who may: if the limit was lowered, the last to come must go.
                return (member is not None and member.join is not None) or group.awaiting_join_count < size_max
            case GroupState.COMPLETING_REBALANCE | GroupState.STABLE:
                return member is not None or len(group.members) < size_max
            case _:
                return True

    # --- without an id

    def _new_id(self, prefix: str) -> str:
        return f"{prefix}-{_dashed(self.machine.new_uuid())}"

    def _new_member_joins(self) -> Any | None:
        member_id = self._new_id(self.client.id)
        if self.version < MEMBER_ID_REQUIRED_SINCE:
            self._add_member(member_id)
            return None
        group = self.group
        group.pending_ids[member_id] = None
        self.step.schedule(group.session_timer(member_id), self.request.session_timeout_ms)
        return self._refused(ErrorCode.MEMBER_ID_REQUIRED, member_id)

    def _static_member_joins(self, instance_id: str) -> None:
        new_id = self._new_id(instance_id)
        known_id = self.group.static_members.get(instance_id)
        if known_id is None:
            self._add_member(new_id)
        else:
            self._replace_static_member(self.group.members[known_id], new_id)

    def _add_member(self, member_id: str) -> None:
        group, request = self.group, self.request
        if group.initial_wait is not None:
            group.newcomer_in_wait = True
        if not group.members:
            group.protocol_type = request.protocol_type
        member = ClassicMember(
            id=member_id,
            instance_id=request.group_instance_id,
            client=self.client,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocols=self.protocols,
            is_new=True,
            join=self.waiting,
        )
        group.add(member)
        # It cannot send heartbeats while its JoinGroup waits, and if its connection breaks it comes back as somebody
        # else: so its first wait has an end of its own.
        self.step.schedule(group.session_timer(member_id), NEW_MEMBER_JOIN_TIMEOUT_MS)
        rebalance_or_go_on(group, self.step)

    def _replace_static_member(self, member: ClassicMember, new_id: str) -> None:
        group, step = self.group, self.step
        old_id, old_leader = member.id, group.leader
        before = (member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
        step.refuse_join(member, ErrorCode.FENCED_INSTANCE_ID, old_id)
        step.refuse_sync(member, ErrorCode.FENCED_INSTANCE_ID)
        step.cancel(group.session_timer(old_id))
        group.rename(member, new_id)
        member.is_new = False
        step.keep_session(group, member)
        group.update(member, self.protocols, self.rebalance_timeout_ms, self.request.session_timeout_ms)
        member.join = self.waiting
        if group.state is not GroupState.STABLE:
            if group.state is GroupState.COMPLETING_REBALANCE:
                # The leader may be assigning to the former id just now.
                start_rebalance(group, step)
            else:
                complete_join_if_all_came(group, step)
        elif group.select_protocol() != group.protocol:
            start_rebalance(group, step)
        else:
            step.records.append(group.record(group.assignments))
            self._answer_replaced(member, old_leader)

            def restore(_: ErrorCode) -> Decision[Any]:
                group.rename(member, old_id)
                group.update(member, *before)
                member.join = None
                return Decision(timers=(group.keep_session(member),))

            self._undo = restore

    def _answer_replaced(self, member: ClassicMember, old_leader: str | None) -> None:
        """It goes on with what its former self owned. If that one led, the new one has nothing to assign: who speaks
        version 9 is told so (KIP-814), others are told the former leader's id, so that they don't think they lead."""
        group = self.group
        if self.version >= SKIP_ASSIGNMENT_SINCE:
            self.step.answer_join(
                member, lambda version: joined_answer(group, member.id, version, skip_assignment=True)
            )
        else:
            self.step.answer_join(
                member,
                lambda version: join_answer(
                    version,
                    member_id=member.id,
                    generation=group.generation,
                    protocol_type=group.protocol_type,
                    protocol=group.protocol,
                    leader=old_leader,
                ),
            )

    # --- with an id

    def _known_member_joins(self) -> Any | None:
        group, request = self.group, self.request
        if request.member_id in group.pending_ids and request.group_instance_id is None:
            self._add_member(request.member_id)
            return None
        member = group.check_member(request.member_id, request.group_instance_id)
        if group.state is GroupState.EMPTY:
            raise UnknownMember(f"group '{group.id}' is empty")
        changed = group.state is GroupState.PREPARING_REBALANCE or not member.matches(self.protocols)
        # The leader joins a stable group when something but the members changed, partitions of a topic for instance.
        if changed or (group.state is GroupState.STABLE and group.leader == member.id):
            self._join_again(member)
            return None
        # It did not hear the answer to its last JoinGroup; here it is.
        return joined_answer(group, member.id, self.version)

    def _join_again(self, member: ClassicMember) -> None:
        group = self.group
        # A JoinGroup that waits already was sent over a connection that the client has given up.
        self.step.refuse_join(member, ErrorCode.REBALANCE_IN_PROGRESS, member.id)
        group.update(member, self.protocols, self.rebalance_timeout_ms, self.request.session_timeout_ms)
        member.join = self.waiting
        rebalance_or_go_on(group, self.step)


def _dashed(uuid: bytes) -> str:
    """A random id as Java prints it."""
    digits = uuid.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
