from __future__ import annotations

from millstream.protocol.declare import Bool, Float64, Int16, Int32, String, message, struct, wire


@struct
class EntityData:
    entity_type: String
    entity_name: String | None


@struct
class OpData:
    key: String
    value: Float64
    remove: Bool


@struct
class EntryData:
    entity: list[EntityData]
    ops: list[OpData]


@message(key=49, versions="0-1", flexible="1+", listeners=("broker", "controller"))
class AlterClientQuotasRequest:
    """Sets or removes quotas of users, client ids and addresses (KIP-546)."""

    entries: list[EntryData]
    validate_only: Bool


@struct
class AlterClientQuotasResponseEntryData:
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default="")
    entity: list[EntityData]


@message(key=49, versions="0-1", flexible="1+")
class AlterClientQuotasResponse:
    """One result per entity."""

    throttle_time_ms: Int32 = wire(default=0)
    entries: list[AlterClientQuotasResponseEntryData]
