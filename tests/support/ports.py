"""Loopback ports: picking free ones for programs that cannot pick their own, and asking whether Kafka answers there."""

from __future__ import annotations

import socket
import struct

# ApiVersions v0: correlation id 7, null client id. Written by hand so that it needs nothing of the code under test.
_API_VERSIONS_V0 = struct.pack(">ihhih", 10, 18, 0, 7, -1)


def free_ports(count: int) -> list[int]:
    """Distinct ports that nobody listens on now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def answers_api_versions(host: str, port: int, timeout_s: float = 1.0) -> bool:
    """Whether a broker or controller there answers its first question."""
    try:
        with socket.create_connection((host, port), timeout=timeout_s) as connection:
            connection.sendall(_API_VERSIONS_V0)
            answer = b""
            while len(answer) < 10:
                received = connection.recv(64)
                if not received:
                    return False
                answer += received
    except OSError:
        return False
    _, correlation_id, error_code = struct.unpack_from(">iih", answer)
    return bool(correlation_id == 7 and error_code == 0)
