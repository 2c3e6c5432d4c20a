"""Ports for programs that have to know each other's before the first of them listens: controllers, above all."""

from __future__ import annotations

import socket


def free_ports(host: str, count: int) -> list[int]:
    """As many different ports that nobody listens on now; they are held together until all are found."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind((host, 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
