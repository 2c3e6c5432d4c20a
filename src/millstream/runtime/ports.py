"""The ports: everything the broker takes from the world outside.

Real ones stand in `real.py`; the simulator brings its own (`millstream.testing`). Code that takes a port and
nothing else runs unchanged on virtual time, a seeded network and a lossy disk. The network port is asyncio's own
Transport and Protocol pair, reached through the running loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from asyncio import BaseProtocol, BaseTransport
    from collections.abc import Awaitable, Callable, Sequence
    from ssl import SSLContext
    from typing import Any, TypeVar

    from millstream.protocol.uuid import Uuid

    T = TypeVar("T")

Buffer = bytes | bytearray | memoryview


class Clock(Protocol):
    """Time. The wall clock stamps records and is never used to measure; timers count on the monotonic one."""

    def wall_ms(self) -> int: ...
    def monotonic_ms(self) -> int: ...


class Random(Protocol):
    """Randomness, ids included."""

    def uuid(self) -> Uuid: ...
    def below(self, bound: int) -> int: ...


class Descriptor(Protocol):
    """An open file as the operating system knows it. Whoever holds this may use it, also when the file was closed."""

    def send(self, socket: int, position: int, length: int) -> int:
        """Send a stretch to a socket without a copy: how much it took. BlockingIOError if that is nothing now."""

    def read(self, position: int, length: int) -> bytes:
        """Up to `length` bytes from `position`."""


class File(Protocol):
    """An open file. Nothing is buffered in user space: what `append` returned from survives a kill of the process,
    what `sync` returned from survives the loss of power."""

    def append(self, *buffers: Buffer) -> None:
        """Write all buffers, one after the other, at the end. An OSError may leave a part of them behind."""

    def read(self, position: int, length: int) -> bytes:
        """Up to `length` bytes from `position`; short only at the end of the file."""

    def size(self) -> int: ...
    def truncate(self, size: int) -> None: ...
    def sync(self) -> None: ...
    def close(self) -> None: ...

    def view(self) -> memoryview:
        """The whole content, mapped read-only. Only for files that no longer change; release it before closing."""

    def descriptor(self) -> Descriptor | None:
        """For sends without a copy; None where the operating system has no such file (simulation)."""


class Disk(Protocol):
    """A file system. Paths are plain strings; errors are OSErrors. A name made or changed by `create`, `rename`,
    `remove` or `make_directory` survives the loss of power once `sync_directory` of its folder returned."""

    def create(self, path: str) -> File:
        """A new, empty file, open for appending and reading; one that existed is emptied."""

    def open(self, path: str, *, writable: bool = False) -> File: ...
    def read_file(self, path: str) -> bytes: ...

    def replace_file(self, path: str, content: bytes) -> None:
        """Write `path` whole and durably or not at all: a temporary file, fsync, rename, fsync of the folder."""

    def rename(self, source: str, target: str) -> None: ...
    def remove(self, path: str) -> None: ...
    def remove_tree(self, path: str) -> None: ...
    def make_directory(self, path: str) -> None:
        """The directory and its parents; nothing happens where it exists."""

    def list_directory(self, path: str) -> list[str]:
        """The names in it, sorted; empty where it does not exist."""

    def exists(self, path: str) -> bool: ...
    def size(self, path: str) -> int: ...
    def modified_ms(self, path: str) -> int: ...
    def sync_directory(self, path: str) -> None: ...

    def lock(self, path: str) -> File:
        """Take the lock file for as long as the returned file is open. BlockingIOError if another process has it."""

    def space(self, path: str) -> tuple[int, int]:
        """(total, usable) bytes of the volume."""


class Network(Protocol):
    """Where connections come from: asyncio's transports and protocols."""

    async def listen(
        self, factory: Callable[[], BaseProtocol], host: str, port: int, *, ssl: SSLContext | None = None
    ) -> Listening: ...

    async def connect(
        self,
        factory: Callable[[], Any],
        host: str,
        port: int,
        *,
        ssl: SSLContext | None = None,
        forgets_unsent: bool = False,
    ) -> tuple[BaseTransport, Any]:
        """Dial. `forgets_unsent`: what was not sent when the connection is closed never will be; otherwise the kernel
        goes on with it, for minutes where the network is broken."""

    def pulse(self, late_ms: int, hung_ms: int) -> Pulse: ...


class Pulse(Protocol):
    """Repeats a message while the event loop is too busy to send the next one itself.

    A loop that is more than `late_ms` late is busy, and the last message is sent again from outside of it; one that
    has shown no life for `hung_ms` has hung, and there is silence. Under a virtual clock no loop is ever late.
    """

    def beat(self, addresses: Sequence[tuple[str, int]], frame: bytes) -> None:
        """The loop lives; this is what to send, and where to, should it be late. Answers are not looked at."""

    def close(self) -> None: ...


class Listening(Protocol):
    """A listening socket."""

    host: str
    port: int

    def close(self) -> None: ...
    async def wait_closed(self) -> None: ...


class ChildFailed(Exception):
    """A child process ended with an error."""

    def __init__(self, module: str, status: int, last_words: str) -> None:
        super().__init__(f"{module} ended with status {status}: {last_words.strip()}")
        self.status = status


class Workers(Protocol):
    """Where work goes that must not run on the event loop."""

    def in_thread(self, call: Callable[..., T], *arguments: object) -> Awaitable[T]:
        """Only for calls that release the GIL: fsync, large CRCs, codecs."""

    def in_child(self, module: str, arguments: Sequence[str]) -> Awaitable[None]:
        """Run `python -m module arguments…` to its end; raises ChildFailed with its last words."""

    def close(self) -> None: ...


class Ports(Protocol):
    """All of them, as one node is given them."""

    @property
    def clock(self) -> Clock: ...
    @property
    def random(self) -> Random: ...
    @property
    def disk(self) -> Disk: ...
    @property
    def network(self) -> Network: ...
    @property
    def workers(self) -> Workers: ...
