"""A plan with its functions and dataclasses as bytes, for workers.

Functions and classes of the main program travel by value. msgspec leaves what it has compiled on the dataclasses that
it reads, and that cannot travel; it makes it again when it is missing.
"""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Any

from millstream.streams.types import Array, DataType, Map, Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.streams.plan.plan import Plan

_CACHE = "__msgspec_cache__"


def pickled(program: object, plan: Plan) -> bytes:
    """The program, with what a worker cannot import."""
    from pyspark import cloudpickle

    for kind in {id(kind): kind for kind in _dataclasses(plan)}.values():
        if _CACHE in vars(kind):
            delattr(kind, _CACHE)
    dumps: Any = cloudpickle.dumps
    found: bytes = dumps(program)
    return found


def _dataclasses(plan: Plan) -> Iterator[type]:
    """Those of the plan's schemas, and those of the main program."""
    for node in plan.nodes:
        for kind in (node.schema.key, node.schema.value):
            yield from _of(kind)
    for held in list(vars(sys.modules["__main__"]).values()):
        if isinstance(held, type) and dataclasses.is_dataclass(held):
            yield held


def _of(kind: DataType) -> Iterator[type]:
    match kind:
        case Struct():
            if kind.of is not None:
                yield kind.of
            for _, each in kind.fields:
                yield from _of(each)
        case Array():
            yield from _of(kind.element)
        case Map():
            yield from _of(kind.value)
