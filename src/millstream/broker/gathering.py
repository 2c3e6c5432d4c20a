"""One answer from several: a request that asks many shards is answered when the last of them has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.broker.dispatch import Deferred

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def gather(parts: Sequence[Deferred], combine: Callable[[list[Any]], Any]) -> Any:
    """What `combine` makes of the parts' responses, in their order: at once if all are there, else as a Deferred."""
    missing = [part for part in parts if not part.done]
    if not missing:
        return combine([part.response for part in parts])

    def abandon() -> None:
        for part in parts:
            part.abandon()

    whole = Deferred(on_abandon=abandon)

    def one_came() -> None:
        if all(part.done for part in parts):
            whole.finish(combine([part.response for part in parts]))

    for part in missing:
        part.when_done(one_came)
    return whole
