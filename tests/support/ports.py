"""Loopback ports: picking free ones for programs that cannot pick their own, and asking whether Kafka answers there."""

from __future__ import annotations

import random
import socket
import struct
from pathlib import Path

# ApiVersions v0: correlation id 7, null client id. Written by hand so that it needs nothing of the code under test.
_API_VERSIONS_V0 = struct.pack(">ihhih", 10, 18, 0, 7, -1)
PORTS_TO_CHOOSE_FROM = 12_000
FIRST_UNPRIVILEGED_PORT = 1_024
USUAL_FIRST_EPHEMERAL_PORT = 32_768

_dice = random.SystemRandom()


def free_ports(count: int) -> list[int]:
    """Distinct ports that nobody listens on now.

    They are below those that the kernel gives to outgoing connections. A port from up there may be taken by anybody's
    connection while the program that listens on it is being restarted, even by a client that dials that very port.
    """
    lowest = max(_first_ephemeral_port() - PORTS_TO_CHOOSE_FROM, FIRST_UNPRIVILEGED_PORT)
    found: dict[int, socket.socket] = {}
    try:
        while len(found) < count:
            candidate = socket.socket()
            port = lowest + _dice.randrange(PORTS_TO_CHOOSE_FROM)
            try:
                candidate.bind(("127.0.0.1", port))
            except OSError:
                candidate.close()
                continue
            found[port] = candidate
        return list(found)
    finally:
        for each in found.values():
            each.close()


def _first_ephemeral_port() -> int:
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:
        return USUAL_FIRST_EPHEMERAL_PORT


def answers_api_versions(host: str, port: int, timeout_s: float = 5.0) -> bool:
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
