"""One member of a consumer group: what it said of itself, and how far it is with its assignment.

Members never change: a new one takes the place of the old, so what changed can be told by comparing the two.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import msgspec

from millstream.groups.consumer.partitions import NOTHING_OWNED, Owned, owned_from_record, owned_to_record
from millstream.protocol.messages.groups.consumer_group_current_member_assignment import (
    ConsumerGroupCurrentMemberAssignmentValue,
)
from millstream.protocol.messages.groups.consumer_group_member_metadata import (
    ClassicMemberMetadata,
    ConsumerGroupMemberMetadataValue,
)

if TYPE_CHECKING:
    from millstream.protocol.messages.groups.consumer_group_member_metadata import ClassicProtocol

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2


class MemberState(IntEnum):
    """How far a member is; the numbers are those of the log."""

    STABLE = 0
    # It was told to let go of partitions, and has not said yet that it did.
    UNREVOKED_PARTITIONS = 1
    # Some of its partitions have not been let go by their former owners.
    UNRELEASED_PARTITIONS = 2
    # A newer release wrote a state that is not known here.
    UNKNOWN = 127

    @classmethod
    def _missing_(cls, _value: object) -> MemberState:
        return cls.UNKNOWN


class ConsumerMember(msgspec.Struct, frozen=True, kw_only=True):
    """A member. The first half is what it said, the second half what the group decided."""

    id: str
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    # A pattern of topics in RE2's syntax; empty for none.
    pattern: str = ""
    assignor: str | None = None
    # What it said by JoinGroup; None for a member of the new protocol.
    classic: ClassicMemberMetadata | None = None

    epoch: int = 0
    # The epoch before, in case that the answer which told the newer one was lost.
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Owned = NOTHING_OWNED
    # Told to let go of, and maybe still being read.
    revoking: Owned = NOTHING_OWNED

    def but(self, **changes: object) -> ConsumerMember:
        """This member, changed."""
        return msgspec.structs.replace(self, **changes)

    @property
    def is_classic(self) -> bool:
        return self.classic is not None

    @property
    def classic_protocols(self) -> list[ClassicProtocol]:
        """In the order of the member's preference; never empty for a classic member."""
        assert self.classic is not None, "only classic members have protocols"
        return self.classic.supported_protocols

    def is_reconciled_to(self, epoch: int) -> bool:
        """Whether it has all that the target assignment of this epoch gives to it, and nothing else."""
        return self.state is MemberState.STABLE and self.epoch == epoch

    # --- the log

    def described(self, value: ConsumerGroupMemberMetadataValue) -> ConsumerMember:
        """With what it says of itself taken from the log."""
        return self.but(
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=frozenset(value.subscribed_topic_names),
            pattern=value.subscribed_topic_regex or "",
            assignor=value.server_assignor,
            classic=value.classic_member_metadata,
        )

    def metadata_value(self) -> ConsumerGroupMemberMetadataValue:
        return ConsumerGroupMemberMetadataValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=sorted(self.topics),
            subscribed_topic_regex=self.pattern,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            server_assignor=self.assignor,
            classic_member_metadata=self.classic,
        )

    def placed(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> ConsumerMember:
        """With its assignment taken from the log."""
        return self.but(
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState(value.state),
            assigned=owned_from_record(value.assigned_partitions, value.member_epoch),
            revoking=owned_from_record(value.partitions_pending_revocation, value.member_epoch),
        )

    def assignment_value(self) -> ConsumerGroupCurrentMemberAssignmentValue:
        return ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            state=self.state,
            assigned_partitions=owned_to_record(self.assigned),
            partitions_pending_revocation=owned_to_record(self.revoking),
        )

    def unplaced(self) -> ConsumerMember:
        """Without an assignment: its record was removed."""
        return self.but(epoch=-1, previous_epoch=-1, assigned=NOTHING_OWNED, revoking=NOTHING_OWNED)
