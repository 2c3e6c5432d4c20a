from __future__ import annotations

from millstream.protocol.declare import Bool, Int8, Int16, Int32, String, message, struct, wire


@message(key=60, versions="0-2", flexible="0+", listeners=("broker", "controller"))
class DescribeClusterRequest:
    """Asks for the brokers and the cluster id (KIP-700).

    v1: KIP-919, or for the controllers. v2: KIP-1073, fenced brokers too.
    """

    include_cluster_authorized_operations: Bool
    endpoint_type: Int8 = wire("1+", default=1)
    include_fenced_brokers: Bool = wire("2+", default=False)


@struct
class DescribeClusterBroker:
    broker_id: Int32
    host: String
    port: Int32
    rack: String | None = wire(default=None)
    is_fenced: Bool = wire("2+", default=False)


@message(key=60, versions="0-2", flexible="0+")
class DescribeClusterResponse:
    """Brokers or controllers, whichever endpoint was asked."""

    throttle_time_ms: Int32 = wire(default=0)
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default=None)
    endpoint_type: Int8 = wire("1+", default=1)
    cluster_id: String
    controller_id: Int32 = wire(default=-1)
    brokers: list[DescribeClusterBroker]
    cluster_authorized_operations: Int32 = wire(default=-2147483648)
