"""One task: a partition of a sub-topology, with the interpreter wired for it.

Records that a sub-topology writes to internal topics leave it as bytes, also those that it reads back itself, since
another partition may be meant. Within a micro-batch the topics' records are taken oldest first, as Kafka Streams does
with those that it has at hand.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.streams.interpret.task import RecordMetadata, Task
from millstream.streams.interpret.wiring import Wiring, state_of
from millstream.streams.lower.tasks.stores import LoggedStore, logged_store
from millstream.streams.lower.tasks.wires import pack, unpack, wires_of
from millstream.streams.plan.nodes import AnyNode, GlobalTableSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from millstream.streams.lower.subtopologies import SubTopology
    from millstream.streams.plan.plan import Plan
    from millstream.streams.plan.stores import Store

CLOCKS = "clocks"


class Out(NamedTuple):
    """A record for a topic; None as partition lets the key decide."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: Any


class _Clockwork(Task):
    """The interpreter's task, with places that are real and internal topics that lead outside."""

    def __init__(self, partition: int, wall_clock_ms: int, write: Callable[..., None]) -> None:
        super().__init__(wall_clock_ms)
        self._partition = partition
        self._write_inside = write
        self._places: dict[str, deque[int]] = {}
        self._at = -1

    def feed(self, topic: str, key: Any, value: Any, timestamp: int, headers: Any, offset: int) -> None:
        """A record of an input."""
        Task.enqueue(self, topic, key, value, timestamp, headers)
        self._places.setdefault(topic, deque()).append(offset)

    def enqueue(self, topic: str, key: Any, value: Any, timestamp: int, headers: Any) -> None:
        self._write_inside(topic, key, value, timestamp, headers)

    def process(self, topic: str, key: Any, value: Any, timestamp: int, headers: Any) -> None:
        self._at = self._places[topic].popleft()
        super().process(topic, key, value, timestamp, headers)

    @property
    def metadata(self) -> RecordMetadata | None:
        return None if self.topic is None else RecordMetadata(self.topic, self._partition, self._at)


class _PartWiring(Wiring):
    """Only the nodes of one sub-topology do anything; global tables are everywhere."""

    def __init__(
        self, plan: Plan, nodes: frozenset[str], task: Task, write: Callable[..., None], make: Callable[[Store], Any]
    ) -> None:
        self._nodes = nodes
        super().__init__(plan, task, write, make)

    def _wire(self, node: AnyNode, forward: Any) -> tuple[Any, ...]:
        if node.name in self._nodes or isinstance(node, GlobalTableSource):
            return super()._wire(node, forward)
        return (lambda *_: None,) * max(1, len(node.inputs))


class PartitionTask:
    """A partition of a sub-topology."""

    def __init__(self, plan: Plan, part: SubTopology, application_id: str, partition: int, wall_clock_ms: int) -> None:
        self._part = part
        self._prefix = f"{application_id}-"
        self._partition = partition
        self._wires = wires_of(plan)
        self._out: list[Out] = []
        self._clockwork = _Clockwork(partition, wall_clock_ms, self._write_inside)
        kept = {store.name for store in part.logged} | {store.name for _, store in part.table_stores}
        # A global table is fed through its handler, from its topic.
        wiring = _PartWiring(
            plan,
            part.nodes,
            self._clockwork,
            self._write,
            lambda store: logged_store(store) if store.name in kept else state_of(store),
        )
        self._closers = wiring.closers
        self.stores: dict[str, LoggedStore] = {name: wiring.stores[name] for name in sorted(kept)}
        self._changelogs = {store.name: part.changelog(store, application_id) for store in part.logged}
        self._kept = {**self._clockwork.kept, CLOCKS: (self._clockwork.saved_clocks, self._clockwork.load_clocks)}
        self._saved: dict[tuple[str, bytes], bytes] = {}
        # Where each changelog had been read to when this task last started a micro-batch.
        self.read_to: dict[tuple[str, int], int] = {}

    # -- putting back

    def put_back(self, place: bytes, held: bytes | None) -> None:
        """A record of the topic of tasks: what an operator knew. `load_kept` hands it over."""
        node, _, rest = place.partition(b"\0")
        at = (node.decode(), rest)
        if held is None:
            self._saved.pop(at, None)
        else:
            self._saved[at] = held

    def kept(self, node: str, place: bytes = b"") -> Any:
        """What an operator knew after the last micro-batch, or what was put back; None if that is nothing."""
        held = self._saved.get((node, place))
        return None if held is None else unpack(held)

    def load_kept(self) -> None:
        """Operators know again what was put back."""
        by_node: dict[str, dict[bytes, Any]] = {name: {} for name in self._kept}
        for (node, place), held in self._saved.items():
            # A node that a newer version of the topology does not have any more is left out.
            by_node.setdefault(node, {})[place] = unpack(held)
        for name, (_, load) in self._kept.items():
            load(by_node[name])

    def feed_global(self, topic: str, key: bytes | None, value: bytes | None, timestamp_ms: int) -> None:
        self._clockwork.handlers[topic](key, value, timestamp_ms, ())

    # -- running

    def run(self, records: Iterable[tuple[str, Any, Any, int, Any, int]], wall_clock_ms: int) -> list[Out]:
        """A micro-batch: (topic, key, value, timestamp, headers, offset) in the order of each topic's offsets."""
        task = self._clockwork
        inside = {self._prefix + topic: topic for topic in self._part.internal_topics}
        for topic, key, value, timestamp, headers, offset in records:
            own = inside.get(topic, topic)
            wire = self._wires.get(own)
            if wire is not None:
                key, value = wire.decode(key, value)
            task.feed(own, key, value, timestamp, headers, offset)
        task.run()
        if wall_clock_ms > task.wall_clock_ms:
            task.advance_wall_clock(wall_clock_ms - task.wall_clock_ms)
        self._out += self._changes()
        found, self._out = self._out, []
        return found

    def _write(self, topic: str, key: bytes | None, value: bytes | None, timestamp: int, headers: Any) -> None:
        self._out.append(Out(topic, None, key, value, timestamp, headers))

    def _write_inside(self, topic: str, key: Any, value: Any, timestamp: int, headers: Any) -> None:
        wire = self._wires.get(topic)
        if wire is not None:
            key, value = wire.encode(key, value)
        self._out.append(Out(self._prefix + topic, None, key, value, timestamp, headers))

    def _changes(self) -> Iterator[Out]:
        now_ms = max(0, self._clockwork.stream_time_ms)
        for name, store in self.stores.items():
            topic = self._changelogs.get(name)
            for key, value, timestamp_ms in store.changes():
                if topic is not None:
                    yield Out(topic, self._partition, key, value, timestamp_ms if timestamp_ms >= 0 else now_ms, ())
        yield from self._kept_changes(now_ms)

    def _kept_changes(self, now_ms: int) -> Iterator[Out]:
        """What operators know now that was not written yet."""
        topic, number = f"{self._prefix}tasks-changelog", self._part.number
        before, self._saved = self._saved, {}
        for name, (save, _) in self._kept.items():
            for place, held in save().items():
                packed = pack(held)
                self._saved[name, place] = packed
                if before.pop((name, place), None) != packed:
                    yield Out(topic, self._partition, place_of(number, name, place), packed, now_ms, ())
        for name, place in before:
            yield Out(topic, self._partition, place_of(number, name, place), None, now_ms, ())

    def close(self) -> None:
        for close in self._closers:
            close()


def place_of(number: int, node: str, place: bytes) -> bytes:
    """The key in the topic of tasks: the sub-topology's number and the node, then what the node says."""
    return number.to_bytes(4) + node.encode() + b"\0" + place
