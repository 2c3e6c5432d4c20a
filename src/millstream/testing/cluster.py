"""A whole cluster in one process, on virtual time, a seeded network and disks that forget what was not synced.

    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        client = cluster.client()
        ...
        cluster.nodes[1].kill(power=True)
        cluster.network.block(["node-2"], ["node-3"])
        ...

    cluster = SimulatedCluster(seed=7, nodes=3)
    cluster.run(scenario)
    cluster.trace.digest        # the same for the same seed, on any machine

It is the real `Node`, with everything in it; only the ports are others. A cluster is run once.
"""

from __future__ import annotations

import asyncio
import gc
import traceback
import warnings
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING, Any

from millstream.broker.storage_format import format_storage
from millstream.client.client import Client
from millstream.protocol.uuid import Uuid
from millstream.quorum.voters import Voter, VoterEndpoint, VoterSet
from millstream.testing.disk import LossyDisk, PowerLost
from millstream.testing.layouts import combined
from millstream.testing.logs import logs_go_to
from millstream.testing.loop import VirtualLoop, current_process
from millstream.testing.network import SimulatedNetwork
from millstream.testing.ports import SimulatedPorts
from millstream.testing.simulated_node import SimulatedNode
from millstream.testing.trace import Trace
from millstream.testing.violations import TookTooLong, Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping

    from millstream.broker.node import Node
    from millstream.broker.storage_format import StorageLayout
    from millstream.testing.layouts import Layout
    from millstream.testing.loop import Process

CLIENT_PORT = 9092
CONTROLLER_PORT = 9093
# Clients that wait for half a minute see little of what a simulation does in one.
CLIENT_OPTIONS = {"socket.timeout.ms": "4000", "api.timeout.ms": "20000", "socket.connection.setup.timeout.ms": "3000"}


def dice(seed: int, purpose: str) -> Random:
    """Dice of their own for each purpose, so that one part's throws don't move another's."""
    return Random(f"{seed} {purpose}")  # noqa: S311  # a simulation has to repeat


class SimulatedCluster:
    """See the module's docstring."""

    def __init__(
        self,
        seed: int,
        *,
        nodes: int = 3,
        settings: Mapping[str, str] | None = None,
        layout: Layout | None = None,
        aloud: bool = False,
    ) -> None:
        """`layout` says who does what, where `nodes` that are both brokers and controllers are not what is wanted."""
        self.seed = seed
        self.layout = layout or combined(nodes)
        self.loop = VirtualLoop()
        self.loop.set_exception_handler(self._unhandled)
        self.trace = Trace(self.loop, aloud=aloud)
        self.network = SimulatedNetwork(
            self.loop, self.random_for("network"), self.trace, self.random_for("coincidences")
        )
        self.cluster_id = str(Uuid(b"\x40" + self.random_for("cluster id").randbytes(15)))
        self.checkers: list[Callable[[SimulatedNode, Node], None]] = []
        """Called after every turn of the loop for each node that has run in it."""
        self.violations: list[Violation] = []
        self._machines: dict[Process, SimulatedNode] = {}
        self.client_hosts: list[str] = []
        voters = ",".join(f"{number}@node-{number}:{CONTROLLER_PORT}" for number in self.layout.controllers)
        self.nodes = {
            number: SimulatedNode(self, number, self._settings_of(number, voters, settings or {}))
            for number in self.layout.machines
        }

    def _settings_of(self, number: int, voters: str, settings: Mapping[str, str]) -> dict[str, str]:
        host, roles = f"node-{number}", self.layout.roles_of(number)
        listeners = {
            "broker": f"PLAINTEXT://{host}:{CLIENT_PORT}",
            "controller": f"CONTROLLER://{host}:{CONTROLLER_PORT}",
        }
        quorum = {"controller.quorum.voters": voters}
        if self.layout.is_dynamic:
            known = ",".join(f"node-{each}:{CONTROLLER_PORT}" for each in self.layout.controllers)
            quorum = {"controller.quorum.bootstrap.servers": known}
        return {
            "process.roles": roles,
            "node.id": str(number),
            **quorum,
            "controller.listener.names": "CONTROLLER",
            "listeners": ",".join(listeners[role] for role in roles.split(",")),
            **settings,
        }

    def random_for(self, purpose: str) -> Random:
        return dice(self.seed, purpose)

    # --- running

    def run(self, scenario: Callable[[SimulatedCluster], Coroutine[Any, Any, None]]) -> None:
        """Run a scenario to its end. Raises what it raises, or the first Violation."""
        self.loop.after_turn = self._look
        collecting = gc.isenabled()
        # When the collector runs depends on everything else in this process, and what it finds may have destructors.
        gc.disable()
        try:
            with logs_go_to(self._remark), self._coroutines_are_awaited():
                self.loop.run(scenario(self))
        finally:
            if collecting:
                gc.enable()
            with warnings.catch_warnings():
                # The world of the run before this one: what its killed programs had begun is nobody's mistake.
                warnings.simplefilter("ignore", RuntimeWarning)
                gc.collect()
        self.raise_violations()

    def raise_violations(self) -> None:
        if self.violations:
            raise self.violations[0]

    async def start(self) -> None:
        """Boot every machine and wait until all serve."""
        for node in self.nodes.values():
            node.boot()
        for node in self.nodes.values():
            await node.until_ready()

    async def until(
        self, condition: Callable[[], bool], *, within_s: float = 60, what: str = "", every_s: float = 0.05
    ) -> None:
        """Wait for a condition, of virtual time as long as `within_s`; TookTooLong after that."""
        deadline_s = self.loop.time() + within_s
        while not condition():
            if self.loop.time() >= deadline_s:
                raise TookTooLong(f"after {within_s:g} s: {what or 'a condition that the scenario waits for'}")
            await asyncio.sleep(every_s)

    @property
    def serving(self) -> list[SimulatedNode]:
        return [node for node in self.nodes.values() if node.serving is not None]

    @property
    def hosts(self) -> list[str]:
        return [node.host for node in self.nodes.values()]

    @property
    def brokers(self) -> dict[int, SimulatedNode]:
        return {number: self.nodes[number] for number in self.layout.brokers}

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{node.host}:{CLIENT_PORT}" for node in self.brokers.values())

    def client(self, name: str = "", options: Mapping[str, str] | None = None) -> Client:
        """A client on a machine of its own, `client-1` and so on unless it is named."""
        host = name or f"client-{len(self.client_hosts) + 1}"
        self.client_hosts.append(host)
        ports = SimulatedPorts(self.network.at(host), LossyDisk(self.random_for(host)), self.random_for(host))
        given = {"bootstrap.servers": self.bootstrap_servers, "client.id": host, **CLIENT_OPTIONS, **(options or {})}
        return Client(given, ports=ports)

    def format(self, node: SimulatedNode, layout: StorageLayout) -> None:
        """Make a machine's empty disk a part of this cluster. A voter that has lost its disk is another voter."""
        is_first = self.layout.is_dynamic and node.disks == 1
        format_storage(
            node.ports,
            layout,
            cluster_id=self.cluster_id,
            node_id=node.id,
            controller_endpoint=None,
            initial_voters=self._first_voters() if is_first else None,
        )

    def _first_voters(self) -> VoterSet:
        return VoterSet(
            tuple(
                Voter(
                    number, self.directory_of(number), (VoterEndpoint("CONTROLLER", f"node-{number}", CONTROLLER_PORT),)
                )
                for number in self.layout.controllers
            )
        )

    def directory_of(self, number: int) -> Uuid:
        """What the first disk of a dynamic quorum's voter is called."""
        return Uuid(b"\x40" + self.random_for(f"directory {number}").randbytes(15))

    # --- watching

    def _look(self, ran: dict[Process, None]) -> None:
        for process in ran:
            node = self._machines.get(process) or self.find(process)
            if node is not None and not process.is_dead:
                self.look_at(node)
            elif node is not None and node.disk.power_lost is not None:
                # What the program had at hand goes now, and not with its last task: a coroutine among it was made
                # before a step that may fail, and would be forgotten if it did.
                process.run(traceback.clear_frames, node.disk.power_lost.__traceback__)
                node.disk.power_lost = None
        self.raise_violations()

    def look_at(self, at: SimulatedNode) -> None:
        """Let the checkers look at a node; what they find ends the simulation after this turn."""
        if at.node is not None:
            try:
                for checker in self.checkers:
                    checker(at, at.node)
            except Violation as violation:
                self.violations.append(violation)

    def find(self, process: Process) -> SimulatedNode | None:
        for node in self.nodes.values():
            if node.process is process:
                self._machines[process] = node
                return node
        return None

    def _unhandled(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Something of a node ended with an exception that nobody handled: our bug, whatever was broken."""
        error = context.get("exception")
        if isinstance(error, PowerLost):
            return
        self.violations.append(Violation("an exception that nobody handled", f"{context.get('message')}: {error!r}"))

    @contextmanager
    def _coroutines_are_awaited(self) -> Iterator[None]:
        """A coroutine that is made and dropped is work that a node has forgotten: a Violation, not a line on stderr."""
        with warnings.catch_warnings():
            warnings.filterwarnings("always", ".* was never awaited", RuntimeWarning)
            shown = warnings.showwarning

            def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
                if not (issubclass(category, RuntimeWarning) and "was never awaited" in str(message)):
                    shown(message, category, *place, **more)
                    return
                process = current_process()
                who = "a client" if process is None else process.name
                self.violations.append(Violation("every coroutine is awaited", f"{who}: {message}"))

            warnings.showwarning = show
            yield

    def _remark(self, line: str) -> None:
        self.trace.remark(line)
