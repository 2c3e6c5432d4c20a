"""From a plan to functions: each node becomes a step that calls the steps behind it.

Nodes are wired from the last to the first, so that a step is made with what comes after it at hand. A node with two
inputs has a step for each. Stores are made first: a join looks into them whatever the order of wiring.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.streams.interpret import aggregating, binding, sessions, sliding, stateless, stream_joins, tables
from millstream.streams.interpret.folds import folding
from millstream.streams.interpret.foreign_keys import ForeignKeys
from millstream.streams.interpret.processing import run_processor
from millstream.streams.interpret.stores import KeyValueState
from millstream.streams.interpret.window_stores import SessionState, WindowState
from millstream.streams.plan import nodes as n
from millstream.streams.plan.stores import KeyValueStore, Store, WindowStore
from millstream.streams.windows import SessionWindows, SlidingWindows, TimeWindows

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.streams.interpret.task import Task
    from millstream.streams.plan.plan import Plan

    Step = Callable[..., None]
    Getter = Callable[[Any], tuple[Any, int] | None]


def state_of(spec: Store) -> KeyValueState | WindowState | SessionState:
    """An empty store."""
    if isinstance(spec, KeyValueStore):
        return KeyValueState(spec)
    return WindowState(spec) if isinstance(spec, WindowStore) else SessionState(spec)


class Wiring:
    """The steps of a plan on a task. `write` takes what goes to topics: (topic, key, value, timestamp, headers)."""

    def __init__(
        self,
        plan: Plan,
        task: Task,
        write: Callable[[str, Any, Any, int, Any], None],
        make_store: Callable[[Store], Any] = state_of,
    ) -> None:
        self._plan = plan
        self._task = task
        self._write = write
        self.stores: dict[str, Any] = {name: make_store(spec) for name, spec in plan.stores.items()}
        self.closers: list[Callable[[], None]] = []
        self._steps: dict[str, tuple[Step, ...]] = {}
        self._streams: dict[str, Step] = {}
        self._suppressing: dict[str, tables.Suppressing] = {}
        for node in reversed(plan.nodes):
            task.keeping = node.name
            self._steps[node.name] = self._wire(node, self._behind(node.name))

    def _behind(self, name: str) -> Step:
        """All that a node feeds, in the order in which it was added."""
        return stateless.fan_out(
            [
                step
                for node in self._plan.consumers[name]
                for fed_by, step in zip(node.inputs, self._steps[node.name], strict=False)
                if fed_by == name
            ]
        )

    def _schema(self, name: str) -> n.Schema:
        return self._plan.by_name[name].schema

    def _wire(self, node: n.AnyNode, forward: Step) -> tuple[Step, ...]:
        match node:
            case n.StreamSource() | n.TableSource() | n.GlobalTableSource():
                self._source(node, forward)
                return ()
            case n.Repartition() | n.Sink() | n.TableGroup():
                return (self._to_topic(node, forward),)
            case n.StreamJoin() | n.StreamTableJoin() | n.StreamGlobalJoin() | n.TableJoin() | n.ForeignKeyJoin():
                return self._join(node, forward)
            case n.Aggregate() | n.TableAggregate():
                return (self._aggregate(node, forward),)
            case n.TableMerge(inputs=inputs):
                return (forward,) * len(inputs)
            case n.Merge(inputs=inputs):
                return (forward,) * len(inputs)
            case n.ToTable() | n.ToStream() | n.TableFilter() | n.TableMapValues() | n.Suppress():
                return (self._table(node, forward),)
            case n.Process():
                step, close = run_processor(self._task, node, self.stores, forward)
                self.closers.append(close)
                return (step,)
            case _:
                return (self._stateless(node, forward),)

    # -- where records come in

    def _source(self, node: n.StreamSource | n.TableSource | n.GlobalTableSource, forward: Step) -> None:
        if isinstance(node, n.StreamSource):
            self._streams[node.name] = stateless.from_topic(
                node.key_serde.deserialize, node.value_serde.deserialize, forward
            )
            for topic in node.topics:
                self.read(topic, node)
            return
        store = self.stores.get(node.store.name)
        sends_old = isinstance(node, n.TableSource) and node.sends_old_values
        as_table = tables.table_source(self._task, store, forward, sends_old=sends_old)
        serdes = node.store.key_serde, node.store.value_serde
        self._task.handlers[node.topic] = stateless.from_topic(serdes[0].deserialize, serdes[1].deserialize, as_table)

    def read(self, topic: str, node: n.StreamSource) -> None:
        """Let a source take a topic's records; one with a pattern may get more topics at any time."""
        self._task.handlers[topic] = self._streams[node.name]
        if node.timestamp_of is not None:
            self._task.clocks[topic] = _clock(node)

    # -- records one by one

    def _stateless(self, node: n.AnyNode, forward: Step) -> Step:
        schema = self._schema(node.inputs[0])
        match node:
            case n.Filter(predicate=predicate, negated=negated):
                bind = binding.negated_condition if negated else binding.condition
                return stateless.filtered(bind(predicate, schema), forward)
            case n.Map(mapper=mapper):
                return stateless.mapped(binding.pair(mapper, schema), forward)
            case n.MapValues(mapper=mapper, with_key=with_key):
                return stateless.mapped_values(binding.of_value(mapper, schema, with_key=with_key), forward)
            case n.FlatMap(mapper=mapper):
                return stateless.flat_mapped(binding.of_both(mapper, schema), forward)
            case n.FlatMapValues(mapper=mapper, with_key=with_key):
                return stateless.flat_mapped_values(binding.of_value(mapper, schema, with_key=with_key), forward)
            case n.SelectKey(selector=selector):
                return stateless.rekeyed(binding.of_both(selector, schema), forward)
            case n.Peek(action=action):
                return stateless.peeked(action, forward)
            case n.BranchChild():
                return forward
            case n.Branch(branches=branches):
                return stateless.branched(
                    [
                        (None if keep is None else binding.condition(keep, schema), self._steps[name][0])
                        for name, keep in branches
                    ]
                )
        raise TypeError(f"{node!r} is no node of a plan")

    # -- through and to topics

    def _to_topic(self, node: n.Repartition | n.Sink | n.TableGroup, forward: Step) -> Step:
        schema = self._schema(node.inputs[0])
        to_key, to_value = node.key_serde.serialize, node.value_serde.serialize
        from_key, from_value = node.key_serde.deserialize, node.value_serde.deserialize
        match node:
            case n.Repartition(topic=topic):
                self._task.handlers[topic] = stateless.from_topic(from_key, from_value, forward)
                return stateless.to_internal_topic(
                    self._task, topic, to_key, to_value, drops_null_keys=node.drops_null_keys
                )
            case n.TableGroup(topic=topic):
                self._task.handlers[topic] = stateless.from_regrouped(from_key, from_value, forward)
                return stateless.regrouped(self._task, binding.pair(node.mapper, schema), topic, to_key, to_value)
            case n.Sink(topic=chosen):
                write = self._write
                if not isinstance(chosen, str):
                    choose = binding.topic(chosen, schema, node.name)
                    return lambda key, value, timestamp, headers: write(
                        choose(key, value, timestamp),
                        None if key is None else to_key(key),
                        None if value is None else to_value(value),
                        timestamp,
                        headers,
                    )
                return lambda key, value, timestamp, headers: write(
                    chosen,
                    None if key is None else to_key(key),
                    None if value is None else to_value(value),
                    timestamp,
                    headers,
                )

    # -- tables

    def _table(
        self, node: n.ToTable | n.ToStream | n.TableFilter | n.TableMapValues | n.Suppress, forward: Step
    ) -> Step:
        schema = self._schema(node.inputs[0])
        match node:
            case n.ToStream():
                return lambda key, new, _old, timestamp, headers: forward(key, new, timestamp, headers)
            case n.ToTable(store=spec, sends_old_values=sends_old):
                return tables.table_source(self._task, self.stores.get(spec.name), forward, sends_old=sends_old)
            case n.TableFilter(predicate=predicate, negated=negated, sends_old_values=sends_old):
                return tables.table_filter(
                    (binding.negated_condition if negated else binding.condition)(predicate, schema),
                    self._own_store(node),
                    forward,
                    sends_old=sends_old,
                )
            case n.TableMapValues(mapper=mapper, with_key=with_key, sends_old_values=sends_old):
                bound = binding.of_value(mapper, schema, with_key=with_key)
                return tables.table_map(bound, self._own_store(node), forward, sends_old=sends_old)
            case n.Suppress():
                suppressing = self._suppressing[node.name] = tables.Suppressing(node, forward)
                self._task.keep(suppressing.save, suppressing.load)
                return suppressing.process

    def _own_store(self, node: Any) -> Any:
        return None if node.store is None else self.stores[node.store.name]

    def _aggregate(self, node: n.Aggregate | n.TableAggregate, forward: Step) -> Step:
        fold = folding(node.aggregation, binding.scope_of(self._schema(node.inputs[0])))
        store, sends_old = self.stores[node.store.name], node.sends_old_values
        if isinstance(node, n.TableAggregate):
            return aggregating.table_aggregate(fold, store, forward, sends_old=sends_old)
        task, final = self._task, node.emit_final
        match node.windows:
            case None:
                return aggregating.stream_aggregate(task, fold, store, forward, sends_old=sends_old)
            case TimeWindows() as windows:
                return aggregating.window_aggregate(
                    task, windows, fold, store, forward, sends_old=sends_old, final=final
                )
            case SlidingWindows() as windows:
                return sliding.SlidingAggregate(
                    task, windows, fold, store, forward, sends_old=sends_old, final=final
                ).process
            case SessionWindows() as windows:
                return sessions.SessionAggregate(
                    task, windows, fold, store, forward, sends_old=sends_old, final=final
                ).process

    def getter(self, name: str) -> Getter:
        """How a table's current value is looked up: in its store, or computed from the tables before it."""
        node = self._plan.by_name[name]
        match node:
            case n.TableFilter(store=None, predicate=predicate, negated=negated):
                before = self.getter(node.inputs[0])
                bind = binding.negated_condition if negated else binding.condition
                keep = bind(predicate, self._schema(node.inputs[0]))
                return lambda key: row if (row := before(key)) is not None and keep(key, *row) else None
            case n.TableMapValues(store=None, mapper=mapper, with_key=with_key):
                before = self.getter(node.inputs[0])
                bound = binding.of_value(mapper, self._schema(node.inputs[0]), with_key=with_key)
                return lambda key: _mapped(key, before(key), bound)
            case n.TableJoin(store=None, kind=kind):
                this, other = node.inputs
                join = self._joiner(node)
                return tables.joined_getter(kind, join, self.getter(this), self.getter(other))
            case n.Suppress():
                before, name = self.getter(node.inputs[0]), node.name
                return lambda key: self._suppressing[name].value_downstream(key, before)
        store = self.stores[node.store.name]  # type: ignore[union-attr]
        if isinstance(store, WindowState):
            return lambda key: store.get(key.key, key.window.start_ms)
        if isinstance(store, SessionState):
            return lambda key: _session_row(store, key)
        found: Getter = store.get_with_timestamp
        return found

    # -- joins

    def _joiner(self, node: Any) -> Callable[[Any, Any, int, Any], Any]:
        this = self._schema(node.inputs[0])
        other = self._schema(node.table if isinstance(node, n.StreamGlobalJoin) else node.inputs[1])
        return binding.joiner(node.joiner, this, other, with_key=node.with_key)

    def _join(
        self,
        node: n.StreamJoin | n.StreamTableJoin | n.StreamGlobalJoin | n.TableJoin | n.ForeignKeyJoin,
        forward: Step,
    ) -> tuple[Step, ...]:
        join = self._joiner(node)
        match node:
            case n.StreamJoin():
                stores = self.stores[node.this_store.name], self.stores[node.other_store.name]
                shared = stream_joins.SharedJoin(self._task, node, join, stores, forward)
                return tuple(stream_joins.JoinSide(shared, is_left=is_left).process for is_left in (True, False))
            case n.StreamTableJoin(kind=kind):
                return (_lookup(self._task, None, self.getter(node.inputs[1]), join, forward, left=kind == "left"),)
            case n.StreamGlobalJoin(kind=kind):
                selector = binding.of_both(node.selector, self._schema(node.inputs[0]))
                getter = self.stores[self._plan.by_name[node.table].store.name].get_with_timestamp  # type: ignore[union-attr]
                return (_lookup(self._task, selector, getter, join, forward, left=kind == "left"),)
            case n.TableJoin(kind=kind, sends_old_values=sends_old):
                this, other = (self.getter(name) for name in node.inputs)
                merge = tables.join_merge(self._own_store(node), forward, sends_old=sends_old)
                return (
                    tables.join_this(self._task, kind, join, other, merge, sends_old=sends_old),
                    tables.join_other(self._task, kind, join, this, merge, sends_old=sends_old),
                )
            case n.ForeignKeyJoin(sends_old_values=sends_old):
                store = self.stores[node.store.name] if node.materialized else None
                result = tables.table_source(self._task, store, forward, sends_old=sends_old)
                extract = binding.of_value(node.extractor, self._schema(node.inputs[0]), with_key=False)
                primary, foreign = (self.getter(name) for name in node.inputs)
                keys = ForeignKeys(self._task, node, extract, join, primary, foreign, result)
                return keys.on_primary, keys.on_foreign


def _mapped(key: Any, row: tuple[Any, int] | None, mapper: Callable[[Any, Any, int], Any]) -> tuple[Any, int] | None:
    if row is None:
        return None
    value = mapper(key, *row)
    return None if value is None else (value, row[1])


def _session_row(store: SessionState, key: Any) -> tuple[Any, int] | None:
    found = dict(store.fetch(key.key)).get(key)
    return None if found is None else (found, key.window.end_ms)


def _clock(node: n.StreamSource) -> Callable[[Any, Any, int], int]:
    """The record's time from its content."""
    timestamp_of = node.timestamp_of
    assert timestamp_of is not None

    def clock(key: Any, value: Any, timestamp: int) -> int:
        found = timestamp_of(
            None if key is None else node.key_serde.deserialize(key),
            None if value is None else node.value_serde.deserialize(value),
            timestamp,
        )
        if found < 0:
            raise ValueError(f"{node.name}: timestamp_of gives {found}: Kafka Streams refuses times below zero")
        return found

    return clock


def _lookup(
    task: Task,
    selector: Callable[[Any, Any, int], Any] | None,
    getter: Getter,
    join: Callable[[Any, Any, int, Any], Any],
    forward: Step,
    *,
    left: bool,
) -> Step:
    """A stream's record with a table's value of the moment."""

    def process(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        if value is None:
            task.drop("null value")
            return
        wanted = key if selector is None else selector(key, value, timestamp)
        if wanted is None and not left:
            task.drop("null key")
            return
        row = None if wanted is None else getter(wanted)
        if row is not None or left:
            forward(key, join(key, value, timestamp, None if row is None else row[0]), timestamp, headers)

    return process
