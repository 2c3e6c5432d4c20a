from __future__ import annotations

from millstream.protocol.declare import Bool, Int16, Int32, String, UInt16, UuidField, message, struct


@struct
class ControllerEndpoint:
    name: String
    host: String
    port: UInt16
    security_protocol: Int16


@struct
class ControllerFeature:
    name: String
    min_supported_version: Int16
    max_supported_version: Int16


@message(record_type=27, versions="0", flexible="0+")
class RegisterControllerRecord:
    """A controller has registered: endpoints and features (KIP-919)."""

    controller_id: Int32
    incarnation_id: UuidField
    zk_migration_ready: Bool
    end_points: list[ControllerEndpoint]
    features: list[ControllerFeature]
