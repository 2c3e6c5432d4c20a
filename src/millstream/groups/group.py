"""What every kind of group can tell, whatever its protocol; and the group that never had a member.

Offsets are committed, fetched, deleted and expired by the same code for all kinds of group (`groups/offsets`): this is
what that code asks. ListGroups and DeleteGroups ask it too.

Kafka keeps an empty classic group for whoever commits offsets without ever joining: a *simple group*. It is not in the
log itself. It comes with the first offset, and goes when somebody deletes the group or its last offset expires; that
its offsets were deleted, or their topics, is not enough. `GroupMachine.group` makes a `SimpleGroup` of it on the fly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from millstream.protocol.errors import UnknownMember
from millstream.protocol.messages.groups.group_metadata import GroupMetadataKey
from millstream.protocol.messages.list_groups import ListedGroup
from millstream.replicated import Decision, Record

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.groups.machine import GroupMachine
    from millstream.protocol.uuid import Uuid
    from millstream.replicated import Cancel, Schedule

    # Refuses (by a BrokerError) the commit of one partition: its topic's name, its topic's id, its index.
    CheckPartition = Callable[[str, Uuid, int], None]

CLASSIC = "classic"
CONSUMER = "consumer"
NO_GENERATION = -1


class OffsetExpiry(NamedTuple):
    """From when on a group's offsets age: from one moment for all of them, or each from its commit."""

    since_ms: int | None = None


class Group(Protocol):
    """A group of any kind."""

    @property
    def id(self) -> str: ...

    @property
    def type_name(self) -> str:
        """CLASSIC or CONSUMER; also the first item of its timers' keys."""

    def state_name(self, now_ms: int) -> str:
        """As Kafka spells it: Empty, Stable, PreparingRebalance, …"""

    @property
    def is_empty(self) -> bool:
        """No member."""

    def listed(self, now_ms: int) -> ListedGroup:
        """Its row in ListGroups."""

    # --- offsets

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, *, transactional: bool, version: int
    ) -> CheckPartition | None:
        """Refuse (by a BrokerError) a commit that does not come from a current member.

        `version` is the request's. What is returned may refuse single partitions (KIP-848: not the member's own).
        """

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Refuse a fetch of offsets by somebody who is not, or no longer, what they say (version 9 and later)."""

    def check_offset_delete(self) -> None:
        """Refuse OffsetDelete while the group could not know what it reads."""

    def is_subscribed_to(self, topic: str) -> bool: ...

    def offset_expiry(self) -> OffsetExpiry | None:
        """None: offsets do not expire as the group is now."""

    def committed(self, member_id: str) -> tuple[Schedule | Cancel, ...]:
        """A member's commit was accepted; a classic member's session goes on by it."""

    # --- life and end

    def check_delete(self) -> None:
        """Refuse DeleteGroups, above all while there are members."""

    def tombstones(self) -> tuple[Record, ...]:
        """What removes the group from the log (its offsets apart)."""

    def loaded(self, machine: GroupMachine, now_ms: int) -> tuple[Schedule | Cancel, ...]:
        """The log was replayed: the timers that the group needs."""

    def on_timer(self, machine: GroupMachine, key: tuple[Any, ...], now_ms: int) -> Decision[Any]:
        """A timer whose key is (type_name, id, …)."""


class SimpleGroup:
    """A group that has offsets and nothing else. It is told to clients as an empty classic group."""

    __slots__ = ("id",)

    type_name = CLASSIC
    is_empty = True

    def __init__(self, group_id: str) -> None:
        self.id = group_id

    def state_name(self, now_ms: int) -> str:
        return "Empty"

    def listed(self, now_ms: int) -> ListedGroup:
        return ListedGroup(
            group_id=self.id, protocol_type="", group_state=self.state_name(now_ms), group_type=self.type_name
        )

    def check_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation: int,
        *,
        transactional: bool,
        version: int,
    ) -> CheckPartition | None:
        if generation >= 0:
            raise UnknownMember(f"group '{self.id}' has no members")
        return None

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Anybody may, as from any classic group."""

    def check_offset_delete(self) -> None:
        """Nobody reads with this group."""

    def is_subscribed_to(self, topic: str) -> bool:
        return False

    def offset_expiry(self) -> OffsetExpiry | None:
        return OffsetExpiry()

    def committed(self, member_id: str) -> tuple[Schedule | Cancel, ...]:
        return ()

    def check_delete(self) -> None:
        """There is nobody to harm."""

    def tombstones(self) -> tuple[Record, ...]:
        # As Kafka: a group of this id may be in the log from a time when it had members.
        return (Record(GroupMetadataKey(group=self.id), None),)

    def loaded(self, machine: GroupMachine, now_ms: int) -> tuple[Schedule | Cancel, ...]:
        return ()

    def on_timer(self, machine: GroupMachine, key: tuple[Any, ...], now_ms: int) -> Decision[Any]:
        return Decision()
