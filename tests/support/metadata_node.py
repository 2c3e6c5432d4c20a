"""A controller node on a real directory, with a clock that tests set and ids that repeat."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from millstream.broker.controller_node import ControllerNode, ControllerNodeConfig
from millstream.broker.metadata_log import MetadataLogConfig
from millstream.broker.storage_format import Storage, StorageLayout, open_storage
from millstream.metadata import broker_lifecycle as lifecycle
from millstream.metadata.features import registered_features
from millstream.metadata.image import Broker, Endpoint
from millstream.protocol.uuid import Uuid
from millstream.quorum.voters import VoterEndpoint
from millstream.runtime.real import RealDisk, RealNetwork, RealWorkers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine
    from pathlib import Path

CONTROLLER = Endpoint(name="CONTROLLER", host="127.0.0.1", port=9093)
BROKER = Endpoint(name="PLAINTEXT", host="127.0.0.1", port=9092)


class SetClock:
    """Time stands still until a test moves it."""

    def __init__(self) -> None:
        self.now_ms = 1_800_000_000_000

    def wall_ms(self) -> int:
        return self.now_ms

    def monotonic_ms(self) -> int:
        return self.now_ms


class SeededRandom:
    """The same ids in every run."""

    def __init__(self, seed: int = 0) -> None:
        self._random = Random(seed)

    def uuid(self) -> Uuid:
        return Uuid(self._random.randbytes(16))

    def below(self, bound: int) -> int:
        return self._random.randrange(bound)


@dataclass
class NodePorts:
    """Real files and threads, a set clock, seeded ids."""

    clock: SetClock = field(default_factory=SetClock)
    random: SeededRandom = field(default_factory=SeededRandom)
    disk: RealDisk = field(default_factory=RealDisk)
    network: RealNetwork = field(default_factory=RealNetwork)
    workers: RealWorkers = field(default_factory=RealWorkers)


def formatted(ports: NodePorts, directory: Path, *, static: bool = False) -> Storage:
    return open_storage(
        ports,
        StorageLayout.of([str(directory)]),
        node_id=1,
        controller_endpoint=None if static else VoterEndpoint("CONTROLLER", "127.0.0.1", 9093),
    )


@asynccontextmanager
async def running_node(
    directory: Path,
    *,
    ports: NodePorts | None = None,
    static: bool = False,
    insecure: bool = False,
    controller: Endpoint = CONTROLLER,
    **log: Any,
) -> AsyncIterator[ControllerNode]:
    """A node that has not joined as a broker; its files are closed in the end, as a clean stop does."""
    ports = ports or NodePorts()
    storage = formatted(ports, directory, static=static)
    config = ControllerNodeConfig(
        node_id=storage.node_id,
        metadata_log_dir=str(directory),
        directory_id=storage.metadata_directory_id,
        controller_endpoints=(controller,),
        bootstrap=storage.bootstrap,
        insecure=insecure,
        log=MetadataLogConfig(**log),
    )
    failures: list[BaseException] = []
    node = await ControllerNode.start(ports, config, failures.append)
    try:
        yield node
    finally:
        await node.close()
        ports.workers.close()


async def joined(
    node: ControllerNode,
    *,
    endpoint: Endpoint = BROKER,
    log_dirs: tuple[Uuid, ...] = (),
    clean_shutdown_epoch: int = -1,
) -> int:
    """Register the node as a broker and unfence it, in one commit; its epoch."""
    return await node.submit(
        lambda image, _: lifecycle.decide_join(
            image,
            Broker(
                id=node.node_id,
                epoch=-1,
                incarnation_id=node.incarnation_id,
                endpoints=(endpoint,),
                features=registered_features(image.features),
                log_dirs=tuple(sorted(log_dirs or (node.config.directory_id,))),
            ),
            clean_shutdown_epoch=clean_shutdown_epoch,
        )
    )


async def left(node: ControllerNode) -> None:
    """A controlled shutdown of the broker, as far as the metadata goes."""
    await node.submit(lambda image, _: lifecycle.decide_leave(image, node.node_id, image.brokers[node.node_id].epoch))


async def allocated(node: ControllerNode) -> range:
    """A block of producer ids."""
    return await node.submit(
        lambda image, _: lifecycle.decide_allocate_producer_ids(image, node.node_id, image.brokers[node.node_id].epoch)
    )


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(test)
