"""The topics of an application: those that must exist, and those that it makes, with Kafka Streams' names and settings.

A repartition topic whose number of partitions nobody says gets that of the topics that it is joined with, and otherwise
that of the topics it is fed from. A changelog has a partition for each task. The changelog of a table that is read from
a topic is that topic, as with Kafka Streams' optimization on. One topic is our own: `<application id>-tasks-changelog`
holds what is in no store: how far each operator's stream time has come (which Kafka Streams forgets in a restart), what
`suppress` and joins hold back, and who refers to which key in a foreign-key join.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millstream.client.admin import raise_first
from millstream.client.admin.topics import NewTopic, create_partitions, create_topics
from millstream.client.errors import Refusal
from millstream.protocol.errors import ErrorCode
from millstream.streams.errors import NotCopartitioned, TopologyError
from millstream.streams.lower.subtopologies import global_tables, subtopologies
from millstream.streams.plan.nodes import (
    ForeignKeyJoin,
    Repartition,
    Sink,
    StreamJoin,
    StreamSource,
    StreamTableJoin,
    TableGroup,
    TableJoin,
    TableMerge,
    TableSource,
)
from millstream.streams.plan.physical import InternalTopic, internal_topics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.client.client import Client
    from millstream.streams.lower.subtopologies import SubTopology
    from millstream.streams.plan.nodes import AnyNode
    from millstream.streams.plan.plan import Plan
    from millstream.streams.settings import Settings

_MISSING: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
# Small ones, of topics that are kept for as long as it takes to read them.
_REPARTITION_SEGMENT_BYTES: Final = "52428800"
_FOR_EVER_MS: Final = -1


def tasks_topic(application_id: str) -> str:
    """Where tasks keep what is in no store."""
    return f"{application_id}-tasks-changelog"


def owned_topics(plan: Plan, application_id: str) -> list[InternalTopic]:
    """The topics that the application makes, and that a reset deletes."""
    parts = subtopologies(plan)
    used = {part.full_name(topic, application_id) for part in parts for topic in part.internal_topics}
    used |= {part.changelog(store, application_id) for part in parts for store in part.logged}
    made = [topic for topic in internal_topics(plan, application_id) if topic.name in used]
    return [*made, InternalTopic(tasks_topic(application_id), "compact", None)]


def partition_counts(plan: Plan, parts: Sequence[SubTopology], known: dict[str, int]) -> dict[str, int]:
    """How many partitions each topic of the plan has, internal ones by the plan's names; `known` are those that exist.

    What is joined must have as many; `check_copartitioned` says which topics don't.
    """
    counts = dict(known)
    counts.update({n.topic: n.partitions for n in plan.nodes if isinstance(n, Repartition) and n.partitions})
    joined = joined_topics(plan)
    while True:
        before = dict(counts)
        for part in parts:
            read = [counts[topic] for topic in part.topics if topic in counts]
            for topic in [*part.topics, *part.written] if read else ():
                beside = [counts[each] for group in joined if topic in group for each in group if each in counts]
                # Joined with it, or else fed from it.
                if beside or topic in part.written:
                    counts.setdefault(topic, max(beside or read))
        if counts == before:
            return counts


def joined_topics(plan: Plan) -> list[tuple[str, ...]]:
    """For each join, and each table of several streams, the topics whose equal keys have to meet in one task.

    Those are the topics that its two sides come from, and no others of its sub-topology: a stream that is merged with
    the result meets nobody.
    """
    found: list[tuple[str, ...]] = []
    fed: dict[str, tuple[str, ...]] = {}
    for node in plan.nodes:
        topics = _topics_of(node) or tuple(dict.fromkeys(topic for name in node.inputs for topic in fed[name]))
        match node:
            case StreamJoin() | StreamTableJoin() | TableJoin() | TableMerge():
                found.append(topics)
            case ForeignKeyJoin():
                # Questions go to where the other table is, and answers come to where this one is.
                this, other = node.inputs
                topics = (*fed[this], node.part("response topic"))
                found += [topics, (*fed[other], node.part("subscription topic"))]
        fed[node.name] = topics
    return found


def _topics_of(node: AnyNode) -> tuple[str, ...]:
    """Those that a node reads itself, so that what lies before it does not matter."""
    match node:
        case StreamSource():
            return node.topics
        case TableSource() | Repartition() | TableGroup():
            return (node.topic,)
    return ()


def check_copartitioned(counts: dict[str, int], plan: Plan) -> None:
    """Refuse joins, and tables of several streams, whose topics turn out to have different numbers of partitions."""
    for topics in joined_topics(plan):
        found = {topic: counts[topic] for topic in topics}
        if len(set(found.values())) > 1:
            said = ", ".join(f"{topic!r} has {count}" for topic, count in found.items())
            raise NotCopartitioned(
                f"topics that are joined must have the same number of partitions, but {said}: put .repartition() "
                "before the join, or use a global table"
            )


async def find_counts(client: Client, names: Sequence[str], *, must_exist: bool = True) -> dict[str, int]:
    """How many partitions topics have; TopologyError for one that is missing, as Kafka Streams refuses it."""
    for name in names:
        client.metadata.forget(name)
    found = await client.retrying(lambda: client.metadata.topics(names), final=_MISSING)
    counts = {}
    for name, topic in found.items():
        if not isinstance(topic, Refusal):
            counts[name] = len(topic.partitions)
        elif topic.code not in _MISSING:
            raise topic
        elif must_exist:
            raise TopologyError(f"there is no topic {name!r}: create it before the application starts")
    return counts


def outside_topics(plan: Plan, parts: Sequence[SubTopology]) -> tuple[list[str], list[str]]:
    """The topics of others: those that are read, global tables' included, and those that are written."""
    read = [topic for part in parts for topic in part.topics if topic not in part.internal_topics]
    read += [node.topic for node in global_tables(plan)]
    written = [node.topic for node in plan.nodes if isinstance(node, Sink) and isinstance(node.topic, str)]
    return list(dict.fromkeys(read)), list(dict.fromkeys(written))


async def prepare_topics(client: Client, plan: Plan, settings: Settings) -> dict[str, int]:
    """Check the topics of others, make our own; how many partitions each has, by its full name."""
    parts = subtopologies(plan)
    read, written = outside_topics(plan, parts)
    found = await find_counts(client, [*read, *written])
    counts = partition_counts(plan, parts, {name: found[name] for name in read})
    check_copartitioned(counts, plan)
    named: dict[str, int] = dict(found)
    tasks = 1
    for part in parts:
        count = max(counts[topic] for topic in part.topics)
        tasks = max(tasks, count)
        named.update({part.full_name(topic, settings.application_id): counts[topic] for topic in part.topics})
        named.update({part.changelog(store, settings.application_id): count for store in part.logged})
    named[tasks_topic(settings.application_id)] = tasks
    wanted = owned_topics(plan, settings.application_id)
    existing = await find_counts(client, [topic.name for topic in wanted], must_exist=False)
    await _grow(client, tasks_topic(settings.application_id), existing, tasks)
    for name, count in existing.items():
        if count != named[name]:
            raise TopologyError(
                f"the internal topic {name!r} has {count} partitions, and the application needs {named[name]}: it was "
                f"made for other topics. Reset the application, or give it another id"
            )
    missing = [topic for topic in wanted if topic.name not in existing]
    await _create(client, missing, named, settings)
    return named


async def _grow(client: Client, topic: str, existing: dict[str, int], wanted: int) -> None:
    """Its records say for themselves which task they are of: it may have more partitions than it was made with."""
    if topic in existing:
        if existing[topic] < wanted:
            raise_first(await create_partitions(client, {topic: wanted}))
        existing[topic] = wanted


async def _create(client: Client, topics: Sequence[InternalTopic], counts: dict[str, int], settings: Settings) -> None:
    new = [
        NewTopic(topic.name, counts[topic.name], settings.replication_factor, settings_of_topic(topic, settings))
        for topic in topics
    ]
    if not new:
        return
    outcomes = await create_topics(client, new)
    for outcome in outcomes.values():
        if isinstance(outcome, Refusal) and outcome.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise outcome


def settings_of_topic(topic: InternalTopic, settings: Settings) -> dict[str, str | None]:
    """As Kafka Streams makes it, with what the application says of its internal topics.

    Only the retention of windows is no matter of the broker's, which knows no stream time (trimming.py).
    """
    found: dict[str, str | None] = {"cleanup.policy": topic.cleanup_policy, "message.timestamp.type": "CreateTime"}
    if topic.retention_ms is not None:
        found["retention.ms"] = str(_FOR_EVER_MS)
    if topic.retention_ms == _FOR_EVER_MS:
        found["segment.bytes"] = _REPARTITION_SEGMENT_BYTES
    return {**found, **settings.topic_settings}
