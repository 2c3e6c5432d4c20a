"""The tables of `kafka-consumer-groups`, column by column as Kafka's tool prints them.

Every table begins with an empty line; columns grow with their content, and what is not known is a `-`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.client.grouping import by_topic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from millstream.cli.group_lag import Position
    from millstream.client.admin.described_groups import GroupDescription
    from millstream.client.admin.groups import GroupListing
    from millstream.client.grouping import TopicPartition

NARROW, NUMBER, EPOCH = 15, 10, 25


def _text(value: object) -> str:
    return "-" if value is None else str(value)


def _table(widths: Sequence[int], rows: Iterable[Sequence[object]], *, before: str = "\n") -> str:
    """Columns of these widths; 0 is for a last one that is not filled up."""
    lines = [" ".join(_text(value).ljust(width) for value, width in zip(row, widths, strict=True)) for row in rows]
    return before + "".join(f"{line}\n" for line in lines)


def _wide(least: int, values: Iterable[object]) -> int:
    return max([least, *(len(_text(value)) for value in values)])


def listed(groups: Sequence[GroupListing], *, with_kind: bool, with_state: bool) -> str:
    if not with_kind and not with_state:
        return "".join(f"{group.id}\n" for group in groups)
    columns = ["GROUP", *(["TYPE"] if with_kind else []), *(["STATE"] if with_state else [])]
    widths = [_wide(NARROW, (group.id for group in groups)) + 10, *([20] * (len(columns) - 1))]
    rows = [
        [group.id, *([group.kind.capitalize()] if with_kind else []), *([group.state] if with_state else [])]
        for group in groups
    ]
    return _table(widths, [columns, *rows], before="")


def offsets(group: str, positions: Sequence[Position], *, verbose: bool) -> str:
    header = ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST"]
    rows: list[list[object]] = [
        [
            group,
            position.topic,
            position.partition,
            position.committed,
            position.end,
            position.lag,
            None if position.member is None else position.member.id,
            None if position.member is None else position.member.host,
            None if position.member is None else position.member.client_id,
        ]
        for position in positions
    ]
    widths = [
        _wide(NARROW, [group]),
        _wide(NARROW, (row[1] for row in rows)),
        *(NUMBER, NARROW, NARROW, NARROW),
        _wide(NARROW, (row[6] for row in rows)),
        _wide(NARROW, (row[7] for row in rows)),
        0,
    ]
    header.append("CLIENT-ID")
    if verbose:
        header.insert(3, "LEADER-EPOCH")
        widths.insert(3, NARROW)
        for row, position in zip(rows, positions, strict=True):
            row.insert(3, position.leader_epoch)
    return _table(widths, [header, *rows])


def members(group: GroupDescription, *, verbose: bool) -> str:
    header = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    rows: list[list[object]] = [
        [group.id, member.id, member.host, member.client_id, len(member.assignment)] for member in group.members
    ]
    narrow = [_wide(NARROW, (row[column] for row in rows)) for column in range(4)]
    widths = [*narrow, NARROW]
    if any(member.instance_id for member in group.members):
        instances = [member.instance_id or "" for member in group.members]
        header.insert(2, "GROUP-INSTANCE-ID")
        widths.insert(2, _wide(17, instances))
        for row, instance in zip(rows, instances, strict=True):
            row.insert(2, instance)
    if not verbose:
        # The last column keeps the blank that would part it from the next.
        widths[-1] += 1
        return _table(widths, [header, *rows])
    header += ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
    current = [_assignment(member.assignment) for member in group.members]
    target = [_assignment(member.target or ()) for member in group.members]
    widths += [NARROW, _wide(20, current), NARROW, _wide(20, target)]
    for row, member, now, then in zip(rows, group.members, current, target, strict=True):
        row += [member.epoch, now, group.assignment_epoch, then]
    upgraded = [member.upgraded for member in group.members]
    if True in upgraded and False in upgraded:
        # Both protocols in one group: the column tells who has arrived at the new one.
        header.append("UPGRADED")
        widths.append(0)
        for row, new in zip(rows, upgraded, strict=True):
            row.append(None if new is None else str(new).lower())
    return _table(widths, [header, *rows])


def _assignment(places: Sequence[TopicPartition]) -> str | None:
    parts = [f"{topic}:{','.join(map(str, sorted(indexes)))}" for topic, indexes in by_topic(places).items()]
    return ";".join(sorted(parts)) or None


def state(group: GroupDescription, coordinator: str, *, verbose: bool) -> str:
    header = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"]
    row: list[object] = [group.id, coordinator, group.assignor or None, group.state, len(group.members)]
    widths = [_wide(NARROW, [group.id]), _wide(25, [coordinator]), 20, 20, 0]
    if verbose:
        header[4:4] = ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        row[4:4] = [group.epoch, group.assignment_epoch]
        widths[4:4] = [NARROW, EPOCH]
    return _table(widths, [header, row])


def new_offsets(plans: Mapping[str, Mapping[TopicPartition, int]]) -> str:
    rows = [(group, *place, offset) for group, places in plans.items() for place, offset in places.items()]
    widths = [_wide(NARROW, plans), _wide(NARROW, (row[1] for row in rows)), NUMBER, 0]
    return _table(widths, [("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"), *rows])


def deleted_offsets(outcomes: Mapping[tuple[str, int], str]) -> str:
    rows = [(topic, index if index >= 0 else None, outcome) for (topic, index), outcome in sorted(outcomes.items())]
    widths = [_wide(NARROW, (row[0] for row in rows)), NUMBER, NARROW]
    return _table(widths, [("TOPIC", "PARTITION", "STATUS"), *rows])
