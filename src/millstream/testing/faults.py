"""What breaks: machines, disks, links and clocks, by the dice of a seed.

A *nemesis* breaks one thing after the other, for a while each, sometimes two at a time, and in the end mends
everything. It respects what the cluster promises: a process may be killed at any time, on any number of machines,
since the kernel keeps what was written. Power losses and lost disks destroy what only one machine holds unsynced, so
without `millstream.acks.fsync` they strike only while everything else is well and all replicas are in sync.
"""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING

from millstream.quorum.voters import STATIC

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from millstream.testing.cluster import SimulatedCluster
    from millstream.testing.simulated_node import SimulatedNode

HOUR_MS = 3_600_000
# So many voters have a majority left when one of them has nothing.
MAJORITY_OF_OTHERS = 3


class Nemesis:
    """Breaks things until it is told to stop."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        *,
        kinds: Collection[str] | None = None,
        power_is_safe: bool = False,
        all_in_sync: Callable[[], bool] = lambda: False,
        pause_s: float = 6.0,
    ) -> None:
        self._cluster = cluster
        self._random = cluster.random_for("faults")
        self._power_is_safe = power_is_safe
        self._all_in_sync = all_in_sync
        self._pause_s = pause_s
        self._at_work: dict[asyncio.Task[None], None] = {}
        self.stopping = False
        self.counts: dict[str, int] = {}
        known = self.kinds()
        self._kinds = {name: known[name] for name in known if kinds is None or name in kinds}

    def kinds(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """All faults, by name."""
        return {
            "kill": self._kill,
            "kill-some": self._kill_some,
            "power": self._power,
            "power-at-step": self._power_at_step,
            "blackout": self._blackout,
            "lose-disk": self._lose_disk,
            "stop": self._stop_in_order,
            "pause": self._pause,
            "isolate": self._isolate,
            "isolate-from-nodes": self._isolate_from_nodes,
            "one-way": self._one_way,
            "split": self._split,
            "pair": self._pair,
            "slow-link": self._slow_link,
            "reset": self._reset,
            "slow-disk": self._slow_disk,
            "failing-disk": self._failing_disk,
            "full-disk": self._full_disk,
            "clock": self._clock,
        }

    async def run(self) -> None:
        if not self._kinds:
            return
        while not self.stopping:
            await asyncio.sleep(self._random.random() * self._pause_s)
            # A second fault while the first one lasts: seldom, but that is where the bugs are.
            most = 2 if self._random.random() < 0.3 else 1
            await self._cluster.until(lambda: len(self._at_work) < most, within_s=600)  # noqa: B023
            if self._is_over():
                break
            name = self._random.choice(list(self._kinds))
            task = asyncio.create_task(self._strike(name))
            self._at_work[task] = None
            task.add_done_callback(lambda done: self._at_work.pop(done, None))
        await self._cluster.until(lambda: not self._at_work, within_s=600)

    def _is_over(self) -> bool:
        return self.stopping

    async def _strike(self, name: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1
        self._cluster.trace.note("nemesis", name)
        await self._kinds[name]()

    def mend(self) -> None:
        """Everything works again: links, disks, clocks; what was stopped goes on and what is down boots."""
        self._cluster.network.heal()
        for node in self._cluster.nodes.values():
            node.disk.fail_at.clear()
            node.disk.power_off_at = None
            node.disk.make_room()
            node.ports.workers.work_s_max = 0.002
            node.ports.clock.wall_error_ms = 0
            node.go_on()
            node.boot()

    # --- what it does

    def _someone(self) -> SimulatedNode:
        return self._random.choice(list(self._cluster.nodes.values()))

    async def _for_a_while(self, most_s: float) -> None:
        await asyncio.sleep(self._random.random() ** 2 * most_s)

    async def _kill(self) -> None:
        node = self._someone()
        node.kill()
        await self._for_a_while(25)
        node.boot()

    async def _kill_some(self) -> None:
        nodes = [node for node in self._cluster.nodes.values() if self._random.random() < 0.7]
        for node in nodes:
            node.kill()
            await self._for_a_while(2)
        for node in nodes:
            await self._for_a_while(10)
            node.boot()

    async def _calm(self) -> bool:
        """Whether a machine may lose what it has not synced: at once, or when all is in sync again."""
        if self._power_is_safe:
            return True
        for _ in range(40):
            if len(self._at_work) == 1 and self._all_in_sync():
                return True
            await asyncio.sleep(0.5)
        return False

    async def _until_calm_again(self, node: SimulatedNode) -> None:
        node.boot()
        if not self._power_is_safe:
            await self._cluster.until(lambda: self.stopping or self._all_in_sync(), within_s=600)

    async def _power(self) -> None:
        node = self._someone()
        if await self._calm():
            node.kill(power=True)
            await self._for_a_while(20)
            await self._until_calm_again(node)

    async def _power_at_step(self) -> None:
        node = self._someone()
        if await self._calm():
            node.disk.power_off_at = node.disk.steps + self._random.randint(1, 40)
            for _ in range(40):
                if not node.runs:
                    break
                await asyncio.sleep(0.25)
            node.disk.power_off_at = None
            await self._for_a_while(10)
            await self._until_calm_again(node)

    async def _blackout(self) -> None:
        """Nobody has power: only what is on disk counts."""
        if not self._power_is_safe:
            return
        for node in self._cluster.nodes.values():
            node.kill(power=True)
        await self._for_a_while(5)
        for node in self._cluster.nodes.values():
            await self._for_a_while(5)
            node.boot()

    async def _lose_disk(self) -> None:
        """A machine comes back with an empty disk, where every other replica and voter has all that it had."""
        node = self._someone()
        for _ in range(40):
            if len(self._at_work) == 1 and self._all_in_sync() and self._can_do_without(node):
                break
            await asyncio.sleep(0.5)
        else:
            return
        node.lose_disk()
        await self._for_a_while(10)
        node.boot()
        await self._cluster.until(lambda: self.stopping or self._all_in_sync(), within_s=600)

    def _can_do_without(self, node: SimulatedNode) -> bool:
        """Whether the quorum loses nothing with this disk.

        A fixed voter cannot tell that it has lost what it voted and acknowledged (in Kafka neither). So all others must
        hold everything, in an epoch whose leader all of them know. One that stands in the log is another voter from
        then on, which an administrator would have to replace.
        """
        if node.id not in self._cluster.layout.controllers:
            return len(self._cluster.brokers) > 1
        logs = [
            other.serving.controller.log
            for number in self._cluster.layout.controllers
            if (other := self._cluster.nodes[number]).serving is not None
        ]
        first = logs[0].quorum
        return len(logs) == len(self._cluster.layout.controllers) >= MAJORITY_OF_OTHERS and all(
            log.quorum.kraft_version == STATIC
            and (log.quorum.epoch, log.quorum.leader_id) == (first.epoch, first.leader_id)
            and log.quorum.leader_id >= 0
            and log.log.recovery_point == log.end_offset == logs[0].end_offset
            for log in logs
        )

    async def _stop_in_order(self) -> None:
        node = self._someone()
        if node.serving is not None:
            await node.shut_down(within_s=120)
            await self._for_a_while(10)
        node.boot()

    async def _pause(self) -> None:
        node = self._someone()
        node.pause()
        await self._for_a_while(30)
        node.go_on()

    async def _isolate(self) -> None:
        """From everybody, clients too."""
        node = self._someone()
        others = [host for host in [*self._cluster.hosts, *self._cluster.client_hosts] if host != node.host]
        self._cluster.network.block([node.host], others)
        await self._for_a_while(25)
        self._cluster.network.heal()

    async def _isolate_from_nodes(self) -> None:
        node = self._someone()
        self._cluster.network.block([node.host], [host for host in self._cluster.hosts if host != node.host])
        await self._for_a_while(25)
        self._cluster.network.heal()

    async def _one_way(self) -> None:
        """It hears and is not heard, or the other way round."""
        node = self._someone()
        others = [host for host in self._cluster.hosts if host != node.host]
        if self._random.random() < 0.5:
            self._cluster.network.block([node.host], others, one_way=True)
        else:
            self._cluster.network.block(others, [node.host], one_way=True)
        await self._for_a_while(25)
        self._cluster.network.heal()

    async def _split(self) -> None:
        one = [host for host in self._cluster.hosts if self._random.random() < 0.5]
        self._cluster.network.block(one, [host for host in self._cluster.hosts if host not in one])
        await self._for_a_while(25)
        self._cluster.network.heal()

    async def _pair(self) -> None:
        if len(self._cluster.hosts) > 1:
            one, other = self._random.sample(self._cluster.hosts, 2)
            self._cluster.network.block([one], [other], one_way=self._random.random() < 0.3)
            await self._for_a_while(25)
            self._cluster.network.heal()

    async def _slow_link(self) -> None:
        if len(self._cluster.hosts) > 1:
            one, other = self._random.sample(self._cluster.hosts, 2)
            self._cluster.network.slow_down(one, other, self._random.choice((0.05, 0.3, 1.0)), one_way=True)
            await self._for_a_while(25)
            self._cluster.network.heal()

    async def _reset(self) -> None:
        for _ in range(self._random.randint(1, 4)):
            self._cluster.network.break_connections(share=self._random.choice((0.1, 0.5, 1.0)))
            await self._for_a_while(2)

    async def _slow_disk(self) -> None:
        node = self._someone()
        node.ports.workers.work_s_max = self._random.choice((0.1, 1.0))
        await self._for_a_while(15)
        node.ports.workers.work_s_max = 0.002

    async def _failing_disk(self) -> None:
        """One write or fsync fails; whoever runs the node restarts it a while later."""
        node = self._someone()
        node.disk.fail_at[node.disk.steps + self._random.randint(1, 30)] = errno.EIO
        await self._for_a_while(15)
        node.disk.fail_at.clear()
        node.kill()
        node.boot()

    async def _full_disk(self) -> None:
        node = self._someone()
        node.disk.fill_up(but_bytes=self._random.randint(0, 2_000))
        await self._for_a_while(10)
        node.disk.make_room()
        await self._for_a_while(5)
        node.kill()
        node.boot()

    async def _clock(self) -> None:
        """Somebody sets a clock."""
        self._someone().ports.clock.wall_error_ms += self._random.choice((-HOUR_MS, -1_000, 1_000, HOUR_MS))
        await self._for_a_while(5)
