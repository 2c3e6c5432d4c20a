"""The ports a client needs: three of a node's five."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from millstream.runtime.ports import Clock, Network, Random


class ClientPorts(Protocol):
    """Any node's ports will do; the simulator's too."""

    @property
    def clock(self) -> Clock: ...
    @property
    def random(self) -> Random: ...
    @property
    def network(self) -> Network: ...


def real_ports() -> ClientPorts:
    from millstream.runtime.real import RealPorts

    return RealPorts()
