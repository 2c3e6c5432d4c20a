from __future__ import annotations

from millstream.protocol.declare import Bool, Int16, Int32, String, UuidField, message, struct, wire
from millstream.protocol.uuid import ZERO_UUID


@struct
class MetadataRequestTopic:
    topic_id: UuidField = wire("10+", default=ZERO_UUID)
    name: String | None = wire(nullable="10+")


@message(key=3, versions="0-13", flexible="9+", listeners=("broker",))
class MetadataRequest:
    """Where are these topics' partitions, and which brokers are there?

    Null topics ask for all; in v0 the empty list does. v4: auto-creation may be declined. v10 carries topic ids,
    but only v12 may ask by them.
    """

    # In v0 the empty list asks for all topics, later it asks for none.
    topics: list[MetadataRequestTopic] | None = wire(nullable="1+")
    allow_auto_topic_creation: Bool = wire("4+", default=True)
    include_cluster_authorized_operations: Bool = wire("8-10", default=False)
    include_topic_authorized_operations: Bool = wire("8+", default=False)


@struct
class MetadataResponseBroker:
    node_id: Int32
    host: String
    port: Int32
    rack: String | None = wire("1+", default=None)


@struct
class MetadataResponsePartition:
    error_code: Int16 = wire(default=0)
    partition_index: Int32
    leader_id: Int32
    leader_epoch: Int32 = wire("7+", default=-1)
    replica_nodes: list[Int32]
    isr_nodes: list[Int32]
    offline_replicas: list[Int32] = wire("5+", default=[])


@struct
class MetadataResponseTopic:
    error_code: Int16 = wire(default=0)
    name: String | None = wire(nullable="12+")
    topic_id: UuidField = wire("10+", default=ZERO_UUID)
    is_internal: Bool = wire("1+", default=False)
    partitions: list[MetadataResponsePartition]
    topic_authorized_operations: Int32 = wire("8+", default=-2147483648)


@message(key=3, versions="0-13", flexible="9+")
class MetadataResponse:
    """Brokers, controller, and per topic the partitions with leader, replicas and ISR.

    v7: KIP-320, leader epochs. v8-10: KIP-430, authorized operations. v10: topic ids. v13: an error for the whole
    request.
    """

    throttle_time_ms: Int32 = wire("3+", default=0)
    brokers: list[MetadataResponseBroker]
    cluster_id: String | None = wire("2+", default=None)
    controller_id: Int32 = wire("1+", default=-1)
    topics: list[MetadataResponseTopic]
    # A bit per operation; the lowest int32 says that it was not asked for.
    cluster_authorized_operations: Int32 = wire("8-10", default=-2147483648)
    error_code: Int16 = wire("13+", default=0)
