from __future__ import annotations

from millstream.protocol.declare import Bool, Int16, Int32, Int64, String, UInt16, UuidField, message, struct, wire


@struct
class BrokerEndpoint:
    name: String
    host: String
    port: UInt16
    security_protocol: Int16


@struct
class BrokerFeature:
    name: String
    min_supported_version: Int16
    max_supported_version: Int16


@message(record_type=0, versions="0-4", flexible="0+")
class RegisterBrokerRecord:
    """A broker has registered: endpoints, features, directories.

    v1: KIP-841, controlled shutdown. v2: migration from ZooKeeper. v3: KIP-858, directories. v4: KIP-1066, cordoned
    ones.
    """

    broker_id: Int32
    is_migrating_zk_broker: Bool = wire("2+", default=False)
    incarnation_id: UuidField
    broker_epoch: Int64
    end_points: list[BrokerEndpoint]
    features: list[BrokerFeature]
    rack: String | None
    fenced: Bool = wire(default=True)
    in_controlled_shutdown: Bool = wire("1+", default=False)
    log_dirs: list[UuidField] = wire("3+", default=[], tag=0)
    cordoned_log_dirs: list[UuidField] | None = wire("4+", default=None, tag=1)
