"""What needs no broker: CSV as Kafka's tool writes it, durations, scopes, ranges, bytes of members."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.cli.declare import UsageError
from millstream.cli.group_csv import read_offsets, write_offsets
from millstream.cli.group_reset import parse_scope
from millstream.cli.times import parse_duration_ms
from millstream.client.group_member import assign_ranges
from millstream.client.group_protocol import (
    read_assignment,
    read_subscription,
    write_assignment,
    write_subscription,
)
from millstream.protocol.errors import MalformedMessage
from tests.cli.conftest import run_command

if TYPE_CHECKING:
    from pathlib import Path

HOUR_MS = 3_600_000
names = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=40)
topic_names = st.text("abc.-_", min_size=1, max_size=30)
offsets = st.dictionaries(st.tuples(topic_names, st.integers(0, 2**31 - 1)), st.integers(0, 2**63 - 1), min_size=1)


# Printed by Kafka's tool for these groups (--reset-offsets --export with several --group).
QUOTED = {
    "g-1": "g-1",
    "gé5": "gé5",
    "g;8": "g;8",
    " g7": '" g7"',
    "g#4": '"g#4"',
    "g'9": '"g\'9"',
    'g"2': '"g""2"',
    "g,1": '"g,1"',
    "g\\a": '"g\\a"',
    "exactly-24-characters-xx": "exactly-24-characters-xx",
    "more-than-24-characters-xx": '"more-than-24-characters-xx"',
}


@pytest.mark.parametrize(("name", "written"), QUOTED.items(), ids=list(QUOTED))
def test_names_are_quoted_as_kafkas_tool_quotes_them(name: str, written: str) -> None:
    assert write_offsets({name: {("t", 0): 20}}, with_group=True) == f"{written},t,0,20\n"


@given(plans=st.dictionaries(names, offsets, min_size=1, max_size=3))
def test_what_was_exported_can_be_imported(
    tmp_path_factory: pytest.TempPathFactory, plans: dict[str, dict[tuple[str, int], int]]
) -> None:
    file = tmp_path_factory.mktemp("csv") / "offsets.csv"
    file.write_text(write_offsets(plans, with_group=True), encoding="utf-8", newline="")
    assert read_offsets(str(file), list(plans)) == plans


def test_lines_without_a_group_are_for_the_only_group(tmp_path: Path) -> None:
    file = tmp_path / "offsets.csv"
    file.write_text('orders,0,41\n\n"orders",1,42\n')
    assert read_offsets(str(file), ["billing"]) == {"billing": {("orders", 0): 41, ("orders", 1): 42}}
    with pytest.raises(UsageError, match="several groups"):
        read_offsets(str(file), ["billing", "shipping"])


@pytest.mark.parametrize(
    "line", ["orders", "orders,0", "orders,x,1", "orders,0,-1", "orders,0,1e9", f"t,0,{2**63}", '"']
)
def test_a_line_that_makes_no_sense_is_refused(tmp_path: Path, line: str) -> None:
    file = tmp_path / "offsets.csv"
    file.write_text(f"{line}\n")
    with pytest.raises(UsageError, match=r"offsets\.csv"):
        read_offsets(str(file), ["billing"])
    with pytest.raises(UsageError, match="could not be read"):
        read_offsets(str(tmp_path / "nowhere"), ["billing"])


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [
        ("10m", 600_000),
        ("250ms", 250),
        ("P1D", 24 * HOUR_MS),
        ("PT2H", 2 * HOUR_MS),
        ("P1DT2H3M4.5S", 26 * HOUR_MS + 184_500),
        ("PT-5H", -5 * HOUR_MS),
        ("-PT1H30M", -HOUR_MS - HOUR_MS // 2),
        ("pt0.0015s", 1),
    ],
)
def test_durations(text: str, duration_ms: int) -> None:
    assert parse_duration_ms(text) == duration_ms


@pytest.mark.parametrize("text", ["", "P", "PT", "1", "1y", "P1H", "T1H", "P1DT", "soon"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a duration"):
        parse_duration_ms(text)


def test_a_scope_is_topics_or_partitions_of_them() -> None:
    assert parse_scope(["a", "b:0,2", "b:1"]) == {"a": None, "b": [0, 2, 1]}
    assert parse_scope(["a:1", "a"]) == parse_scope(["a", "a:1"]) == {"a": None}
    for bad in ("a:", "a:x", "a:0:1"):
        with pytest.raises(UsageError, match="topic:0,1,2"):
            parse_scope([bad])


@given(
    subscriptions=st.dictionaries(names, st.lists(st.sampled_from("abc"), unique=True), min_size=1),
    counts=st.dictionaries(st.sampled_from("abc"), st.integers(0, 20)),
)
def test_every_partition_has_one_reader_and_ranges_are_even(
    subscriptions: dict[str, list[str]], counts: dict[str, int]
) -> None:
    assigned = assign_ranges(subscriptions, counts)
    assert assigned.keys() == subscriptions.keys()
    for topic, count in counts.items():
        readers = [member for member, topics in subscriptions.items() if topic in topics]
        shares = {member: [index for name, index in assigned[member] if name == topic] for member in subscriptions}
        assert sorted(index for share in shares.values() for index in share) == (list(range(count)) if readers else [])
        assert all(not shares[member] for member in subscriptions if member not in readers)
        sizes = [len(shares[member]) for member in readers]
        assert not sizes or max(sizes) - min(sizes) <= 1


def test_members_understand_each_other_and_later_versions() -> None:
    assert read_subscription(write_subscription(["a", "b"])) == ["a", "b"]
    places = [("a", 0), ("a", 2), ("b", 1)]
    assert read_assignment(write_assignment(places)) == places
    assert read_assignment(b"") == []
    # A version that nobody has invented yet may append what it likes; version 3's fields are read.
    later = b"\x00\x09" + b"\x00\x00\x00\x01\x00\x01a" + b"\xff" * 4 + b"\x00" * 4 + b"\xff" * 4 + b"\xff\xff" + b"more"
    assert read_subscription(later) == ["a"]
    for broken in (b"\x00", b"\xff\xff", b"\x00\x00\x7f\xff\xff\xff"):
        with pytest.raises(MalformedMessage):
            read_subscription(broken)


@pytest.mark.parametrize(
    "words",
    [
        ("group", "reset-offsets", "g", "--to-earliest", "--to-latest", "--all-topics"),
        ("group", "reset-offsets", "g", "--all-topics"),
        ("group", "reset-offsets", "g", "--to-latest", "--all-topics", "--dry-run", "--execute"),
        ("consume", "t", "--group", "g", "--offset", "3", "--from-beginning"),
        ("transaction", "abort"),
        ("transaction", "abort", "id", "--topic", "t"),
        ("transaction", "find-hanging", "--partition", "3"),
        ("kafka-consumer-groups", "--list", "--describe"),
        ("kafka-consumer-groups", "--describe"),
        ("kafka-consumer-groups", "--describe", "--group", "g", "--members", "--state"),
        ("kafka-consumer-groups", "--describe", "--group", "g", "--all-groups"),
        ("kafka-consumer-groups", "--reset-offsets", "--group", "g", "--topic", "t"),
        ("kafka-consumer-groups", "--reset-offsets", "--group", "g", "--topic", "t", "--to-latest", "--to-offset", "0"),
        ("kafka-consumer-groups", "--delete-offsets", "--group", "g"),
        ("kafka-transactions",),
        ("kafka-transactions", "find-hanging"),
    ],
    ids=" ".join,
)
def test_a_command_line_without_sense_is_one_sentence_and_exit_code_2(words: tuple[str, ...]) -> None:
    where = ("--bootstrap-server", "127.0.0.1:1")
    ended = run_command(*(words[:1] + where + words[1:] if words[0].startswith("kafka") else words + where))
    assert (ended.code, ended.out) == (2, "")
    assert len(ended.err.splitlines()) == 1
