"""What the checker's rules need is really there: a run on the simulated cluster fills in every part of its history.

A rule whose data no run fills in finds nothing, and says nothing about that. tests/chaos asks the same of histories of
real processes.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

from millstream.testing.history import Outcome
from millstream.testing.simulation import COMPACTED, Plan, simulate

if TYPE_CHECKING:
    from millstream.testing.history import History, Place


@pytest.fixture(scope="module")
def history() -> History:
    report = simulate(Plan(seed=1, nodes=1, seconds=20, faults=(), layout="combined"))
    assert report.violation is None
    return report.history


def test_transactions_read_what_others_have_committed(history: History) -> None:
    """READ_OF_OWN_UNCOMMITTED_WRITE, and the write-read half of CYCLE."""
    writer = {sent.value: sent.transaction for sent in history.sent}
    reads = [
        (writer[value], poll.transaction)
        for poll in history.polled
        if poll.transaction is not None
        for _, _, value in poll.records
    ]
    between_transactions = {(one, other) for one, other in reads if one is not None and one != other}
    assert len(between_transactions) > 10
    # Each reads where it has written itself: its own records would be there to be seen.
    written = {(sent.transaction, sent.place) for sent in history.sent if sent.transaction is not None}
    read = {(poll.transaction, place) for poll in history.polled if poll.transaction for place, _, _ in poll.records}
    assert read
    assert read <= written


def test_the_last_stable_offset_is_compared_with_the_end(history: History) -> None:
    """STUCK_STABLE_OFFSET."""
    assert history.final is not None
    assert set(history.stable_ends) == set(history.final)
    assert all(end > 0 for _, end in history.stable_ends.values())


def test_keys_are_written_again_deleted_and_compacted(history: History) -> None:
    """NEWEST_VALUE_LOST and DELETED_VALUE_CAME_BACK."""
    assert history.compacted == {COMPACTED}
    assert history.final is not None
    keyed = [sent for sent in history.sent if sent.key is not None]
    assert {sent.place[0] for sent in keyed} == {COMPACTED}
    standing = {value for _, value in history.final[COMPACTED, 0]}
    gone = [sent for sent in keyed if sent.value not in standing]
    assert len(gone) > len(standing)
    assert any(sent.deletes for sent in gone)
    assert len({sent.key for sent in keyed if sent.value in standing}) > 3


def test_some_writes_are_refused_and_some_transactions_aborted(history: History) -> None:
    """READ_OF_FAILED_WRITE, READ_OF_ABORTED_WRITE and TORN."""
    assert any(sent.outcome is Outcome.FAILED and sent.transaction is None for sent in history.sent)
    places: dict[str, set[Place]] = defaultdict(set)
    for sent in history.sent:
        if sent.transaction is not None and sent.outcome is Outcome.OK:
            places[sent.transaction].add(sent.place)
    for outcome in (Outcome.OK, Outcome.FAILED):
        ended = [transaction for transaction, how in history.transactions.items() if how is outcome]
        assert any(len(places[transaction]) > 1 for transaction in ended)


def test_groups_and_ends_are_noted(history: History) -> None:
    """COMMITTED_OFFSET_WENT_BACK, TWO_OWNERS and END_WENT_BACK."""
    groups = {commit.group for commit in history.committed}
    assert {"group", "consumer-group"} < groups
    assert any("transactor" in group for group in groups)
    assert {owned.group for owned in history.owned} == {"group", "consumer-group"}
    assert len(history.ends) > 10


def test_what_groups_have_stored_in_the_end_is_noted_once_more(history: History) -> None:
    """A commit that was acknowledged and then lost shows in no other commit."""
    pairs = {(commit.group, commit.place) for commit in history.committed}
    last = history.committed[-len(pairs) :]
    assert {(commit.group, commit.place) for commit in last} == pairs
