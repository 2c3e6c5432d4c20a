from __future__ import annotations

from millstream.protocol.declare import Int16, message


@message(versions="0")
class ControlRecordTypeSchema:
    """The key of a control record, after its int16 version: 0 abort, 1 commit, and the metadata log's own types."""

    type: Int16
