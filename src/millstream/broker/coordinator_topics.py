"""The coordinators' own topics: made when somebody first asks for their coordinator, as in Kafka.

Kafka makes the topic behind its answer and lets the client ask again; here the answer waits for the commit and can name
the coordinator at once (as Metadata does for topics that it makes).

How many replicas: what the settings say, but no more than there are brokers. Kafka refuses to make the topic with fewer
brokers than `offsets.topic.replication.factor`, so that a cluster whose first broker is up does not end up with
one replica for ever. The price is that its defaults (3) make no group work on a single node. Here a lone node must
work as it comes, and a topic that was made too small can be given replicas later (AlterPartitionReassignments).
What counts are the registered brokers, also those that are down, and where nodes are both, all who vote: a cluster of
three that is still starting gets three replicas, or an error that passes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.forwarding import create_topics
from millstream.metadata.automatic_topics import automatic_topic
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.create_topics import CreateTopicsRequest
from millstream.runtime.logs import Logger

if TYPE_CHECKING:
    from millstream.broker.node import Node

_log = Logger("millstream.coordinator")


async def create_coordinator_topic(node: Node, name: str) -> None:
    """Make the topic unless it is there. A failure is logged; who needs the topic sees that it is missing."""
    topic = automatic_topic(name, node.settings)
    topic.replication_factor = min(topic.replication_factor, _brokers_to_come(node))
    created = await create_topics(node, CreateTopicsRequest(topics=[topic]))
    result = created.topics[0]
    if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
        _log.warning(
            "a coordinator's topic could not be made",
            topic=name,
            error=ErrorCode(result.error_code).name,
            reason=result.error_message,
        )


def _brokers_to_come(node: Node) -> int:
    brokers = set(node.image.brokers)
    voters = set(node.controller.log.quorum.voters.ids())
    return max(1, len(brokers | voters if brokers & voters else brokers))
