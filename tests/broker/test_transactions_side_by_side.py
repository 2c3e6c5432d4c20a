"""Transactions of many producers at one leader whose coordinators are on other brokers: nobody gets another's bytes.

A batch that has to wait for the coordinator's word outlives the turn of the loop in which it was read, and all
connections are read into the same memory.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from tests.support.batches import Record, batch_of

from millstream import Cluster, arrow
from millstream.broker.handlers import produce
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

if TYPE_CHECKING:
    from collections.abc import Iterator

PRODUCERS = 8
TRANSACTIONS = 25
PATIENCE_S = 90


class Question:
    """One that the coordinator has not answered yet."""

    is_settled = False

    def ask(self) -> None: ...

    async def wait(self) -> None: ...

    def is_about(self, _place: tuple[str, int]) -> bool:
        return True

    def refusals(self) -> dict[Any, Any]:
        return {}


def test_a_batch_that_waits_is_its_own_before_another_connection_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = bytes(batch_of(Record(b"mine")))
    scratch = bytearray(batch)
    data = PartitionProduceData(index=0, records=memoryview(scratch))
    request = ProduceRequest(
        transactional_id="id", acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=[data])]
    )
    ctx: Any = SimpleNamespace(broker=None, version=12, allows=lambda *_: True)
    monkeypatch.setattr(produce, "_transactional_batches", lambda *_: [SimpleNamespace(place=("t", 0))])
    monkeypatch.setattr(produce, "check_batches", lambda *_: ({}, Question()))
    monkeypatch.setattr(produce, "_append_all", lambda *_: bytes(data.records))
    waiting: Any = produce.produce(request, ctx)
    # The coroutine begins in a later turn of the loop; before it, the loop reads whoever else has sent something.
    scratch[:] = bytes(len(scratch))
    assert asyncio.run(waiting) == batch


def test_a_transaction_that_ended_while_others_were_asked_for_takes_nothing_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Partition 0 had records of it, so only partition 1 is asked for; meanwhile it is aborted in both."""
    asked, known = ("t", 1), SimpleNamespace(place=("t", 0), is_of_ongoing=True)

    class Slow(Question):
        def is_about(self, place: tuple[str, int]) -> bool:
            return place == asked

        async def wait(self) -> None:
            known.is_of_ongoing = False

        def refusals(self) -> dict[Any, Any]:
            return {asked: ErrorCode.NOT_ENOUGH_REPLICAS}

    batches = [known, SimpleNamespace(place=asked, is_of_ongoing=False)]
    monkeypatch.setattr(produce, "_transactional_batches", lambda *_: batches)
    monkeypatch.setattr(produce, "check_batches", lambda *_: ({}, Slow()))
    monkeypatch.setattr(produce, "_append_all", lambda _request, _ctx, refused: refused)
    ctx: Any = SimpleNamespace(broker=None, version=10, allows=lambda *_: True)
    request = ProduceRequest(transactional_id="id", acks=-1, timeout_ms=1000, topic_data=[])
    waiting: Any = produce.produce(request, ctx)
    assert asyncio.run(waiting) == {("t", 0): ErrorCode.INVALID_TXN_STATE, asked: ErrorCode.NOT_ENOUGH_REPLICAS}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    settings = {"transaction.state.log.num.partitions": 3, "offsets.topic.num.partitions": 3}
    with Cluster(3, settings=settings) as running:
        yield running


def transact(servers: str, topic: str) -> list[str]:
    """What one producer committed, a record in each transaction."""
    made = Producer({"bootstrap.servers": servers, "transactional.id": topic, "linger.ms": 0, "log_level": 0})
    made.init_transactions(PATIENCE_S)
    values = [f"{topic}:{number}" for number in range(TRANSACTIONS)]
    for value in values:
        made.begin_transaction()
        made.produce(topic, value.encode())
        made.commit_transaction(PATIENCE_S)
    return values


@pytest.mark.clients
def test_every_topic_has_what_its_producer_committed_and_nothing_else(cluster: Cluster) -> None:
    servers = cluster.bootstrap_servers
    topics = [cluster.create_topic(f"side-by-side-{number}") for number in range(PRODUCERS)]
    with ThreadPoolExecutor(PRODUCERS) as pool:
        committed = dict(zip(topics, pool.map(lambda topic: transact(servers, topic), topics), strict=True))
    for topic, values in committed.items():
        found = arrow.read(servers, topic, columns=["value"], isolation="read_committed")["value"].to_pylist()
        assert [value.decode() for value in found] == values
