"""Transactions that take too long, and ids that nobody uses."""

from __future__ import annotations

import pytest

from millstream.protocol.errors import ErrorCode
from millstream.transactions.aging import ABORTED_AT_ONCE_MAX, LOOKED_AT_ONCE_MAX
from millstream.transactions.transaction import EPOCH_MAX, State
from tests.transactions.scene import TIMEOUT_MS, Scene

DAY_MS = 24 * 3_600_000


def loaded(version: int = 2, **settings: str) -> Scene:
    scene = Scene(version, **settings)
    scene.crash()
    return scene


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced(version: int) -> None:
    scene = loaded(version)
    producer = scene.init()
    scene.add(producer, 0, client_version=version)
    scene.pass_time(TIMEOUT_MS - 1)
    assert scene.state().is_ongoing
    scene.pass_time(10_001)
    (order,) = scene.write_markers()
    assert (order.committed, order.epoch) == (False, producer[1] + 1)
    assert scene.state().state is State.COMPLETE_ABORT
    assert scene.add(producer, 1) is ErrorCode.PRODUCER_FENCED


def test_how_often_they_are_looked_for_is_a_setting() -> None:
    scene = loaded(transaction_abort_timed_out_transaction_cleanup_interval_ms="100")
    scene.add(scene.init(timeout_ms=1_000), 0)
    scene.pass_time(1_101)
    assert scene.state().state is State.PREPARE_ABORT


def test_the_time_survives_a_restart() -> None:
    scene = loaded()
    scene.add(scene.init(), 0)
    scene.pass_time(TIMEOUT_MS - 1)
    scene.crash()
    scene.pass_time(10_001)
    assert scene.state().state is State.PREPARE_ABORT


def test_a_clock_that_is_set_back_only_delays() -> None:
    """Bug 54, KAFKA-5415."""
    scene = loaded()
    scene.add(scene.init(), 0)
    scene.now_ms -= 3_600_000
    scene.timers[("timeouts",)] = scene.now_ms
    scene.pass_time(TIMEOUT_MS)
    assert scene.state().is_ongoing
    scene.pass_time(3_600_000 + 20_000)
    assert scene.state().state is State.PREPARE_ABORT


def test_many_at_once_are_aborted_in_turns() -> None:
    scene = loaded()
    names = [f"t{number}" for number in range(2 * ABORTED_AT_ONCE_MAX + 5)]
    for name in names:
        scene.add(scene.init(name), 0, name=name)
    scene.now_ms += TIMEOUT_MS + 1
    scene.fire(("timeouts",))
    assert len(scene.markers) == ABORTED_AT_ONCE_MAX
    scene.pass_time(0)
    assert len(scene.markers) == len(names)
    assert not scene.machine.ongoing


def test_a_round_that_cannot_be_written_is_followed_by_another() -> None:
    scene = loaded()
    scene.add(scene.init(), 0)
    scene.log_is_down = True
    scene.pass_time(TIMEOUT_MS + 10_000)
    assert scene.state().is_ongoing
    scene.log_is_down = False
    scene.pass_time(20_000)
    assert scene.state().state is State.PREPARE_ABORT


def test_at_the_last_epoch_the_abort_waits_for_a_producer_id() -> None:
    scene = loaded()
    producer = scene.init()
    while producer[1] < EPOCH_MAX - 1:
        producer = scene.init()
    scene.add(producer, 0)
    scene.has_ids = False
    scene.pass_time(TIMEOUT_MS + 20_000)
    assert scene.state().is_ongoing
    scene.has_ids = True
    scene.pass_time(20_000)
    scene.write_markers()
    assert (scene.state().state, scene.state().epoch) == (State.COMPLETE_ABORT, 0)


def test_an_id_that_nobody_uses_is_forgotten() -> None:
    scene = loaded()
    producer = scene.init()
    scene.add(producer, 0)
    scene.end(producer, commit=True)
    scene.write_markers()
    scene.pass_time(7 * DAY_MS - 3_600_001)
    assert "t" in scene.machine.transactions
    scene.pass_time(2 * 3_600_000)
    assert scene.machine.transactions == {}
    assert scene.log[-1][1] is None, "a tombstone"
    assert scene.replayed().transactions == {}
    assert scene.add(producer, 0) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_a_transaction_under_way_keeps_its_id() -> None:
    scene = loaded(transactional_id_expiration_ms="1000")
    scene.add(scene.init(), 0)
    scene.now_ms += 50_000
    scene.fire(("expiry",))
    scene.end((scene.state().producer_id, scene.state().epoch), commit=True)
    scene.now_ms += 50_000
    scene.fire(("expiry",))
    assert scene.state().state is State.PREPARE_COMMIT


def test_very_many_ids_expire_in_turns() -> None:
    """Bug 52, KAFKA-17058, for transactional ids."""
    scene = loaded(transactional_id_expiration_ms="1000")
    for number in range(2 * LOOKED_AT_ONCE_MAX + 10):
        scene.init(f"t{number}")
    written = len(scene.log)
    scene.now_ms += 1_000
    scene.fire(("expiry",))
    assert 0 < len(scene.log) - written <= LOOKED_AT_ONCE_MAX
    scene.pass_time(0)
    assert scene.machine.transactions == {}
