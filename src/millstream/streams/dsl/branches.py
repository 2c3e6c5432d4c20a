"""Branches: `stream.split().branch(a, name="a").branch(b, name="b").default_branch()` gives streams by name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from millstream.streams.errors import TopologyError
from millstream.streams.plan.nodes import Branch, BranchChild

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.streams.dsl.stream import KStream
    from millstream.streams.expressions.tree import Expression

    Function = Expression | Callable[..., Any]


class BranchedStream:
    """A stream that is being split. The branches exist once `default_branch` or `no_default_branch` was called."""

    def __init__(self, stream: KStream, name: str | None) -> None:
        self._stream = stream
        self._name = stream.draft.names.or_node(name, "KSTREAM-BRANCH-")
        self._branches: list[tuple[str, Function | None]] = []
        self._count = 0
        stream.draft.open_splits.add(self._name)

    def branch(self, predicate: Function, *, name: str | None = None) -> BranchedStream:
        """One more branch; a record goes to the first whose predicate holds."""
        self._stream._check_condition(predicate)
        self._count += 1
        self._take_number()
        self._branches.append((self._name + (name or str(self._count)), predicate))
        return self

    def default_branch(self, *, name: str | None = None) -> dict[str, KStream]:
        """All branches by name, and one for what no other takes."""
        self._take_number()
        self._branches.append((self._name + (name or "0"), None))
        return self.no_default_branch()

    def _take_number(self) -> None:
        """A branch is named after its split, but takes a number all the same."""
        self._stream.draft.names.number()

    def no_default_branch(self) -> dict[str, KStream]:
        """All branches by name; what none takes is dropped."""
        if not self._branches:
            raise TopologyError("a split needs a branch")
        stream, flow = self._stream, self._stream.flow
        stream.draft.open_splits.discard(self._name)
        stream.draft.add(
            Branch(name=self._name, inputs=(flow.node,), schema=flow.schema, branches=tuple(self._branches))
        )
        found: dict[str, KStream] = {}
        for name, _ in self._branches:
            stream.draft.add(BranchChild(name=name, inputs=(self._name,), schema=flow.schema))
            found[name] = type(stream)(stream.draft, replace(flow, node=name))
        return found
