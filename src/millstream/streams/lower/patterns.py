"""Which topics a pattern stands for: those that are there when the application starts.

From there on the plan names them, and all that runs it knows names only. A topic that comes later is read after the
next start, from its beginning: a query's tasks, its changelogs and what is joined have as many partitions as were
counted in the beginning. Kafka Streams would find it while it runs, within `metadata.max.age.ms`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.client.streams_topics import is_internal
from millstream.streams.errors import TopologyError
from millstream.streams.lower.topics import owned_topics
from millstream.streams.plan.nodes import StreamSource
from millstream.streams.plan.plan import Plan, matches, topics_read

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.client.client import Client
    from millstream.streams.plan.nodes import AnyNode


def has_patterns(plan: Plan) -> bool:
    return any(isinstance(node, StreamSource) and node.pattern is not None for node in plan.nodes)


async def with_present_topics(client: Client, plan: Plan, application_id: str) -> Plan:
    """The plan with the topics that match now; internal ones match nothing, nor do the application's own, also those of
    an earlier topology."""
    found = await client.retrying(client.metadata.all_topics)
    own = {topic.name for topic in owned_topics(plan, application_id)}
    return with_topics(
        plan,
        [
            topic.name
            for topic in found
            if not topic.internal and topic.name not in own and not is_internal(application_id, topic.name)
        ],
    )


def with_topics(plan: Plan, present: Iterable[str]) -> Plan:
    """The plan with those of these topics that match; each pattern has one at least, and no topic has two readers."""
    names = sorted(present)
    nodes = tuple(_with_topics(node, names) for node in plan.nodes)
    readers: dict[str, str] = {}
    for node in nodes:
        for topic in topics_read(node):
            reader = readers.setdefault(topic, node.name)
            if reader != node.name:
                raise TopologyError(f"topic {topic!r} would be read twice, by {reader} and by {node.name}")
    return Plan(nodes, plan.added_stores)


def _with_topics(node: AnyNode, names: list[str]) -> AnyNode:
    if not isinstance(node, StreamSource) or node.pattern is None:
        return node
    topics = tuple(name for name in names if matches(node, name))
    if not topics:
        raise TopologyError(f"no topic matches {node.pattern.pattern!r}: create one before the application starts")
    return replace(node, topics=topics)
