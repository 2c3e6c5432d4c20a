from __future__ import annotations

from millstream.protocol.declare import Bool, Float64, String, message, struct


@struct
class EntityData:
    entity_type: String
    entity_name: String | None


@message(record_type=14, versions="0", flexible="0+")
class ClientQuotaRecord:
    """Sets or removes one quota of an entity."""

    entity: list[EntityData]
    key: String
    value: Float64
    remove: Bool
