"""DescribeCluster: the brokers, or on a controller's listener the controllers, and where to reach them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.metadata.image import Broker, Controller, MetadataImage

BROKERS, CONTROLLERS = 1, 2
_NAMES = {BROKERS: "brokers", CONTROLLERS: "controllers"}


def endpoint_mismatch(request: DescribeClusterRequest, *, on_controller: bool) -> DescribeClusterResponse | None:
    """The refusal for who asks a broker for controllers, or the other way round (KIP-919)."""
    served = CONTROLLERS if on_controller else BROKERS
    if request.endpoint_type == served:
        return None
    wanted = _NAMES.get(request.endpoint_type)
    if wanted is None:
        code, reason = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"There are no endpoints of type {request.endpoint_type}."
    else:
        code = ErrorCode.MISMATCHED_ENDPOINT_TYPE
        reason = f"This listener is for {_NAMES[served]}; the request is meant for {wanted}."
    return refused(code, reason, served)


def refused(code: ErrorCode, reason: str, endpoint_type: int = BROKERS) -> DescribeClusterResponse:
    return DescribeClusterResponse(
        error_code=code, error_message=reason, endpoint_type=endpoint_type, cluster_id="", brokers=[]
    )


def describe_brokers(
    image: MetadataImage, address: Callable[[Broker], tuple[str, int] | None], *, fenced_too: bool
) -> list[DescribeClusterBroker]:
    """The brokers that a client can reach; fenced ones only for who asks for them (KIP-1073)."""
    return [
        DescribeClusterBroker(
            broker_id=broker.id, host=found[0], port=found[1], rack=broker.rack, is_fenced=broker.fenced
        )
        for broker in image.brokers.values()
        if (fenced_too or not broker.fenced) and (found := address(broker)) is not None
    ]


def describe_controllers(
    image: MetadataImage, address: Callable[[Controller], tuple[str, int] | None]
) -> list[DescribeClusterBroker]:
    return [
        DescribeClusterBroker(broker_id=controller.id, host=found[0], port=found[1])
        for controller in image.controllers.values()
        if (found := address(controller)) is not None
    ]
