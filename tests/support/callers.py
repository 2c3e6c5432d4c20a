"""Whose process has the other end of a loopback connection: the kernel knows."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

# The second is for programs that take IPv6 sockets for everything, as Java does.
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


def inode_of(port: int, dialled: int) -> str | None:
    """Of the socket that dialled from the port; others may have dialled other ports from the same one."""
    for table in _TABLES:
        if not table.exists():
            continue
        for line in table.read_text().splitlines()[1:]:
            fields = line.split()
            ends = tuple(int(each.rpartition(":")[2], 16) for each in fields[1:3])
            if ends == (port, dialled) and fields[9] != "0":
                return fields[9]
    return None


def sockets_of(pid: int) -> set[str]:
    """The inodes of all sockets that a process has open."""
    found: set[str] = set()
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                link = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{name}"))
                if link is not None:
                    found.add(link[1])
    return found
