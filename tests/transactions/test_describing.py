"""What a coordinator tells of its transactions."""

from __future__ import annotations

import pytest

from millstream.protocol.errors import InvalidRequest, TransactionalIdNotFound
from millstream.transactions.describing import Filters, describe, list_transactions
from millstream.transactions.transaction import STATES_BY_LABEL, State
from tests.transactions.scene import TIMEOUT_MS, Scene


def test_a_transaction_is_described() -> None:
    scene = Scene()
    producer = scene.init()
    scene.add(producer, 0, 2)
    found = describe(scene.machine, "t", lambda _: True)
    assert (found.transaction_state, found.transaction_timeout_ms) == ("Ongoing", TIMEOUT_MS)
    assert (found.producer_id, found.producer_epoch) == producer
    assert found.transaction_start_time_ms == scene.now_ms
    assert [(topic.topic, topic.partitions) for topic in found.topics] == [("topic", [0, 2])]


def test_topics_that_may_not_be_described_are_not_named() -> None:
    scene = Scene()
    scene.add(scene.init(), 0)
    assert describe(scene.machine, "t", lambda _: False).topics == []


def test_what_is_not_there_is_not_described() -> None:
    with pytest.raises(TransactionalIdNotFound):
        describe(Scene().machine, "t", lambda _: True)
    with pytest.raises(InvalidRequest):
        describe(Scene().machine, "", lambda _: True)


def test_states_are_spelled_as_kafka_does() -> None:
    assert list(STATES_BY_LABEL) == [
        "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead",
        "PrepareEpochFence",
    ]  # fmt: skip


def test_lists_are_filtered() -> None:
    scene = Scene()
    ids = {name: scene.init(name)[0] for name in ("old", "new", "idle")}
    scene.add((ids["old"], 0), 0, name="old")
    scene.now_ms += 5_000
    scene.add((ids["new"], 0), 0, name="new")

    def found(filters: Filters) -> list[str]:
        return [row.transactional_id for row in list_transactions(scene.machine, filters, scene.now_ms)]

    assert found(Filters()) == ["old", "new", "idle"]
    assert found(Filters(states=(State.ONGOING,))) == ["old", "new"]
    assert found(Filters(producer_ids=(ids["new"], ids["idle"]))) == ["new", "idle"]
    # Who never began anything has done so for ever, as in Kafka.
    assert found(Filters(running_longer_than_ms=4_999)) == ["old", "idle"]
    assert found(Filters(running_longer_than_ms=5_000)) == ["idle"]
    assert found(Filters(running_longer_than_ms=2**63 - 1)) == []
    assert found(Filters(matches=lambda name: name.startswith("n"))) == ["new"]
