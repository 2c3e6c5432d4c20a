"""Throttled replicas take no more than their rate, a second's worth ahead at most."""

from __future__ import annotations

import pytest

from millstream.replication.throttle import ABSENT_AFTER_MS, UNLIMITED, Throttle, Turns, is_throttled


def test_without_a_rate_nothing_is_counted() -> None:
    throttle = Throttle()
    assert not throttle.follow(UNLIMITED, 0)
    throttle.took(1 << 40, 0)
    assert throttle.pause_ms(0) == 0


def test_what_was_taken_too_much_is_waited_for() -> None:
    throttle = Throttle()
    assert throttle.follow(1_000, 0)
    throttle.took(3_000, 0)
    assert throttle.is_exceeded(1_000)
    assert 0 < throttle.pause_ms(1_999) <= 1_000
    assert throttle.pause_ms(2_001) == 0


def test_a_long_rest_saves_up_no_more_than_a_second() -> None:
    throttle = Throttle()
    throttle.follow(1_000, 0)
    throttle.took(1_001, 60_000)
    assert throttle.is_exceeded(60_000)


def test_over_a_minute_the_rate_is_kept() -> None:
    throttle = Throttle()
    throttle.follow(10_000, 0)
    taken = 0
    for now_ms in range(0, 60_000, 7):
        if not throttle.is_exceeded(now_ms):
            throttle.took(700, now_ms)
            taken += 700
    assert taken == pytest.approx(600_000, rel=0.03)


def test_a_rate_of_zero_stops_it() -> None:
    throttle = Throttle()
    throttle.follow(0, 0)
    assert throttle.pause_ms(5_000) == 1_000


@pytest.mark.parametrize(
    ("entries", "throttled"), [((), False), (("*",), True), (("0:1", "1:2"), True), (("0:2", "1:1"), False)]
)
def test_a_topic_names_replicas_by_partition_and_broker(entries: tuple[str, ...], throttled: bool) -> None:
    assert is_throttled(entries, 1, 2) == throttled


def test_those_who_share_a_throttle_take_turns() -> None:
    turns = Turns()
    assert turns.asks(2, 0)
    assert not turns.asks(3, 0)
    turns.served(2)
    assert not turns.asks(2, 500), "the other one has waited for longer"
    assert turns.asks(3, 500)
    turns.served(3)
    assert turns.asks(2, 1_000)


def test_nobody_waits_for_one_that_asks_no_more() -> None:
    turns = Turns()
    turns.asks(2, 0)
    assert not turns.asks(3, ABSENT_AFTER_MS)
    assert turns.asks(3, ABSENT_AFTER_MS + 1)
