"""Offsets of groups as CSV, the way Kafka's tool writes and reads it.

    orders,0,41                 of one group
    billing,orders,0,41         of several, each line with its group

A text is put into quotes when it is longer than 24 characters, or has one that might mean something to a reader:
a backslash, or anything up to the comma in ASCII's order (blanks, quotes, # and others).
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

from millstream.cli.declare import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.client.grouping import TopicPartition

    Offsets = Mapping[str, Mapping[TopicPartition, int]]

PLAIN_LENGTH_MAX = 24
FIELDS, FIELDS_WITH_GROUP = 3, 4
INT64_MAX = 2**63 - 1


def _field(text: str) -> str:
    if len(text) <= PLAIN_LENGTH_MAX and all(letter > "," and letter != "\\" for letter in text):
        return text
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def write_offsets(offsets: Offsets, *, with_group: bool) -> str:
    """One line per partition."""
    lines = []
    for group, places in offsets.items():
        for (topic, index), offset in places.items():
            fields = (_field(topic), str(index), str(offset))
            lines.append(",".join((_field(group), *fields) if with_group else fields) + "\n")
    return "".join(lines)


def read_offsets(path: str, groups: list[str]) -> dict[str, dict[TopicPartition, int]]:
    """What a file says about each group; lines without a group are meant for the one group there is."""
    found: dict[str, dict[TopicPartition, int]] = {}
    try:
        with open(path, encoding="utf-8", newline="") as file:
            for row in csv.reader(file, strict=True):
                if not row:
                    continue
                group, topic, index, offset = _row(path, row, groups)
                found.setdefault(group, {})[topic, index] = offset
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"{path} could not be read: {why}") from error
    return found


def _row(path: str, row: list[str], groups: list[str]) -> tuple[str, str, int, int]:
    if len(row) == FIELDS:
        if len(groups) != 1:
            raise UsageError(f"{path}: with several groups every line begins with the group's name: {','.join(row)}")
        row = [groups[0], *row]
    if len(row) != FIELDS_WITH_GROUP:
        raise UsageError(f"{path}: a line should be topic,partition,offset or group,topic,partition,offset: {row}")
    group, topic, index, offset = row
    if not index.isdecimal() or not offset.isdecimal() or int(offset) > INT64_MAX:
        raise UsageError(f"{path}: partition and offset should be numbers: {','.join(row)}")
    return group, topic, int(index), int(offset)
