"""Which partitions are part of a transaction."""

from __future__ import annotations

from millstream.protocol.errors import ErrorCode
from millstream.transactions.transaction import State
from tests.transactions.scene import Scene


def test_the_first_partition_begins_the_transaction() -> None:
    scene = Scene()
    producer = scene.init()
    assert scene.state().state is State.EMPTY
    scene.now_ms += 10
    assert scene.add(producer, 3) is ErrorCode.NONE
    assert scene.state().state is State.ONGOING
    assert scene.state().start_ms == scene.now_ms


def test_more_partitions_do_not_begin_it_anew() -> None:
    scene = Scene()
    producer = scene.init()
    scene.add(producer, 3)
    began_ms = scene.now_ms
    scene.now_ms += 10
    scene.add(producer, 3, 4)
    assert list(scene.state().partitions) == [("topic", 3), ("topic", 4)]
    assert scene.state().start_ms == began_ms


def test_a_partition_that_is_part_already_is_not_written_down_again() -> None:
    scene = Scene()
    producer = scene.init()
    scene.add(producer, 0, 1)
    before = len(scene.log)
    assert scene.add(producer, 1) is ErrorCode.NONE
    assert len(scene.log) == before


def test_a_partition_is_asked_about() -> None:
    scene = Scene()
    producer = scene.init()
    scene.add(producer, 0)
    assert scene.verify(producer, 0, 1) == {
        ("topic", 0): ErrorCode.NONE,
        ("topic", 1): ErrorCode.TRANSACTION_ABORTABLE,
    }
    assert list(scene.state().partitions) == [("topic", 0)]


def test_after_the_end_nothing_is_part_of_it() -> None:
    scene = Scene()
    producer = scene.init()
    scene.add(producer, 0, client_version=0)
    scene.end(producer, commit=True, client_version=0)
    scene.write_markers()
    assert scene.verify(producer, 0) == {("topic", 0): ErrorCode.TRANSACTION_ABORTABLE}


def test_strangers_are_refused() -> None:
    scene = Scene()
    producer_id, epoch = scene.init()
    assert scene.add((producer_id + 1, epoch), 0) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert scene.add((producer_id, epoch + 1), 0) is ErrorCode.PRODUCER_FENCED
    assert scene.add((producer_id, epoch), 0, name="unknown") is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert scene.add((producer_id, epoch), 0, name="") is ErrorCode.INVALID_REQUEST
    assert scene.verify((producer_id + 1, epoch), 0) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert scene.state().state is State.EMPTY
