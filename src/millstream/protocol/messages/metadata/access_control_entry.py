from __future__ import annotations

from millstream.protocol.declare import Int8, String, UuidField, message


@message(record_type=18, versions="0", flexible="0+")
class AccessControlEntryRecord:
    """Adds an access rule, known by its id."""

    id: UuidField
    resource_type: Int8
    resource_name: String
    pattern_type: Int8
    principal: String
    host: String
    operation: Int8
    permission_type: Int8
