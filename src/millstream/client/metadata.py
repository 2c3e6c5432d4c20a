"""What the client knows of the cluster: who leads which partition.

Fetched per topic when first needed, kept until it is old or an error proves it wrong. Concurrent askers of the same
topics share one request.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.client.errors import Refusal, refuse, topic_subject
from millstream.client.nodes import Broker
from millstream.client.options import Address
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.metadata_api import MetadataRequest, MetadataRequestTopic
from millstream.protocol.uuid import Uuid

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from millstream.client.nodes import Nodes
    from millstream.protocol.messages.metadata_api import MetadataResponse, MetadataResponseTopic


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition as metadata shows it."""

    index: int
    leader_id: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]
    error: ErrorCode


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic as metadata shows it; `partitions` is in the order of their index."""

    name: str
    id: Uuid
    internal: bool
    partitions: tuple[Partition, ...]

    def partition(self, index: int) -> Partition:
        # Brokers list partitions from 0 without gaps.
        if not 0 <= index < len(self.partitions):
            raise Refusal(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"there is no partition {index}, the topic has {len(self.partitions)}",
                subject=topic_subject(self.name),
            )
        return self.partitions[index]


class Metadata:
    """The cache; `ask` sends a request to any broker."""

    def __init__(self, nodes: Nodes, ask: Callable[[object], Awaitable[MetadataResponse]], age_ms_max: int) -> None:
        self.cluster_id: str | None = None
        self.controller_id = -1
        self._nodes = nodes
        self._ask = ask
        self._age_s_max = age_ms_max / 1000
        self._topics: dict[str, tuple[float, Topic]] = {}
        self._names: dict[Uuid, str] = {}
        self._asking: dict[tuple[str, ...], asyncio.Task[dict[str, Topic | Refusal]]] = {}

    def forget(self, topic: str) -> None:
        """An error has shown that what we know of it is wrong."""
        self._topics.pop(topic, None)

    def name_of(self, topic_id: Uuid) -> str | None:
        return self._names.get(topic_id)

    async def topic(self, name: str, *, create: bool = False) -> Topic:
        """One topic, from the cache if it is young; a Refusal is raised for one that cannot be used."""
        found = (await self.topics([name], create=create))[name]
        if isinstance(found, Refusal):
            raise found
        return found

    async def topics(self, names: Iterable[str], *, create: bool = False) -> dict[str, Topic | Refusal]:
        now = asyncio.get_running_loop().time()
        answer: dict[str, Topic | Refusal] = {}
        missing: list[str] = []
        for name in names:
            fetched_at, topic = self._topics.get(name, (0.0, None))
            if topic is None or now - fetched_at > self._age_s_max:
                missing.append(name)
            else:
                answer[name] = topic
        if missing:
            answer.update(await self._fetch_shared(tuple(missing), create=create))
        return answer

    async def all_topics(self) -> list[Topic]:
        """Every topic that we may see, always asked anew, by name."""
        found = await self._fetch(None, create=False)
        return [topic for _, topic in sorted(found.items()) if isinstance(topic, Topic)]

    async def refresh_cluster(self) -> None:
        """Brokers and controller only."""
        await self._fetch((), create=False)

    async def _fetch_shared(self, names: tuple[str, ...], *, create: bool) -> dict[str, Topic | Refusal]:
        task = self._asking.get(names)
        if task is None:
            task = asyncio.create_task(self._fetch(names, create=create))
            self._asking[names] = task
            task.add_done_callback(lambda _: self._asking.pop(names, None))
        return await asyncio.shield(task)

    async def _fetch(self, names: tuple[str, ...] | None, *, create: bool) -> dict[str, Topic | Refusal]:
        wanted = None if names is None else [MetadataRequestTopic(name=name) for name in names]
        response = await self._ask(MetadataRequest(topics=wanted, allow_auto_topic_creation=create))
        refuse(response.error_code)
        self.cluster_id, self.controller_id = response.cluster_id, response.controller_id
        self._nodes.learn(Broker(b.node_id, Address(b.host, b.port), b.rack) for b in response.brokers)
        now = asyncio.get_running_loop().time()
        found: dict[str, Topic | Refusal] = {}
        for entry in response.topics:
            name = entry.name or ""
            if entry.error_code:
                self.forget(name)
                found[name] = Refusal(entry.error_code, subject=topic_subject(name))
                continue
            topic = _topic(name, entry)
            found[name] = topic
            self._topics[name] = (now, topic)
            self._names[topic.id] = name
        return found


def _topic(name: str, entry: MetadataResponseTopic) -> Topic:
    partitions = sorted(entry.partitions, key=lambda partition: partition.partition_index)
    return Topic(
        name=name,
        id=Uuid(entry.topic_id),
        internal=entry.is_internal,
        partitions=tuple(
            Partition(
                index=partition.partition_index,
                leader_id=partition.leader_id,
                leader_epoch=partition.leader_epoch,
                replicas=tuple(partition.replica_nodes),
                isr=tuple(partition.isr_nodes),
                offline=tuple(partition.offline_replicas),
                error=ErrorCode(partition.error_code),
            )
            for partition in partitions
        ),
    )
