"""Asking the coordinator whether a batch is part of a transaction: again where it says so, and nothing is believed
that a marker has overtaken (KIP-890)."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from millstream.broker import participation as asking
from millstream.broker.dispatch import Deferred
from millstream.log.producers import NO_OFFSET, ProducerStates
from millstream.protocol.errors import ErrorCode
from millstream.settings.effective import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

PLACE = ("orders", 0)
PRODUCER, EPOCH = 7, 1


class Scene:
    """A partition, and a coordinator that answers what is listed, each after `before_answer` was called."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: ErrorCode) -> None:
        self.producers = ProducerStates()
        self.partition = SimpleNamespace(log=SimpleNamespace(producers=self.producers), role_changes=0)
        self._answers = list(answers)
        self.before_answer: Callable[[], None] = lambda: None
        monkeypatch.setattr(asking, "take_part", self._take_part)

    def _take_part(self, *_: object, **__: object) -> Deferred:
        asked = Deferred(on_abandon=lambda: None)

        def answer() -> None:
            self.before_answer()
            asked.finish({PLACE: self._answers.pop(0)})

        asyncio.get_running_loop().call_soon(answer)
        return asked

    def marker_comes(self, offset: int, epoch: int) -> None:
        self.producers.apply_marker(PRODUCER, epoch, 0, offset, 0, commit=True)

    def refusals(self, *, add: bool = True) -> dict[Any, ErrorCode]:
        async def ask() -> dict[Any, ErrorCode]:
            partition: Any = self.partition
            node: Any = SimpleNamespace(settings=Settings({"add.partitions.to.txn.retry.backoff.ms": "1"}))
            question = asking.Participation(
                node,
                "id",
                PRODUCER,
                EPOCH,
                {PLACE: partition},
                add=add,
                abortable=True,
                retriable=ErrorCode.NOT_ENOUGH_REPLICAS,
            )
            question.ask()
            assert not question.is_settled
            await question.wait()
            return question.refusals()

        return asyncio.run(ask())


def test_a_marker_that_the_coordinator_had_us_wait_for_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The transaction before had not ended everywhere: its marker comes between the first question and the second."""
    scene = Scene(monkeypatch, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NONE)

    def comes_once() -> None:
        if scene.producers.last_marker_of(PRODUCER) == NO_OFFSET:
            scene.marker_comes(5, EPOCH)

    scene.before_answer = comes_once
    assert scene.refusals() == {}


def test_the_marker_of_the_transaction_before_may_come_while_the_question_is_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With transaction.version 2 it carries the epoch that the next transaction has; before, epochs tell nothing."""
    for add, refused in ((True, {}), (False, {PLACE: ErrorCode.INVALID_TXN_STATE})):
        scene = Scene(monkeypatch, ErrorCode.NONE)
        scene.before_answer = lambda scene=scene: scene.marker_comes(9, EPOCH)  # type: ignore[misc]
        assert scene.refusals(add=add) == refused


@pytest.mark.parametrize("known_before", [False, True])
def test_an_answer_that_a_marker_has_overtaken_is_not_believed(
    monkeypatch: pytest.MonkeyPatch, known_before: bool
) -> None:
    scene = Scene(monkeypatch, ErrorCode.NONE)
    if known_before:
        scene.marker_comes(5, EPOCH)
    scene.before_answer = lambda: scene.marker_comes(9, EPOCH + 1)
    assert scene.refusals() == {PLACE: ErrorCode.INVALID_TXN_STATE}


def test_a_marker_from_before_the_question_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, ErrorCode.NONE)
    scene.marker_comes(5, EPOCH)
    assert scene.refusals() == {}


def test_who_has_led_and_followed_meanwhile_leaves_the_judgement_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, ErrorCode.NONE)

    def resigns_and_hears_of_a_marker() -> None:
        scene.partition.role_changes += 1
        scene.marker_comes(9, EPOCH + 1)

    scene.before_answer = resigns_and_hears_of_a_marker
    assert scene.refusals() == {PLACE: ErrorCode.NOT_ENOUGH_REPLICAS}
