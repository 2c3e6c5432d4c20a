"""Names of files and folders, exactly as Kafka spells them.

A segment's files share the base offset in twenty digits. A suffix behind the full name says in which step of a
replacement or removal a file is; recovery reads that step from the name alone.
"""

from __future__ import annotations

import re

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
TXN_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"
SEGMENT_FILES = (LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX)

DELETED = ".deleted"
CLEANED = ".cleaned"
SWAP = ".swap"

LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"

DELETE_DIRECTORY = "-delete"
FUTURE_DIRECTORY = "-future"
STRAY_DIRECTORY = "-stray"

_PARTITION_DIRECTORY = re.compile(r"([a-zA-Z0-9._-]+)-(\d{1,10})")
_MARKED_DIRECTORY = re.compile(r"([a-zA-Z0-9._-]+)-(\d{1,10})\.([0-9a-f]{32})-(delete|future|stray)")
_LONGEST_NAME = 255


def of_offset(base_offset: int, suffix: str) -> str:
    return f"{base_offset:020d}{suffix}"


def offset_of(name: str) -> int | None:
    """The base offset a segment's file is named after; None for other files."""
    digits, dot, _ = name.partition(".")
    return int(digits) if dot and len(digits) == 20 and digits.isdecimal() and digits.isascii() else None


def partition_directory(topic: str, partition: int) -> str:
    name = f"{topic}-{partition}"
    if _PARTITION_DIRECTORY.fullmatch(name) is None or topic in {".", ".."} or partition < 0:
        raise ValueError(f"{topic!r} cannot be the name of a topic")
    return name


def parse_partition_directory(name: str) -> tuple[str, int] | None:
    """Topic and partition of a live partition's folder; None for anything else."""
    if name.endswith((DELETE_DIRECTORY, FUTURE_DIRECTORY, STRAY_DIRECTORY)):
        return None
    found = _PARTITION_DIRECTORY.fullmatch(name)
    return (found[1], int(found[2])) if found and found[1] not in {".", ".."} else None


def parse_marked_directory(name: str) -> tuple[str, int, str] | None:
    """Topic, partition and mark (`delete`, `future` or `stray`) of a folder that left normal service."""
    found = _MARKED_DIRECTORY.fullmatch(name)
    return (found[1], int(found[2]), found[4]) if found else None


def marked_directory(topic: str, partition: int, unique: str, mark: str) -> str:
    """The name that a folder takes on its way out: Kafka shortens the topic so that a file system accepts it."""
    end = f"-{partition}.{unique}{mark}"
    return topic[: _LONGEST_NAME - len(end)] + end
