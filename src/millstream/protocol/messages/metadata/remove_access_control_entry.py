from __future__ import annotations

from millstream.protocol.declare import UuidField, message


@message(record_type=19, versions="0", flexible="0+")
class RemoveAccessControlEntryRecord:
    """Removes an access rule by its id."""

    id: UuidField
