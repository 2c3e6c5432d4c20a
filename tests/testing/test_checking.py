"""The checker is checked: each hand-made bad history raises its alarm, a good one raises none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from millstream.testing.checking import Kind, check
from millstream.testing.history import Committed, History, Outcome, Owned, Polled, Sent

A = ("a", 0)
B = ("b", 0)
OK, FAILED, UNKNOWN = Outcome.OK, Outcome.FAILED, Outcome.UNKNOWN


def kinds(history: History) -> set[Kind]:
    return {anomaly.kind for anomaly in check(history)}


def sent(value: str, offset: int | None = None, outcome: Outcome = OK, **more: object) -> Sent:
    return Sent(value, more.pop("place", A), outcome, offset, **more)  # type: ignore[arg-type]


def polled(*records: tuple[int, str], reader: str = "r", place: tuple[str, int] = A, **more: object) -> Polled:
    return Polled(reader, tuple((place, offset, value) for offset, value in records), **more)  # type: ignore[arg-type]


GOOD = History(
    sent=[
        sent("v0", 0),
        sent("v1", 1, transaction="t1"),
        sent("v2", 0, place=B, transaction="t1"),
        sent("v3", 3, transaction="t2"),
        sent("v4", outcome=FAILED),
        sent("v5", outcome=UNKNOWN),
        sent("v6", 5),
    ],
    transactions={"t1": OK, "t2": FAILED},
    polled=[polled((0, "v0"), (1, "v1")), polled((5, "v6")), polled((0, "v2"), place=B)],
    committed=[Committed("g", A, 1), Committed("g", A, 1), Committed("g", A, 6)],
    owned=[Owned("g", 1, A, "m1"), Owned("g", 2, A, "m2"), Owned("g", 2, B, "m1")],
    ends=[(A, 1), (A, 6)],
    stable_ends={A: (6, 6)},
    final={A: ((0, "v0"), (1, "v1"), (5, "v6")), B: ((0, "v2"),)},
)


def test_a_good_history_raises_no_alarm() -> None:
    assert check(GOOD) == []


BAD = {
    Kind.TWO_VALUES_AT_ONE_OFFSET: History(sent=[sent("x", 0), sent("y", 0)]),
    Kind.ONE_VALUE_AT_TWO_OFFSETS: History(sent=[sent("x", 0)], polled=[polled((0, "x"), (1, "x"))]),
    Kind.READ_OF_FAILED_WRITE: History(sent=[sent("x", outcome=FAILED)], polled=[polled((0, "x"))]),
    Kind.READ_OF_ABORTED_WRITE: History(
        sent=[sent("x", 0, transaction="t")], transactions={"t": FAILED}, polled=[polled((0, "x"))]
    ),
    Kind.READ_OF_OWN_UNCOMMITTED_WRITE: History(
        sent=[sent("x", 0, transaction="t")], transactions={"t": OK}, polled=[polled((0, "x"), transaction="t")]
    ),
    Kind.READ_OF_UNKNOWN_VALUE: History(polled=[polled((0, "ghost"))]),
    Kind.LOST: History(sent=[sent("x", 0), sent("y", 1)], polled=[polled((1, "y"))]),
    Kind.UNSEEN: History(sent=[sent("x", 0), sent("y", 1)], final={A: ((0, "x"),)}),
    Kind.SKIPPED: History(
        sent=[sent("x", 0), sent("y", 1), sent("z", 2)],
        polled=[polled((0, "x"), (2, "z")), polled((1, "y"), reader="other")],
    ),
    Kind.WENT_BACK: History(sent=[sent("x", 0), sent("y", 1)], polled=[polled((1, "y")), polled((0, "x"))]),
    Kind.TORN: History(
        sent=[sent("x", 0, transaction="t"), sent("y", 0, place=B, transaction="t")],
        transactions={"t": UNKNOWN},
        final={A: ((0, "x"),), B: ()},
    ),
    Kind.CYCLE: History(
        sent=[
            sent("x1", 0, transaction="t1"),
            sent("x2", 1, transaction="t2"),
            sent("y2", 0, place=B, transaction="t2"),
            sent("y1", 1, place=B, transaction="t1"),
        ],
        transactions={"t1": OK, "t2": OK},
    ),
    Kind.COMMITTED_OFFSET_WENT_BACK: History(committed=[Committed("g", A, 5), Committed("g", A, 4)]),
    Kind.TWO_OWNERS: History(owned=[Owned("g", 1, A, "m1"), Owned("g", 1, A, "m2")]),
    Kind.END_WENT_BACK: History(ends=[(A, 5), (A, 4)]),
    Kind.STUCK_STABLE_OFFSET: History(stable_ends={A: (3, 9)}),
    Kind.NEWEST_VALUE_LOST: History(
        sent=[sent("x", 0, key="k"), sent("y", 1, key="k")], compacted=frozenset({"a"}), final={A: ((0, "x"),)}
    ),
    Kind.DELETED_VALUE_CAME_BACK: History(
        sent=[sent("x", 0, key="k"), sent("y", 1, key="k", deletes=True)],
        compacted=frozenset({"a"}),
        final={A: ((0, "x"),)},
    ),
}


@pytest.mark.parametrize("kind", list(Kind), ids=lambda kind: kind.name.lower())
def test_each_anomaly_is_found(kind: Kind) -> None:
    assert kind in kinds(BAD[kind])


# Nothing but the final read shows these.
BAD_IN_FINAL = {
    "an aborted write": (
        Kind.READ_OF_ABORTED_WRITE,
        History(sent=[sent("x", 0, transaction="t")], transactions={"t": FAILED}, final={A: ((0, "x"),)}),
    ),
    "a failed write": (
        Kind.READ_OF_FAILED_WRITE,
        History(sent=[sent("x", outcome=FAILED)], final={A: ((0, "x"),)}),
    ),
    "a value that was not written": (Kind.READ_OF_UNKNOWN_VALUE, History(final={A: ((0, "ghost"),)})),
    "a value of another partition": (
        Kind.READ_OF_UNKNOWN_VALUE,
        History(sent=[sent("x", outcome=UNKNOWN)], final={B: ((0, "x"),)}),
    ),
    "offsets out of order": (
        Kind.WENT_BACK,
        History(sent=[sent("x", 0), sent("y", 1)], final={A: ((1, "y"), (0, "x"))}),
    ),
    "one offset twice": (Kind.WENT_BACK, History(sent=[sent("x", 0)], final={A: ((0, "x"), (0, "x"))})),
    "two values at one offset": (
        Kind.TWO_VALUES_AT_ONE_OFFSET,
        History(sent=[sent("x", outcome=UNKNOWN), sent("y", outcome=UNKNOWN)], final={A: ((0, "x"), (0, "y"))}),
    ),
    "one value at two offsets": (
        Kind.ONE_VALUE_AT_TWO_OFFSETS,
        History(sent=[sent("x", 0)], final={A: ((0, "x"), (1, "x"))}),
    ),
    "a gap": (
        Kind.SKIPPED,
        History(sent=[sent("x", 0), sent("y", 1), sent("z", 2)], final={A: ((0, "x"), (2, "z"))}),
    ),
    "a lost value": (Kind.LOST, History(sent=[sent("x", 0), sent("y", 1)], final={A: ((1, "y"),)})),
}


@pytest.mark.parametrize("what", BAD_IN_FINAL)
def test_an_anomaly_that_only_the_final_read_shows_is_found(what: str) -> None:
    kind, history = BAD_IN_FINAL[what]
    found = [anomaly for anomaly in check(history) if anomaly.kind is kind]
    assert found


def test_the_final_read_of_each_partition_begins_anew() -> None:
    history = History(
        sent=[sent("x", 0), sent("y", 1), sent("z", 0, place=B)], final={A: ((0, "x"), (1, "y")), B: ((0, "z"),)}
    )
    assert check(history) == []


def test_what_was_read_and_then_vanished_is_lost() -> None:
    history = History(sent=[sent("x", 0)], polled=[polled((0, "x"))], final={A: ()})
    assert Kind.LOST in kinds(history)


def test_a_write_of_unknown_outcome_may_show_up_or_not() -> None:
    assert check(History(sent=[sent("x", outcome=UNKNOWN)], polled=[polled((0, "x"))], final={A: ((0, "x"),)})) == []
    assert check(History(sent=[sent("x", outcome=UNKNOWN)], final={A: ()})) == []


def test_a_reader_whose_position_was_set_anew_may_go_back() -> None:
    history = History(
        sent=[sent("x", 0), sent("y", 1)],
        polled=[polled((0, "x"), (1, "y")), polled((0, "x"), (1, "y"), fresh=frozenset({A}))],
    )
    assert check(history) == []


def test_a_reader_may_pass_over_aborted_records_and_markers() -> None:
    history = History(
        sent=[sent("x", 0), sent("gone", 1, transaction="t"), sent("z", 3)],
        transactions={"t": FAILED},
        polled=[polled((0, "x"), (3, "z"))],
    )
    assert check(history) == []


def test_a_read_that_follows_another_transaction_closes_a_circle() -> None:
    history = History(
        sent=[sent("x1", 0, transaction="t1"), sent("y2", 0, place=B, transaction="t2")],
        transactions={"t1": OK, "t2": OK},
        polled=[
            polled((0, "x1"), reader="in t2", transaction="t2"),
            polled((0, "y2"), reader="in t1", place=B, transaction="t1"),
        ],
    )
    assert Kind.CYCLE in kinds(history)


def test_transactions_that_write_to_a_topic_at_the_same_time_may_stand_in_any_order() -> None:
    history = BAD[Kind.CYCLE]
    assert check(replace(history, writes_cross=frozenset({"a", "b"}))) == []
    assert Kind.CYCLE not in kinds(replace(history, writes_cross=frozenset({"a"})))


def compacted(*of_key: Sent, final: tuple[tuple[int, str], ...]) -> History:
    return History(sent=list(of_key), compacted=frozenset({"a"}), final={A: final})


def test_a_newer_value_of_unknown_outcome_may_have_replaced_the_newest_one() -> None:
    writes = (sent("x", 0, key="k"), sent("y", outcome=UNKNOWN, key="k"))
    assert check(compacted(*writes, final=((1, "y"),))) == []
    assert kinds(compacted(*writes, final=())) == {Kind.NEWEST_VALUE_LOST}


def test_a_tombstone_of_unknown_outcome_may_have_taken_the_value_and_gone() -> None:
    writes = (sent("x", 0, key="k"), sent("y", outcome=UNKNOWN, key="k", deletes=True))
    assert check(compacted(*writes, final=())) == []
    assert check(compacted(*writes, final=((0, "x"),))) == []


def test_a_tombstone_may_be_gone_together_with_what_it_deleted() -> None:
    writes = (sent("x", 0, key="k"), sent("y", 1, key="k", deletes=True), sent("z", 2, key="other"))
    assert check(compacted(*writes, final=((2, "z"),))) == []
    assert check(compacted(*writes, final=((1, "y"), (2, "z")))) == []
    assert check(compacted(*writes, final=((0, "x"), (1, "y"), (2, "z")))) == []


def test_the_newest_value_is_known_by_where_it_was_read_if_its_producer_was_not_answered_with_an_offset() -> None:
    writes = (sent("x", 0, key="k"), sent("y", key="k"))
    history = compacted(*writes, final=((0, "x"),))
    assert check(history) == []
    assert kinds(replace(history, polled=[polled((0, "x"), (1, "y"))])) == {Kind.NEWEST_VALUE_LOST}


def test_a_part_of_a_transaction_in_a_compacted_topic_may_have_a_newer_value() -> None:
    history = History(
        sent=[
            sent("x", 0, key="k", transaction="t"),
            sent("y", 0, place=B, transaction="t"),
            sent("z", 2, key="k"),
        ],
        transactions={"t": OK},
        compacted=frozenset({"a"}),
        final={A: ((2, "z"),), B: ((0, "y"),)},
    )
    assert check(history) == []
