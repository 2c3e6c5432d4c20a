"""The simulator: the real broker on a virtual clock, a seeded network and a disk that forgets what was not synced.

    from millstream.testing import History, SimulatedCluster, check

What a program that is tested on it needs is here by name. It is loaded when it is asked for: whoever checks a history
of another cluster should not pay for a broker.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millstream.testing.checking import Anomaly as Anomaly
    from millstream.testing.checking import Kind as Kind
    from millstream.testing.checking import check as check
    from millstream.testing.cluster import SimulatedCluster as SimulatedCluster
    from millstream.testing.history import Committed as Committed
    from millstream.testing.history import History as History
    from millstream.testing.history import Outcome as Outcome
    from millstream.testing.history import Owned as Owned
    from millstream.testing.history import Polled as Polled
    from millstream.testing.history import Sent as Sent
    from millstream.testing.simulated_node import SimulatedNode as SimulatedNode
    from millstream.testing.violations import TookTooLong as TookTooLong
    from millstream.testing.violations import Violation as Violation

__all__ = [
    "Anomaly",
    "Committed",
    "History",
    "Kind",
    "Outcome",
    "Owned",
    "Polled",
    "Sent",
    "SimulatedCluster",
    "SimulatedNode",
    "TookTooLong",
    "Violation",
    "check",
]

_HOMES = {
    "Anomaly": "checking",
    "Kind": "checking",
    "check": "checking",
    "SimulatedCluster": "cluster",
    "SimulatedNode": "simulated_node",
    "TookTooLong": "violations",
    "Violation": "violations",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'history')}"), name)
