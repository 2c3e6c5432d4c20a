from __future__ import annotations

from millstream.protocol.declare import Bool, Int16, Int32, Int64, String, UInt16, UuidField, message, struct, wire


@struct
class Listener:
    name: String
    host: String
    port: UInt16
    security_protocol: Int16


@struct
class Feature:
    name: String
    min_supported_version: Int16
    max_supported_version: Int16


@message(key=62, versions="0-4", flexible="0+", listeners=("controller",))
class BrokerRegistrationRequest:
    """A broker that starts registers with the controller (KIP-631) and gets its broker epoch.

    v2: KIP-858, log directories. v3: KIP-966, the epoch before a clean stop. v4: a feature's lowest level may be 0.
    """

    broker_id: Int32
    cluster_id: String
    incarnation_id: UuidField
    listeners: list[Listener]
    features: list[Feature]
    rack: String | None
    is_migrating_zk_broker: Bool = wire("1+", default=False)
    log_dirs: list[UuidField] = wire("2+", default=[])
    previous_broker_epoch: Int64 = wire("3+", default=-1)


@message(key=62, versions="0-4", flexible="0+")
class BrokerRegistrationResponse:
    """The broker's epoch, which fences whatever it sent in an earlier life."""

    throttle_time_ms: Int32 = wire(default=0)
    error_code: Int16 = wire(default=0)
    broker_epoch: Int64 = wire(default=-1)
