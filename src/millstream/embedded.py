"""A broker inside this process: for tests, notebooks and programs that bring their own log.

    with Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

It is the real broker with the real disk and real sockets, on a loop in a thread of its own. `async with Broker()` runs
it on the running loop instead. Without a directory it lives in a temporary one, which goes when it stops.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
from os import PathLike, fspath
from typing import TYPE_CHECKING, Self

from millstream.broker.node import Node
from millstream.metadata.decide_create_topics import decide_create_topics
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from millstream.runtime.loops import new_event_loop
from millstream.runtime.real import RealPorts
from millstream.settings.loading import load

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType


class Broker:
    """A one-node cluster. `settings` are Kafka's, by Kafka's names: Broker(settings={"num.partitions": 3})."""

    def __init__(
        self,
        data_dir: str | PathLike[str] | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        self._data_dir = None if data_dir is None else fspath(data_dir)
        # An IPv6 address stands in brackets where a port follows.
        self._host = f"[{host}]" if ":" in host else host
        self._port = port
        self._given = {name: _as_text(value) for name, value in (settings or {}).items()}
        self._temporary: str | None = None
        self._node: Node | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def bootstrap_servers(self) -> str:
        """What clients call `bootstrap.servers`."""
        return f"{self._host}:{self.port}"

    @property
    def port(self) -> int:
        return self._running.port

    @property
    def data_dir(self) -> str:
        return self._running.data_directories[0]

    @property
    def cluster_id(self) -> str:
        return self._running.cluster_id

    def create_topic(self, name: str, *, partitions: int = 1, config: Mapping[str, object] | None = None) -> str:
        """Make a topic without a client. Only for a broker that was started with `with` or `start`."""
        if self._loop is None:
            raise RuntimeError("on a running loop, use `await broker.add_topic(...)`")
        return asyncio.run_coroutine_threadsafe(
            self.add_topic(name, partitions=partitions, config=config), self._loop
        ).result()

    async def add_topic(self, name: str, *, partitions: int = 1, config: Mapping[str, object] | None = None) -> str:
        """The same for `async with`."""
        node = self._running
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name=name,
                    num_partitions=partitions,
                    replication_factor=-1,
                    assignments=[],
                    configs=[
                        CreatableTopicConfig(name=key, value=_as_text(value)) for key, value in (config or {}).items()
                    ],
                )
            ]
        )
        response = await node.controller.submit(
            lambda image, _: decide_create_topics(image, request, settings=node.settings, random=node.ports.random)
        )
        result = response.topics[0]
        if result.error_code:
            raise ValueError(f"{name}: {result.error_message or ErrorCode(result.error_code).name}")
        return name

    @property
    def _running(self) -> Node:
        if self._node is None:
            raise RuntimeError("the broker is not running: use it as a context manager, or call start()")
        return self._node

    # --- in a thread

    def start(self) -> Self:
        """Start on a loop in a thread of its own; returns when clients are accepted."""
        if self._node is not None:
            raise RuntimeError("the broker is running already")
        self._loop = new_event_loop()
        self._thread = threading.Thread(target=self._run_loop, name="millstream-broker", daemon=True)
        self._thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()
        except BaseException:
            self._end_thread()
            self._forget_temporary()
            raise
        return self

    def stop(self) -> None:
        """Stop cleanly. Calling it twice does no harm."""
        if self._node is None or self._loop is None:
            return
        try:
            asyncio.run_coroutine_threadsafe(self._node.stop(), self._loop).result()
        finally:
            self._node = None
            self._end_thread()
            self._forget_temporary()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run_loop(self) -> None:
        assert self._loop is not None
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _end_thread(self) -> None:
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
        self._loop = self._thread = None

    # --- on the running loop

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            self._forget_temporary()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        node, self._node = self._node, None
        if node is not None:
            await node.stop()
        self._forget_temporary()

    async def _start(self) -> None:
        directory = self._data_dir
        if directory is None:
            directory = self._temporary = tempfile.mkdtemp(prefix="millstream-")
        loaded = load(
            options={"log.dirs": directory, "listeners": f"PLAINTEXT://{self._host}:{self._port}", **self._given}
        )
        node = Node(loaded.settings, RealPorts())
        await node.start()
        self._node = node

    def _forget_temporary(self) -> None:
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = None


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
