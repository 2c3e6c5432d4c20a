"""Joins of tables: by the same key, and by a foreign key."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from millstream.streams.errors import TopologyError
from millstream.streams.expressions import Scope
from millstream.streams.plan.nodes import ForeignKeyJoin, JoinKind, TableJoin
from millstream.streams.plan.stores import KeyValueStore
from millstream.streams.types import ANY

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.streams.expressions.tree import Expression
    from millstream.streams.plan.drafting import Draft, Flow
    from millstream.streams.plan.names import Suffixed

    Function = Expression | Callable[..., Any]


def by_key(
    draft: Draft,
    kind: JoinKind,
    sides: tuple[Flow, Flow],
    joiner: Function,
    names: Suffixed,
    store: str | None,
    result: Any,
    *,
    with_key: bool,
) -> Flow:
    """Two tables whose keys are the same."""
    this, other = sides
    draft.copartition(this, other, "join of tables")
    if kind != "inner":
        draft.enable_old_values(this.node)
    if kind == "outer":
        draft.enable_old_values(other.node)
    draft.needs_values(this.node)
    draft.needs_values(other.node)
    own = names.or_node("KTABLE-MERGE-")
    this_join = names.part("-join-this", "KTABLE-JOINTHIS-")
    other_join = names.part("-join-other", "KTABLE-JOINOTHER-")
    scope = Scope(this.schema.key, this.schema.value, right=other.schema.value, windowed=this.schema.windowed)
    serde, kind_of_value = draft.result(joiner, scope, result)
    key_serde = draft.key_serde(this)
    node = TableJoin(
        name=own,
        inputs=(this.node, other.node),
        schema=replace(this.schema, value=serde.type if kind_of_value == ANY and serde else kind_of_value),
        kind=kind,
        joiner=joiner,
        with_key=with_key,
        this_join=this_join,
        other_join=other_join,
        store=None if store is None else KeyValueStore(store, key_serde, serde or draft.default_value),
    )
    draft.add(node)
    sources = tuple(dict.fromkeys((*this.sources, *other.sources)))
    return replace(
        this, node=own, key_serde=key_serde, value_serde=serde, schema=node.schema, sources=sources, windows=None
    )


_FK = "KTABLE-FK-JOIN-"
# Role, suffix with a name of one's own, prefix without: in the order in which Kafka Streams takes the numbers.
_PARTS = (
    ("subscription topic", "-subscription-registration-topic", f"{_FK}SUBSCRIPTION-REGISTRATION-"),
    ("send", "-subscription-registration-processor", f"{_FK}SUBSCRIPTION-REGISTRATION-"),
    ("subscription sink", "-subscription-registration-sink", "KTABLE-SINK-"),
    ("subscription source", "-subscription-registration-source", "KTABLE-SOURCE-"),
    ("store", "-subscription-store", f"{_FK}SUBSCRIPTION-STATE-STORE-"),
    ("receive", "-subscription-receive", f"{_FK}SUBSCRIPTION-PROCESSOR-"),
    ("join", "-subscription-join-foreign", f"{_FK}SUBSCRIPTION-PROCESSOR-"),
    ("foreign join", "-foreign-join-subscription", f"{_FK}SUBSCRIPTION-PROCESSOR-"),
    ("response topic", "-subscription-response-topic", f"{_FK}SUBSCRIPTION-RESPONSE-"),
    ("response sink", "-subscription-response-sink", "KTABLE-SINK-"),
    ("response source", "-subscription-response-source", "KTABLE-SOURCE-"),
    ("resolver", "-subscription-response-resolver", f"{_FK}SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR-"),
)


def by_foreign_key(
    draft: Draft,
    kind: JoinKind,
    sides: tuple[Flow, Flow],
    extractor: Function,
    joiner: Function,
    names: Suffixed,
    store: str | None,
    result: Any,
    *,
    with_key: bool,
) -> Flow:
    """A table to another by a key in its value; the result has this table's keys."""
    this, other = sides
    if kind == "outer":
        raise TopologyError("a foreign-key join is inner or left: a row that nobody refers to has no key of its own")
    _, extracted = draft.result(extractor, this.scope)
    if ANY not in (extracted, other.schema.key) and extracted != other.schema.key:
        raise TopologyError(f"a foreign key of type {extracted} never equals a key of type {other.schema.key}")
    draft.enable_old_values(other.node)
    draft.enable_old_values(this.node)
    draft.needs_values(this.node)
    draft.needs_values(other.node)
    parts: dict[str, str] = {}
    for role, suffix, prefix in _PARTS:
        made = names.part(suffix, prefix)
        parts[role] = f"{made}-topic" if role.endswith("topic") and not names.own else made
    own = names.part("-result", f"{_FK}OUTPUT-")
    for role in ("subscription topic", "response topic"):
        draft.names.take(parts[role], "internal topic")
    scope = Scope(this.schema.key, this.schema.value, right=other.schema.value)
    serde, value_type = draft.result(joiner, scope, result)
    key_serde = draft.key_serde(this)
    node = ForeignKeyJoin(
        name=own,
        inputs=(this.node, other.node),
        schema=replace(this.schema, value=serde.type if value_type == ANY and serde else value_type),
        kind=kind,
        extractor=extractor,
        joiner=joiner,
        with_key=with_key,
        primary_key_serde=key_serde,
        primary_value_serde=draft.value_serde(this),
        foreign_key_serde=draft.key_serde(other),
        foreign_value_serde=draft.value_serde(other),
        subscription_store=parts["store"],
        names=tuple(parts.items()),
        store=KeyValueStore(store or draft.names.store(f"{_FK}OUTPUT-"), key_serde, serde or draft.default_value),
        materialized=store is not None,
    )
    draft.add(node)
    return replace(this, node=own, key_serde=key_serde, value_serde=serde, schema=node.schema, windows=None)
