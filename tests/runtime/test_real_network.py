"""Connections of the operating system: what becomes of bytes that were not sent when one is given up."""

from __future__ import annotations

import asyncio
import socket

import pytest

from millstream.runtime.real import RealNetwork

# More than the kernel takes from a program whose peer does not read.
MUCH = bytes(8 << 20)


def _read_to_the_end(peer: socket.socket) -> None:
    peer.settimeout(30)
    while peer.recv(1 << 20):
        pass


async def _given_up(*, forgets_unsent: bool) -> socket.socket:
    """The other end of a connection that was given up while much of what it had to send was under way."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        transport, _ = await RealNetwork().connect(asyncio.Protocol, "127.0.0.1", port, forgets_unsent=forgets_unsent)
        peer, _ = listening.accept()
    assert isinstance(transport, asyncio.Transport)
    transport.write(MUCH)
    transport.abort()
    await asyncio.sleep(0)
    return peer


def test_unsent_bytes_can_be_taken_back() -> None:
    with asyncio.run(_given_up(forgets_unsent=True)) as peer, pytest.raises(ConnectionResetError):
        _read_to_the_end(peer)


def test_otherwise_the_kernel_goes_on_with_them() -> None:
    with asyncio.run(_given_up(forgets_unsent=False)) as peer:
        _read_to_the_end(peer)
