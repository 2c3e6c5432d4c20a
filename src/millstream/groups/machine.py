"""The group coordinator's replicated machine: the groups and offsets of one partition of `__consumer_offsets`.

`decide_*` functions live with what they decide on and take the machine as their first argument:

    groups/classic/    JoinGroup, SyncGroup, Heartbeat, LeaveGroup, …       decide_join(machine, request, …) -> Decision
    groups/consumer/   ConsumerGroupHeartbeat (KIP-848)
    groups/offsets/    OffsetCommit, OffsetFetch, OffsetDelete, TxnOffsetCommit, expiry

This module is where a record finds the code that applies it (`_APPLY`, by the type of its key) and a timer finds its
owner (by the first item of its key: a group's type name with the group's id behind it, or "offsets").

Settings and the metadata image are asked for when they are needed: both change while the machine lives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.groups.classic.replay import apply_group_metadata
from millstream.groups.consumer.gathering import decide_abandoned
from millstream.groups.consumer.patterns import TopicBirths
from millstream.groups.consumer.replay import CONSUMER_RECORDS
from millstream.groups.group import Group, SimpleGroup
from millstream.groups.offsets.delete import DELETED_TOPICS_TIMER, decide_topics_deleted
from millstream.groups.offsets.expiry import EXPIRY_TIMER, decide_expiry
from millstream.groups.offsets.store import CommittedOffsets
from millstream.metadata.image import GROUP_CONFIG
from millstream.protocol.messages.groups.group_metadata import GroupMetadataKey
from millstream.protocol.messages.groups.offset_commit import OffsetCommitKey
from millstream.replicated import Cancel, Decision, Schedule
from millstream.settings import OFFSETS_RETENTION_CHECK_INTERVAL_MS
from millstream.settings.declare import Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from millstream.groups.consumer.gathering import Gathering
    from millstream.groups.consumer.step import Lookup
    from millstream.groups.consumer.topic_hash import TopicHashes
    from millstream.metadata.image import MetadataImage, TopicImage
    from millstream.protocol.uuid import Uuid
    from millstream.settings.effective import Settings

# By the type of a record's key: what applies it. Offsets are apart, since they may belong to a transaction.
_APPLY: dict[type, Callable[[GroupMachine, Any, Any], None]] = {
    GroupMetadataKey: apply_group_metadata,
    **CONSUMER_RECORDS,
}


class GroupMachine:
    """Groups by id, and their offsets. Driven by `runtime/shard.py`."""

    def __init__(
        self,
        settings: Callable[[], Settings],
        image: Callable[[], MetadataImage],
        new_uuid: Callable[[], Uuid],
    ) -> None:
        self._settings = settings
        self._image = image
        self.new_uuid = new_uuid
        self._plain: tuple[Settings, Settings] | None = None
        # Groups that have, or had, members. Those that only have offsets are found by `group`, too.
        self.groups: dict[str, Group] = {}
        # Groups that offsets were committed for: they stay until they are deleted or expire, as in Kafka.
        self.simple_groups: dict[str, None] = {}
        self.offsets = CommittedOffsets()
        # Consumer groups share what was found out about topics; none of it is stored.
        self.topic_hashes: TopicHashes = {}
        self.topic_births = TopicBirths()
        self.lookups: dict[str, Lookup] = {}
        # Heartbeats that wait for their group's next target assignment.
        self.gathering: dict[str, Gathering] = {}
        # Groups that the expiry of offsets has not looked at yet in its present round.
        self.expiry_queue: list[str] = []
        # Topics that are gone, whose offsets are still being removed.
        self.deleted_topics: tuple[TopicImage, ...] = ()

    @property
    def settings(self) -> Settings:
        """The broker's settings as they are now."""
        return self._settings()

    @property
    def image(self) -> MetadataImage:
        """The newest committed metadata."""
        return self._image()

    def group_settings(self, group_id: str) -> Settings:
        """The settings of one group: its own (a GROUP config resource) before the broker's."""
        settings = self._settings()
        own = self._image().config(GROUP_CONFIG, group_id)
        if own:
            return settings.of(Scope.GROUP, own)
        # Groups without settings of their own share one object, made anew when the broker's change.
        if self._plain is None or self._plain[0] is not settings:
            self._plain = (settings, settings.of(Scope.GROUP, {}))
        return self._plain[1]

    # --- groups

    def group(self, group_id: str) -> Group | None:
        """The group, also one that has nothing but offsets."""
        known = self.groups.get(group_id)
        if known is None and group_id in self.simple_groups:
            return SimpleGroup(group_id)
        return known

    def forget_group(self, group_id: str) -> None:
        """Its tombstone was written."""
        self.groups.pop(group_id, None)
        if not self.offsets.knows(group_id):
            self.simple_groups.pop(group_id, None)

    def all_groups(self) -> Iterator[Group]:
        """Every group once: those with members or a past first, then those that only have offsets."""
        yield from self.groups.values()
        for group_id in self.simple_groups:
            if group_id not in self.groups:
                yield SimpleGroup(group_id)

    # --- what the shard drives

    def apply(self, key: Any, value: Any | None, *, transaction: tuple[int, int] | None, offset: int) -> None:
        """The only writer of what is stored."""
        kind = type(key)
        if kind is OffsetCommitKey:
            self.offsets.apply(key, value, transaction=transaction, offset=offset)
            if value is not None:
                self.simple_groups[key.group] = None
            return
        apply = _APPLY.get(kind)
        # Records of other releases' groups (streams, share) are left alone, as is the offset of a broker before 0.9.
        if apply is not None:
            apply(self, key, value)

    def end_transaction(self, producer_id: int, producer_epoch: int, *, committed: bool) -> None:
        self.offsets.end_transaction(producer_id, committed=committed)

    def loaded(self, now_ms: int) -> tuple[Schedule | Cancel, ...]:
        timers: list[Schedule | Cancel] = [Schedule(EXPIRY_TIMER, self.settings[OFFSETS_RETENTION_CHECK_INTERVAL_MS])]
        for group in self.groups.values():
            timers += group.loaded(self, now_ms)
        return tuple(timers)

    def on_timer(self, key: Hashable, now_ms: int) -> Decision[Any]:
        assert isinstance(key, tuple), f"{key!r} is no group coordinator's timer"
        if key == EXPIRY_TIMER:
            return decide_expiry(self, now_ms)
        if key == DELETED_TOPICS_TIMER:
            return decide_topics_deleted(self, self.deleted_topics)
        group = self.groups.get(key[1])
        # A timer may outlive its group, and a group that was converted is of another kind.
        if group is None or group.type_name != key[0]:
            self.lookups.pop(key[1], None)
            return decide_abandoned(self, key[1])
        return group.on_timer(self, key, now_ms)
