"""The client for code without an event loop: the CLI, Spark executors, notebooks.

    with SyncClient({"bootstrap.servers": "localhost:9092"}) as client:
        topics = client.run(list_topics)
        client.run(create_topics, [NewTopic("orders", partitions=6)])

One event loop on one daemon thread serves all calls; they may come from any thread, also from one that has a running
loop of its own (a notebook). This is the one place of the client with a thread, and it is never part of a simulation.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from millstream.client.client import Client
from millstream.runtime.loops import new_event_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from concurrent.futures import Future
    from typing import Any, Self

    from millstream.client.options import Options

P = ParamSpec("P")
T = TypeVar("T")


class SyncClient:
    """A Client on a thread of its own."""

    def __init__(self, options: Mapping[str, str] | Options) -> None:
        self.client = Client(options)
        self._loop = new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="millstream-client", daemon=True)
        self._thread.start()

    def run(
        self, call: Callable[Concatenate[Client, P], Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a function that takes the client first, and wait for its result."""
        return self.wait(self.start(call, *args, **kwargs))

    def start(
        self, call: Callable[Concatenate[Client, P], Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]:
        """Start a function that takes the client first; `wait` gives its result."""
        return asyncio.run_coroutine_threadsafe(call(self.client, *args, **kwargs), self._loop)

    def wait(self, future: Future[T]) -> T:
        try:
            return future.result()
        except BaseException:
            # Ctrl-C while waiting: the call must not go on behind the caller's back.
            future.cancel()
            raise

    def close(self) -> None:
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._finish(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _finish(self) -> None:
        await self.client.close()
        await self._loop.shutdown_default_executor()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
