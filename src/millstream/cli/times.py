"""Times as people write them on a command line."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal

from millstream.cli.declare import UsageError

UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}


def parse_time_ms(text: str, now_ms: int) -> int:
    """Milliseconds since 1970; an ISO date or time (UTC unless it says otherwise); or `10m`: ten minutes ago."""
    if text.isdecimal():
        return int(text)
    if text == "now":
        return now_ms
    ago = text.removesuffix(" ago").strip()
    for unit in sorted(UNITS_MS, key=len, reverse=True):
        number = ago.removesuffix(unit).strip()
        if number != ago and number.isdecimal():
            return now_ms - int(number) * UNITS_MS[unit]
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is not a time: write milliseconds, 2026-01-31T12:00:00Z, or 10m") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)


def parse_duration_ms(text: str) -> int:
    """`10m`, `2h`, `7d`, or ISO's P1DT2H3M4.5S, where each part and the whole may be negative."""
    for unit in sorted(UNITS_MS, key=len, reverse=True):
        number = text.removesuffix(unit).strip()
        if number != text and number.isdecimal():
            return int(number) * UNITS_MS[unit]
    found = _ISO_DURATION.fullmatch(text)
    if found is None or not any(found.groups()[1:]):
        raise UsageError(f"{text!r} is not a duration: write 10m, 2h, 7d or P1DT2H3M4S")
    sign, days, hours, minutes, seconds = found.groups()
    total_ms = (
        int(days or 0) * UNITS_MS["d"]
        + int(hours or 0) * UNITS_MS["h"]
        + int(minutes or 0) * UNITS_MS["m"]
        + int(Decimal(seconds or 0) * UNITS_MS["s"])
    )
    return -total_ms if sign == "-" else total_ms


_ISO_DURATION = re.compile(
    r"([-+])?P(?:([-+]?\d+)D)?(?:T(?=.)(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+(?:\.\d{0,9})?)S)?)?", re.IGNORECASE
)
