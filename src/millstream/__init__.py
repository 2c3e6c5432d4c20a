"""Millstream: the whole Kafka platform for Python in one `pip install`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millstream.embedded import Broker as Broker
    from millstream.embedded import Cluster as Cluster

__version__ = "0.1.0"
__all__ = ["Broker", "Cluster", "__version__"]


def __getattr__(name: str) -> Any:
    # Loaded when asked for: `import millstream.client` should not pay for a broker.
    if name in ("Broker", "Cluster"):
        from millstream import embedded

        return getattr(embedded, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
