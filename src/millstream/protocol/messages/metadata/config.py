from __future__ import annotations

from millstream.protocol.declare import Int8, String, message


@message(record_type=4, versions="0", flexible="0+")
class ConfigRecord:
    """Sets or removes one setting of a resource; a null value removes it."""

    resource_type: Int8
    resource_name: String
    name: String
    # Null removes the setting.
    value: String | None
