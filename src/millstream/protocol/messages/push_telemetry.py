from __future__ import annotations

from millstream.protocol.declare import Bool, Bytes, Int8, Int16, Int32, UuidField, message, wire


@message(key=72, versions="0", flexible="0+", listeners=("broker",))
class PushTelemetryRequest:
    """A client pushes its metrics in OTLP (KIP-714)."""

    client_instance_id: UuidField
    subscription_id: Int32
    terminating: Bool
    compression_type: Int8
    metrics: Bytes


@message(key=72, versions="0", flexible="0+")
class PushTelemetryResponse:
    """Says whether the metrics were taken."""

    throttle_time_ms: Int32 = wire(default=0)
    error_code: Int16 = wire(default=0)
