"""`/metrics` for Prometheus and `/health` for whoever restarts brokers: the smallest HTTP server that does it.

A web framework would cost more memory than the broker; two fixed pages need none. Requests are read up to the end of
their headers and never more than 8 KB; each connection gets one answer.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, cast

from millstream.broker.metrics import exposition

if TYPE_CHECKING:
    from millstream.broker.node import Node

_HEAD_BYTES_MAX = 8192


class MetricsPage(asyncio.Protocol):
    """One HTTP connection."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._head = b""
        self._transport = cast("asyncio.Transport", None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._head += data
        if b"\r\n\r\n" in self._head or len(self._head) > _HEAD_BYTES_MAX:
            self._answer()

    def _answer(self) -> None:
        words = self._head.split(b"\r\n", 1)[0].split(b" ")
        path = words[1].split(b"?")[0] if len(words) == 3 else b""
        if len(words) != 3 or words[0] not in (b"GET", b"HEAD"):
            self._send("400 Bad Request", "text/plain", b"GET /metrics or /health\n")
        elif path == b"/metrics":
            self._send("200 OK", "text/plain; version=0.0.4; charset=utf-8", exposition(self._node))
        elif path == b"/health":
            healthy = self._node.is_ready and not self._node.partitions.offline_count
            body = {"status": "ok" if healthy else "degraded", "node": self._node.node_id, "ready": self._node.is_ready,
                    "offline_partitions": self._node.partitions.offline_count}  # fmt: skip
            self._send(
                "200 OK" if healthy else "503 Service Unavailable", "application/json", json.dumps(body).encode()
            )
        else:
            self._send("404 Not Found", "text/plain", b"there are /metrics and /health\n")

    def _send(self, status: str, kind: str, body: bytes) -> None:
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        self._transport.write(head.encode("ascii") + body)
        self._transport.close()
