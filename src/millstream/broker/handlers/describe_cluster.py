"""DescribeCluster: brokers for clients, controllers on a controller's listener (KIP-919)."""

from __future__ import annotations

from functools import partial

from millstream.broker.addresses import address_for
from millstream.broker.dispatch import Context, handles
from millstream.metadata.describe_cluster import (
    BROKERS,
    CONTROLLERS,
    describe_brokers,
    describe_controllers,
    endpoint_mismatch,
    refused,
)
from millstream.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from millstream.security.operations import (
    CLUSTER_NAME,
    OPERATIONS_NOT_ASKED_FOR,
    ResourceType,
    authorized_operations,
    needs_of,
)

_DESCRIBE, _ALTER = needs_of(DescribeClusterRequest)


@handles(DescribeClusterRequest, versions="0-2")
def describe_cluster(request: DescribeClusterRequest, ctx: Context) -> DescribeClusterResponse:
    on_controller = ctx.from_controller_listener
    if on_controller and not _ALTER.granted(ctx.allows):
        return refused(_ALTER.refusal, "Altering the cluster is not allowed.", CONTROLLERS)
    mismatch = endpoint_mismatch(request, on_controller=on_controller)
    if mismatch is not None:
        return mismatch
    broker = ctx.broker
    address = partial(address_for, ctx)
    if on_controller:
        nodes, controller_id = describe_controllers(broker.image, address), broker.controller.log.quorum.leader_id
    else:
        # Clients send what is meant for the controller to this broker, which knows where to take it.
        fenced_too = request.include_fenced_brokers
        nodes, controller_id = describe_brokers(broker.image, address, fenced_too=fenced_too), broker.node_id
    return DescribeClusterResponse(
        endpoint_type=CONTROLLERS if on_controller else BROKERS,
        cluster_id=broker.cluster_id,
        controller_id=controller_id,
        brokers=nodes,
        cluster_authorized_operations=_operations(request, ctx),
    )


def _operations(request: DescribeClusterRequest, ctx: Context) -> int:
    if not request.include_cluster_authorized_operations:
        return OPERATIONS_NOT_ASKED_FOR
    if not _DESCRIBE.granted(ctx.allows):
        return 0
    return authorized_operations(ctx.allows, ResourceType.CLUSTER, CLUSTER_NAME)
