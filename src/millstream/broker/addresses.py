"""Under which address a client reaches a node.

The most common failure of all Kafka set-ups is an answer with an address that the client cannot reach. So this node
tells its advertised address where one is set, and otherwise the very address that the client dialled: that one
works. Other nodes are told as they registered themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millstream.broker.dispatch import Context
    from millstream.metadata.image import Broker, Controller


def address_for(ctx: Context, node: Broker | Controller) -> tuple[str, int] | None:
    """Host and port of the node's listener that this client uses; None if it has no such listener."""
    if node.id == ctx.broker.node_id:
        return own_address(ctx)
    found = next((endpoint for endpoint in node.endpoints if endpoint.name == ctx.listener), None)
    return None if found is None else (found.host, found.port)


def own_address(ctx: Context) -> tuple[str, int]:
    """This node's, on the listener that the client uses. An advertised address without a host takes the dialled one."""
    dialled_host, dialled_port = ctx.local_address
    for endpoint in ctx.broker.endpoints.advertised:
        if endpoint.listener == ctx.listener:
            return endpoint.host or dialled_host, endpoint.port or dialled_port
    return dialled_host, dialled_port
