"""What one decision on a classic group does besides changing soft state: gathered while it is being worked out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.groups.classic.answers import join_answer, sync_answer
from millstream.replicated import Cancel, Decision, Reply, Schedule

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from millstream.groups.classic.config import ClassicConfig
    from millstream.groups.classic.group import ClassicGroup
    from millstream.groups.classic.member import ClassicMember
    from millstream.protocol.errors import ErrorCode
    from millstream.replicated import Record


class Step:
    """Collects records, replies and timers. Whatever takes a waiting request off a member answers it here."""

    def __init__(self, config: ClassicConfig, now_ms: int) -> None:
        self.config = config
        self.now_ms = now_ms
        self.records: list[Record] = []
        self._replies: list[Reply] = []
        self._timers: list[Schedule | Cancel] = []

    def schedule(self, key: Hashable, delay_ms: int) -> None:
        self._timers.append(Schedule(key, delay_ms))

    def cancel(self, key: Hashable) -> None:
        self._timers.append(Cancel(key))

    def keep_session(self, group: ClassicGroup, member: ClassicMember) -> None:
        self._timers.append(group.keep_session(member))

    def answer_join(self, member: ClassicMember, response: Callable[[int], Any]) -> None:
        """Answer the member's JoinGroup, if one waits, with what `response` makes for its version."""
        waiting, member.join = member.join, None
        if waiting is not None:
            self._replies.append(Reply(waiting.token, response(waiting.version)))

    def refuse_join(self, member: ClassicMember, code: ErrorCode, member_id: str = "") -> None:
        self.answer_join(member, lambda version: join_answer(version, member_id=member_id, error=code))

    def answer_sync(self, member: ClassicMember, response: Any) -> bool:
        """Answer the member's SyncGroup, if one waits; whether one did."""
        waiting, member.sync = member.sync, None
        if waiting is None:
            return False
        self._replies.append(Reply(waiting.token, response))
        return True

    def refuse_sync(self, member: ClassicMember, code: ErrorCode) -> bool:
        return self.answer_sync(member, sync_answer(error=code))

    def decision(
        self, response: Any = None, *, undo: Callable[[ErrorCode], Decision[Any]] | None = None
    ) -> Decision[Any]:
        """All of it. If records cannot be written, replies and timers stand, unless `undo` knows better."""
        replies, timers = tuple(self._replies), tuple(self._timers)
        if self.records and undo is None:
            undo = _still(Decision(replies=replies, timers=timers))
        return Decision(records=tuple(self.records), response=response, replies=replies, timers=timers, undo=undo)


def _still(decision: Decision[Any]) -> Callable[[ErrorCode], Decision[Any]]:
    """What was not to be stored was said all the same: soft state has moved on, as in Kafka."""
    return lambda _: decision
