"""Changing a partition: who leads, who is in sync, who is eligible, and when a move is complete.

Every decision that changes a partition describes what it wants as a `Wanted`, and `change_partition` works out the one
PartitionChangeRecord that gets there, or None where nothing changes. The rules, and the very fields that change, are
Apache Kafka's (observed in its log, see tests/kafka_directory), in its order: a move is completed, eligible leaders are
found, then a leader is elected.

- Elections. A leader must be active, with its log directory online, and in the ISR; if that is empty, in the set of
  eligible leader replicas (KIP-966). A preferred election prefers the first replica; any election keeps the present
  leader if it may stay. If nobody is left but the last leader known, that one is elected; an unclean election, as the
  last resort, takes any active replica. Both may lose records: such a leader starts RECOVERING and alone in sync.
- Eligible leader replicas are kept only where that feature is finalized: below min ISR, those who left the ISR last
  still hold all that was acknowledged to acks=all. Without the feature the ISR is never emptied: the last replica in
  sync stays in it, leaderless, until it is back, since nobody else could be elected without loss.
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
from millstream.protocol.messages.metadata.partition_change import PartitionChangeRecord
from millstream.protocol.uuid import DIRECTORY_LOST, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED

if TYPE_CHECKING:
    from millstream.metadata.image import MetadataImage, PartitionImage, TopicImage
    from millstream.protocol.uuid import Uuid

# metadata.version 3.6-IV0, from which a smaller ISR alone no longer starts a leader epoch (KAFKA-15021).
NO_EPOCH_FOR_SMALLER_ISR = 12
ELIGIBLE_LEADER_REPLICAS = "eligible.leader.replicas.version"
MIN_INSYNC_REPLICAS = "min.insync.replicas"
UNCLEAN_LEADER_ELECTION = "unclean.leader.election.enable"


class Election(Enum):
    """How far an election may go."""

    NONE_UNLESS_NEEDED = "any in sync"
    PREFERRED = "preferred"
    UNCLEAN = "unclean"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a partition should become; None leaves a field as it is.

    `without` is a broker that is about to go: it leaves the ISR and may not lead. `doubtful` came back from an unclean
    shutdown and may have lost what it had not synced, so it is no longer in sync, nor eligible.
    """

    isr: tuple[int, ...] | None = None
    replicas: tuple[int, ...] | None = None
    adding: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    recovery_state: int | None = None
    without: int | None = None
    doubtful: int | None = None
    election: Election = Election.NONE_UNLESS_NEEDED


def has_preferred_leader(partition: PartitionImage) -> bool:
    return partition.leader == partition.replicas[0]


def eligible_leaders_enabled(image: MetadataImage) -> bool:
    return image.features.get(ELIGIBLE_LEADER_REPLICAS, 0) > 0


def change_partition(
    image: MetadataImage, topic: TopicImage, partition_id: int, wanted: Wanted
) -> PartitionChangeRecord | None:
    """The record that makes the partition what is wanted, as far as the rules allow."""
    draft = _Draft(image, topic.partitions[partition_id], wanted)
    draft.complete_move()
    if draft.with_eligible:
        draft.find_eligible(min_isr_of(image, topic.name))
    draft.elect(wanted.election)
    return draft.record(topic.id, partition_id)


def min_isr_of(image: MetadataImage, topic: str) -> int:
    """min.insync.replicas of a topic. With this feature on, its default stands in the metadata log, not in files."""
    return int(_effective_config(image, topic, MIN_INSYNC_REPLICAS, "1"))


def unclean_election_allowed(image: MetadataImage, topic: str) -> bool:
    """Whether the topic's owner prefers any leader at all to waiting for one that has everything."""
    default = "true" if image.unclean_elections else "false"
    return _effective_config(image, topic, UNCLEAN_LEADER_ELECTION, default) == "true"


def _effective_config(image: MetadataImage, topic: str, name: str, default: str) -> str:
    value = image.topic_config(topic).get(name)
    return image.config(BROKER_CONFIG, CLUSTER_DEFAULT).get(name, default) if value is None else value


class _Draft:
    """A partition while a change is worked out."""

    def __init__(self, image: MetadataImage, before: PartitionImage, wanted: Wanted) -> None:
        self._image = image
        self._before = before
        self._without = wanted.without
        self._was_unclean = False
        self.with_eligible = eligible_leaders_enabled(image)
        self.replicas = before.replicas if wanted.replicas is None else wanted.replicas
        self.adding = before.adding if wanted.adding is None else wanted.adding
        self.removing = before.removing if wanted.removing is None else wanted.removing
        isr = before.isr if wanted.isr is None else wanted.isr
        isr = tuple(replica for replica in isr if replica in self.replicas) or isr
        out = (wanted.without, wanted.doubtful) if self.with_eligible else (wanted.without,)
        self.isr = tuple(replica for replica in isr if replica not in out)
        self._doubtful = wanted.doubtful
        self.leader = before.leader
        # Nobody has kept up what is left from before the feature was switched off.
        self.elr = before.elr if self.with_eligible else ()
        self.last_known_elr = before.last_known_elr
        self.recovery_state = before.leader_recovery_state if wanted.recovery_state is None else wanted.recovery_state

    # Who may lead

    def _acceptable(self, replica: int) -> bool:
        broker = self._image.brokers.get(replica)
        if broker is None or not broker.active or replica == self._without or replica not in self.replicas:
            return False
        if replica not in self._before.replicas or not self._before.directories:
            return True
        directory = self._before.directory_of(replica)
        if directory in (DIRECTORY_UNASSIGNED, DIRECTORY_MIGRATING):
            return True
        # A broker that registered before brokers told their directories is taken to have them all.
        return directory != DIRECTORY_LOST and (not broker.log_dirs or directory in broker.log_dirs)

    def _may_lead(self, replica: int) -> bool:
        return replica in (self.isr or self.elr) and self._acceptable(replica)

    # The steps, in their order

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

    def find_eligible(self, min_isr: int) -> None:
        """KIP-966. Numbers in ascending order, as Kafka's sets of them come out."""
        if len(self.isr) >= min(min_isr, len(self.replicas)):
            self.elr = ()
            return
        candidates = {*self._before.elr, *self._before.isr}
        out = (*self.isr, self._doubtful)
        self.elr = tuple(each for each in sorted(candidates) if each not in out and each in self.replicas)

    def elect(self, election: Election) -> None:
        leader, unclean = self._winner(election)
        if leader == self.leader:
            return
        self.leader = leader
        if unclean:
            # Nobody else is known to hold what this leader holds, and it may have lost records itself.
            self._was_unclean = True
            self.isr, self.recovery_state = (leader,), RECOVERING
        elif leader != NO_LEADER and leader not in self.isr:
            # An eligible leader holds everything that was committed, but nobody else is known to.
            self.isr = (leader,)
            self.elr = tuple(each for each in self.elr if each != leader)

    def _winner(self, election: Election) -> tuple[int, bool]:
        """(the leader, whether it may have lost records)"""
        preferred = self.replicas[0]
        if election is Election.PREFERRED and self._may_lead(preferred):
            return preferred, False
        if self._may_lead(self.leader):
            return self.leader, False
        heir = next((replica for replica in self.replicas if self._may_lead(replica)), None)
        if heir is not None:
            return heir, False
        last = self._before.last_known_elr
        if self.with_eligible and not self.isr and not self.elr and len(last) == 1 and self._acceptable(last[0]):
            # Nobody is known to hold everything any more; the last who did is the best there is (KIP-966).
            return last[0], True
        if election is Election.UNCLEAN:
            survivor = next((replica for replica in self.replicas if self._acceptable(replica)), None)
            if survivor is not None:
                return survivor, True
        return NO_LEADER, False

    # The record

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

    def _settle_eligible(self, *, names_leader: bool) -> None:
        if self._was_unclean or not self.with_eligible:
            self.elr = ()
        if self.with_eligible and self._doubtful in self._before.isr and not (self.isr or self.elr):
            # Waited for as the last in sync, when eligible leaders were not kept yet: still the best there is.
            self.last_known_elr = self.last_known_elr or (self._doubtful,)
        if not self.with_eligible or not names_leader:
            return
        if self.leader != NO_LEADER:
            self.last_known_elr = ()
        elif not self.last_known_elr:
            # The first time that the partition is leaderless: this is who to wait for, should nobody be eligible.
            self.last_known_elr = (self._before.leader,)

    def record(self, topic_id: Uuid, partition_id: int) -> PartitionChangeRecord | None:
        before = self._before
        names_leader = self.leader != before.leader or self._somebody_was_taken_out()
        self._settle_eligible(names_leader=names_leader)
        change = PartitionChangeRecord(partition_id=partition_id, topic_id=topic_id)
        if self.isr != before.isr and (self.isr or self.with_eligible):
            change.isr = list(self.isr)
        if names_leader:
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
