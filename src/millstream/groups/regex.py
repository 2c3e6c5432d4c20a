"""Regular expressions of clients, in RE2's syntax, as KIP-848 has them: matched in linear time, whoever wrote them.

The engine is Google's RE2 through its own Python package; Kafka uses a port of the same. Python's `re` backtracks: one
bad pattern would hold the broker's only loop for ever. An engine of our own would be one more thing to get wrong.
The package has wheels for glibc Linux, macOS and Windows and none for musl, and it takes some milliseconds to import,
so it is imported when the first pattern arrives; where it is missing, patterns are refused, and the answer says why.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from millstream.protocol.errors import InvalidPattern

if TYPE_CHECKING:
    from collections.abc import Iterable

# What one compiled pattern may take; RE2's own default. A pattern that needs more is refused when it is compiled.
_MEMORY_BYTES_MAX = 8 * 1024 * 1024


def check_pattern(pattern: str) -> None:
    """Refuse what is no regular expression."""
    _compiled(pattern)


def matching(pattern: str, names: Iterable[str]) -> frozenset[str]:
    """Those of the names that match from end to end; none if the pattern cannot be compiled."""
    try:
        full_match = _compiled(pattern).fullmatch
    except InvalidPattern:
        return frozenset()
    return frozenset(name for name in names if full_match(name) is not None)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    try:
        import re2  # type: ignore[import-untyped]
    except ImportError:
        raise InvalidPattern("patterns need the package google-re2, which is not installed here") from None
    options = re2.Options()
    options.max_mem = _MEMORY_BYTES_MAX
    options.log_errors = False
    # Groups are not asked for; without them matching is faster.
    options.never_capture = True
    try:
        return re2.compile(pattern, options)
    except re2.error as refusal:
        reason = refusal.args[0] if refusal.args else "it cannot be compiled"
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise InvalidPattern(f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {text}.") from None
