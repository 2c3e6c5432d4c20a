from __future__ import annotations

from millstream.protocol.declare import Bool, Int16, Int32, Int64, UuidField, message, wire


@message(key=63, versions="0-2", flexible="0+", listeners=("controller",))
class BrokerHeartbeatRequest:
    """A broker tells the controller that it lives and how far it has replayed the metadata log (KIP-631).

    It also asks to be fenced or to shut down. v1: KIP-858, failed log directories. v2: KIP-1066, cordoned ones.
    """

    broker_id: Int32
    broker_epoch: Int64 = wire(default=-1)
    current_metadata_offset: Int64
    want_fence: Bool
    want_shut_down: Bool
    offline_log_dirs: list[UuidField] = wire("1+", default=[], tag=0)
    cordoned_log_dirs: list[UuidField] | None = wire("2+", default=None, tag=1)


@message(key=63, versions="0-2", flexible="0+")
class BrokerHeartbeatResponse:
    """The controller's word on whether the broker is caught up, fenced, or free to stop."""

    throttle_time_ms: Int32 = wire(default=0)
    error_code: Int16 = wire(default=0)
    is_caught_up: Bool = wire(default=False)
    # A broker is fenced until the controller says otherwise.
    is_fenced: Bool = wire(default=True)
    should_shut_down: Bool
