"""EndTxn: a transaction is committed or aborted once, whatever comes twice or late."""

from __future__ import annotations

import pytest

from millstream.protocol.errors import ErrorCode
from millstream.transactions.transaction import EPOCH_MAX, State
from tests.transactions.scene import Scene

BUMPS = 2


def begun(scene: Scene, client_version: int = BUMPS) -> tuple[int, int]:
    producer: tuple[int, int] = scene.init()
    assert scene.add(producer, 0, client_version=client_version) is ErrorCode.NONE
    return producer


def after(producer: tuple[int, int], epochs: int = 1) -> tuple[int, int]:
    return producer[0], producer[1] + epochs


@pytest.mark.parametrize("commit", [True, False])
def test_an_end_is_decided_then_marked_then_complete(commit: bool) -> None:
    scene = Scene()
    producer = begun(scene)
    assert scene.end(producer, commit=commit) == after(producer)
    assert scene.state().state is (State.PREPARE_COMMIT if commit else State.PREPARE_ABORT)
    (order,) = scene.write_markers()
    assert order[:4] == ("t", *after(producer), commit)
    assert list(order.partitions) == [("topic", 0)]
    assert scene.state().state is (State.COMPLETE_COMMIT if commit else State.COMPLETE_ABORT)
    assert scene.state().partitions == {}


@pytest.mark.parametrize("client_version", [0, 1])
def test_an_older_client_keeps_its_epoch_and_is_told_none(client_version: int) -> None:
    scene = Scene()
    producer = begun(scene, client_version)
    assert scene.end(producer, commit=True, client_version=client_version) == (-1, -1)
    (order,) = scene.write_markers()
    assert order.epoch == producer[1]
    assert scene.add(producer, 0, client_version=client_version) is ErrorCode.NONE


def test_while_markers_are_written_everybody_waits() -> None:
    scene = Scene()
    producer = begun(scene)
    scene.end(producer, commit=True)
    assert scene.end(producer, commit=True) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert scene.end(producer, commit=False) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert scene.end(after(producer), commit=True) is ErrorCode.PRODUCER_FENCED
    assert scene.add(after(producer), 1) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert scene.verify(after(producer), 0) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert scene.init() is ErrorCode.CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize(
    ("ended", "repeated", "commit", "expected"),
    [
        ("empty", True, False, ErrorCode.PRODUCER_FENCED),
        ("empty", False, False, "bump"),
        ("empty", True, True, ErrorCode.PRODUCER_FENCED),
        ("empty", False, True, ErrorCode.INVALID_TXN_STATE),
        ("aborted", True, False, "as before"),
        ("aborted", False, False, "bump"),
        ("aborted", True, True, ErrorCode.INVALID_TXN_STATE),
        ("aborted", False, True, ErrorCode.INVALID_TXN_STATE),
        ("committed", True, False, ErrorCode.INVALID_TXN_STATE),
        ("committed", False, False, "bump"),
        ("committed", True, True, "as before"),
        ("committed", False, True, ErrorCode.INVALID_TXN_STATE),
    ],
)
def test_the_table_of_ends_that_bump_the_epoch(ended: str, repeated: bool, commit: bool, expected: object) -> None:
    scene = Scene()
    if ended == "empty":
        scene.init()
        current = scene.init()
    else:
        current = scene.end(begun(scene), commit=ended == "committed")
        scene.write_markers()
    heard = scene.end(after(current, -1) if repeated else current, commit=commit)
    assert heard == {"bump": after(current), "as before": current}.get(str(expected), expected)


@pytest.mark.parametrize("ended", ["empty", "aborted", "committed"])
@pytest.mark.parametrize("commit", [True, False])
def test_the_table_of_ends_that_keep_the_epoch(ended: str, commit: bool) -> None:
    scene = Scene(version=0)
    producer = scene.init()
    if ended != "empty":
        scene.add(producer, 0, client_version=0)
        scene.end(producer, commit=ended == "committed", client_version=0)
        scene.write_markers()
    heard = scene.end(producer, commit=commit, client_version=0)
    assert heard == ((-1, -1) if ended == ("committed" if commit else "aborted") else ErrorCode.INVALID_TXN_STATE)
    assert scene.end(after(producer, -1), commit=commit, client_version=0) is ErrorCode.PRODUCER_FENCED


def test_a_commit_that_comes_after_the_timeout_aborted_is_fenced() -> None:
    """Bug 32, KAFKA-14402: it must not commit what the producer has begun since."""
    scene = Scene()
    producer = begun(scene)
    scene.pass_time(1)
    scene.crash()
    scene.pass_time(120_000)
    scene.write_markers()
    assert scene.state().state is State.COMPLETE_ABORT
    assert scene.end(producer, commit=True) is ErrorCode.INVALID_TXN_STATE
    recovered = scene.init(had=after(producer))
    scene.add(recovered, 0)
    assert scene.end(producer, commit=True) is ErrorCode.PRODUCER_FENCED
    assert scene.state().is_ongoing


def test_a_commit_that_comes_twice_does_not_commit_the_next_transaction() -> None:
    scene = Scene()
    producer = begun(scene)
    following = scene.end(producer, commit=True)
    scene.write_markers()
    scene.add(following, 0)
    assert scene.end(producer, commit=True) is ErrorCode.PRODUCER_FENCED
    assert scene.state().is_ongoing


def test_an_epoch_bump_in_mid_markers_does_not_stop_the_completion() -> None:
    """Bug 34, KAFKA-16352."""
    scene = Scene()
    producer = begun(scene)
    scene.end(producer, commit=True)
    for _ in range(3):
        assert scene.init() is ErrorCode.CONCURRENT_TRANSACTIONS
        assert scene.init(had=after(producer)) is ErrorCode.CONCURRENT_TRANSACTIONS
    scene.write_markers()
    assert scene.state().state is State.COMPLETE_COMMIT
    assert scene.init() == after(producer, 2)


def test_whatever_was_prepared_is_carried_out_after_a_crash() -> None:
    scene = Scene()
    producer = begun(scene)
    scene.end(producer, commit=True)
    asked = scene.markers
    for _ in range(3):
        scene.crash()
        assert scene.markers == asked
    scene.write_markers()
    assert scene.state().state is State.COMPLETE_COMMIT
    scene.crash()
    assert scene.markers == []


def test_markers_of_a_transaction_that_is_long_over_complete_nothing() -> None:
    scene = Scene()
    producer = begun(scene)
    following = scene.end(producer, commit=True)
    (late,) = scene.write_markers()
    scene.add(following, 0)
    scene.end(following, commit=False)
    scene.complete(late)
    assert scene.state().state is State.PREPARE_ABORT


def test_a_completion_that_cannot_be_written_is_tried_again() -> None:
    scene = Scene()
    scene.end(begun(scene), commit=True)
    scene.log_is_down = True
    scene.write_markers()
    assert scene.state().state is State.PREPARE_COMMIT
    scene.pass_time(1_000)
    scene.log_is_down = False
    scene.pass_time(1_000)
    assert scene.state().state is State.COMPLETE_COMMIT


def test_a_failed_append_changes_nothing() -> None:
    """Bug 37, KAFKA-6683."""
    scene = Scene()
    producer = begun(scene)
    scene.log_is_down = True
    assert scene.end(producer, commit=True) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert scene.add(producer, 1) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert scene.markers == []
    assert scene.state().is_ongoing
    scene.log_is_down = False
    assert scene.end(producer, commit=True) == after(producer)


def test_the_last_epoch_ends_with_a_new_producer_id_and_old_markers() -> None:
    scene = Scene()
    producer = scene.init()
    while producer[1] < EPOCH_MAX - 1:
        producer = scene.init()
    scene.add(producer, 0)
    rotated = scene.end(producer, commit=True)
    assert rotated == (producer[0] + 1, 0)
    scene.crash()
    (order,) = scene.write_markers()
    assert (order.producer_id, order.epoch) == (producer[0], EPOCH_MAX)
    assert scene.end(producer, commit=True) == rotated, "repeated"
    assert scene.end(producer, commit=False) is ErrorCode.INVALID_TXN_STATE
    assert scene.add(rotated, 0) is ErrorCode.NONE


@pytest.mark.parametrize("client_version", [0, 2])
def test_strangers_end_nothing(client_version: int) -> None:
    scene = Scene()
    producer = begun(scene, client_version)
    stranger = (producer[0] + 1, producer[1])
    assert scene.end(stranger, commit=True, client_version=client_version) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    unknown = scene.end(producer, commit=True, name="unknown", client_version=client_version)
    assert unknown is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert scene.end(producer, commit=True, name="", client_version=client_version) is ErrorCode.INVALID_REQUEST
    assert scene.end(after(producer), commit=True, client_version=client_version) is ErrorCode.PRODUCER_FENCED
    assert scene.state().is_ongoing
