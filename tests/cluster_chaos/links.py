"""Links between the nodes of one machine, and how they are cut. Both ways of doing it look the same from outside.

*Namespaces* (the usual way): every node has a network of its own, wired to a bridge where the clients sit. What one
node sends another is dropped where it arrives, without a word, as a broken switch does it; one direction at a time if
wanted. The whole world lives in a network and a mount namespace that end with the process, so nothing is left behind,
and it takes no privileges where user namespaces are allowed (`enter` says how).

*Relays* (relays.py) serve where the kernel gives no namespaces: each listener is reached through a relay, which tells
callers apart by their process and stops passing on what the test says. Connections are made and then silent, rather
than never made; everything else is the same.
"""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from tests.support.ports import free_ports

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

T = TypeVar("T")

CLIENTS = 0
"""The number of the place where the test and its clients are; nodes count from 1."""
CLONE_NEWNET = 0x40000000
# Set aside for tests of network devices (RFC 2544): no real network has it.
NETWORK = "198.18.0"
PORT, CONTROLLER_PORT, PROBE_PORT = 9092, 9093, 7777
PROBE_WAIT_S = 0.1
ARRIVES_WITHIN_S = 5.0
# Clients write 64 MB to a node in 25 minutes, and nothing is removed before the end.
DISK_BYTES = 256 << 20


class Listens(NamedTuple):
    """A listener: what the node binds, and what everybody else is told."""

    bound: str
    told: str


class Links(Protocol):
    """See the module's docstring."""

    name: str

    def broker_listener(self, node: int) -> Listens: ...
    def controller_listener(self, node: int) -> Listens: ...
    def launch(self, node: int, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        """Start a node's process in its place."""
        ...

    def cut(self, senders: Iterable[int], receivers: Iterable[int]) -> None:
        """From now on nothing that the first ones send arrives at the second ones; the other way it does."""
        ...

    def heal(self) -> None: ...
    def passes(self, sender: int, receiver: int) -> bool:
        """Whether something sent now arrives: the proof that a cut bites, or that it is mended."""
        ...

    def own_disk(self, directory: Path) -> bool:
        """Give the directory a small file system of its own, if that can be done here."""
        ...

    def close(self) -> None: ...


def entering() -> list[str]:
    """The words before a command that give it networks and mounts of its own; LookupError where that is refused."""
    root = ["unshare", "--net", "--mount"]
    for words in (root, [*root, "--user", "--map-root-user"]):
        try:
            tried = subprocess.run(
                [*words, "ip", "link", "add", "wire", "type", "bridge"], capture_output=True, check=False
            )
        except OSError as error:
            raise LookupError(str(error)) from error
        if tried.returncode == 0:
            return words
    raise LookupError(tried.stderr.decode().strip())


def both_ways(links: Links, some: Iterable[int], others: Iterable[int]) -> None:
    some, others = list(some), list(others)
    links.cut(some, others)
    links.cut(others, some)


class Namespaces:
    """A network per node. The process must have been started with `entering()`."""

    name = "namespaces"

    def __init__(self, nodes: Iterable[int]) -> None:
        self._nodes = tuple(nodes)
        self._cuts: dict[tuple[int, int], None] = {}
        self._mounts: list[Path] = []
        # A thread can be in another network than its process: what it starts and opens is there as well.
        self._threads = {node: ThreadPoolExecutor(1, f"network-{node}") for node in (CLIENTS, *self._nodes)}
        self._at(CLIENTS, _run, "ip link set lo up")
        self._at(CLIENTS, _run, "ip link add wire type bridge")
        self._at(CLIENTS, _run, f"ip addr add {address(CLIENTS)}/24 dev wire")
        self._at(CLIENTS, _run, "ip link set wire up")
        for node in self._nodes:
            self._at(node, _move_out, node)
            self._at(CLIENTS, _run, f"ip link set v{node} master wire up")
        self._probes = {node: self._at(node, _settle, node) for node in (CLIENTS, *self._nodes)}

    def _at(self, node: int, work: Callable[..., T], *arguments: Any, **options: Any) -> T:
        return self._threads[node].submit(work, *arguments, **options).result()

    def broker_listener(self, node: int) -> Listens:
        return Listens(f"{address(node)}:{PORT}", f"{address(node)}:{PORT}")

    def controller_listener(self, node: int) -> Listens:
        return Listens(f"{address(node)}:{CONTROLLER_PORT}", f"{address(node)}:{CONTROLLER_PORT}")

    def launch(self, node: int, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        return self._at(node, subprocess.Popen, command, **options)

    def cut(self, senders: Iterable[int], receivers: Iterable[int]) -> None:
        receivers = list(receivers)
        for sender in senders:
            for receiver in receivers:
                if sender != receiver and (sender, receiver) not in self._cuts:
                    self._cuts[sender, receiver] = None
                    self._at(receiver, _run, f"ip rule add pref 10 from {address(sender)} blackhole")

    def heal(self) -> None:
        for sender, receiver in self._cuts:
            self._at(receiver, _run, f"ip rule del pref 10 from {address(sender)}")
        self._cuts.clear()

    def passes(self, sender: int, receiver: int) -> bool:
        token = os.urandom(16)
        try:
            self._probes[sender].sendto(token, (address(receiver), PROBE_PORT))
        except OSError:
            return False
        # Waiting long costs nothing where it arrives, so only what should not arrive is waited for briefly.
        self._probes[receiver].settimeout(PROBE_WAIT_S if (sender, receiver) in self._cuts else ARRIVES_WITHIN_S)
        try:
            while self._probes[receiver].recv(64) != token:
                pass
        except TimeoutError:
            return False
        return True

    def own_disk(self, directory: Path) -> bool:
        directory.mkdir(parents=True, exist_ok=True)
        _run(f"mount -t tmpfs -o size={DISK_BYTES} tmpfs {directory}")
        self._mounts.append(directory)
        return True

    def close(self) -> None:
        for mount in self._mounts:
            _run(f"umount --lazy {mount}")
        for probe in self._probes.values():
            probe.close()
        for thread in self._threads.values():
            thread.shutdown()


def address(node: int) -> str:
    return f"{NETWORK}.{10 + node}"


def _run(command: str) -> None:
    done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"{command}: {done.stderr.strip()}")


def _move_out(node: int) -> None:
    """Into a network of this thread's own, with one wire to the bridge."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), f"a network for node {node}: {os.strerror(ctypes.get_errno())}")
    assert threading.current_thread() is not threading.main_thread()
    _run("ip link set lo up")
    _run(f"ip link add eth0 type veth peer name v{node} netns {os.getpid()}")
    _run(f"ip addr add {address(node)}/24 dev eth0")
    _run("ip link set eth0 up")


def _settle(node: int) -> socket.socket:
    """Let rules come before the table of own addresses, or nothing that is meant for us could be dropped."""
    _run("ip rule add pref 100 lookup local")
    _run("ip rule del pref 0")
    probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    probe.bind((address(node), PROBE_PORT))
    return probe


class Loopback:
    """All nodes on loopback, and nothing between them: for clusters whose links stay whole."""

    name = "loopback"

    def __init__(self, nodes: Iterable[int]) -> None:
        nodes = tuple(nodes)
        ports = free_ports(2 * len(nodes))
        self._brokers = dict(zip(nodes, ports, strict=False))
        self._controllers = dict(zip(nodes, ports[len(nodes) :], strict=True))

    def broker_listener(self, node: int) -> Listens:
        return Listens(*[f"127.0.0.1:{self._brokers[node]}"] * 2)

    def controller_listener(self, node: int) -> Listens:
        return Listens(*[f"127.0.0.1:{self._controllers[node]}"] * 2)

    def launch(self, node: int, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, **options)

    def cut(self, senders: Iterable[int], receivers: Iterable[int]) -> None:
        raise NotImplementedError("these links cannot be cut")

    def heal(self) -> None:
        """There is nothing to mend."""

    def passes(self, sender: int, receiver: int) -> bool:
        return True

    def own_disk(self, directory: Path) -> bool:
        directory.mkdir(parents=True, exist_ok=True)
        return False

    def close(self) -> None:
        """There is nothing to close."""
