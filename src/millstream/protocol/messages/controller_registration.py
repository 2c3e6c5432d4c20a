from __future__ import annotations

from millstream.protocol.declare import Bool, Int16, Int32, String, UInt16, UuidField, message, struct, wire


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


@message(key=70, versions="0", flexible="0+", listeners=("controller",))
class ControllerRegistrationRequest:
    """A controller that is not active registers with the active one: endpoints and supported features (KIP-919)."""

    controller_id: Int32
    incarnation_id: UuidField
    zk_migration_ready: Bool
    listeners: list[Listener]
    features: list[Feature]


@message(key=70, versions="0", flexible="0+")
class ControllerRegistrationResponse:
    """Says whether the registration was taken."""

    throttle_time_ms: Int32 = wire(default=0)
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default="")
