"""A broker as a process of its own: logs, signals, the one line that says it is ready, and an exit code.

    ready: PLAINTEXT://127.0.0.1:9092 cluster=… node=1 data=/var/lib/millstream

SIGTERM and SIGINT stop it cleanly; a second one ends it at once. Logs go to stderr, one line per event: readable on a
terminal, JSON where stderr is a file or a pipe.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
from typing import TYPE_CHECKING, Any

from millstream.broker.membership import RegistrationRefused
from millstream.broker.metrics_page import MetricsPage
from millstream.broker.node import Node
from millstream.broker.storage_format import StorageRefused
from millstream.protocol.errors import StorageError
from millstream.runtime.logs import Logger, write_to_stderr
from millstream.runtime.loops import new_event_loop
from millstream.runtime.real import RealPorts

if TYPE_CHECKING:
    from millstream.broker.listeners import Listener
    from millstream.runtime.ports import Listening
    from millstream.settings.loading import Loaded

_log = Logger("millstream")
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run(loaded: Loaded, *, metrics: tuple[str, int] | None = None, cluster_id: str | None = None) -> int:
    """Run a broker until it is told to stop; the process's exit code."""
    write_to_stderr()
    for warning in loaded.warnings:
        _log.warning(warning)
    loop = new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(_serve(loaded, metrics, cluster_id))
    finally:
        loop.close()


async def _serve(loaded: Loaded, metrics: tuple[str, int] | None, cluster_id: str | None) -> int:
    loop = asyncio.get_running_loop()
    told_to_stop = asyncio.Event()
    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, _on_signal, told_to_stop)
    ports = RealPorts()
    node = Node(loaded.settings, ports, cluster_id=cluster_id)
    page: Listening | None = None
    try:
        if not await _started(node, told_to_stop):
            return 0
        if metrics is not None:
            page = await ports.network.listen(lambda: MetricsPage(node), *metrics)
    except (StorageRefused, RegistrationRefused, StorageError, OSError) as refusal:
        sys.stderr.write(f"millstream: {_explain(refusal)}\n")
        if node.is_ready:
            await node.stop()
        return 1
    # What start-up made lives as long as the process: the collector need not look at it again.
    gc.collect()
    gc.freeze()
    _say_ready(node, page)
    failed = await _stopped_or_failed(node, told_to_stop)
    if page is not None:
        page.close()
    await node.stop()
    return 1 if failed else 0


async def _started(node: Node, told_to_stop: asyncio.Event) -> bool:
    """Whether it came up; a node that waits for the rest of its cluster can be told to stop as well."""
    starting = asyncio.ensure_future(node.start())
    told = asyncio.ensure_future(told_to_stop.wait())
    await asyncio.wait((starting, told), return_when=asyncio.FIRST_COMPLETED)
    told.cancel()
    if not starting.done():
        starting.cancel()
        await asyncio.wait((starting,))
        return False
    starting.result()
    return True


def _on_signal(told_to_stop: asyncio.Event) -> None:
    told_to_stop.set()
    # Who asks twice is in a hurry, and gets the system's own way: the end, at once. The next start recovers.
    loop = asyncio.get_running_loop()
    for number in _STOP_SIGNALS:
        loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_DFL)


async def _stopped_or_failed(node: Node, told_to_stop: asyncio.Event) -> bool:
    told = asyncio.ensure_future(told_to_stop.wait())
    waited_for: list[asyncio.Future[Any]] = [told, node.failed]
    await asyncio.wait(waited_for, return_when=asyncio.FIRST_COMPLETED)
    told.cancel()
    return node.failed.done()


def _say_ready(node: Node, page: Listening | None) -> None:
    addresses = " ".join(f"{listener.name}://{_address(listener)}" for listener in node.listeners)
    served = f" metrics=http://{_address(page)}/metrics" if page is not None else ""
    data = ",".join(node.data_directories)
    sys.stdout.write(f"ready: {addresses} cluster={node.cluster_id} node={node.node_id} data={data}{served}\n")
    sys.stdout.flush()


def _address(listening: Listener | Listening) -> str:
    host = f"[{listening.host}]" if ":" in listening.host else listening.host
    return f"{host}:{listening.port}"


def _explain(refusal: BaseException) -> str:
    if isinstance(refusal, BlockingIOError):
        return f"{refusal.filename}: another process holds this directory; stop it first, or use another --data-dir."
    if isinstance(refusal, OSError):
        return f"{refusal.filename or ''}: {refusal.strerror or refusal}".lstrip(": ")
    return str(refusal)
