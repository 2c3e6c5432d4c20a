"""Changing a partition: who leads, who is in sync, who is eligible, and when a move is complete.

Every decision that changes a partition describes what it wants as a `Wanted`, and `change_partition` works out the one
PartitionChangeRecord that gets there, or None where nothing changes. The rules are Kafka's:

- Elections. A leader must be active and in the ISR, or in the set of eligible leader replicas (KIP-966). A preferred
  election prefers the first replica; any election keeps the present leader if it may stay; an unclean one, as the
  last resort, takes any active replica, which loses records: it starts RECOVERING and alone in sync.
- Eligible leader replicas are kept only where that feature is finalized. Without them the ISR is never emptied: the
  last replica in sync stays in it, leaderless, until it is back.
- The leader's epoch rises when a leader is named, and also, with the same leader, when a replica is taken out: the
  epoch fences its fetches. Before metadata.version 3.6 every shrinking of the ISR did that.
- A move adds the new replicas first. Once all that will stay are in sync, those that leave are taken out, in the
  same record that noticed it.
- `directories` goes with `replicas`: a replica keeps its directory, a new one gets its broker's.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from millstream.metadata.assignments import directory_for_new_replica
from millstream.metadata.image import BROKER_CONFIG, CLUSTER_DEFAULT, NO_LEADER, RECOVERING
from millstream.metadata.leadership import eligible_leaders_enabled
from millstream.protocol.messages.metadata.partition_change import PartitionChangeRecord

if TYPE_CHECKING:
    from millstream.metadata.image import MetadataImage, PartitionImage, TopicImage
    from millstream.protocol.uuid import Uuid

# metadata.version 3.6-IV0, from which a smaller ISR alone no longer starts a leader epoch (KAFKA-15021).
NO_EPOCH_FOR_SMALLER_ISR = 12
MIN_INSYNC_REPLICAS = "min.insync.replicas"


class Election(Enum):
    """How far an election may go."""

    NONE_UNLESS_NEEDED = "any in sync"
    PREFERRED = "preferred"
    UNCLEAN = "unclean"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a partition should become; None leaves a field as it is."""

    isr: tuple[int, ...] | None = None
    replicas: tuple[int, ...] | None = None
    adding: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    election: Election = Election.NONE_UNLESS_NEEDED


def has_preferred_leader(partition: PartitionImage) -> bool:
    return partition.leader == partition.replicas[0]


def change_partition(
    image: MetadataImage, topic: TopicImage, partition_id: int, wanted: Wanted
) -> PartitionChangeRecord | None:
    """The record that makes the partition what is wanted, as far as the rules allow."""
    before = topic.partitions[partition_id]
    draft = _Draft(image, before, wanted)
    draft.complete_move()
    draft.elect(wanted.election)
    if eligible_leaders_enabled(image):
        draft.update_eligible(min_isr_of(image, topic.name))
    return draft.record(topic.id, partition_id)


def min_isr_of(image: MetadataImage, topic: str) -> int:
    """min.insync.replicas of a topic. With this feature on, its default stands in the metadata log, not in files."""
    default = image.config(BROKER_CONFIG, CLUSTER_DEFAULT).get(MIN_INSYNC_REPLICAS, "1")
    return int(image.topic_config(topic).get(MIN_INSYNC_REPLICAS, default))


class _Draft:
    """A partition while a change is worked out."""

    def __init__(self, image: MetadataImage, before: PartitionImage, wanted: Wanted) -> None:
        self._image = image
        self._before = before
        self.replicas = before.replicas if wanted.replicas is None else wanted.replicas
        self.adding = before.adding if wanted.adding is None else wanted.adding
        self.removing = before.removing if wanted.removing is None else wanted.removing
        isr = before.isr if wanted.isr is None else wanted.isr
        self.isr = tuple(replica for replica in isr if replica in self.replicas) or isr
        self.leader = before.leader
        self.elr = before.elr
        self.last_known_elr = before.last_known_elr
        self.recovery_state = before.leader_recovery_state

    def _active(self, replica: int) -> bool:
        broker = self._image.brokers.get(replica)
        return broker is not None and broker.active

    def _may_lead(self, replica: int) -> bool:
        return replica in self.replicas and (replica in self.isr or replica in self.elr) and self._active(replica)

    def complete_move(self) -> None:
        """Take the leaving replicas out, once everybody who stays is in sync and the ISR would not become empty."""
        if not self.adding and not self.removing:
            return
        staying = tuple(replica for replica in self.replicas if replica not in self.removing)
        in_sync = tuple(replica for replica in self.isr if replica in staying)
        if not in_sync or any(replica not in self.isr for replica in self.adding):
            return
        self.replicas, self.isr = staying, in_sync
        self.adding = self.removing = ()

    def elect(self, election: Election) -> None:
        preferred = self.replicas[0]
        if election is Election.PREFERRED and self._may_lead(preferred):
            self._lead(preferred)
            return
        if self._may_lead(self.leader):
            return
        heir = next((replica for replica in self.replicas if replica in self.isr and self._may_lead(replica)), None)
        if heir is None:
            heir = next((replica for replica in self.replicas if self._may_lead(replica)), None)
        if heir is not None:
            self._lead(heir)
            return
        if not self.isr and not self.elr and len(self.last_known_elr) == 1 and self._active(self.last_known_elr[0]):
            # Nobody is known to hold everything any more; the last who did is the best there is (KIP-966).
            self.leader, self.isr, self.recovery_state = self.last_known_elr[0], self.last_known_elr, RECOVERING
            return
        if election is Election.UNCLEAN:
            survivor = next((replica for replica in self.replicas if self._active(replica)), None)
            if survivor is not None:
                self.leader, self.isr, self.recovery_state = survivor, (survivor,), RECOVERING
                return
        self.leader = NO_LEADER

    def _lead(self, replica: int) -> None:
        self.leader = replica
        if replica not in self.isr:
            # An eligible leader holds everything that was committed, but nobody else is known to.
            self.isr = (replica,)

    def update_eligible(self, min_isr: int) -> None:
        """KIP-966: below min ISR, those who left the ISR last still hold all that was acknowledged to acks=all."""
        if len(self.isr) >= min(min_isr, len(self.replicas)):
            self.elr = self.last_known_elr = ()
            return
        eligible = dict.fromkeys((*self._before.elr, *self._before.isr))
        self.elr = tuple(each for each in eligible if each not in self.isr and each in self.replicas)
        known = dict.fromkeys((*self._before.last_known_elr, *self._before.elr))
        self.last_known_elr = tuple(each for each in known if each not in self.isr and each not in self.elr)

    def _directories(self) -> tuple[Uuid, ...]:
        before = dict(zip(self._before.replicas, self._before.directories, strict=False))
        return tuple(
            before[replica] if replica in before else directory_for_new_replica(self._image, replica)
            for replica in self.replicas
        )

    def _somebody_was_taken_out(self) -> bool:
        if any(replica not in self.replicas for replica in self._before.replicas):
            return True
        return self._image.metadata_version < NO_EPOCH_FOR_SMALLER_ISR and any(
            replica not in self.isr for replica in self._before.isr
        )

    def record(self, topic_id: Uuid, partition_id: int) -> PartitionChangeRecord | None:
        before = self._before
        change = PartitionChangeRecord(partition_id=partition_id, topic_id=topic_id)
        if self.isr != before.isr:
            change.isr = list(self.isr)
        if self.leader != before.leader or self._somebody_was_taken_out():
            change.leader = self.leader
        if self.replicas != before.replicas:
            change.replicas = list(self.replicas)
            change.directories = list(self._directories())
        if self.removing != before.removing:
            change.removing_replicas = list(self.removing)
        if self.adding != before.adding:
            change.adding_replicas = list(self.adding)
        if self.recovery_state != before.leader_recovery_state:
            change.leader_recovery_state = self.recovery_state
        if self.elr != before.elr:
            change.eligible_leader_replicas = list(self.elr)
        if self.last_known_elr != before.last_known_elr:
            change.last_known_elr = list(self.last_known_elr)
        return None if change == PartitionChangeRecord(partition_id=partition_id, topic_id=topic_id) else change
