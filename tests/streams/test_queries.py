"""A local copy follows a table's topic and answers from memory; it says how far behind it is."""

from __future__ import annotations

import json
import threading
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from millstream import Broker
from millstream.client.admin import raise_first
from millstream.client.admin.topics import NewTopic, create_partitions, create_topics
from millstream.client.errors import ClientError
from millstream.client.produce import Producer
from millstream.client.sync import SyncClient
from millstream.records.partitioning import partition_for_key
from millstream.streams import STRING_SERDE, StreamsBuilder, Window, Windowed, session, tumbling
from millstream.streams.queries import KeyValueView, SessionView, StoreServer, WindowView, follow_store, follow_table
from millstream.streams.serdes import LONG_SERDE, SessionWindowedSerde, TimeWindowedSerde
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

PARTITIONS = 3


class Cluster:
    """A broker of either kind; topics get names that nobody else uses."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers

    def create_topic(self, name: str, **configs: str) -> str:
        wanted = NewTopic(f"queries-{name}", PARTITIONS, 1, configs={"cleanup.policy": "compact", **configs})
        with SyncClient({"bootstrap.servers": self.bootstrap_servers}) as client:
            raise_first(client.run(create_topics, [wanted]))
        return wanted.name

    def write(self, topic: str, records: list[tuple[bytes, bytes | None]]) -> None:
        with SyncClient({"bootstrap.servers": self.bootstrap_servers}) as client:
            producer = Producer(client.client)
            for key, value in records:
                at = partition_for_key(key, PARTITIONS)
                client.run(lambda _, key=key, value=value, at=at: producer.send(topic, at, [(key, value, (), 0)]))


@pytest.fixture(scope="module", params=["embedded", pytest.param("apache_kafka", marks=pytest.mark.java)])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    if request.param == "embedded":
        with Broker() as broker:
            yield Cluster(broker.bootstrap_servers)
    else:
        yield Cluster(request.getfixturevalue(request.param).bootstrap_servers)


def count(number: int) -> bytes:
    return LONG_SERDE.serialize(number)


def test_a_table_is_asked_by_key_and_by_range(cluster: Cluster) -> None:
    topic = cluster.create_topic("counts")
    cluster.write(topic, [(b"a", count(1)), (b"c", count(3)), (b"a", count(2)), (b"b", count(9)), (b"c", None)])
    with follow_table(cluster.bootstrap_servers, topic, key=str, value=int) as view:
        assert isinstance(view, KeyValueView)
        view.wait_until_current()
        assert view.behind() == 0
        assert (view.get("a"), view.get("b"), view.get("c")) == (2, 9, None)
        assert list(view.all()) == [("a", 2), ("b", 9)]
        assert list(view.range("b", None)) == [("b", 9)]
        assert list(view.range(reverse=True)) == [("b", 9), ("a", 2)]
        assert len(view) == 2


def test_changes_arrive_while_the_view_is_open(cluster: Cluster) -> None:
    topic = cluster.create_topic("following")
    seen: list[tuple[Any, Any]] = []
    arrived = threading.Event()
    with follow_table(cluster.bootstrap_servers, topic, key=str, value=int) as view:
        assert isinstance(view, KeyValueView)
        view.on_change(lambda key, value: (seen.append((key, value)), arrived.set()))
        cluster.write(topic, [(b"a", count(1))])
        assert arrived.wait(30)
        cluster.write(topic, [(b"a", None)])
        wait_until(lambda: view.get("a") is None, "the deletion to arrive", within_s=30)
        assert seen == [("a", 1), ("a", None)]


def test_new_partitions_are_followed(cluster: Cluster) -> None:
    topic = cluster.create_topic("growing")
    options = {"bootstrap.servers": cluster.bootstrap_servers, "metadata.max.age.ms": "100"}
    with follow_table(options, topic, key=str, value=int) as view, SyncClient(options) as client:
        assert isinstance(view, KeyValueView)
        raise_first(client.run(create_partitions, {topic: PARTITIONS + 1}))

        def written() -> bool:
            # A broker takes a moment to lead what it was just given.
            producer = Producer(client.client)
            try:
                client.run(lambda _: producer.send(topic, PARTITIONS, [(b"new", count(1), (), 0)]))
            except ClientError:
                return False
            return True

        wait_until(written, "the new partition to take records", within_s=30)
        wait_until(lambda: view.get("new") == 1, "the record of the new partition to arrive", within_s=30)


def test_windows_and_sessions_are_asked_by_key_and_time(cluster: Cluster) -> None:
    windows, sessions = TimeWindowedSerde(STRING_SERDE, 10), SessionWindowedSerde(STRING_SERDE)
    topic = cluster.create_topic("windows")
    cluster.write(topic, [(windows.serialize(Windowed("a", Window(at, at + 10))), count(at)) for at in (0, 10, 20)])
    with follow_table(cluster.bootstrap_servers, topic, key=windows, value=int) as view:
        assert isinstance(view, WindowView)
        view.wait_until_current()
        assert view.get("a", 10) == 10
        assert view.fetch("a", 5, 20) == [(Window(10, 20), 10), (Window(20, 30), 20)]
        assert view.fetch_all(0, 5) == [(Windowed("a", Window(0, 10)), 0)]
    topic = cluster.create_topic("sessions")
    old, new = (sessions.serialize(Windowed("a", Window(0, end))) for end in (5, 8))
    cluster.write(topic, [(old, count(2)), (old, None), (new, count(3))])
    with follow_table(cluster.bootstrap_servers, topic, key=sessions, value=int) as session_view:
        assert isinstance(session_view, SessionView)
        session_view.wait_until_current()
        assert session_view.fetch("a") == [(Window(0, 8), 3)]


def test_a_store_of_a_topology_is_found_by_its_name(cluster: Cluster) -> None:
    builder = StreamsBuilder(value=str)
    grouped = builder.stream("in").group_by_key()
    grouped.windowed_by(tumbling(10)).count(store="views")
    grouped.windowed_by(session(10)).count(store="visits")
    users_topic = cluster.create_topic("users")
    builder.table(users_topic, store="users")
    rates_topic = cluster.create_topic("rates")
    builder.global_table(rates_topic, store="rates")
    topology = builder.build()
    changelog = cluster.create_topic("shop-views-changelog")
    # Kafka Streams puts a sequence number behind the window's start.
    cluster.write(changelog, [(b"ada" + (20).to_bytes(8) + bytes(4), count(7))])
    cluster.write(users_topic, [(b"u1", b"Ada")])
    cluster.write(rates_topic, [(b"EUR", b"1")])
    with follow_store(cluster.bootstrap_servers, topology, "views", application_id="queries-shop") as views:
        assert isinstance(views, WindowView)
        views.wait_until_current()
        assert views.fetch("ada", 0, 100) == [(Window(20, 30), 7)]
    with follow_store(cluster.bootstrap_servers, topology, "users", application_id="queries-shop") as users:
        assert isinstance(users, KeyValueView)
        users.wait_until_current()
        assert users.get("u1") == "Ada"
    with follow_store(cluster.bootstrap_servers, topology, "rates", application_id="queries-shop") as rates:
        assert isinstance(rates, KeyValueView)
        rates.wait_until_current()
        assert rates.get("EUR") == "1"
    with pytest.raises(KeyError, match="did you mean 'views'"):
        follow_store(cluster.bootstrap_servers, topology, "view", application_id="queries-shop")


def test_stores_are_asked_over_http(cluster: Cluster) -> None:
    windows = TimeWindowedSerde(STRING_SERDE, 10)
    topic = cluster.create_topic("http")
    cluster.write(topic, [(b"a b", count(1)), (b"c", count(3))])
    window_topic = cluster.create_topic("http-windows")
    cluster.write(window_topic, [(windows.serialize(Windowed("a", Window(20, 30))), count(7))])
    with (
        follow_table(cluster.bootstrap_servers, topic, key=str, value=int) as counts,
        follow_table(cluster.bootstrap_servers, window_topic, key=windows, value=int) as views,
        StoreServer({"counts": counts, "views": views}) as server,
    ):
        counts.wait_until_current()
        views.wait_until_current()
        assert get(server, "/stores")["counts"] == {"topic": topic, "rows": 2, "behind": 0}
        assert get(server, "/stores/counts/a%20b") == {"key": "a b", "value": 1}
        assert get(server, "/stores/counts?low=b") == [{"key": "c", "value": 3}]
        assert get(server, "/stores/counts?limit=1") == [{"key": "a b", "value": 1}]
        window = {"key": "a", "window": {"start_ms": 20, "end_ms": 30}, "value": 7}
        assert get(server, "/stores/views/a?from=0&to=20") == [window]
        assert get(server, "/stores/views?from=21") == []
        for path, status in (
            ("/stores/counts/x", 404),
            ("/stores/none", 404),
            ("/", 404),
            ("/stores/views?from=x", 400),
        ):
            with pytest.raises(HTTPError) as refused:
                get(server, path)
            assert refused.value.code == status
            refused.value.close()


def test_a_broker_that_is_away_is_said_over_http() -> None:
    with Broker() as broker:
        broker.create_topic("away")
        options = {"bootstrap.servers": broker.bootstrap_servers, "api.timeout.ms": "200"}
        view = follow_table(options, "away", key=str, value=int)
    with view, StoreServer({"away": view}) as server:
        with pytest.raises(HTTPError) as refused:
            get(server, "/stores")
        assert refused.value.code == 503
        refused.value.close()


def test_changes_are_sent_over_http(cluster: Cluster) -> None:
    topic = cluster.create_topic("http-changes")
    with (
        follow_table(cluster.bootstrap_servers, topic, key=str, value=int) as counts,
        StoreServer({"counts": counts}) as server,
        urlopen(f"{server.address}/stores/counts/-/changes", timeout=30) as events,
    ):
        cluster.write(topic, [(b"a", count(1)), (b"a", None)])
        lines = [line for line in islice(events, 4) if line.strip()]
        assert lines == [b'data: {"key":"a","value":1}\n', b'data: {"key":"a","value":null}\n']


def get(server: StoreServer, path: str) -> Any:
    with urlopen(server.address + path, timeout=30) as answer:
        return json.load(answer)


def test_a_topic_that_is_not_there_is_refused(cluster: Cluster) -> None:
    options = {"bootstrap.servers": cluster.bootstrap_servers, "api.timeout.ms": "500"}
    with pytest.raises(ClientError):
        follow_table(options, "nowhere")
