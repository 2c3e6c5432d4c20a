"""A disk that takes its time with an fsync holds up who waits for it, and nobody else."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.batches import Record, batch_of
from tests.support.raw import RawClient

from millstream import Broker
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from millstream.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.log.log import Log

SLOW, OTHER = "slow", "other"
EVERYTHING, COMMITTED = 0, 1


class HeldSync:
    """Stands in front of a log's syncs until they are let go."""

    def __init__(self, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
        self.began = threading.Event()
        self.let_go = threading.Event()
        self._targets = log.sync_targets
        monkeypatch.setattr(type(log), "sync_targets", lambda each: [self] if each is log else original(each))
        original = self._targets.__func__

    def sync(self) -> None:
        self.began.set()
        assert self.let_go.wait(60)
        for target in self._targets():
            target.sync()


@pytest.fixture
def running() -> Iterator[Broker]:
    with Broker(settings={"millstream.acks.fsync": "true"}) as broker:
        broker.create_topic(SLOW)
        broker.create_topic(OTHER)
        yield broker


@pytest.fixture
def held(running: Broker, monkeypatch: pytest.MonkeyPatch) -> Iterator[HeldSync]:
    assert running._node is not None
    partition = running._node.partitions.get(SLOW, 0)
    assert partition is not None
    found = HeldSync(partition.log, monkeypatch)
    yield found
    found.let_go.set()


def produce(topic: str) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=batch_of(Record(b"value", timestamp_ms=1_000)))
    return ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=[TopicProduceData(name=topic, partition_data=[data])])


def fetch(client: RawClient, isolation: int) -> Any:
    place = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topic = FetchTopic(topic=SLOW, partitions=[place])
    request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, isolation_level=isolation, topics=[topic])
    return client.call(request, 12).responses[0].partitions[0]


def code_of(answer: Any) -> ErrorCode:
    return ErrorCode(answer.responses[0].partition_responses[0].error_code)


def test_other_partitions_do_not_feel_a_slow_sync(running: Broker, held: HeldSync) -> None:  # KAFKA-15046
    with RawClient("127.0.0.1", running.port) as waiting, RawClient("127.0.0.1", running.port) as quick:
        waiting.send(produce(SLOW), 9)
        assert held.began.wait(60)
        assert code_of(quick.call(produce(OTHER), 9)) is ErrorCode.NONE
        assert not held.let_go.is_set()
        held.let_go.set()
        assert code_of(waiting.receive()) is ErrorCode.NONE


@pytest.mark.parametrize("isolation", [EVERYTHING, COMMITTED])
def test_nobody_reads_past_the_high_watermark_while_records_are_appended(
    running: Broker, held: HeldSync, isolation: int
) -> None:  # KAFKA-9835, KAFKA-9807
    with RawClient("127.0.0.1", running.port) as waiting, RawClient("127.0.0.1", running.port) as reader:
        for _ in range(3):
            waiting.send(produce(SLOW), 9)
        assert held.began.wait(60)
        early = fetch(reader, isolation)
        assert (early.high_watermark, early.last_stable_offset, bytes(early.records or b"")) == (0, 0, b"")
        held.let_go.set()
        for _ in range(3):
            assert code_of(waiting.receive()) is ErrorCode.NONE
        late = fetch(reader, isolation)
        assert (late.high_watermark, late.last_stable_offset) == (3, 3)
        assert len(late.records or b"") > 0
