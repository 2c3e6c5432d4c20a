"""An event loop whose time jumps: nothing ever waits, so an hour of retries takes as long as its work.

It is asyncio's own loop with another clock and a selector that has no sockets: where the real one would sleep until
the next timer, this one moves the clock there. With the ports of this package nothing else can wake it, so the order
of all callbacks follows from the program and its seed alone.

Many simulated programs share the loop. Whose turn a callback is, its context tells: whoever starts a program does it
inside its `Process`, and every task, timer and callback that comes of it inherits that. So a program can be stopped
(SIGSTOP: its callbacks are kept while time goes on) and killed (they are dropped; not even a `finally` runs).
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import heapq
import selectors
import warnings
import weakref
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Coroutine, Mapping
    from typing import TypeVar

    T = TypeVar("T")

# asyncio's own figures: from so many timers on, it is worth while to throw the cancelled ones out.
_TIMERS_WORTH_TIDYING = 100


class Stuck(Exception):
    """Nothing is left to run and no timer is set, but the awaited result has not come."""


class _JumpingSelector(selectors.BaseSelector):
    """Its files never have news."""

    def __init__(self) -> None:
        self._keys: dict[Any, selectors.SelectorKey] = {}

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
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


class _State(Enum):
    RUNNING = 1
    STOPPED = 2
    DEAD = 3


_RUNNING = _State.RUNNING


class _Call(asyncio.Handle):
    """A handle without asyncio's traces of where it was made."""

    __slots__ = ()

    def __init__(self, callback: Callable[..., Any], args: tuple[Any, ...], loop: VirtualLoop, context: Any) -> None:
        self._context = contextvars.copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = self._source_traceback = None


class _Timer(asyncio.TimerHandle):
    """The same for a point in time."""

    __slots__ = ()

    def __init__(
        self, when: float, callback: Callable[..., Any], args: tuple[Any, ...], loop: VirtualLoop, context: Any
    ) -> None:
        self._context = contextvars.copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = self._source_traceback = None
        self._when = when
        self._scheduled = False


class Process:
    """One run of one simulated program: from its start to its end or its death."""

    def __init__(self, loop: VirtualLoop, name: str) -> None:
        self.name = name
        self.ended: asyncio.Future[None] = loop.create_future()
        self.state = _State.RUNNING
        self._loop = loop
        self._held: list[asyncio.Handle] = []
        self._graveyard: list[asyncio.Task[Any]] = []
        self._context = contextvars.Context()
        self._context.run(_process.set, self)

    @property
    def runs(self) -> bool:
        return self.state is _State.RUNNING

    @property
    def is_dead(self) -> bool:
        return self.state is _State.DEAD

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run something as a part of this program."""
        return self._loop.create_task(work, context=self._context.copy())

    def run(self, call: Callable[..., T], *arguments: Any) -> T:
        """Call something at once, as a part of this program."""
        return self._context.copy().run(call, *arguments)

    def stop(self) -> None:
        """SIGSTOP: nothing of it runs until `go_on`; timers that come due in between are late."""
        if self.runs:
            self.state = _State.STOPPED

    def go_on(self) -> None:
        """SIGCONT."""
        if self.state is _State.STOPPED:
            self.state = _State.RUNNING
            held, self._held = self._held, []
            self._loop.ready_again(held)

    def kill(self) -> None:
        """SIGKILL. Its tasks are kept until the simulation ends, so that no destructor runs code of a dead program."""
        if not self.is_dead:
            self.state = _State.DEAD
            self._held.clear()
            self._graveyard = self._loop.tasks_of(self)
            if not self.ended.done():
                self.ended.set_result(None)

    def hold(self, handle: asyncio.Handle) -> None:
        if self.state is _State.STOPPED:
            self._held.append(handle)


_process: contextvars.ContextVar[Process | None] = contextvars.ContextVar("simulated process", default=None)


def current_process() -> Process | None:
    """The program whose code is running; None in the simulator's own and in clients."""
    return _process.get()


class VirtualLoop(asyncio.SelectorEventLoop):
    """Use `run` for a whole simulation."""

    # What asyncio keeps to itself.
    _ready: deque[asyncio.Handle]
    _scheduled: list[tuple[float, int, _Timer]]
    _timer_cancelled_count: int
    _stopping: bool

    def __init__(self) -> None:
        self._now_s = 0.0
        self._timers = 0
        self._owners: weakref.WeakKeyDictionary[asyncio.Task[Any], Process] = weakref.WeakKeyDictionary()
        self.turns = 0
        self.after_turn: Callable[[dict[Process, None]], None] | None = None
        """Called with the programs that have run in this turn of the loop; what it raises ends the simulation."""
        super().__init__(_JumpingSelector())

    def _make_self_pipe(self) -> None:
        """Other threads wake a loop through it; this one never sleeps. So a loop that was never run costs nothing."""
        self._ssock = self._csock = None

    def _close_self_pipe(self) -> None:
        pass

    def __del__(self) -> None:
        if not self.is_closed():
            self.close()

    def time(self) -> float:
        return self._now_s

    def create_task(self, coro: Any, *, name: object = None, context: Any = None) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = super().create_task(coro, name=name, context=context)
        process = _process.get() if context is None else cast("Process | None", context.get(_process))
        if process is not None:
            self._owners[task] = process
        return task

    def tasks_of(self, process: Process) -> list[asyncio.Task[Any]]:
        return [task for task, owner in self._owners.items() if owner is process and not task.done()]

    def ready_again(self, handles: list[asyncio.Handle]) -> None:
        self._ready.extend(handles)

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run `main` to its end, then drop whatever it left behind."""
        asyncio.set_event_loop(self)
        # What was there before needs no look when the leftovers are collected: in a large process that look takes
        # longer than a whole simulation.
        gc.freeze()
        try:
            return self.run_until_complete(main)
        finally:
            self._drop_leftovers()
            gc.unfreeze()
            asyncio.set_event_loop(None)
            self.close()

    # --- scheduling: asyncio's own without its checks for debugging, which take as long as the rest of it

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> asyncio.Handle:
        handle = _Call(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        return self._call_at(self._now_s + delay, callback, args, context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        return self._call_at(when, callback, args, context)

    def _call_at(
        self, when: float, callback: Callable[..., Any], args: tuple[Any, ...], context: Any
    ) -> asyncio.TimerHandle:
        # With a number, so that timers of one moment run in the order in which they were set, and compare quickly.
        timer = _Timer(when, callback, args, self, context)
        timer._scheduled = True
        self._timers += 1
        heapq.heappush(self._scheduled, (when, self._timers, timer))
        return timer

    def _run_once(self) -> None:  # noqa: C901, PLR0912  # in one piece: it runs a hundred thousand turns for each seed
        """Turns until the loop is stopped: as asyncio's, but the clock moves instead of waiting, and programs may be
        stopped or dead."""
        ready, scheduled = self._ready, self._scheduled
        take, process_of = ready.popleft, _process
        while True:
            if len(scheduled) > _TIMERS_WORTH_TIDYING and 2 * self._timer_cancelled_count > len(scheduled):
                self._tidy_timers()
            while scheduled and scheduled[0][2]._cancelled:
                heapq.heappop(scheduled)[2]._scheduled = False
                self._timer_cancelled_count -= 1
            if not ready and not self._stopping:
                if not scheduled:
                    raise Stuck("no timer is set and nothing is ready: the simulation waits for what cannot come")
                self._now_s = max(self._now_s, scheduled[0][0])
            now_s = self._now_s
            while scheduled and scheduled[0][0] <= now_s:
                timer = heapq.heappop(scheduled)[2]
                timer._scheduled = False
                ready.append(timer)
            ran: dict[Process, None] = {}
            for _ in range(len(ready)):
                handle: Any = take()
                if handle._cancelled:
                    continue
                context = handle._context
                process = context.get(process_of)
                if process is not None:
                    if process.state is not _RUNNING:
                        process.hold(handle)
                        continue
                    ran[process] = None
                try:
                    context.run(handle._callback, *handle._args)
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as error:  # noqa: BLE001  # as asyncio's
                    self._failed(handle, error)
            self.turns += 1
            if ran and self.after_turn is not None:
                self.after_turn(ran)
            if self._stopping:
                return

    def _failed(self, handle: asyncio.Handle, error: BaseException) -> None:
        self.call_exception_handler(
            {"message": f"Exception in callback {handle!r}", "exception": error, "handle": handle}
        )

    def _tidy_timers(self) -> None:
        """Throw the cancelled ones out, in place: a turn holds on to the list."""
        scheduled = self._scheduled
        for _, _, timer in scheduled:
            timer._scheduled = not timer._cancelled
        scheduled[:] = [entry for entry in scheduled if not entry[2]._cancelled]
        heapq.heapify(scheduled)
        self._timer_cancelled_count = 0

    def _drop_leftovers(self) -> None:
        """End every task where it stands. It could only go on in a world that is over."""
        self.after_turn = None
        self.set_exception_handler(lambda *_: None)
        with warnings.catch_warnings():
            # Coroutines that a killed program had made and not begun.
            warnings.simplefilter("ignore", RuntimeWarning)
            for task in asyncio.all_tasks(self):
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                process = self._owners.get(task)
                if process is not None:
                    process.kill()
                with suppress(BaseException):
                    contextvars.Context().run(cast("Any", task.get_coro()).close)
            self._ready.clear()
            self._scheduled.clear()
            gc.collect()
