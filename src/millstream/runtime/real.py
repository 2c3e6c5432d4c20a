"""The ports on a real machine: the operating system's clock, disk, network and processes."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import mmap
import os
import secrets
import shutil
import socket
import struct
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from millstream.protocol.uuid import Uuid
from millstream.runtime.ports import Buffer, ChildFailed
from millstream.runtime.pulse import RealPulse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from ssl import SSLContext
    from typing import Any

T = TypeVar("T")

# For SO_LINGER: it is on, for 0 seconds.
_NOTHING_LINGERS = struct.pack("ii", 1, 0)


class RealClock:
    """The system's clocks."""

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


class RealRandom:
    """Randomness of the operating system."""

    def uuid(self) -> Uuid:
        while True:
            made = Uuid(secrets.token_bytes(16))
            # Kafka avoids ids that a shell would take for an option, and the small reserved ones.
            if any(made[:15]) and not str(made).startswith("-"):
                return made

    def below(self, bound: int) -> int:
        return secrets.randbelow(bound)


class RealDescriptor:
    """An open file's number, closed when the last one that holds it lets go of it."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        close(self.number)

    def send(self, socket: int, position: int, length: int) -> int:
        return os.sendfile(socket, self.number, position, length)

    def read(self, position: int, length: int) -> bytes:
        return os.pread(self.number, length, position)


class RealFile:
    """A file descriptor with explicit positions."""

    __slots__ = ("_descriptor", "_fd", "_path")

    def __init__(self, fd: int, path: str) -> None:
        self._fd = fd
        self._descriptor: RealDescriptor | None = RealDescriptor(fd)
        self._path = path

    def append(self, *buffers: Buffer) -> None:
        written = os.writev(self._fd, buffers)
        if written != sum(map(len, buffers)):
            self._append_rest(b"".join(buffers)[written:])

    def _append_rest(self, rest: bytes) -> None:
        """The kernel took only a part: usually the disk is full, which the next write says."""
        while rest:
            written = os.write(self._fd, rest)
            if written == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path)
            rest = rest[written:]

    def read(self, position: int, length: int) -> bytes:
        data = os.pread(self._fd, length, position)
        if len(data) < length and data:
            # pread stops at the end of the file, or, rarely, after a signal or at the kernel's 2 GB limit.
            while len(data) < length and (more := os.pread(self._fd, length - len(data), position + len(data))):
                data += more
        return data

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def sync(self) -> None:
        os.fsync(self._fd)

    def close(self) -> None:
        self._fd = -1
        self._descriptor = None

    def view(self) -> memoryview:
        size = self.size()
        if size == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(self._fd, size, access=mmap.ACCESS_READ))

    def descriptor(self) -> RealDescriptor | None:
        # Elsewhere than on Linux a partial `sendfile` is told in other ways.
        return self._descriptor if sys.platform == "linux" else None


class RealDisk:
    """The operating system's file system."""

    def create(self, path: str) -> RealFile:
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
        return RealFile(os.open(path, flags, 0o644), path)

    def open(self, path: str, *, writable: bool = False) -> RealFile:
        flags = (os.O_RDWR | os.O_APPEND if writable else os.O_RDONLY) | os.O_CLOEXEC
        return RealFile(os.open(path, flags), path)

    def read_file(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def replace_file(self, path: str, content: bytes) -> None:
        temporary = path + ".tmp"
        file = self.create(temporary)
        try:
            file.append(content)
            file.sync()
        finally:
            file.close()
        os.replace(temporary, path)
        self.sync_directory(os.path.dirname(path))

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def remove(self, path: str) -> None:
        os.remove(path)

    def remove_tree(self, path: str) -> None:
        shutil.rmtree(path)

    def make_directory(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def list_directory(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(path))
        except FileNotFoundError:
            return []

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def sync_directory(self, path: str) -> None:
        fd = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def lock(self, path: str) -> RealFile:
        file = RealFile(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644), path)
        try:
            # POSIX locks are what Java's FileChannel.tryLock takes, so Apache Kafka and we keep each other out;
            # flock adds the same between two brokers inside one process, which POSIX locks don't see.
            fcntl.flock(file._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(file._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            raise BlockingIOError(errno.EAGAIN, "another process holds the lock", path) from error
        return file

    def space(self, path: str) -> tuple[int, int]:
        volume = os.statvfs(path)
        return volume.f_frsize * volume.f_blocks, volume.f_frsize * volume.f_bavail


@dataclass
class RealListening:
    """An asyncio server on one socket."""

    server: asyncio.Server
    host: str
    port: int

    def close(self) -> None:
        self.server.close()

    async def wait_closed(self) -> None:
        await self.server.wait_closed()


class RealNetwork:
    """The running event loop's TCP."""

    async def listen(
        self,
        factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        *,
        ssl: SSLContext | None = None,
    ) -> RealListening:
        try:
            server = await self._bind(factory, host, port, ssl)
        except OSError as error:
            why = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
            raise OSError(error.errno, f"{host}:{port} cannot be listened on: {why}") from error
        return RealListening(server, host, server.sockets[0].getsockname()[1])

    async def _bind(
        self, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int, ssl: SSLContext | None
    ) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        hosts: str | list[str] | None = host or None
        if port == 0:
            # A name with two addresses would get two ports: the first address is enough where any port will do.
            found = await loop.getaddrinfo(host or "0.0.0.0", 0, type=socket.SOCK_STREAM)  # noqa: S104 - as asked for
            hosts = str(found[0][4][0])
        elif host == "::":
            hosts = ["::", "0.0.0.0"]  # noqa: S104 - as for Java, every address and not only IPv6 ones
        return await loop.create_server(factory, hosts, port, ssl=ssl, backlog=1024, reuse_address=True)

    async def connect(
        self,
        factory: Callable[[], Any],
        host: str,
        port: int,
        *,
        ssl: SSLContext | None = None,
        forgets_unsent: bool = False,
    ) -> tuple[asyncio.BaseTransport, Any]:
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.create_connection(
            factory, host, port, ssl=ssl, server_hostname=host if ssl else None
        )
        if forgets_unsent:
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NOTHING_LINGERS)
        return transport, protocol

    def pulse(self, late_ms: int, hung_ms: int) -> RealPulse:
        return RealPulse(late_ms, hung_ms)


class RealWorkers:
    """A small thread pool, and child interpreters."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None

    def in_thread(self, call: Callable[..., T], *arguments: object) -> Awaitable[T]:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(4, thread_name_prefix="millstream")
        return asyncio.get_running_loop().run_in_executor(self._threads, call, *arguments)

    async def in_child(self, module: str, arguments: Sequence[str]) -> None:
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            module,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            _, said = await child.communicate()
        except asyncio.CancelledError:
            if child.returncode is None:
                child.kill()
                await child.wait()
            raise
        if child.returncode != 0:
            raise ChildFailed(module, child.returncode or 0, said.decode("utf-8", "replace")[-2000:])

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=True)
            self._threads = None


@dataclass
class RealPorts:
    """The ports of a node that runs on this machine."""

    clock: RealClock = field(default_factory=RealClock)
    random: RealRandom = field(default_factory=RealRandom)
    disk: RealDisk = field(default_factory=RealDisk)
    network: RealNetwork = field(default_factory=RealNetwork)
    workers: RealWorkers = field(default_factory=RealWorkers)
