"""A broker inside this process: for tests, notebooks and programs that bring their own log.

    with Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

    with Cluster(brokers=3) as cluster:
        cluster.create_topic("orders", partitions=6)
        cluster.stop_broker(2)

It is the real broker with the real disk and real sockets, on a loop in a thread of its own. `async with Broker()` runs
it on the running loop instead. Without a directory it lives in a temporary one, which goes when it stops. A Cluster is
several of them, each a broker and a controller, with one quorum: for tests of what happens when one of them is away.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Self, TypeVar

from millstream.broker.forwarding import create_topics
from millstream.broker.node import Node
from millstream.broker.storage_format import NotFormatted, StorageLayout, format_storage, load_storage
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from millstream.runtime.free_ports import free_ports
from millstream.runtime.logs import Logger
from millstream.runtime.loops import new_event_loop
from millstream.runtime.real import RealPorts
from millstream.settings.loading import load

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from types import TracebackType

    from millstream.metadata.image import MetadataImage
    from millstream.settings.effective import Settings

_log = Logger("millstream")
T = TypeVar("T")
HOST = "127.0.0.1"


class _Embedded:
    """What runs on a loop: in a thread of its own (`with`), or on the running one (`async with`)."""

    def __init__(self, data_dir: str | PathLike[str] | None, settings: Mapping[str, object] | None) -> None:
        self._data_dir = None if data_dir is None else fspath(data_dir)
        self._given = {name: _as_text(value) for name, value in (settings or {}).items()}
        self._warned: set[str] = set()
        self._temporary: str | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    async def _start(self) -> None:
        raise NotImplementedError

    def _load(self, options: Mapping[str, str]) -> Settings:
        """These settings and the given ones; what is given in vain is logged once, however many nodes have it."""
        loaded = load(options={**options, **self._given})
        for warning in loaded.warnings:
            if warning not in self._warned:
                self._warned.add(warning)
                _log.warning(warning)
        return loaded.settings

    async def _stop(self) -> None:
        raise NotImplementedError

    @property
    def _is_running(self) -> bool:
        raise NotImplementedError

    def _directory(self) -> str:
        if self._data_dir is not None:
            return self._data_dir
        if self._temporary is None:
            self._temporary = tempfile.mkdtemp(prefix="millstream-")
        return self._temporary

    def _in_thread(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            work.close()
            raise RuntimeError("on a running loop, await add_topic, take_out and bring_back instead")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    # --- in a thread

    def start(self) -> Self:
        """Start on a loop in a thread of its own; returns when clients are accepted."""
        if self._is_running:
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
        if not self._is_running or self._loop is None:
            return
        try:
            asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        finally:
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
        if self._is_running:
            await self._stop()
        self._forget_temporary()

    def _forget_temporary(self) -> None:
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = None


class Broker(_Embedded):
    """A one-node cluster. `settings` are Kafka's, by Kafka's names: Broker(settings={"num.partitions": 3})."""

    def __init__(
        self,
        data_dir: str | PathLike[str] | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(data_dir, settings)
        # An IPv6 address stands in brackets where a port follows.
        self._host = f"[{host}]" if ":" in host else host
        self._port = port
        self._node: Node | None = None

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
        return self._in_thread(self.add_topic(name, partitions=partitions, config=config))

    async def add_topic(self, name: str, *, partitions: int = 1, config: Mapping[str, object] | None = None) -> str:
        """The same for `async with`."""
        return await _add_topic(self._running, name, partitions, -1, config or {})

    @property
    def _running(self) -> Node:
        if self._node is None:
            raise RuntimeError("the broker is not running: use it as a context manager, or call start()")
        return self._node

    @property
    def _is_running(self) -> bool:
        return self._node is not None

    async def _start(self) -> None:
        listeners = f"PLAINTEXT://{self._host}:{self._port}"
        node = Node(self._load({"log.dirs": self._directory(), "listeners": listeners}), RealPorts())
        await node.start()
        self._node = node

    async def _stop(self) -> None:
        node, self._node = self._node, None
        if node is not None:
            await node.stop()


class Cluster(_Embedded):
    """Several nodes, each a broker and a controller, numbered from 1. `settings` are for all of them.

    Topics get as many replicas as there are brokers, up to three, unless the settings or `create_topic` say otherwise.
    """

    def __init__(
        self,
        brokers: int = 3,
        data_dir: str | PathLike[str] | None = None,
        *,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(data_dir, settings)
        if brokers < 1:
            raise ValueError("a cluster has one broker at least")
        self._ids = tuple(range(1, brokers + 1))
        self._nodes: dict[int, Node] = {}
        self._ports: dict[int, int] = {}

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers that run."""
        return ",".join(f"{HOST}:{node.port}" for node in self._nodes.values())

    @property
    def brokers(self) -> tuple[int, ...]:
        """The numbers of the brokers that run."""
        return tuple(self._nodes)

    @property
    def cluster_id(self) -> str:
        return self._any_node().cluster_id

    def create_topic(
        self, name: str, *, partitions: int = 1, replicas: int = -1, config: Mapping[str, object] | None = None
    ) -> str:
        """Make a topic without a client, and wait until it has its leaders everywhere. Only for `with` and `start`."""
        return self._in_thread(self.add_topic(name, partitions=partitions, replicas=replicas, config=config))

    async def add_topic(
        self, name: str, *, partitions: int = 1, replicas: int = -1, config: Mapping[str, object] | None = None
    ) -> str:
        """The same for `async with`."""
        await _add_topic(self._any_node(), name, partitions, replicas, config or {})
        for node in self._nodes.values():
            await node.wait_for_image(lambda image: name in image.topics.by_name)
        return name

    def leader_of(self, topic: str, partition: int = 0) -> int:
        """The broker that leads the partition, as far as the first running one knows; -1 if nobody does."""
        return self._any_node().image.topics.by_name[topic].partitions[partition].leader

    def stop_broker(self, broker_id: int) -> None:
        """Stop one cleanly; the others go on. Only for `with` and `start`."""
        self._in_thread(self.take_out(broker_id))

    def start_broker(self, broker_id: int) -> None:
        """Start one again that was stopped; it keeps its directory. Only for `with` and `start`."""
        self._in_thread(self.bring_back(broker_id))

    async def take_out(self, broker_id: int) -> None:
        """The same as `stop_broker` for `async with`."""
        await self._nodes.pop(broker_id).stop()

    async def bring_back(self, broker_id: int) -> None:
        """The same as `start_broker` for `async with`."""
        if broker_id in self._nodes:
            raise RuntimeError(f"broker {broker_id} is running")
        node = self._node(broker_id)
        await node.start()
        self._nodes = dict(sorted({**self._nodes, broker_id: node}.items()))

    def _any_node(self) -> Node:
        for node in self._nodes.values():
            return node
        raise RuntimeError("the cluster is not running: use it as a context manager, or call start()")

    @property
    def _is_running(self) -> bool:
        return bool(self._nodes)

    def _node(self, broker_id: int) -> Node:
        voters = ",".join(f"{each}@{HOST}:{port}" for each, port in self._ports.items())
        options = {
            "process.roles": "broker,controller",
            "node.id": str(broker_id),
            "log.dirs": f"{self._directory()}/{broker_id}",
            "listeners": f"PLAINTEXT://{HOST}:0,CONTROLLER://{HOST}:{self._ports[broker_id]}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": voters,
            "default.replication.factor": str(min(len(self._ids), 3)),
            "min.insync.replicas": "2" if len(self._ids) > 2 else "1",
        }
        return Node(self._load(options), RealPorts())

    async def _start(self) -> None:
        self._ports = dict(zip(self._ids, free_ports(HOST, len(self._ids)), strict=True))
        _format(self._directory(), self._ids)
        nodes = {broker_id: self._node(broker_id) for broker_id in self._ids}
        outcomes = await asyncio.gather(*(node.start() for node in nodes.values()), return_exceptions=True)
        failed = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        if failed:
            started = [node for node, outcome in zip(nodes.values(), outcomes, strict=True) if outcome is None]
            await asyncio.gather(*(node.stop() for node in started), return_exceptions=True)
            raise failed[0]
        self._nodes = nodes
        for node in nodes.values():
            # Who asks for three replicas now must find three brokers, whomever it asks.
            await node.wait_for_image(_all_serve(self._ids))

    async def _stop(self) -> None:
        nodes, self._nodes = list(self._nodes.values()), {}
        # All leave first: when the first controllers have gone, there is no quorum left to leave with.
        await asyncio.gather(*(node.leave() for node in nodes))
        await asyncio.gather(*(node.stop() for node in nodes))


def _all_serve(ids: tuple[int, ...]) -> Callable[[MetadataImage], bool]:
    return lambda image: all(each in image.brokers and image.brokers[each].active for each in ids)


def _format(directory: str, ids: tuple[int, ...]) -> None:
    """Empty directories become those of one cluster; such as have been of one before stay what they are."""
    ports = RealPorts()
    cluster_id = None
    empty = []
    for each in ids:
        layout = StorageLayout.of([f"{directory}/{each}"])
        try:
            cluster_id = load_storage(ports, layout, node_id=each, cluster_id=cluster_id).cluster_id
        except NotFormatted:
            empty.append((each, layout))
    for each, layout in empty:
        cluster_id = cluster_id or str(ports.random.uuid())
        format_storage(ports, layout, cluster_id=cluster_id, node_id=each, controller_endpoint=None)


async def _add_topic(node: Node, name: str, partitions: int, replicas: int, config: Mapping[str, object]) -> str:
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=name,
                num_partitions=partitions,
                replication_factor=replicas,
                assignments=[],
                configs=[CreatableTopicConfig(name=key, value=_as_text(value)) for key, value in config.items()],
            )
        ]
    )
    result = (await create_topics(node, request)).topics[0]
    if result.error_code:
        raise ValueError(f"{name}: {result.error_message or ErrorCode(result.error_code).name}")
    return name


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
