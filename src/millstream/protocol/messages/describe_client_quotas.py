from __future__ import annotations

from millstream.protocol.declare import Bool, Float64, Int8, Int16, Int32, String, message, struct, wire


@struct
class ComponentData:
    entity_type: String
    match_type: Int8
    match: String | None


@message(key=48, versions="0-1", flexible="1+", listeners=("broker",))
class DescribeClientQuotasRequest:
    """Lists the quotas whose entity matches (KIP-546)."""

    components: list[ComponentData]
    strict: Bool


@struct
class EntityData:
    entity_type: String
    entity_name: String | None


@struct
class ValueData:
    key: String
    value: Float64


@struct
class EntryData:
    entity: list[EntityData]
    values: list[ValueData]


@message(key=48, versions="0-1", flexible="1+")
class DescribeClientQuotasResponse:
    """Entities and their quotas; a null name is an entity's default."""

    throttle_time_ms: Int32 = wire(default=0)
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default="")
    entries: list[EntryData] | None
