from __future__ import annotations

from millstream.protocol.declare import Int8, Int16, Int32, String, message, struct, wire


@message(key=10, versions="0-6", flexible="3+", listeners=("broker",))
class FindCoordinatorRequest:
    """Which broker coordinates this group, transactional id or (v6, KIP-932) share partition? v4: KIP-699, many at
    once.
    """

    key: String = wire("0-3", default="")
    # 0 group, 1 transaction, 2 share; a share key is `group:topic id:partition`.
    key_type: Int8 = wire("1+", default=0)
    coordinator_keys: list[String] = wire("4+", default=[])


@struct
class Coordinator:
    key: String
    node_id: Int32
    host: String
    port: Int32
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default="")


@message(key=10, versions="0-6", flexible="3+")
class FindCoordinatorResponse:
    """The coordinator's address, from v4 on one per key."""

    throttle_time_ms: Int32 = wire("1+", default=0)
    error_code: Int16 = wire("0-3", default=0)
    error_message: String | None = wire("1-3", default="")
    node_id: Int32 = wire("0-3", default=0)
    host: String = wire("0-3", default="")
    port: Int32 = wire("0-3", default=0)
    coordinators: list[Coordinator] = wire("4+", default=[])
