"""When a shard may speak: only once everything that its answer stands on is committed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from millstream.protocol.errors import CoordinatorLoading, ErrorCode, NotCoordinator, NotEnoughReplicas, ProducerFenced
from millstream.protocol.messages.transactions.transaction_log import TransactionLogKey
from millstream.replicated import Decision, Record, Reply, Schedule
from millstream.runtime.shard import Shard, Stage
from millstream.testing.loop import VirtualLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TIMEOUT_MS = 5_000


@dataclass
class Journal:
    """A partition with followers that are slow, and a disk that may fail."""

    end: int = 0
    high_watermark: int = 0
    is_offline: bool = False
    waiting: list[tuple[int, Callable[[], None]]] = field(default_factory=list)

    def append_internal(self, _batch: bytearray, _now_ms: int) -> int:
        self.end += 1
        return self.end - 1

    def is_committed(self, last_offset: int) -> bool:
        return self.high_watermark > last_offset

    def when_committed(self, last_offset: int, listener: Callable[[], None]) -> None:
        self.waiting.append((last_offset, listener))

    def commit(self) -> None:
        self.high_watermark = self.end
        self.let_everyone_go()

    def let_everyone_go(self) -> None:
        waiting, self.waiting = self.waiting, []
        for _, listener in waiting:
            listener()


class Machine:
    def apply(self, *_: Any, **__: Any) -> None:
        """Keeps nothing."""

    def end_transaction(self, *_: Any, **__: Any) -> None:
        """Keeps nothing."""

    def loaded(self, _now_ms: int) -> tuple[()]:
        return ()

    def on_timer(self, _key: object, _now_ms: int) -> Decision[Any]:
        return Decision()


class Clock:
    def wall_ms(self) -> int:
        return 0


class Scene:
    def __init__(self, *, active: bool = True) -> None:
        self.journal = Journal()
        self.said: list[tuple[int, Any]] = []
        self.effects: list[Any] = []
        self.shard = Shard(
            Machine(),
            self.journal,
            Clock(),  # type: ignore[arg-type]
            answer=lambda token, response: self.said.append((token, response)),
            on_effect=lambda _, effect: self.effects.append(effect),
            refuse=lambda token, code: self.said.append((token, code)),
            commit_timeout_ms=TIMEOUT_MS,
        )
        if active:
            self.shard.activate(-1)

    def write(self, token: int) -> None:
        record = Record(TransactionLogKey(transactional_id="t"), None)
        self.shard.submit(token, lambda *_: Decision(records=(record,), response="written", effects=("markers",)))

    def read(self, token: int) -> None:
        self.shard.submit(token, lambda *_: Decision(response="read"))


@pytest.fixture
def scene() -> Iterator[Scene]:
    """In an event loop that counts as running, though nobody turns it."""
    loop = VirtualLoop()
    asyncio._set_running_loop(loop)
    try:
        yield Scene()
    finally:
        asyncio._set_running_loop(None)
        loop.close()


def test_an_answer_waits_for_the_commit_of_its_own_records(scene: Scene) -> None:
    scene.write(1)
    assert scene.said == []
    scene.journal.commit()
    assert scene.said == [(1, "written")]
    assert scene.effects == ["markers"]


def test_an_answer_waits_for_what_it_could_have_read(scene: Scene) -> None:
    scene.write(1)
    scene.read(2)
    assert scene.said == []
    scene.journal.commit()
    assert scene.said == [(1, "written"), (2, "read")]


def test_a_failed_append_behind_it_is_no_commit(scene: Scene) -> None:
    # A disk that is full lets everyone go who waits, and the log goes on: nothing is committed by that.
    scene.write(1)
    scene.read(2)
    scene.journal.let_everyone_go()
    assert scene.said == []
    assert scene.effects == []
    scene.journal.commit()
    assert scene.said == [(1, "written"), (2, "read")]
    assert scene.effects == ["markers"]


def test_a_log_that_has_failed_commits_nothing_more(scene: Scene) -> None:
    scene.write(1)
    scene.shard.submit(2, lambda *_: Decision())
    scene.shard.submit(3, lambda *_: Decision(replies=(Reply(2, "joined"),), response="joined"))
    scene.journal.is_offline = True
    scene.journal.let_everyone_go()
    assert scene.said == [(token, ErrorCode.NOT_COORDINATOR) for token in (1, 2, 3)]
    assert scene.effects == []
    assert scene.shard.stage is Stage.CLOSED


def test_what_was_committed_before_the_failure_is_still_told(scene: Scene) -> None:
    scene.write(1)
    scene.journal.commit()
    scene.journal.is_offline = True
    scene.read(2)
    assert scene.said == [(1, "written"), (2, "read")]


def test_a_refusal_waits_for_what_it_could_have_read(scene: Scene) -> None:
    def refuse(*_: object) -> Decision[Any]:
        raise ProducerFenced

    scene.write(1)
    scene.shard.submit(2, refuse)
    scene.read(3)
    assert scene.said == []
    scene.journal.commit()
    assert scene.said == [(1, "written"), (2, ErrorCode.PRODUCER_FENCED), (3, "read")]
    with pytest.raises(ProducerFenced):
        scene.shard.submit(4, refuse)


def test_a_refusal_by_what_is_lost_is_never_heard(scene: Scene) -> None:
    def refuse(*_: object) -> Decision[Any]:
        raise ProducerFenced

    scene.write(1)
    scene.shard.submit(2, refuse)
    scene.shard.close()
    scene.journal.commit()
    assert scene.said == [(1, ErrorCode.NOT_COORDINATOR), (2, ErrorCode.NOT_COORDINATOR)]


def test_that_it_is_no_coordinator_is_said_at_once(scene: Scene) -> None:
    def refuse(*_: object) -> Decision[Any]:
        raise NotCoordinator

    scene.write(1)
    with pytest.raises(NotCoordinator):
        scene.shard.submit(2, refuse)


def test_a_shard_that_could_not_be_loaded_is_no_coordinator() -> None:
    shard = Scene(active=False).shard
    with pytest.raises(CoordinatorLoading):
        shard.submit(1, lambda *_: Decision())
    shard.fail()
    with pytest.raises(NotCoordinator):
        shard.submit(2, lambda *_: Decision())


async def _too_few_replicas() -> None:
    def refuse(*_: object) -> Decision[Any]:
        raise ProducerFenced

    scene = Scene()
    scene.shard.submit(1, lambda *_: Decision())
    scene.write(2)
    await asyncio.sleep(1)
    scene.read(3)
    scene.shard.submit(4, refuse)
    scene.shard.submit(5, lambda *_: Decision(replies=(Reply(1, "joined"),), response="joined"))
    await asyncio.sleep(4.5)
    assert scene.said == [(2, ErrorCode.REQUEST_TIMED_OUT)]
    await asyncio.sleep(1)
    assert scene.said[1:] == [(token, ErrorCode.REQUEST_TIMED_OUT) for token in (3, 4, 1, 5)]
    assert scene.effects == []
    # What was written counts all the same, when it is committed: others go by it.
    scene.journal.commit()
    assert scene.effects == ["markers"]
    scene.read(6)
    assert scene.said[-1] == (6, "read")
    # Nor is there a time for what was not decided yet.
    scene.shard.submit(7, lambda *_: Decision())
    await asyncio.sleep(60)
    assert scene.said[-1] == (6, "read")


def test_nobody_waits_for_ever_for_replicas_that_are_gone() -> None:
    VirtualLoop().run(_too_few_replicas())


def test_what_is_due_stays_due_until_it_can_be_written() -> None:
    """Fewer replicas than min.insync.replicas: a member whose session has ended is put out as soon as there are."""
    record = Record(TransactionLogKey(transactional_id="t"), None)
    refusals = 3

    async def main() -> int:
        scene = Scene()
        tried: list[float] = []
        loop = asyncio.get_running_loop()
        write = scene.journal.append_internal

        def refused_at_first(batch: bytearray, now_ms: int) -> int:
            tried.append(loop.time())
            if len(tried) <= refusals:
                raise NotEnoughReplicas("two are in sync, three are required")
            return write(batch, now_ms)

        scene.journal.append_internal = refused_at_first  # type: ignore[method-assign]
        scene.shard.machine.on_timer = lambda *_: Decision(records=(record,))  # type: ignore[method-assign]
        scene.shard.run(lambda *_: Decision(timers=(Schedule("session", 1_000),)))
        await asyncio.sleep(3_600)
        assert scene.journal.end == 1
        return len(tried)

    assert VirtualLoop().run(main()) == refusals + 1
