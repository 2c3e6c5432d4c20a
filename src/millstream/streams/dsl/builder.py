"""StreamsBuilder: where a topology starts.

    builder = StreamsBuilder()
    words = builder.stream("lines", value=str).flat_map_values(str.split, value=str)
    words.group_by(lambda _key, word: word, key=str).count(store="counts").to_stream().to("counts")
    topology = builder.build()

Without `key=` and `value=` keys are texts and values JSON, or what the builder was given.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from millstream.streams.dsl.stream import KStream
from millstream.streams.dsl.table import GlobalKTable, KTable
from millstream.streams.errors import TopologyError
from millstream.streams.plan.drafting import Draft, Flow
from millstream.streams.plan.nodes import GlobalTableSource, Schema, StreamSource, TableSource
from millstream.streams.plan.stores import KeyValueStore
from millstream.streams.serdes import JSON_SERDE, STRING_SERDE, Serde, serde_of
from millstream.streams.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millstream.streams.plan.stores import Store


def stream_of(
    draft: Draft,
    topics: tuple[str, ...],
    key: Serde,
    value: Serde,
    *,
    pattern: re.Pattern[str] | None = None,
    timestamp_of: Callable[[Any, Any, int], int] | None = None,
    partitions: int | None = None,
    name: str | None = None,
) -> KStream:
    """A stream of topics; the same topics under the same serdes are read once."""
    own = draft.names.or_node(name, "KSTREAM-SOURCE-")
    schema = Schema(key.type, value.type)
    node = StreamSource(
        name=own,
        schema=schema,
        topics=topics,
        pattern=pattern,
        key_serde=key,
        value_serde=value,
        timestamp_of=timestamp_of,
        partitions=partitions,
    )
    if not all(topics):
        raise TopologyError("a topic without a name")
    for topic, known in draft.read_by(node):
        if isinstance(known, StreamSource) and _reads_as(known) == _reads_as(node):
            return KStream(draft, Flow(known.name, key, value, schema, (known.name,)))
        raise TopologyError(f"topic {topic!r} is read already, by {known.name}, in another way: use that one's result")
    draft.add(node)
    return KStream(draft, Flow(own, key, value, schema, (own,)))


def _reads_as(source: StreamSource) -> tuple[object, ...]:
    return source.topics, source.pattern, source.key_serde, source.value_serde, source.timestamp_of


def _topics(given: tuple[str | Sequence[str] | re.Pattern[str], ...]) -> tuple[tuple[str, ...], re.Pattern[str] | None]:
    """Names, or a pattern."""
    names: list[str] = []
    for each in given:
        if isinstance(each, re.Pattern):
            if len(given) > 1:
                raise TopologyError(
                    f"the pattern {each.pattern!r} stands alone: merge it with a stream of other topics"
                )
            return (), each
        names += [each] if isinstance(each, str) else each
    if not names:
        raise TopologyError("a stream of no topic")
    return tuple(names), None


class StreamsBuilder:
    """Collects streams and tables; `build` gives the topology."""

    def __init__(self, *, key: Any = STRING_SERDE, value: Any = JSON_SERDE) -> None:
        self.draft = Draft(key, value)

    def stream(
        self,
        *topics: str | Sequence[str] | re.Pattern[str],
        key: Any = None,
        value: Any = None,
        timestamp_of: Callable[[Any, Any, int], int] | None = None,
        partitions: int | None = None,
        name: str | None = None,
    ) -> KStream:
        """The records of topics: their names, a list of names, or a compiled pattern that whole names match.

        `timestamp_of(key, value, timestamp)` may take the time from the record's value.
        """
        names, pattern = _topics(topics)
        key_serde, value_serde = self._serdes(key, value)
        return stream_of(
            self.draft,
            names,
            key_serde,
            value_serde,
            pattern=pattern,
            timestamp_of=timestamp_of,
            partitions=partitions,
            name=name,
        )

    def table(
        self,
        topic: str,
        *,
        key: Any = None,
        value: Any = None,
        store: str | None = None,
        partitions: int | None = None,
        name: str | None = None,
    ) -> KTable:
        """A topic as a table: the last value of each key. With `store` it can be asked for values by that name."""
        key_serde, value_serde = self._serdes(key, value)
        store_name = store or self.draft.names.store(f"{topic}-")
        source = self.draft.names.or_node(name and f"{name}-source", "KSTREAM-SOURCE-")
        own = self.draft.names.or_node(name, "KTABLE-SOURCE-")
        self._unread(topic)
        node = TableSource(
            name=own,
            schema=Schema(key_serde.type, value_serde.type),
            source=source,
            topic=topic,
            store=KeyValueStore(store_name, key_serde, value_serde),
            materialized=store is not None,
            partitions=partitions,
        )
        self.draft.add(node)
        return KTable(self.draft, Flow(own, key_serde, value_serde, node.schema, (own,)))

    def global_table(
        self, topic: str, *, key: Any = None, value: Any = None, store: str | None = None, name: str | None = None
    ) -> GlobalKTable:
        """A topic as a table that is whole everywhere."""
        key_serde, value_serde = self._serdes(key, value)
        store_name = store or self.draft.names.store(f"{topic}-")
        source = self.draft.names.or_node(name and f"{name}-source", "KSTREAM-SOURCE-")
        own = self.draft.names.or_node(name, "KTABLE-SOURCE-")
        self._unread(topic)
        node = GlobalTableSource(
            name=own,
            schema=Schema(key_serde.type, value_serde.type),
            source=source,
            topic=topic,
            store=KeyValueStore(store_name, key_serde, value_serde, logged=False),
        )
        self.draft.add(node)
        return GlobalKTable(self.draft, Flow(own, key_serde, value_serde, node.schema, (own,)))

    def add_state_store(self, store: Store) -> StreamsBuilder:
        """A store for processors; name it where you call `process`."""
        self.draft.add_store(store)
        return self

    def build(self) -> Topology:
        """The topology so far."""
        return Topology(self.draft.plan())

    def _serdes(self, key: Any, value: Any) -> tuple[Serde, Serde]:
        return (
            self.draft.default_key if key is None else serde_of(key),
            self.draft.default_value if value is None else serde_of(value),
        )

    def _unread(self, topic: str) -> None:
        known = self.draft.source_of(topic)
        if known is not None:
            raise TopologyError(f"topic {topic!r} is read already, by {known.name}: use that one's result")
