"""TopologyTestDriver: a topology in this process, one record at a time, without a broker.

    with TopologyTestDriver(topology) as driver:
        lines = driver.input_topic("lines")
        lines.pipe_input("a", "to mill or not to mill", timestamp_ms=10)
        assert driver.output_topic("counts").read_key_values_to_map() == {"to": 2, ...}
        assert driver.store("counts").get("mill") == 2

It means the same as Kafka Streams' driver of that name with its cache off; where the two are compared, and the one
place where they differ on purpose, is in docs/streams.md. Every topic has one partition. Records go through their
serdes on the way in, at internal topics, in stores and on the way out.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Self

from millstream.streams.errors import TopologyError
from millstream.streams.interpret.errors import UnknownStore
from millstream.streams.interpret.task import Task
from millstream.streams.interpret.topics import Raw, TestInputTopic, TestOutputTopic
from millstream.streams.interpret.wiring import Wiring
from millstream.streams.plan.names import nearest
from millstream.streams.plan.nodes import GlobalTableSource, Sink, StreamSource, TableSource
from millstream.streams.plan.plan import matches
from millstream.streams.serdes import Serde, serde_of

if TYPE_CHECKING:
    from collections import Counter

    from millstream.streams.topology import Topology


class TopologyTestDriver:
    """Runs a topology."""

    __test__ = False  # pytest must not take it for a test because of its name

    def __init__(self, topology: Topology, *, wall_clock_ms: int = 0) -> None:
        self.topology = topology
        self._task = Task(wall_clock_ms)
        self._outputs: dict[str, deque[Raw]] = {}
        self._wiring = Wiring(topology.plan, self._task, self._write)
        self._inputs: dict[str, tuple[Serde, Serde]] = {}
        self._global_topics: set[str] = set()
        self._by_pattern: list[StreamSource] = []
        for node in topology.plan.nodes:
            match node:
                case StreamSource(topics=topics):
                    self._inputs.update(dict.fromkeys(topics, (node.key_serde, node.value_serde)))
                    if node.pattern is not None:
                        self._by_pattern.append(node)
                case TableSource(topic=topic) | GlobalTableSource(topic=topic):
                    self._inputs[topic] = (node.store.key_serde, node.store.value_serde)
                    if isinstance(node, GlobalTableSource):
                        self._global_topics.add(topic)

    # -- topics

    def input_topic(
        self, name: str, *, key: Any = None, value: Any = None, start_ms: int | None = None, auto_advance_ms: int = 0
    ) -> TestInputTopic:
        """A way in. Without serdes it writes as the topology reads. Records without a time get the topic's."""
        if not self._reads(name):
            raise TopologyError(f"the topology does not read topic {name!r}{nearest(name, list(self._inputs))}")
        known = self._inputs[name]
        return TestInputTopic(
            self,
            name,
            known[0] if key is None else serde_of(key),
            known[1] if value is None else serde_of(value),
            self._task.wall_clock_ms if start_ms is None else start_ms,
            auto_advance_ms,
        )

    def output_topic(self, name: str, *, key: Any = None, value: Any = None) -> TestOutputTopic:
        """A way out. Without serdes it reads as the topology writes."""
        sinks = [node for node in self.topology.plan.nodes if isinstance(node, Sink)]
        # A sink that chooses its topic by record may write to any, if none names this one.
        meant = [node for node in sinks if isinstance(node.topic, str) and node.topic == name]
        meant += [node for node in sinks if not isinstance(node.topic, str)]
        if not meant:
            raise TopologyError(f"the topology does not write to topic {name!r}")
        key_serde = meant[0].key_serde if key is None else serde_of(key)
        value_serde = meant[0].value_serde if value is None else serde_of(value)
        return TestOutputTopic(self._outputs.setdefault(name, deque()), name, key_serde, value_serde)

    def _reads(self, topic: str) -> bool:
        """Whether the topology reads a topic; one that matches a pattern is there as soon as it is spoken of."""
        if topic not in self._inputs and self._by_pattern:
            meant = [node for node in self._by_pattern if matches(node, topic)]
            if len(meant) > 1:
                raise TopologyError(f"topic {topic!r} would be read twice, by {meant[0].name} and by {meant[1].name}")
            for node in meant:
                self._inputs[topic] = (node.key_serde, node.value_serde)
                self._wiring.read(topic, node)
        return topic in self._inputs

    def produced_topic_names(self) -> list[str]:
        """The topics that something was written to."""
        return [name for name, records in self._outputs.items() if records]

    def pipe_raw(
        self, topic: str, key: bytes | None, value: bytes | None, timestamp_ms: int, headers: Any = ()
    ) -> None:
        """A record as bytes; returns when everything that follows from it is done."""
        if timestamp_ms < 0:
            raise ValueError(f"a record's time is {timestamp_ms}: Kafka Streams refuses times below zero")
        if topic in self._global_topics:
            self._task.handlers[topic](key, value, timestamp_ms, headers)
            return
        task = self._task
        if self._by_pattern:
            self._reads(topic)
        if topic in task.clocks:
            timestamp_ms = task.clocks[topic](key, value, timestamp_ms)
        task.process(topic, key, value, timestamp_ms, headers)
        if task.queues:
            task.run()

    def _write(self, topic: str, key: bytes | None, value: bytes | None, timestamp: int, headers: Any) -> None:
        records = self._outputs.get(topic)
        if records is None:
            records = self._outputs[topic] = deque()
        records.append((key, value, timestamp, headers))
        if topic in self._inputs or (self._by_pattern and self._reads(topic)):
            if topic in self._global_topics:
                self._task.handlers[topic](key, value, timestamp, headers)
            else:
                self._task.enqueue(topic, key, value, timestamp, headers)

    # -- time

    @property
    def wall_clock_ms(self) -> int:
        return self._task.wall_clock_ms

    @property
    def stream_time_ms(self) -> int:
        """The largest time of a record so far; -1 before the first."""
        return self._task.stream_time_ms

    def advance_wall_clock_time(self, by_ms: int) -> None:
        """Let wall-clock time pass; punctuations that become due run."""
        self._task.advance_wall_clock(by_ms)

    # -- state

    @property
    def dropped_records(self) -> Counter[str]:
        """How many records were left out, by reason: null keys, null values, lateness."""
        return self._task.dropped

    def store(self, name: str) -> Any:
        """A store: get, range and all; for windows fetch by key and time."""
        try:
            return self._wiring.stores[name]
        except KeyError:
            raise UnknownStore(f"there is no store {name!r}{nearest(name, list(self._wiring.stores))}") from None

    def stores(self) -> dict[str, Any]:
        """All stores by name."""
        return dict(self._wiring.stores)

    def close(self) -> None:
        """Close the processors."""
        closers, self._wiring.closers = self._wiring.closers, []
        for close in closers:
            close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
