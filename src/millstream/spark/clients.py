"""One client per process and cluster, kept: Spark uses its Python workers again and again.

A micro-batch thus finds its connections open and its metadata known. The process is part of the key: a worker that was
forked from a process with a client has its sockets, but not its thread. After an error the client is let go, so that
the next attempt starts afresh.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from millstream.client.sync import SyncClient

if TYPE_CHECKING:
    from collections.abc import Mapping

_Key = tuple[int, tuple[tuple[str, str], ...]]
_clients: dict[_Key, SyncClient] = {}
_changing = threading.Lock()


def client_for(connection: Mapping[str, str], *, expected: bool = False) -> SyncClient:
    """The process's client with these options.

    With `expected` the cluster has been reached before, by the driver that planned this task: if a new process finds
    nobody there, that is no wrong address but a broker that will come back.
    """
    with _changing:
        client = _clients.get(_key(connection))
        if client is None:
            client = _clients[_key(connection)] = SyncClient({"client.id": "millstream-spark", **connection})
        if expected:
            client.client.nodes.expected = True
        return client


def let_go(connection: Mapping[str, str]) -> None:
    """Something went wrong: close it, and the next one who asks gets a fresh one."""
    with _changing:
        client = _clients.pop(_key(connection), None)
    if client is not None:
        client.close()


def _key(connection: Mapping[str, str]) -> _Key:
    return os.getpid(), tuple(sorted(connection.items()))
