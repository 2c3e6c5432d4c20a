"""A node's way into the cluster and out of it: registration, unfencing, controlled shutdown, fencing.

Each step is a decision whose records, in content and order, are those of Apache Kafka's controller. A broker's epoch is
the offset at which its registration begins, so a later registration always has a higher one.

Kafka's controller makes a broker whose predecessor was not fenced wait until that one's session has run out. Who starts
again on a directory that it has locked knows that the predecessor is dead; `decide_register_broker` fences it at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.metadata import metadata_version as levels
from millstream.metadata.decision import Decision
from millstream.metadata.delta import apply
from millstream.metadata.leadership import (
    changes_after_unclean_shutdown,
    changes_when_broker_leaves,
    changes_when_broker_returns,
)
from millstream.metadata.record_types import BrokerRegistrationChangeRecord, ProducerIdsRecord
from millstream.metadata.snapshot import register_broker_record, register_controller_record
from millstream.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from millstream.metadata.image import Broker, Controller, MetadataImage
    from millstream.metadata.record_types import MetadataRecord

PRODUCER_IDS_PER_BLOCK = 1000
_FENCE = 1
_UNFENCE = -1


class BrokerIdNotRegistered(BrokerError, code=ErrorCode.BROKER_ID_NOT_REGISTERED):
    """The broker is not registered."""


class StaleBrokerEpoch(BrokerError, code=ErrorCode.STALE_BROKER_EPOCH):
    """The broker has registered again since."""


def decide_register_controller(image: MetadataImage, controller: Controller) -> Decision[None]:
    if image.metadata_version < levels.CONTROLLER_REGISTRATION:
        return Decision((), None)
    return Decision((register_controller_record(controller),), None)


def decide_register_broker(image: MetadataImage, broker: Broker, *, clean_shutdown_epoch: int) -> Decision[int]:
    """Register a broker, fenced, and answer its new epoch.

    `clean_shutdown_epoch` is the epoch at which the broker's last run ended cleanly, -1 if it did not.
    """
    records: list[MetadataRecord] = []
    predecessor = image.brokers.get(broker.id)
    state = image
    if predecessor is not None and not predecessor.fenced:
        records += _fence(state, predecessor)
        state, _ = apply(image, records)
    # One that is not registered may have been, before its disk was replaced: whatever it was eligible for is in doubt.
    if predecessor is None or clean_shutdown_epoch != predecessor.epoch:
        records += changes_after_unclean_shutdown(state, broker.id)
    epoch = image.offset + 1
    registration = register_broker_record(broker, image.metadata_version)
    registration.broker_epoch = epoch
    registration.fenced = True
    registration.in_controlled_shutdown = False
    return Decision((*records, registration), epoch)


def decide_unfence_broker(image: MetadataImage, broker_id: int, epoch: int) -> Decision[None]:
    """The broker has caught up: it may lead, and takes over what waits for it."""
    broker = registered(image, broker_id, epoch)
    if not broker.fenced:
        return Decision((), None)
    change = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=epoch, fenced=_UNFENCE)
    after, _ = apply(image, (change,))
    return Decision((change, *changes_when_broker_returns(after, broker_id)), None)


def decide_join(image: MetadataImage, broker: Broker, *, clean_shutdown_epoch: int) -> Decision[int]:
    """Register and unfence in one step, for a broker that has loaded its logs before it asks; answers its epoch."""
    registered = decide_register_broker(image, broker, clean_shutdown_epoch=clean_shutdown_epoch)
    after, _ = apply(image, registered.records)
    unfenced = decide_unfence_broker(after, broker.id, registered.response)
    return Decision((*registered.records, *unfenced.records), registered.response)


def decide_controlled_shutdown(image: MetadataImage, broker_id: int, epoch: int) -> Decision[None]:
    """The broker wants to stop: others take over its partitions first."""
    broker = registered(image, broker_id, epoch)
    if not broker.active:
        return Decision((), None)
    change = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=epoch, in_controlled_shutdown=1)
    after, _ = apply(image, (change,))
    return Decision((change, *changes_when_broker_leaves(after, broker_id)), None)


def decide_leave(image: MetadataImage, broker_id: int, epoch: int) -> Decision[None]:
    """Controlled shutdown and fence in one step, for a broker that serves nothing any more."""
    left = decide_controlled_shutdown(image, broker_id, epoch)
    after, _ = apply(image, left.records)
    return Decision((*left.records, *decide_fence_broker(after, broker_id, epoch).records), None)


def decide_fence_broker(image: MetadataImage, broker_id: int, epoch: int) -> Decision[None]:
    """The broker is gone, or done with its controlled shutdown."""
    broker = registered(image, broker_id, epoch)
    return Decision((), None) if broker.fenced else Decision(tuple(_fence(image, broker)), None)


def decide_allocate_producer_ids(image: MetadataImage, broker_id: int, epoch: int) -> Decision[range]:
    """A block of producer ids that nobody had before and nobody gets again."""
    registered(image, broker_id, epoch)
    block = range(image.next_producer_id, image.next_producer_id + PRODUCER_IDS_PER_BLOCK)
    record = ProducerIdsRecord(broker_id=broker_id, broker_epoch=epoch, next_producer_id=block.stop)
    return Decision((record,), block)


def registered(image: MetadataImage, broker_id: int, epoch: int) -> Broker:
    """The broker, if it is registered at that very epoch."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise BrokerIdNotRegistered(f"Broker {broker_id} is not registered.")
    if broker.epoch != epoch:
        raise StaleBrokerEpoch(f"Broker {broker_id} is registered at epoch {broker.epoch}, and not {epoch}.")
    return broker


def _fence(image: MetadataImage, broker: Broker) -> list[MetadataRecord]:
    # A broker that shut down in a controlled way has left its partitions already: only the fence remains.
    change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=_FENCE)
    return [*changes_when_broker_leaves(image, broker.id), change]
