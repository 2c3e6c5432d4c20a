from __future__ import annotations

from millstream.protocol.declare import Bool, Int8, Int16, Int32, String, UuidField, message, wire


@message(key=71, versions="0", flexible="0+", listeners=("broker",))
class GetTelemetrySubscriptionsRequest:
    """A client asks which of its metrics the cluster wants (KIP-714). The zero id asks for a new one."""

    client_instance_id: UuidField


@message(key=71, versions="0", flexible="0+")
class GetTelemetrySubscriptionsResponse:
    """The wanted metrics, how often to push them, and how large a push may be."""

    throttle_time_ms: Int32 = wire(default=0)
    error_code: Int16 = wire(default=0)
    client_instance_id: UuidField
    subscription_id: Int32
    accepted_compression_types: list[Int8]
    push_interval_ms: Int32
    telemetry_max_bytes: Int32
    delta_temporality: Bool
    requested_metrics: list[String]
