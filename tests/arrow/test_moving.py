"""Brokers that go away and come back, and partitions that get another leader, while tables are read and written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from millstream import arrow
from millstream.client.admin import raise_first
from millstream.client.admin.partitions import alter_reassignments
from millstream.client.admin.topics import DescribedTopic, NewTopic, create_topics, describe_topics
from millstream.client.errors import Refusal
from millstream.client.sync import SyncClient
from millstream.protocol.errors import ErrorCode
from tests.support.apache_kafka import ApacheKafka
from tests.support.own_broker import own_broker_of
from tests.support.ports import free_ports
from tests.support.topics import until_led
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from millstream.client.client import Client
    from tests.support.millstream_process import MillstreamProcess

NUMBERS = [b"%05d" % index for index in range(2000)]


@pytest.fixture(params=["millstream", pytest.param("apache-kafka", marks=pytest.mark.java)])
def restarting(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ApacheKafka | MillstreamProcess]:
    with own_broker_of(request.param, tmp_path) as made:
        yield made


def pieces(values: list[bytes], size: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(values), size):
        part = values[start : start + size]
        yield pa.record_batch({"key": part, "value": part})


@pytest.mark.slow
def test_a_killed_broker_that_comes_back_costs_no_row_and_doubles_none(
    restarting: ApacheKafka | MillstreamProcess, fresh_name: str
) -> None:
    bootstrap = restarting.bootstrap_servers
    with SyncClient({"bootstrap.servers": bootstrap}) as client:
        raise_first(client.run(create_topics, [NewTopic(fresh_name, 3, 1)]))
    until_led(bootstrap, fresh_name, 3)

    def with_accidents() -> Iterator[pa.RecordBatch]:
        for index, piece in enumerate(pieces(NUMBERS, 100)):
            yield piece
            if index in (5, 12):
                # The batches of this piece may be under way at this moment.
                restarting.kill()
                restarting.start()

    seen: list[bytes] = []
    with arrow.stream(bootstrap, fresh_name) as stream:
        arrow.write(bootstrap, fresh_name, with_accidents())
        for batch in stream:
            seen += batch.column("value").to_pylist()
            if len(seen) >= len(NUMBERS):
                break
    assert sorted(seen) == NUMBERS
    table = arrow.read(bootstrap, fresh_name).sort_by([("partition", "ascending"), ("offset", "ascending")])
    for index in range(3):
        part = [row["value"] for row in table.to_pylist() if row["partition"] == index]
        assert part == sorted(part)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[str]:
    """Two brokers of Apache Kafka, named 1 and 2."""
    ports = free_ports(4)
    controllers = {1: ports[2], 2: ports[3]}
    voters = ",".join(f"{node}@127.0.0.1:{port}" for node, port in controllers.items())
    nodes = [
        ApacheKafka(
            tmp_path / str(node),
            node_id=node,
            properties={
                "listeners": f"BROKER://127.0.0.1:{ports[node - 1]},CONTROLLER://127.0.0.1:{controllers[node]}",
                "controller.quorum.voters": voters,
            },
        )
        for node in (1, 2)
    ]
    with nodes[0], nodes[1]:
        for each in nodes:
            each.format()
        nodes[0].launch()
        # Neither comes up without the other: together they are the quorum.
        nodes[1].start()
        yield ",".join(each.bootstrap_servers for each in nodes)


@pytest.mark.java
@pytest.mark.slow
def test_a_leader_that_moves_is_followed(pair: str, fresh_name: str) -> None:
    places = [(fresh_name, index) for index in range(2)]

    async def leaders(client: Client) -> list[int]:
        described = await describe_topics(client, [fresh_name])
        topic = described[fresh_name]
        # Whoever is asked may not have heard of it yet.
        return [part.leader_id for part in topic.partitions] if isinstance(topic, DescribedTopic) else []

    with SyncClient({"bootstrap.servers": pair}) as client:

        def created() -> bool:
            """Once both have registered: they answer before."""
            outcome = client.run(create_topics, [NewTopic(fresh_name, assignments={0: [1], 1: [1]})])[fresh_name]
            return not isinstance(outcome, Refusal) or outcome.code is ErrorCode.TOPIC_ALREADY_EXISTS

        wait_until(created, "the topic", within_s=120, every_s=0.2)
        wait_until(lambda: client.run(leaders) == [1, 1], "its leader", within_s=120)
        until_led(pair, fresh_name, 2)

        def with_moves() -> Iterator[pa.RecordBatch]:
            for index, piece in enumerate(pieces(NUMBERS, 100)):
                yield piece
                if index in (4, 11):
                    target = 2 if index == 4 else 1
                    raise_first(client.run(alter_reassignments, {place: [target] for place in places}))
                    wait_until(lambda: client.run(leaders) == [target] * 2, f"leader {target}", within_s=120)  # noqa: B023

        seen: list[bytes] = []
        with arrow.stream(pair, fresh_name) as stream:
            arrow.write(pair, fresh_name, with_moves())
            for batch in stream:
                seen += batch.column("value").to_pylist()
                if len(seen) >= len(NUMBERS):
                    break
    assert sorted(seen) == NUMBERS
    assert sorted(arrow.read(pair, fresh_name).column("value").to_pylist()) == NUMBERS
