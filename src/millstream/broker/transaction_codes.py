"""Error codes of transactions as the version of a request allows them."""

from __future__ import annotations

from millstream.protocol.errors import ErrorCode


def fenced_since(first_version: int, version: int, code: ErrorCode) -> ErrorCode:
    """PRODUCER_FENCED came with KIP-588; clients before know INVALID_PRODUCER_EPOCH for it."""
    if code is ErrorCode.PRODUCER_FENCED and version < first_version:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
