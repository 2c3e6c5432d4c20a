"""The broker in this process, and the fixtures that come with the package: as a newcomer uses them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from millstream import Broker

if TYPE_CHECKING:
    from collections.abc import Iterator


def send(servers: str, topic: str, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    producer.produce(topic, value)
    assert producer.flush(20) == 0


def first_of(servers: str, topic: str) -> bytes | None:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "reader", "log_level": 0})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        message = consumer.poll(20)
        assert message is not None
        assert message.error() is None
        value: bytes | None = message.value()
        return value
    finally:
        consumer.close()


def test_a_broker_on_a_temporary_directory_leaves_nothing_behind() -> None:
    with Broker() as broker:
        folder = Path(broker.data_dir)
        send(broker.bootstrap_servers, "orders", b"1")
        assert first_of(broker.bootstrap_servers, "orders") == b"1"
        assert folder.is_dir()
    assert not folder.exists()


@pytest.mark.parametrize("as_given", [str, Path])
def test_a_given_directory_keeps_its_records(tmp_path: Path, as_given: type) -> None:
    with Broker(as_given(tmp_path)) as broker:
        send(broker.bootstrap_servers, "orders", b"kept")
        cluster_id = broker.cluster_id
    with Broker(as_given(tmp_path)) as broker:
        assert first_of(broker.bootstrap_servers, "orders") == b"kept"
        assert broker.cluster_id == cluster_id


def test_two_brokers_in_one_process_know_nothing_of_each_other(tmp_path: Path) -> None:
    with Broker(tmp_path) as one, Broker(settings={"num.partitions": 3}) as other:
        send(one.bootstrap_servers, "orders", b"one")
        other.create_topic("orders")
        send(other.bootstrap_servers, "orders", b"other")
        assert first_of(one.bootstrap_servers, "orders") == b"one"
        assert first_of(other.bootstrap_servers, "orders") == b"other"
        with pytest.raises(BlockingIOError), Broker(tmp_path):
            pass


def test_a_broker_runs_on_the_running_loop() -> None:
    async def scenario() -> tuple[bytes, bytes]:
        async with Broker() as broker:
            await broker.add_topic("orders")
            reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
            # ApiVersions v0 with correlation id 7: ten bytes of header, and nothing in it.
            writer.write(bytes.fromhex("0000000a0012000000000007ffff"))
            answer = await reader.readexactly(10)
            writer.close()
            await writer.wait_closed()
            return answer[4:8], answer[8:10]

    assert asyncio.run(scenario()) == (b"\x00\x00\x00\x07", b"\x00\x00")


def test_a_mistake_in_the_settings_is_said_before_anything_starts() -> None:
    with pytest.raises(Exception, match=r"num\.partitions must be at least 1"), Broker(settings={"num.partitions": 0}):
        pass


def test_using_it_before_it_runs_says_how_to_run_it() -> None:
    with pytest.raises(RuntimeError, match="context manager"):
        _ = Broker().bootstrap_servers


@pytest.fixture(scope="module")
def used() -> Iterator[list[tuple[str, str]]]:
    """What each test got, so that they can be compared whatever their order is."""
    got: list[tuple[str, str]] = []
    yield got
    assert len({servers for servers, _ in got}) == 1
    assert len({topic for _, topic in got}) == len(got)


@pytest.mark.parametrize("number", [1, 2])
def test_the_fixtures_share_a_broker_and_give_each_test_a_topic(
    kafka_broker: Broker, kafka_topic: str, used: list[tuple[str, str]], number: int
) -> None:
    send(kafka_broker.bootstrap_servers, kafka_topic, b"%d" % number)
    assert first_of(kafka_broker.bootstrap_servers, kafka_topic) == b"%d" % number
    used.append((kafka_broker.bootstrap_servers, kafka_topic))
