"""What can be seen of a node alone to fail at its first record, whoever made it: refused when it is added.

The types of columns are checked where they are compiled, and how nodes fit together where they are joined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.streams.errors import TopologyError
from millstream.streams.expressions.tree import Expression
from millstream.streams.plan.names import LEGAL, is_legal
from millstream.streams.plan.nodes import Branch, Sink
from millstream.streams.plan.plan import topics_read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.streams.plan.nodes import AnyNode

_FUNCTIONS = ("predicate", "mapper", "selector", "joiner", "action", "extractor", "supplier")
_OF_AGGREGATIONS = ("initializer", "aggregator", "reducer")
_OPTIONAL = ("timestamp_of", "partitioner")


def check_node(node: AnyNode) -> None:
    """TopologyError if it cannot work."""
    for function in _functions(node):
        if not callable(function) and not isinstance(function, Expression):
            raise TopologyError(f"{node.name}: {function!r} is neither a function nor a column")
    for topic in _topics(node):
        if not topic:
            raise TopologyError("a topic without a name")
        if not is_legal(topic):
            raise TopologyError(f"a topic cannot be called {topic!r}: {LEGAL}")
    partitions = getattr(node, "partitions", None)
    if partitions is not None and (not isinstance(partitions, int) or partitions < 1):
        raise TopologyError(f"{node.name}: a topic cannot have {partitions!r} partitions")


def _functions(node: AnyNode) -> Iterator[Any]:
    for name in _FUNCTIONS:
        if hasattr(node, name):
            found = getattr(node, name)
            yield from found if isinstance(found, tuple) else (found,)
    aggregation = getattr(node, "aggregation", None)
    for name in _OF_AGGREGATIONS:
        if hasattr(aggregation, name):
            yield getattr(aggregation, name)
    for name in _OPTIONAL:
        if getattr(node, name, None) is not None:
            yield getattr(node, name)
    match node:
        case Branch(branches=branches):
            yield from (predicate for _, predicate in branches if predicate is not None)
        case Sink(topic=topic) if not isinstance(topic, str):
            yield topic


def _topics(node: AnyNode) -> Iterator[str]:
    yield from topics_read(node)
    match node:
        case Sink(topic=str(topic)):
            yield topic
