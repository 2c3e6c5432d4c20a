"""Whether serdes and types fit together, and what a function's annotation says of its result."""

from __future__ import annotations

from typing import Any, get_type_hints

from millstream.streams.errors import TopologyError
from millstream.streams.serdes import Serde, serde_of
from millstream.streams.types import ANY, DOUBLE, INT, LONG, NULL, TIMESTAMP, DataType, Struct, type_of

# What a serde of one type can also write.
_WRITES = {DOUBLE: (INT, LONG), LONG: (INT, TIMESTAMP), TIMESTAMP: (INT, LONG), INT: (LONG,)}


def fitting(given: Any, kind: DataType, what: str) -> Serde:
    """The serde that is meant; TopologyError if it cannot write values of this type."""
    serde = serde_of(given)
    fits = (
        ANY in (kind, serde.type)
        or kind in (NULL, serde.type)
        or kind in _WRITES.get(serde.type, ())
        or (isinstance(kind, Struct) and isinstance(serde.type, Struct))
    )
    if not fits:
        raise TopologyError(f"{what} is a {kind}, but its serde is for {serde.type}: cast it, or give another serde")
    return serde


def returned_type(function: object) -> DataType:
    """The type that a function's annotation says it returns; ANY if it says nothing that can be used."""
    try:
        hints = get_type_hints(function)
        return type_of(hints["return"]) if "return" in hints else ANY
    except (TypeError, NameError, AttributeError):
        return ANY
