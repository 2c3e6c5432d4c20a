"""Joins of a stream: with a stream in a window of time, with a table, with a global table.

A side whose key has changed first goes through an internal topic; sides whose topics are known to have different
numbers of partitions are refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from millstream.streams.expressions import Scope
from millstream.streams.plan.nodes import JoinKind, Schema, StreamGlobalJoin, StreamJoin, StreamTableJoin
from millstream.streams.plan.stores import KeyValueStore, WindowStore
from millstream.streams.types import ANY

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.streams.expressions.tree import Expression
    from millstream.streams.plan.drafting import Draft, Flow
    from millstream.streams.plan.names import Suffixed
    from millstream.streams.windows import JoinWindows

    Function = Expression | Callable[..., Any]


def with_stream(
    draft: Draft,
    kind: JoinKind,
    sides: tuple[Flow, Flow],
    joiner: Function,
    windows: JoinWindows,
    names: Suffixed,
    store: str | None,
    given: tuple[Any, Any, Any, Any],
    *,
    with_key: bool,
) -> Flow:
    """The node of a join of two streams, and what comes out of it."""
    key, value, other_value, result = given
    this, other = sides
    if this.key_changed:
        prefix = f"{names.own}-left" if names.own else this.node
        this = draft.repartition(this, prefix, key=key, value=value, reuse=not names.own)
    if other.key_changed:
        prefix = f"{names.own}-right" if names.own else other.node
        other = draft.repartition(other, prefix, key=key, value=other_value, reuse=not names.own)
    draft.copartition(this, other, "join")
    left_outer, right_outer = kind != "inner", kind == "outer"
    this_suffix = "-outer-this-join" if right_outer else "-this-join"
    other_suffix = "-outer-other-join" if left_outer else "-other-join"
    this_windowed = names.part("-this-windowed", "KSTREAM-WINDOWED-")
    other_windowed = names.part("-other-windowed", "KSTREAM-WINDOWED-")
    # The numbers are taken also where the names are not used, as in Kafka Streams.
    this_made = draft.names.node("KSTREAM-OUTERTHIS-" if right_outer else "KSTREAM-JOINTHIS-")
    other_made = draft.names.node("KSTREAM-OUTEROTHER-" if left_outer else "KSTREAM-JOINOTHER-")
    own = names.part("-merge", "KSTREAM-MERGE-")
    key_serde = draft.key_serde(this, key)
    this_serde, other_serde = draft.value_serde(this, value), draft.value_serde(other, other_value)
    outer_store = None
    if left_outer:
        suffix = "-outer-shared-join" if right_outer else "-left-shared-join"
        shared = f"{store}{suffix}" if store else f"KSTREAM-OUTERSHARED-{this_made[-10:]}"
        outer_store = KeyValueStore(f"{shared}-store", key_serde, this_serde, timestamped=False)
    scope = Scope(this.schema.key, this.schema.value, right=other.schema.value)
    serde, value_type = draft.result(joiner, scope, result)
    node = StreamJoin(
        name=own,
        inputs=(this.node, other.node),
        schema=Schema(this.schema.key, _declared(value_type, serde)),
        kind=kind,
        joiner=joiner,
        with_key=with_key,
        windows=windows,
        this_windowed=this_windowed,
        other_windowed=other_windowed,
        this_join=names.own + this_suffix if names.own else this_made,
        other_join=names.own + other_suffix if names.own else other_made,
        this_store=_window_store(f"{store}{this_suffix}" if store else this_made, windows, key_serde, this_serde),
        other_store=_window_store(f"{store}{other_suffix}" if store else other_made, windows, key_serde, other_serde),
        outer_store=outer_store,
    )
    draft.add(node)
    sources = tuple(dict.fromkeys((*this.sources, *other.sources)))
    return replace(this, node=own, key_serde=key_serde, value_serde=serde, schema=node.schema, sources=sources)


def _window_store(prefix: str, windows: JoinWindows, key_serde: Any, value_serde: Any) -> WindowStore:
    return WindowStore(
        f"{prefix}-store",
        key_serde,
        value_serde,
        size_ms=windows.size_ms,
        retention_ms=windows.retention_ms,
        timestamped=False,
        duplicates=True,
    )


def with_table(
    draft: Draft,
    kind: JoinKind,
    sides: tuple[Flow, Flow],
    joiner: Function,
    names: Suffixed,
    given: tuple[Any, Any, Any, Any],
    *,
    with_key: bool,
) -> Flow:
    """Each record with the table's value of the moment."""
    key, value, _, result = given
    this, table = sides
    if this.key_changed:
        this = draft.repartition(this, names.own or this.node, key=key, value=value, reuse=not names.own)
    draft.copartition(this, table, "join with a table")
    draft.needs_values(table.node)
    own = names.or_node("KSTREAM-LEFTJOIN-" if kind == "left" else "KSTREAM-JOIN-")
    scope = Scope(this.schema.key, this.schema.value, right=table.schema.value, windowed=this.schema.windowed)
    serde, value_type = draft.result(joiner, scope, result)
    node = StreamTableJoin(
        name=own,
        inputs=(this.node, table.node),
        schema=replace(this.schema, value=_declared(value_type, serde)),
        kind=kind,
        joiner=joiner,
        with_key=with_key,
    )
    draft.add(node)
    sources = tuple(dict.fromkeys((*this.sources, *table.sources)))
    return replace(this, node=own, value_serde=serde, schema=node.schema, sources=sources)


def with_global(
    draft: Draft,
    kind: JoinKind,
    sides: tuple[Flow, Flow],
    on: Function,
    joiner: Function,
    names: Suffixed,
    result: Any,
    *,
    with_key: bool,
) -> Flow:
    """Each record with the global table's value for a key of the record's."""
    this, table = sides
    own = names.or_node("KSTREAM-LEFTJOIN-")
    scope = Scope(this.schema.key, this.schema.value, right=table.schema.value, windowed=this.schema.windowed)
    serde, value_type = draft.result(joiner, scope, result)
    draft.result(on, this.scope)
    node = StreamGlobalJoin(
        name=own,
        inputs=(this.node,),
        schema=replace(this.schema, value=_declared(value_type, serde)),
        kind=kind,
        selector=on,
        joiner=joiner,
        table=table.node,
        with_key=with_key,
    )
    draft.add(node)
    return replace(this, node=own, value_serde=serde, schema=node.schema)


def _declared(kind: Any, serde: Any) -> Any:
    return serde.type if kind == ANY and serde is not None else kind
