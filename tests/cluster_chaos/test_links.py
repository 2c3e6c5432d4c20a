"""The links themselves: what is cut does not pass, in the direction in which it is cut, and what is healed does."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cluster_chaos.links import CLIENTS, entering
from tests.support.requirements import PROJECT_ROOT, unavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

PLACES = (CLIENTS, 1, 2)

PROGRAM = '''
import socket, subprocess, sys
from tests.cluster_chaos.links import CLIENTS, Namespaces, both_ways
from tests.cluster_chaos.relays import Relays

links = {"namespaces": Namespaces, "relays": Relays}[sys.argv[1]]([1, 2])
places = (CLIENTS, 1, 2)

def passing():
    return sorted((one, other) for one in places for other in places if one != other and links.passes(one, other))

everything = passing()
assert len(everything) == 6, everything
links.cut([1], [2])
assert passing() == [pair for pair in everything if pair != (1, 2)], passing()
links.cut([2], [1])
both_ways(links, [CLIENTS], [1])
assert passing() == [(0, 2), (2, 0)], passing()
links.heal()
assert passing() == everything, passing()

# A node's process is where its links are: what it sends a listener of node 2 is cut with the link from 1 to 2.
ECHO = """
import socketserver, sys
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall(self.request.recv(9))
server = socketserver.ThreadingTCPServer((sys.argv[1], int(sys.argv[2])), Echo)
print(flush=True)
server.serve_forever()
"""
CALL = "import socket, sys; s = socket.create_connection((sys.argv[1], int(sys.argv[2])), float(sys.argv[3]))\\n" \\
    "s.sendall(b'x'); print(s.recv(1).decode(), flush=True)"
where = links.broker_listener(2)
echo = links.launch(2, [sys.executable, "-c", ECHO, *where.bound.split(":")], stdout=subprocess.PIPE)
echo.stdout.readline()

def call(node, within_s):
    command = [sys.executable, "-c", CALL, *where.told.split(":"), str(within_s)]
    caller = links.launch(node, command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return caller.communicate()[0]

try:
    assert call(1, 30) == b"x\\n"
    links.cut([1], [2])
    assert call(1, 0.5) == b""
    with socket.create_connection((where.told.split(":")[0], int(where.told.split(":")[1])), 30) as client:
        client.sendall(b"y")
        assert client.recv(1) == b"y"
    links.heal()
    assert call(1, 30) == b"x\\n"
finally:
    echo.kill()
    links.close()
'''


def run(before: Sequence[str], kind: str) -> None:
    command = [*before, sys.executable, "-c", PROGRAM, kind]
    done = subprocess.run(command, capture_output=True, text=True, cwd=PROJECT_ROOT, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_relays_cut_links() -> None:
    run([], "relays")


@pytest.mark.slow
def test_namespaces_cut_links() -> None:
    try:
        before = entering()
    except LookupError as refusal:
        unavailable(f"this kernel gives no network namespaces: {refusal}")
    run(before, "namespaces")
