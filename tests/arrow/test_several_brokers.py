"""A topic that is spread over several brokers: each of them gets one request for all that it leads, not one each.

The brokers are Millstream's, embedded: what is looked at are the requests that leave the client, which are the same
for any broker. Several brokers of Apache Kafka are in test_moving.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pytest

from millstream import Cluster, arrow
from millstream.client.connection import Connection
from millstream.protocol.messages.fetch import FetchRequest
from millstream.protocol.messages.list_offsets import ListOffsetsRequest
from millstream.protocol.messages.produce import ProduceRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

BROKERS = 3
PARTITIONS = 9
ROWS = 900


class Asked(NamedTuple):
    """A request: to whom, and about which partitions."""

    port: int
    partitions: tuple[int, ...]


class Wiretap:
    """Every request that clients of this process send, by its kind."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._seen: dict[type, list[Asked]] = {}
        exchange = Connection.exchange

        async def heard(connection: Connection, request: Any, version: int, timeout_ms: int) -> bytearray:
            asked = Asked(connection.address.port, _partitions_in(request))
            self._seen.setdefault(type(request), []).append(asked)
            return await exchange(connection, request, version, timeout_ms)

        monkeypatch.setattr(Connection, "exchange", heard)

    def taken(self, kind: type) -> list[Asked]:
        """What was asked since the last time, in the brokers' order."""
        return sorted(self._seen.pop(kind, []))


def _partitions_in(request: Any) -> tuple[int, ...]:
    match request:
        case ProduceRequest(topic_data=topics):
            found = [each.index for topic in topics for each in topic.partition_data]
        case FetchRequest(topics=topics):
            found = [each.partition for topic in topics for each in topic.partitions]
        case ListOffsetsRequest(topics=topics):
            found = [each.partition_index for topic in topics for each in topic.partitions]
        case _:
            found = []
    return tuple(sorted(found))


@pytest.fixture(scope="module")
def brokers() -> Iterator[Cluster]:
    with Cluster(brokers=BROKERS, settings={"offsets.topic.num.partitions": 4}) as cluster:
        yield cluster


@pytest.fixture
def led(brokers: Cluster, fresh_name: str) -> list[Asked]:
    """What each broker leads of a topic of this test's name, which has its rows: so all leaders are at work."""
    brokers.create_topic(fresh_name, partitions=PARTITIONS)
    arrow.write(brokers.bootstrap_servers, fresh_name, rows())
    ports = [int(address.rpartition(":")[2]) for address in brokers.bootstrap_servers.split(",")]
    places: dict[int, list[int]] = {}
    for index in range(PARTITIONS):
        places.setdefault(brokers.leader_of(fresh_name, index), []).append(index)
    assert len(places) == BROKERS, "a broker leads nothing"
    assert max(map(len, places.values())) > 1, "no broker leads two"
    return sorted(Asked(ports[broker - 1], tuple(indexes)) for broker, indexes in places.items())


def rows() -> pa.Table:
    numbers = [b"%05d" % number for number in range(ROWS)]
    return pa.table({"key": numbers, "value": numbers})


def test_a_table_is_written_with_one_request_to_each_broker(
    brokers: Cluster, led: list[Asked], fresh_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wiretap = Wiretap(monkeypatch)
    written = arrow.write(brokers.bootstrap_servers, fresh_name, rows())
    assert sum(each.records for each in written.values()) == ROWS
    assert wiretap.taken(ProduceRequest) == led


def test_a_table_is_read_with_one_request_to_each_broker(
    brokers: Cluster, led: list[Asked], fresh_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wiretap = Wiretap(monkeypatch)
    table = arrow.read(brokers.bootstrap_servers, fresh_name)
    assert sorted(table["value"].to_pylist()) == sorted(rows()["value"].to_pylist())
    assert wiretap.taken(FetchRequest) == led
    # Where the partitions begin and end is asked in several questions, each of them to each broker once.
    questions = wiretap.taken(ListOffsetsRequest)
    assert questions == sorted(led * (len(questions) // BROKERS))
