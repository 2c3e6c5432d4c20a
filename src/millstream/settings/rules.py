"""The rules that bounds and lists of choices cannot say. Each returns the second half of a sentence, or None."""

from __future__ import annotations

import re

_VOTER = r"[0-9]{1,10}@(?:\[[0-9a-zA-Z\-%._:]*\]|[0-9a-zA-Z\-%._]+):[0-9]{1,5}"
_SERVER = r"(?:\[[0-9a-zA-Z\-%._:]*\]|[0-9a-zA-Z\-%._]+):[0-9]{1,5}"
_REPLICA = r"[0-9]+:[0-9]+"
_DURATION = r"(?i)by_duration:(P(?!$)(?:[0-9]+D)?(?:T(?=[0-9])(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+(?:\.[0-9]{1,9})?S)?)?)"


def gzip_level(level: int) -> str | None:
    return None if level == -1 or 1 <= level <= 9 else "must be -1 or between 1 and 9"


def throttled_replicas(entries: tuple[str, ...]) -> str | None:
    if not entries or entries == ("*",) or all(re.fullmatch(_REPLICA, entry) for entry in entries):
        return None
    return "must be * or a list of partition:broker"


def quorum_voters(entries: tuple[str, ...]) -> str | None:
    return None if all(re.fullmatch(_VOTER, entry) for entry in entries) else "must be a list of id@host:port"


def bootstrap_servers(entries: tuple[str, ...]) -> str | None:
    return None if all(re.fullmatch(_SERVER, entry) for entry in entries) else "must be a list of host:port"


def share_offset_reset(value: str) -> str | None:
    if value in {"latest", "earliest"} or re.fullmatch(_DURATION, value):
        return None
    return "must be latest, earliest or by_duration:PnDTnHnMn.nS"
