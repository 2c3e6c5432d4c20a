"""Transactions: what was aborted is not seen, and a write is seen whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from millstream import arrow
from millstream.arrow.writer import begin
from millstream.client.admin.transactions import Transaction as AdminTransaction
from millstream.client.admin.transactions import describe_transactions
from millstream.client.errors import Refusal
from millstream.client.produce import ProducerId, produce
from millstream.client.sync import SyncClient
from millstream.client.transactions import Transaction, add_partitions, end_transaction
from millstream.protocol.errors import ErrorCode
from millstream.records.building import encode_batch
from tests.support.topics import until_settled
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from millstream.client.client import Client


def values(table: pa.Table) -> list[bytes]:
    found: list[bytes] = table.column("value").to_pylist()
    return found


def test_aborted_records_and_markers_are_left_out(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(90)
    for value, commit in (("a", True), ("lost", False), ("b", True), ("gone", False), ("c", True)):
        producer.begin_transaction()
        producer.produce(topic, value, partition=0)
        # An abort throws away what is still in the queue: to be left out, a record must have been written.
        producer.flush(90)
        producer.commit_transaction(90) if commit else producer.abort_transaction(90)
    until_settled(bootstrap, topic)
    assert values(arrow.read(bootstrap, topic)) == [b"a", b"b", b"c"]
    assert values(arrow.read(bootstrap, topic, isolation="read_uncommitted")) == [b"a", b"lost", b"b", b"gone", b"c"]
    # The markers have offsets too: reading ends behind the last of them.
    with arrow.stream(bootstrap, topic, end="latest") as stream:
        assert sum(batch.num_rows for batch in stream) == 3
        assert stream.offsets == {(topic, 0): 10}
    assert values(arrow.read(bootstrap, topic, start=3, end=9)) == [b"b", b"c"]


def test_an_open_transaction_ends_what_is_stable(bootstrap: str, topic: str) -> None:
    arrow.write(bootstrap, topic, pa.table({"value": [b"before"]}))
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(90)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    producer.flush(90)
    assert values(arrow.read(bootstrap, topic)) == [b"before"]
    assert values(arrow.read(bootstrap, topic, isolation="read_uncommitted")) == [b"before", b"open"]
    with arrow.stream(bootstrap, topic) as stream:
        assert stream.schema == arrow.SCHEMA
        assert next(stream).num_rows == 1
        producer.commit_transaction(90)
        assert next(stream).column("value").to_pylist() == [b"open"]


def test_a_transactional_write_is_seen_whole(bootstrap: str, make_topic: Callable[..., str]) -> None:
    topic = make_topic(3)
    numbers = [b"%d" % index for index in range(1000)]
    table = pa.table({"key": numbers, "value": numbers})
    for _ in range(2):
        written = arrow.write(bootstrap, topic, table, transactional_id=topic)
        assert sum(each.records for each in written.values()) == 1000
    until_settled(bootstrap, topic)
    assert sorted(values(arrow.read(bootstrap, topic))) == sorted(numbers * 2)


def test_a_transactional_write_that_fails_leaves_nothing(bootstrap: str, topic: str) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"value": [b"half"]})
        raise RuntimeError("the source is gone")

    for transactional_id in (topic, None):
        with pytest.raises(RuntimeError, match="the source is gone"):
            arrow.write(bootstrap, topic, broken(), transactional_id=transactional_id)
    until_settled(bootstrap, topic)
    # Outside of a transaction what was written before stays.
    assert values(arrow.read(bootstrap, topic)) == [b"half"]
    assert values(arrow.read(bootstrap, topic, isolation="read_uncommitted")) == [b"half", b"half"]


def test_nothing_to_write_is_no_transaction(bootstrap: str, topic: str) -> None:
    assert arrow.write(bootstrap, topic, [], transactional_id=topic) == {}
    arrow.write(bootstrap, topic, pa.table({"value": [b"a"]}), transactional_id=topic)
    until_settled(bootstrap, topic)
    assert values(arrow.read(bootstrap, topic)) == [b"a"]


def test_a_transaction_wants_all_acknowledgements(bootstrap: str, topic: str) -> None:
    with pytest.raises(ValueError, match="acks='all'"):
        arrow.write(bootstrap, topic, [], transactional_id=topic, acks=1)


def test_offsets_are_committed_with_what_was_made_of_them(bootstrap: str, make_topic: Callable[..., str]) -> None:
    source, target = make_topic(2, "-source"), make_topic(2, "-target")
    numbers = [b"%03d" % index for index in range(500)]
    arrow.write(bootstrap, source, pa.table({"key": numbers, "value": numbers}))
    group = arrow.Group(source)

    def copy(*, fail: bool) -> None:
        with arrow.stream(bootstrap, source, start=group, end="latest") as stream:

            def batches() -> Iterator[pa.RecordBatch]:
                yield from stream
                if fail:
                    raise RuntimeError("on the way")

            commit = arrow.Commit(source, stream.offsets)
            arrow.write(bootstrap, target, batches(), transactional_id=target, commit=commit)

    with pytest.raises(RuntimeError):
        copy(fail=True)
    assert arrow.committed(bootstrap, source) == {}
    assert values(arrow.read(bootstrap, target)) == []
    copy(fail=False)
    copy(fail=False)
    until_settled(bootstrap, target)
    assert sorted(values(arrow.read(bootstrap, target))) == numbers
    # The group's part of the commit has a marker of its own.
    wait_until(lambda: sum(arrow.committed(bootstrap, source).values()) == len(numbers), "the offsets", within_s=60)


def test_a_newer_producer_fences_the_older(bootstrap: str, topic: str) -> None:
    def overtaken() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"value": [b"old"]})
        arrow.write(bootstrap, topic, pa.table({"value": [b"new"]}), transactional_id=topic)
        yield pa.record_batch({"value": [b"old"]})

    with pytest.raises(Refusal) as caught:
        arrow.write(bootstrap, topic, overtaken(), transactional_id=topic)
    assert caught.value.code in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)
    until_settled(bootstrap, topic)
    assert values(arrow.read(bootstrap, topic)) == [b"new"]


@pytest.mark.parametrize("implicit", [True, False], ids=["implicit", "explicit"])
def test_the_steps_of_a_transaction_work_in_the_old_way_and_the_new(
    bootstrap: str, topic: str, *, implicit: bool
) -> None:
    def batch(producer: ProducerId, value: bytes) -> dict[tuple[str, int], Any]:
        encoded = encode_batch(
            [(None, value, (), 0)],
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            base_sequence=0,
            transactional=True,
        )
        return {(topic, 0): encoded}

    async def one(client: Client, value: bytes, *, commit: bool) -> None:
        begun = await begin(client, topic)
        transaction = Transaction(begun.id, begun.producer, implicit)
        if not implicit:
            await add_partitions(client, transaction, [(topic, 0)])
        version = transaction.produce_version_max
        await produce(client, batch(transaction.producer, value), transactional_id=transaction.id, version_max=version)
        after = await end_transaction(client, transaction, commit=commit)
        assert (after == transaction.producer) is not implicit

    with SyncClient({"bootstrap.servers": bootstrap}) as client:
        client.run(one, b"seen", commit=True)
        client.run(one, b"unseen", commit=False)
        client.run(one, b"seen too", commit=True)
    until_settled(bootstrap, topic)
    assert values(arrow.read(bootstrap, topic)) == [b"seen", b"seen too"]


def described(bootstrap: str, transactional_id: str) -> AdminTransaction:
    with SyncClient({"bootstrap.servers": bootstrap}) as client:
        found = client.run(describe_transactions, [transactional_id])[transactional_id]
    assert isinstance(found, AdminTransaction)
    return found


def test_transaction_timeout_ms_is_honoured(bootstrap: str, topic: str) -> None:
    timeouts: list[int] = []

    def looking() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"value": [b"a"]})
        timeouts.append(described(bootstrap, topic).timeout_ms)

    arrow.write(
        {"bootstrap.servers": bootstrap, "transaction.timeout.ms": 456_789}, topic, looking(), transactional_id=topic
    )
    arrow.write(bootstrap, topic, looking(), transactional_id=topic)
    assert timeouts == [456_789, 60_000]
    with pytest.raises(Refusal, match=r"longer than the broker allows \(transaction.max.timeout.ms\)"):
        arrow.write(
            {"bootstrap.servers": bootstrap, "transaction.timeout.ms": 1 << 30}, topic, [], transactional_id=topic
        )


@pytest.mark.slow  # coordinators look for transactions that took too long every ten seconds
def test_a_transaction_that_took_too_long_says_so(bootstrap: str, topic: str) -> None:
    def slow() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"value": [b"a"] * 10})
        wait_until(lambda: described(bootstrap, topic).state == "CompleteAbort", "the abort", within_s=120)
        yield pa.record_batch({"value": [b"b"] * 10})

    options = {"bootstrap.servers": bootstrap, "transaction.timeout.ms": "1000"}
    with pytest.raises(Refusal, match=r"has started, or the transaction took longer than its timeout"):
        arrow.write(options, topic, slow(), transactional_id=topic)
    until_settled(bootstrap, topic)
    assert values(arrow.read(bootstrap, topic)) == []
