"""UnregisterBroker: the cluster forgets a broker that will not come back.

Its replicas stay assigned to it until somebody moves them, but it leads nothing and leaves its ISRs, by the same rules
as a broker that is fenced.

A broker that is active is refused. Apache Kafka forgets it at once, and its partitions stay without a leader until it
is restarted; nobody can want that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.metadata.broker_lifecycle import BrokerIdNotRegistered
from millstream.metadata.decision import Decision
from millstream.metadata.leadership import changes_when_broker_leaves
from millstream.protocol.errors import InvalidRequest
from millstream.protocol.messages.metadata.unregister_broker import UnregisterBrokerRecord
from millstream.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

if TYPE_CHECKING:
    from millstream.metadata.image import MetadataImage


def decide_unregister_broker(
    image: MetadataImage, request: UnregisterBrokerRequest
) -> Decision[UnregisterBrokerResponse]:
    """Hand over what the broker leads, take it out of its ISRs, and remove its registration."""
    broker = image.brokers.get(request.broker_id)
    if broker is None:
        raise BrokerIdNotRegistered(f"No broker {request.broker_id} is registered.")
    if not broker.fenced:
        raise InvalidRequest(f"Broker {broker.id} is active; stop it before it is unregistered.")
    leaves = changes_when_broker_leaves(image, broker.id)
    gone = UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    return Decision((*leaves, gone), UnregisterBrokerResponse(error_message=None))
