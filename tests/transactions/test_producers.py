"""InitProducerId: who owns a transactional id, and since when."""

from __future__ import annotations

import pytest

from millstream.protocol.errors import ErrorCode
from millstream.transactions.transaction import EPOCH_MAX, State
from tests.transactions.scene import Scene


def test_a_new_id_begins_with_epoch_0() -> None:
    scene = Scene()
    producer_id, epoch = scene.init()
    assert epoch == 0
    assert scene.init("other") == (producer_id + 1, 0)


def test_each_owner_gets_the_next_epoch_of_the_same_producer_id() -> None:
    scene = Scene()
    producer_id, _ = scene.init()
    assert [scene.init() for _ in range(3)] == [(producer_id, 1), (producer_id, 2), (producer_id, 3)]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_an_open_transaction_is_aborted_before_somebody_else_gets_the_id(version: int) -> None:
    scene = Scene(version)
    producer_id, epoch = scene.init()
    scene.add((producer_id, epoch), 0, 1, client_version=version)
    assert scene.init() is ErrorCode.CONCURRENT_TRANSACTIONS
    (order,) = scene.markers
    assert (order.committed, list(order.partitions)) == (False, [("topic", 0), ("topic", 1)])
    assert order.epoch == epoch + 1, "the markers fence what the old owner still sends"
    assert scene.init() is ErrorCode.CONCURRENT_TRANSACTIONS, "until the markers are written"
    scene.write_markers()
    assert scene.init() == (producer_id, epoch + 2), "the epoch that fenced is nobody's"


def test_the_fenced_owner_can_do_nothing_more() -> None:
    scene = Scene()
    old = scene.init()
    scene.add(old, 0)
    scene.init()
    scene.write_markers()
    scene.init()
    assert scene.add(old, 1) is ErrorCode.PRODUCER_FENCED
    assert scene.verify(old, 0) is ErrorCode.PRODUCER_FENCED
    assert scene.end(old, commit=True) is ErrorCode.PRODUCER_FENCED
    assert scene.end(old, commit=False, client_version=0) is ErrorCode.PRODUCER_FENCED


def test_a_producer_goes_on_after_an_error_and_may_ask_twice() -> None:
    """KIP-360."""
    scene = Scene()
    producer = scene.init()
    bumped = (producer[0], producer[1] + 1)
    assert scene.init(had=producer) == bumped
    assert scene.init(had=producer) == bumped, "the first answer was lost"
    assert scene.init(had=bumped) == (producer[0], producer[1] + 2)
    assert scene.init(had=producer) is ErrorCode.PRODUCER_FENCED


def test_a_producer_that_was_isolated_in_mid_transaction_recovers() -> None:
    """Bug 39."""
    scene = Scene()
    producer = scene.init()
    scene.add(producer, 0)
    assert scene.init(had=producer) is ErrorCode.CONCURRENT_TRANSACTIONS
    scene.write_markers()
    assert scene.init(had=producer) == (producer[0], producer[1] + 1)


def test_nobody_goes_on_once_another_has_taken_over() -> None:
    scene = Scene()
    producer = scene.init()
    scene.init()
    assert scene.init(had=producer) is ErrorCode.PRODUCER_FENCED
    assert scene.init(had=(producer[0] + 7, 0)) is ErrorCode.PRODUCER_FENCED


def test_a_repeated_request_is_fenced_after_a_restart_as_in_kafka() -> None:
    scene = Scene()
    producer = scene.init()
    scene.init(had=producer)
    scene.crash()
    assert scene.init(had=producer) is ErrorCode.PRODUCER_FENCED


def test_an_id_that_was_forgotten_may_be_claimed_by_who_had_it() -> None:
    assert Scene().init(had=(77, 5)) == (1000, 0)


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001, 2**31 - 1, -(2**31)])
def test_a_timeout_that_is_not_allowed_is_refused(timeout_ms: int) -> None:
    scene = Scene()
    assert scene.init(timeout_ms=timeout_ms) is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert scene.log == []


def test_the_longest_timeout_is_a_setting() -> None:
    scene = Scene(transaction_max_timeout_ms=str(2**31 - 1))
    scene.add(scene.init(timeout_ms=2**31 - 1), 0)
    scene.fire(("timeouts",))
    assert scene.state().is_ongoing


def test_an_empty_id_is_no_id() -> None:
    assert Scene().init("") is ErrorCode.INVALID_REQUEST


def test_an_epoch_is_not_burnt_while_the_log_is_down() -> None:
    """Bug 35, KAFKA-9666."""
    scene = Scene()
    producer = scene.init()
    scene.add(producer, 0)
    scene.log_is_down = True
    for _ in range(5):
        assert scene.init() is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert scene.markers == []
    assert scene.state().epoch == producer[1]
    scene.log_is_down = False
    assert scene.init() is ErrorCode.CONCURRENT_TRANSACTIONS
    assert scene.state().epoch == producer[1] + 1


def test_when_epochs_run_out_the_producer_gets_a_new_id() -> None:
    scene = Scene()
    producer_id, epoch = scene.init()
    while epoch < EPOCH_MAX - 1:
        producer_id, epoch = scene.init()
    assert scene.init() == (producer_id + 1, 0)
    assert scene.state().previous_producer_id == producer_id


@pytest.mark.parametrize("version", [0, 2])
def test_the_answer_with_the_new_id_may_be_asked_for_again(version: int) -> None:
    scene = Scene(version)
    producer = scene.init()
    while producer[1] < EPOCH_MAX - 1:
        producer = scene.init(had=producer)
    rotated = scene.init(had=producer)
    assert rotated == (producer[0] + 1, 0)
    assert scene.init(had=producer) == rotated
    assert scene.init(had=(producer[0], 5)) is ErrorCode.PRODUCER_FENCED


def test_without_a_producer_id_at_hand_the_client_comes_again() -> None:
    scene = Scene()
    scene.has_ids = False
    assert scene.init() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert scene.log == []
    scene.has_ids = True
    assert scene.init() == (1000, 0)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_what_is_stored_is_what_is_known(version: int) -> None:
    scene = Scene(version)
    producer = scene.init()
    scene.add(producer, 0)
    scene.end(producer, commit=True, client_version=version)
    scene.write_markers()
    assert scene.replayed().transactions == scene.machine.transactions
    assert scene.state().state is State.COMPLETE_COMMIT
