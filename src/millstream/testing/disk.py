"""A disk that loses what was not synced: file contents, names, or both, and sometimes only a part of them.

It keeps two states: what the running system sees, and what the platter surely holds. `sync` of a file moves its content
over, `sync_directory` the names of a folder. `crash` throws the rest away, except that, as on real disks, any part of
it may have made it: a seeded choice keeps a prefix of unsynced bytes, sometimes with a torn end.

Every operation that changes something is a step. `fail_at` makes the step raise an OSError, `power_off_at` ends the
power there: the step and everything after it raise PowerLost until `crash` is called.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from millstream.runtime.ports import Buffer

_TORN_BYTES = b"\xde\xad\xbe\xef"
_ROOMY = 1 << 40


class PowerLost(BaseException):
    """The machine has no power: no code of the program runs past this. Not an Exception, so that nothing handles it."""


class _Inode:
    """A file's content, and as much of it as is surely on disk: mostly a prefix, so that a sync copies nothing."""

    __slots__ = ("_durable_bytes", "_durable_prefix", "content", "modified_ms")

    def __init__(self) -> None:
        self.content = bytearray()
        self.modified_ms = 0
        self._durable_prefix = 0
        # Only where the file was cut back and not synced since.
        self._durable_bytes: bytes | None = None

    @property
    def durable(self) -> bytes:
        return bytes(self.content[: self._durable_prefix]) if self._durable_bytes is None else self._durable_bytes

    def sync(self) -> None:
        self._durable_prefix = len(self.content)
        self._durable_bytes = None

    def truncate(self, size: int) -> None:
        if size < self._durable_prefix and self._durable_bytes is None:
            self._durable_bytes = bytes(self.content[: self._durable_prefix])
        if size < len(self.content):
            del self.content[size:]
        else:
            self.content.extend(bytes(size - len(self.content)))


class SimulatedFile:
    """An open file of a LossyDisk."""

    def __init__(self, disk: LossyDisk, path: str, inode: _Inode) -> None:
        self._disk = disk
        self._path = path
        self._inode = inode

    def append(self, *buffers: Buffer) -> None:
        data = b"".join(buffers)
        room = self._disk.take_space(len(data))
        if room < len(data):
            self._inode.content += data[:room]
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path)
        try:
            self._disk.step(f"write {self._path}")
        except OSError:
            # A failed write may leave a part of the data behind.
            self._inode.content += data[: len(data) // 2]
            raise
        self._inode.content += data
        self._inode.modified_ms = self._disk.now_ms()

    def read(self, position: int, length: int) -> bytes:
        self._disk.check_power()
        return bytes(self._inode.content[position : position + length])

    def size(self) -> int:
        return len(self._inode.content)

    def truncate(self, size: int) -> None:
        self._disk.step(f"truncate {self._path}")
        self._inode.truncate(size)

    def sync(self) -> None:
        self._disk.step(f"fsync {self._path}")
        self._inode.sync()

    def close(self) -> None:
        """Nothing is lost or kept by closing."""

    def view(self) -> memoryview:
        self._disk.check_power()
        return memoryview(bytes(self._inode.content))

    def descriptor(self) -> None:
        return None


class _Lock(SimulatedFile):
    """A lock file, free again when closed."""

    def close(self) -> None:
        self._disk.locked.pop(self._path, None)


class LossyDisk:
    """The file system of one simulated machine."""

    def __init__(self, random: Random, *, capacity_bytes: int = _ROOMY) -> None:
        self._random = random
        self._files: dict[str, _Inode] = {}
        self._durable_files: dict[str, _Inode] = {}
        # Names that may differ between the two: what is asked all the time is asked of these alone.
        self._unsynced_names: dict[str, None] = {}
        self._directories: dict[str, None] = {"/": None}
        self._capacity_bytes = capacity_bytes
        self.locked: dict[str, None] = {}
        self.steps = 0
        self.last_step = ""
        self.power_off_at: int | None = None
        self.fail_at: dict[int, int] = {}
        self._powerless = False
        self.power_lost: PowerLost | None = None
        """What the step raised at which power went, until somebody has taken it."""
        self.on_power_off: Callable[[], None] = lambda: None
        self.on_step: Callable[[str], None] | None = None
        """Hears of every step, for the trace."""
        self.clock_ms = 0

    # --- faults

    def step(self, what: str) -> None:
        """Count an operation that changes something; the place where faults strike."""
        self.check_power()
        self.steps += 1
        self.last_step = what
        if self.on_step is not None:
            self.on_step(what)
        if self.power_off_at is not None and self.steps >= self.power_off_at:
            self.power_off()
            self.power_lost = PowerLost(f"at step {self.steps}: {what}")
            raise self.power_lost
        if self.steps in self.fail_at:
            number = self.fail_at[self.steps]
            raise OSError(number, os.strerror(number), what)

    def check_power(self) -> None:
        if self._powerless:
            raise PowerLost("the machine has no power")

    def power_off(self) -> None:
        if not self._powerless:
            self.on_power_off()
            self._powerless = True

    def crash(self, *, keep_unsynced: bool = False) -> None:
        """Power is back. What was not synced is gone, or a part of it; a mere process crash keeps everything."""
        self._powerless = False
        self.power_off_at = None
        self.locked.clear()
        if keep_unsynced:
            return
        for names in self._unsynced_changes():
            if self._random.random() < 0.5:
                # The change reached the disk although nobody asked for it.
                for name in names:
                    now = self._files.get(name)
                    if now is None:
                        del self._durable_files[name]
                    else:
                        self._durable_files[name] = now
        self._files = dict(self._durable_files)
        self._unsynced_names.clear()
        for name in sorted(self._files):
            self._lose_unsynced_bytes(self._files[name])

    def _unsynced_changes(self) -> list[list[str]]:
        """Names that differ from what the platter holds. A rename is atomic: its names change together or not."""
        changes: list[list[str]] = []
        for name in sorted(self._unsynced_names):
            now, before = self._files.get(name), self._durable_files.get(name)
            if now is before:
                continue
            inodes = {id(inode) for inode in (now, before) if inode is not None}
            together = [change for change in changes if inodes & self._inodes_of(change)]
            changes = [change for change in changes if change not in together]
            changes.append([other for change in together for other in change] + [name])
        return changes

    def _inodes_of(self, names: list[str]) -> set[int]:
        found = [files.get(name) for name in names for files in (self._files, self._durable_files)]
        return {id(inode) for inode in found if inode is not None}

    def _lose_unsynced_bytes(self, inode: _Inode) -> None:
        content, durable = bytes(inode.content), inode.durable
        if content == durable:
            return
        kept = durable
        if content.startswith(durable):
            tail = content[len(durable) :]
            kept += tail[: self._random.randrange(len(tail) + 1)]
            if self._random.random() < 0.3:
                kept += _TORN_BYTES
        elif self._random.random() < 0.5:
            kept = content
        inode.content = bytearray(kept)
        inode.sync()

    def take_space(self, size: int) -> int:
        if self._capacity_bytes == _ROOMY:
            return size
        return max(0, min(size, self._capacity_bytes - self._used()))

    def _used(self) -> int:
        return sum(len(inode.content) for inode in self._files.values())

    def set_capacity(self, capacity_bytes: int) -> None:
        self._capacity_bytes = capacity_bytes

    def fill_up(self, *, but_bytes: int = 0) -> None:
        """Somebody else took the space: so much is left."""
        self._capacity_bytes = self._used() + but_bytes

    def make_room(self) -> None:
        """There is space again."""
        self._capacity_bytes = _ROOMY

    def now_ms(self) -> int:
        return self.clock_ms

    # --- the port

    def create(self, path: str) -> SimulatedFile:
        self._check_parent(path)
        self.step(f"create {path}")
        inode = self._files[path] = _Inode()
        self._unsynced_names[path] = None
        inode.modified_ms = self.clock_ms
        return SimulatedFile(self, path, inode)

    def open(self, path: str, *, writable: bool = False) -> SimulatedFile:  # all files are writable here
        return SimulatedFile(self, path, self._inode(path))

    def read_file(self, path: str) -> bytes:
        return bytes(self._inode(path).content)

    def replace_file(self, path: str, content: bytes) -> None:
        temporary = path + ".tmp"
        file = self.create(temporary)
        file.append(content)
        file.sync()
        self.rename(temporary, path)
        self.sync_directory(os.path.dirname(path))

    def rename(self, source: str, target: str) -> None:
        if source in self._directories:
            self.step(f"rename {source} {target}")
            self._rename_directory(source, target)
            return
        inode = self._inode(source)
        self._check_parent(target)
        self.step(f"rename {source} {target}")
        del self._files[source]
        self._files[target] = inode
        self._unsynced_names[source] = self._unsynced_names[target] = None

    def _rename_directory(self, source: str, target: str) -> None:
        """Renaming a folder is durable at once here: the names inside it are not what is being tested."""
        for names in (self._files, self._durable_files, self._unsynced_names):
            _rename_below(names, source, target)
        for name in [name for name in self._directories if name == source or name.startswith(source + "/")]:
            del self._directories[name]
            self._directories[target + name[len(source) :]] = None

    def remove(self, path: str) -> None:
        self._inode(path)
        self.step(f"remove {path}")
        del self._files[path]
        self._unsynced_names[path] = None

    def remove_tree(self, path: str) -> None:
        self.step(f"remove tree {path}")
        for names in (self._files, self._durable_files, self._unsynced_names):
            _remove_below(names, path)
        for name in [name for name in self._directories if name == path or name.startswith(path + "/")]:
            del self._directories[name]

    def make_directory(self, path: str) -> None:
        if path in self._directories:
            return
        self.step(f"make directory {path}")
        parts = path.strip("/").split("/")
        for depth in range(1, len(parts) + 1):
            self._directories["/" + "/".join(parts[:depth])] = None

    def list_directory(self, path: str) -> list[str]:
        self.check_power()
        prefix = path.rstrip("/") + "/"
        names = {
            name[len(prefix) :].split("/")[0]
            for name in [*self._files, *self._directories]
            if name.startswith(prefix) and name != prefix
        }
        return sorted(names)

    def exists(self, path: str) -> bool:
        self.check_power()
        return path in self._files or path.rstrip("/") in self._directories

    def size(self, path: str) -> int:
        return len(self._inode(path).content)

    def modified_ms(self, path: str) -> int:
        return self._inode(path).modified_ms

    def sync_directory(self, path: str) -> None:
        self.step(f"sync directory {path}")
        directory = path.rstrip("/")
        for name in sorted(self._unsynced_names):
            if name.rpartition("/")[0] == directory:
                del self._unsynced_names[name]
                inode = self._files.get(name)
                if inode is None:
                    self._durable_files.pop(name, None)
                else:
                    self._durable_files[name] = inode

    def lock(self, path: str) -> SimulatedFile:
        self.check_power()
        if path in self.locked:
            raise BlockingIOError(errno.EAGAIN, "another process holds the lock", path)
        self.locked[path] = None
        inode = self._files.setdefault(path, _Inode())
        self._unsynced_names[path] = None
        return _Lock(self, path, inode)

    def space(self, path: str) -> tuple[int, int]:  # one volume
        return self._capacity_bytes, max(0, self._capacity_bytes - self._used())

    def _inode(self, path: str) -> _Inode:
        self.check_power()
        inode = self._files.get(path)
        if inode is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return inode

    def _check_parent(self, path: str) -> None:
        self.check_power()
        parent = os.path.dirname(path)
        if parent not in self._directories:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def _rename_below(names: dict[str, Any], source: str, target: str) -> None:
    for name in [name for name in names if name.startswith(source + "/")]:
        names[target + name[len(source) :]] = names.pop(name)


def _remove_below(names: dict[str, Any], path: str) -> None:
    for name in [name for name in names if name.startswith(path + "/")]:
        del names[name]
