"""Which names a topic may have.

A name becomes a directory (`name-0`) and, with `.` turned into `_`, a metric. So it is short, plain ASCII, no path,
and two topics that differ only in `.` and `_` may not live in one cluster: their metrics would be one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from millstream.protocol.errors import InvalidTopic

if TYPE_CHECKING:
    from collections.abc import Iterable

# 255 characters of a file name, less room for "-", a partition number or the "-delete" of a removal.
NAME_CHARACTERS_MAX = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+\Z")
# `\Z` and ASCII ranges on purpose: `$` would let a trailing newline through, `\w` every alphabet.

METADATA_TOPIC = "__cluster_metadata"
OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
SHARE_STATE_TOPIC = "__share_group_state"
# Topics of the brokers' own; clients are told so, and mostly hide them.
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC})


def check_topic_name(name: str) -> None:
    """Raise InvalidTopic, with the reason, if no topic may have this name."""
    if name == "":
        raise InvalidTopic("A topic name may not be empty.")
    if name in {".", ".."}:
        raise InvalidTopic(f"A topic may not be named '{name}': that is a directory.")
    if len(name) > NAME_CHARACTERS_MAX:
        raise InvalidTopic(
            f"The topic name '{name[:40]}…' has {len(name)} characters; {NAME_CHARACTERS_MAX} are allowed."
        )
    if _LEGAL.match(name) is None:
        raise InvalidTopic(f"The topic name '{name}' may hold only ASCII letters, digits, '.', '_' and '-'.")


def metric_name(name: str) -> str:
    """What the name looks like in a metric; two topics must not look the same."""
    return name.replace(".", "_")


def find_collision(name: str, existing: Iterable[str]) -> str | None:
    """Another name among `existing` that looks the same in metrics."""
    wanted = metric_name(name)
    return next((other for other in existing if other != name and metric_name(other) == wanted), None)
