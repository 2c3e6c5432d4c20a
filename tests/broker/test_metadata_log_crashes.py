"""Loss of power at any write, sync or rename of the metadata log loses nothing that was answered.

The node formats its directory, leads, commits, snapshots and drops what the snapshots cover; the lossy disk takes the
power away at one step after the other, and keeps of what was not synced whatever the seed says. Then the node starts
again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from millstream.broker.controller_node import ControllerNode, ControllerNodeConfig
from millstream.broker.metadata_log import MetadataLogConfig
from millstream.broker.storage_format import StorageLayout, open_storage
from millstream.metadata.decision import Decision
from millstream.metadata.image import Endpoint
from millstream.metadata.record_types import ConfigRecord
from millstream.quorum.voters import VoterEndpoint
from millstream.testing.disk import LossyDisk, PowerLost
from millstream.testing.loop import VirtualLoop
from millstream.testing.network import HostNetwork, SimulatedNetwork
from millstream.testing.ports import SeededRandom, SimulatedWorkers, VirtualClock

# Small enough that segments roll, snapshots are taken and old ones go within a few decisions.
EAGER = MetadataLogConfig(segment_bytes=700, record_bytes_between_snapshots_max=400, retention_bytes_max=1)
LAYOUT = StorageLayout.of(["/data"])
DECISIONS = 10


@dataclass
class Witness:
    """What is known outside of the machine."""

    answered: list[int] = field(default_factory=list)
    attempted: list[int] = field(default_factory=list)
    epochs: list[int] = field(default_factory=list)


class Machine:
    """A disk that survives, and everything else new at each start."""

    def __init__(self, seed: int, *, static: bool) -> None:
        self.random = Random(seed)
        self.disk = LossyDisk(self.random)
        self.static = static
        self.witness = Witness()

    def run(self, numbers: range) -> ControllerNode | None:
        """Start, decide, stop; None if the power was lost on the way."""
        loop = VirtualLoop()
        loop.set_exception_handler(_ignore_power_loss)
        network = SimulatedNetwork(loop, Random(0)).at("node")
        ports = _Ports(VirtualClock(loop), SeededRandom(self.random), self.disk, network, SimulatedWorkers(self.random))
        return loop.run(self._until_power_off(ports, numbers))

    async def _until_power_off(self, ports: _Ports, numbers: range) -> ControllerNode | None:
        dark = asyncio.Event()
        self.disk.on_power_off = dark.set
        living = asyncio.ensure_future(self._live(ports, numbers))
        darkness = asyncio.ensure_future(dark.wait())
        await asyncio.wait((living, darkness), return_when=asyncio.FIRST_COMPLETED)
        darkness.cancel()
        if dark.is_set():
            living.cancel()
            await asyncio.wait((living,))
            # Looking at the exception marks it as seen.
            assert living.cancelled() or living.exception() is None or isinstance(living.exception(), PowerLost)
            return None
        return await living

    async def _live(self, ports: _Ports, numbers: range) -> ControllerNode:
        storage = open_storage(
            ports,
            LAYOUT,
            node_id=1,
            controller_endpoint=None if self.static else VoterEndpoint("CONTROLLER", "localhost", 9093),
        )
        config = ControllerNodeConfig(
            node_id=1,
            metadata_log_dir="/data",
            directory_id=storage.metadata_directory_id,
            controller_endpoints=(Endpoint(name="CONTROLLER", host="localhost", port=9093),),
            bootstrap=storage.bootstrap,
            log=EAGER,
        )
        node = await ControllerNode.start(ports, config, pytest.fail)
        self.witness.epochs.append(node.log.epoch)
        for number in numbers:
            self.witness.attempted.append(number)
            record = ConfigRecord(resource_type=4, resource_name="", name=str(number), value="v" * 60)
            await node.submit(lambda image, _, record=record: Decision((record,), None))
            self.witness.answered.append(number)
        await node.close()
        return node


@dataclass
class _Ports:
    clock: VirtualClock
    random: SeededRandom
    disk: LossyDisk
    network: HostNetwork
    workers: SimulatedWorkers


def _ignore_power_loss(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    if not isinstance(context.get("exception"), PowerLost):
        loop.default_exception_handler(context)


def undisturbed_steps(*, static: bool) -> int:
    machine = Machine(0, static=static)
    assert machine.run(range(DECISIONS)) is not None
    return machine.disk.steps


@pytest.mark.parametrize("keep_unsynced", [False, True], ids=["power lost", "process killed"])
@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
def test_a_crash_at_any_step_loses_nothing_that_was_answered(static: bool, keep_unsynced: bool) -> None:
    steps = undisturbed_steps(static=static)
    assert steps > 100
    for step in range(1, steps + 1):
        machine = Machine(step, static=static)
        machine.disk.power_off_at = step
        if machine.run(range(DECISIONS)) is not None:
            continue
        where = f"power lost at step {step}: {machine.disk.last_step}"
        machine.disk.crash(keep_unsynced=keep_unsynced)
        node = machine.run(range(100, 103))
        assert node is not None, where
        found = sorted(int(name) for name in node.image.config(4, "") if name.isdecimal() and int(name) < 100)
        assert found == list(range(len(found))), where
        assert len([n for n in machine.witness.answered if n < 100]) <= len(found), where
        assert len(found) <= len([n for n in machine.witness.attempted if n < 100]), where
        assert machine.witness.epochs == sorted(set(machine.witness.epochs)), f"an epoch came twice, {where}"
