"""What runs in Spark's own operators, and the first thing of a sub-topology that does not, as a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.streams.expressions.tree import Call, Cast, Expression, Field, Source
from millstream.streams.lower.native.serdes import has_schema, is_native
from millstream.streams.plan import nodes as n
from millstream.streams.plan.aggregations import Columns, Count
from millstream.streams.plan.stores import KeyValueStore
from millstream.streams.types import DOUBLE, TIMESTAMP, Array, Map, Struct
from millstream.streams.windows import TimeWindows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.streams.lower.subtopologies import SubTopology
    from millstream.streams.plan.plan import Plan
    from millstream.streams.serdes import Serde
    from millstream.streams.types import DataType

_FUNCTIONS = ("predicate", "mapper", "selector", "joiner", "extractor")
_STATELESS = n.Filter | n.Map | n.MapValues | n.FlatMapValues | n.SelectKey | n.Branch | n.BranchChild | n.Merge
_TABLES = n.TableFilter | n.TableMapValues | n.ToStream | n.ToTable


class _Unsupported(Exception):
    """Why something cannot run in Spark's own operators."""


class _Known:
    """What is known of a node's records on the way through the plan."""

    def __init__(self) -> None:
        # The serde of a value that is still bytes.
        self.raw: dict[str, Serde] = {}
        # The topics that records come from, unless a stateful operator is between.
        self.topics: dict[str, tuple[str, ...] | None] = {}


def why_not(plan: Plan, part: SubTopology) -> str | None:
    """The first thing of a sub-topology that needs Python; None if nothing does."""
    known = _Known()
    for node in plan.nodes:
        if node.name in part.nodes:
            try:
                _check(plan, part, node, known)
            except _Unsupported as reason:
                return f"{node.name}: {reason}"
    return None


def _check(plan: Plan, part: SubTopology, node: n.AnyNode, known: _Known) -> None:
    for kind in (node.schema.key, node.schema.value):
        _tell_names_apart(kind)
    match node:
        case n.StreamSource() | n.TableSource() | n.Repartition():
            _source(plan, part, node, known)
        case n.Sink():
            _sink(node, known)
        case n.Aggregate():
            _compare_bytes(plan, node)
            _aggregate(node, known)
        case n.StreamTableJoin():
            _compare_bytes(plan, node)
            _stream_table(plan, node, known)
        case _ if isinstance(node, _STATELESS):
            _pass_on(node, known)
        case _ if isinstance(node, _TABLES):
            _table(node, known)
        case _:
            raise _Unsupported(f"a {type(node).__name__} runs in Python")
    _functions(plan, node, known)


def _tell_names_apart(kind: DataType) -> None:
    """Spark takes names for the same that differ in their case alone, unless its user says otherwise."""
    if isinstance(kind, Struct):
        names = [name.lower() for name, _ in kind.fields]
        if len(set(names)) < len(names):
            raise _Unsupported(f"names of {kind} differ in case only")
    for each in _parts_of_type(kind):
        _tell_names_apart(each)


def _compare_bytes(plan: Plan, node: n.AnyNode) -> None:
    """Equal keys are those of equal bytes. Spark makes one of 0.0 and -0.0 where it groups and joins."""
    if _has_doubles(plan.by_name[node.inputs[0]].schema.key):
        raise _Unsupported("keys with doubles are compared as bytes")


def _has_doubles(kind: DataType) -> bool:
    return kind == DOUBLE or any(_has_doubles(each) for each in _parts_of_type(kind))


def _parts_of_type(kind: DataType) -> list[DataType]:
    match kind:
        case Struct():
            return [each for _, each in kind.fields]
        case Array():
            return [kind.element]
        case Map():
            return [kind.key, kind.value]
    return []


def _source(plan: Plan, part: SubTopology, node: n.StreamSource | n.TableSource | n.Repartition, known: _Known) -> None:
    if isinstance(node, n.Repartition) and node.inputs[0] in part.nodes and node.topic in part.written:
        _writable(node.key_serde, node.value_serde, node.inputs[0], known)
    if isinstance(node, n.Repartition) and node.topic not in part.topics:
        return
    if isinstance(node, n.StreamSource) and node.timestamp_of is not None:
        raise _Unsupported("timestamp_of is a Python function")
    if isinstance(node, n.TableSource) and node.sends_old_values and not _only_joined(plan, node.name):
        raise _Unsupported("a table that sends old values runs in Python")
    serdes = node.store if isinstance(node, n.TableSource) else node
    if not is_native(serdes.key_serde):
        raise _Unsupported(f"Spark cannot read keys of {serdes.key_serde}")
    if not is_native(serdes.value_serde):
        known.raw[node.name] = serdes.value_serde
    known.topics[node.name] = _read_from(node)


def _read_from(node: n.StreamSource | n.TableSource | n.Repartition) -> tuple[str, ...]:
    if not isinstance(node, n.StreamSource):
        return (node.topic,)
    # One topic today may be two at the next start: what runs the sub-topology must not change with that.
    return node.topics if node.pattern is None else (node.pattern.pattern, "and others")


def _only_joined(plan: Plan, name: str) -> bool:
    """Whether a table is there for streams to be joined with it alone: they look into its rows, whatever was before."""
    for node in plan.consumers[name]:
        match node:
            case n.StreamTableJoin():
                pass
            case n.TableFilter(store=None) | n.TableMapValues(store=None):
                if not _only_joined(plan, node.name):
                    return False
            case _:
                return False
    return True


def _sink(node: n.Sink, known: _Known) -> None:
    if node.partitioner is not None:
        raise _Unsupported("a partitioner is a Python function")
    if not isinstance(node.topic, str | Expression):
        raise _Unsupported("the topic is chosen by a Python function")
    _writable(node.key_serde, node.value_serde, node.inputs[0], known)


def _writable(key: Serde, value: Serde, fed_by: str, known: _Known) -> None:
    if not is_native(key):
        raise _Unsupported(f"Spark cannot write keys as {key}")
    raw = known.raw.get(fed_by)
    if raw is not None and raw != value:
        raise _Unsupported(f"Spark cannot read values of {raw}")
    if raw is None and not is_native(value):
        raise _Unsupported(f"Spark cannot write values as {value}")


def _pass_on(node: n.AnyNode, known: _Known) -> None:
    """What comes out of a stateless operator is as what goes in, unless there is a new value."""
    fed = node.inputs[0]
    topics = [known.topics.get(name) for name in node.inputs]
    if None in topics:
        known.topics[node.name] = None
    else:
        known.topics[node.name] = tuple(dict.fromkeys(topic for each in topics if each for topic in each))
    raws = [known.raw.get(name) for name in node.inputs]
    if any(raw != raws[0] for raw in raws[1:]):
        raise _Unsupported("it merges values of different serdes")
    if fed in known.raw and not isinstance(node, n.Map | n.MapValues | n.FlatMapValues):
        known.raw[node.name] = known.raw[fed]


def _aggregate(node: n.Aggregate, known: _Known) -> None:
    if not isinstance(node.aggregation, Count | Columns):
        raise _Unsupported(f"{node.aggregation} has a Python function")
    if node.windows is not None and not isinstance(node.windows, TimeWindows):
        raise _Unsupported(f"windows that are {node.windows} run in Python")
    if node.emit_final:
        raise _Unsupported("final results run in Python")
    if len(known.topics.get(node.inputs[0]) or ()) != 1:
        raise _Unsupported("it is not fed from one topic")
    if not is_native(node.store.value_serde) or not has_schema(node.schema.value):
        raise _Unsupported(f"Spark cannot write values as {node.store.value_serde}")
    known.topics[node.name] = None


def _stream_table(plan: Plan, node: n.StreamTableJoin, known: _Known) -> None:
    """The table must be read from a topic, perhaps filtered and mapped; the stream must not be behind a state."""
    if known.topics.get(node.inputs[0]) is None:
        raise _Unsupported("its stream is not fed from a topic")
    source, _ = table_chain(plan, node.inputs[1])
    if source is None:
        raise _Unsupported("its table is not read from a topic")
    if any(name in known.raw for name in node.inputs):
        raise _Unsupported("it joins values without a schema")
    known.topics[node.name] = None


def table_chain(plan: Plan, name: str) -> tuple[Any, list[Any]]:
    """The topic that a table is read from, and the filters and maps behind it; None if there is more to it."""
    node, chain = plan.by_name[name], []
    while isinstance(node, n.TableFilter | n.TableMapValues) and node.store is None:
        chain.append(node)
        node = plan.by_name[node.inputs[0]]
    return (node if isinstance(node, n.TableSource) else None), chain[::-1]


def _table(node: n.TableFilter | n.TableMapValues | n.ToStream | n.ToTable, known: _Known) -> None:
    if isinstance(node, n.ToTable) and node.sends_old_values:
        raise _Unsupported("a table that sends old values runs in Python")
    store = getattr(node, "store", None)
    if isinstance(store, KeyValueStore) and not isinstance(node, n.ToTable):
        _writable(store.key_serde, store.value_serde, node.inputs[0] if isinstance(node, n.TableFilter) else "", known)
    if isinstance(node, n.ToTable) and node.materialized:
        _writable(node.store.key_serde, node.store.value_serde, node.inputs[0], known)
    known.topics[node.name] = known.topics.get(node.inputs[0])
    if node.inputs[0] in known.raw and not isinstance(node, n.TableMapValues):
        known.raw[node.name] = known.raw[node.inputs[0]]


def _functions(plan: Plan, node: n.AnyNode, known: _Known) -> None:
    """All functions are columns, over values that have a schema."""
    for expression in expressions_of(node):
        if not isinstance(expression, Expression):
            raise _Unsupported("it has a Python function")
        parts = set(parts_of(expression))
        joined = node.inputs if isinstance(node, n.StreamTableJoin) else node.inputs[:1]
        for fed in joined if parts & {"value", "left", "right"} else ():
            if fed in known.raw or not has_schema(plan.by_name[fed].schema.value):
                raise _Unsupported(f"{expression} looks into values without a schema")
    new_values = n.Map | n.MapValues | n.FlatMapValues | n.TableMapValues | n.StreamTableJoin
    if isinstance(node, new_values) and not has_schema(node.schema.value):
        raise _Unsupported("the type of its values is not known")
    if isinstance(node, n.Map | n.SelectKey) and not has_schema(node.schema.key):
        raise _Unsupported("the type of its keys is not known")


def expressions_of(node: n.AnyNode) -> Iterator[object]:
    """All functions of a node, columns or not."""
    for name in _FUNCTIONS:
        function = getattr(node, name, None)
        if isinstance(function, tuple):
            yield from function
        elif function is not None:
            yield function
    if isinstance(node, n.Branch):
        yield from (predicate for _, predicate in node.branches if predicate is not None)
    if isinstance(node, n.Aggregate) and isinstance(node.aggregation, Columns):
        yield from (call.of for _, call in node.aggregation.columns if call.of is not None)
    if isinstance(node, n.Sink) and isinstance(node.topic, Expression):
        yield node.topic


def parts_of(expression: Expression) -> Iterator[str]:
    """The parts of a record that an expression looks at."""
    match expression:
        case Source(part):
            yield part
        case Field(of, _):
            yield from parts_of(of)
        case Cast(of, to):
            if to == TIMESTAMP:
                raise _Unsupported("a time is a number in a record, and another type in Spark")
            yield from parts_of(of)
        case Call(_, arguments):
            for argument in arguments:
                yield from parts_of(argument)
