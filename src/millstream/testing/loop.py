"""An event loop whose time jumps: nothing ever waits, so an hour of retries takes as long as its work.

It is asyncio's own loop with another clock and a selector that has no sockets: where the real one would sleep until
the next timer, this one moves the clock there. With the ports of this package nothing else can wake it, so the order
of all callbacks follows from the program and its seed alone.
"""

from __future__ import annotations

import asyncio
import selectors
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping
    from typing import TypeVar

    T = TypeVar("T")


class Stuck(Exception):
    """Nothing is left to run and no timer is set, but the awaited result has not come."""


class _JumpingSelector(selectors.BaseSelector):
    """Instead of waiting it moves the clock; its files never have news."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._keys: dict[Any, selectors.SelectorKey] = {}

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Stuck("no timer is set and nothing is ready: the simulation waits for something that cannot come")
        if timeout > 0:
            self.now_s += timeout
        return []

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = selectors.SelectorKey(fileobj, -1, events, data)
        self._keys[fileobj] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys[fileobj]


class VirtualLoop(asyncio.SelectorEventLoop):
    """Use `run` for a whole simulation."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now_s

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run `main` to its end, then drop whatever it left behind."""
        asyncio.set_event_loop(self)
        try:
            return self.run_until_complete(main)
        finally:
            self._drop_leftovers()
            asyncio.set_event_loop(None)
            self.close()

    def _drop_leftovers(self) -> None:
        leftovers = sorted(asyncio.all_tasks(self), key=lambda task: task.get_name())
        for task in leftovers:
            task.cancel()
        if leftovers:
            self.run_until_complete(asyncio.gather(*leftovers, return_exceptions=True))
