"""Groups, offsets and transactions move between Millstream and Apache Kafka with the directory, open ones included.

Whoever is started next must say exactly what the one before said of every group, member, offset, transaction and
producer, and let each member and producer go on: heartbeats with the same generation, a commit of a transaction that
was begun elsewhere. After clean stops and after kill -9. Apache Kafka's own reader understands every stored record.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Literal

import pytest

from millstream.protocol.messages.delete_groups import DeleteGroupsRequest
from tests.kafka_directory.coordinated import (
    ClassicMember,
    NewMember,
    TransactionalProducer,
    commit_offsets,
    find_coordinators,
    heard,
)
from tests.kafka_directory.state import state_of
from tests.kafka_directory.test_take_over import apache_kafka_on, end
from tests.support.apache_kafka import ApacheKafka, dump_log_segments
from tests.support.millstream_process import MillstreamProcess
from tests.support.ports import free_ports
from tests.support.raw import RawClient
from tests.support.topics import create_topics, read_committed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.running import RunningBroker

pytestmark = [pytest.mark.java, pytest.mark.slow]

TOPIC = "orders.placed"
PARTITIONS = 3
# After a kill Apache Kafka lets nobody register until the session of the broker before is over.
IMPATIENT = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "500"}
Turn = Literal["millstream", "apache-kafka"]
TURNS: dict[Turn, tuple[Turn, ...]] = {
    "millstream": ("millstream", "apache-kafka", "millstream"),
    "apache-kafka": ("apache-kafka", "millstream", "apache-kafka"),
}


GROUPS = ("classic", "classic-static", "workers", "new", "new-by-pattern", "only-offsets", "exactly-once", "gone")
TRANSACTIONS = ("ended", "open", "lost", "racing")


def known_to(client: RawClient) -> dict[str, object]:
    return state_of(client, TOPIC, PARTITIONS, groups_known=GROUPS, transactions_known=TRANSACTIONS)


class Cast:
    """Everybody who works with one broker after the other, and what they have committed so far."""

    def __init__(self) -> None:
        self.classic = ClassicMember("classic", TOPIC)
        self.static = ClassicMember("classic-static", TOPIC, instance_id="the-one")
        self.connect = ClassicMember("workers", TOPIC, protocol_type="connect")
        self.new = NewMember("new", "bmV3LW1lbWJlci1vZi1hbGw", subscribed_topic_names=[TOPIC], server_assignor="range")
        self.pattern = NewMember("new-by-pattern", "bWVtYmVyLWJ5LXBhdHRlcm4", subscribed_topic_regex="orders\\..*")
        self.ended = TransactionalProducer("ended", TOPIC)
        self.open = TransactionalProducer("open", TOPIC)
        self.lost = TransactionalProducer("lost", TOPIC)
        self.racing = TransactionalProducer("racing", TOPIC)
        self.committed: list[str] = []
        self._open_values: list[str] = []

    def arrive(self, client: RawClient) -> None:
        """The first broker meets them."""
        find_coordinators(client)
        commit_offsets(client, "gone", TOPIC, {0: 1})
        heard(
            lambda: client.call(DeleteGroupsRequest(groups_names=["gone"]), 2),
            lambda answer: answer.results[0].error_code,
        )
        for member in (self.classic, self.static, self.connect, self.new, self.pattern):
            member.join(client)
        for producer in (self.ended, self.open, self.lost, self.racing):
            producer.init(client)

    def go_on(self, client: RawClient) -> None:
        """A later broker lets everybody do the next step from where they were."""
        for member in (self.classic, self.static, self.connect, self.new, self.pattern):
            member.heartbeat(client)
        self.open.write(client, 1, "said to another broker")
        self.open.end(client, commit=True)
        self.committed += [*self._open_values, "said to another broker"]
        before = (self.lost.producer_id, self.lost.epoch)
        self.lost.init(client)
        assert self.lost.producer_id == before[0]
        assert self.lost.epoch > before[1]
        self.classic.join(client)

    def work(self, client: RawClient, turn: int) -> None:
        """Commit offsets of all kinds, end some transactions, leave others open."""
        offsets = {partition: 10 * turn + partition for partition in range(PARTITIONS)}
        commit_offsets(client, "only-offsets", TOPIC, offsets)
        for member in (self.classic, self.static):
            member.commit(client, offsets)
        self.new.commit(client, TOPIC, offsets)
        for commit in (True, False):
            values = [f"{turn}: {'yes' if commit else 'no'} {number}" for number in range(3)]
            for partition, value in enumerate(values):
                self.ended.write(client, partition, value)
            self.ended.commit_offset(client, "exactly-once", 0, 100 * turn + commit)
            self.ended.end(client, commit=commit)
            self.committed += values if commit else []
        self._open_values = [f"{turn}: open {number}" for number in range(2)]
        self.open.write(client, 0, self._open_values[0])
        self.open.write(client, 1, self._open_values[1])
        self.open.commit_offset(client, "exactly-once", 1, 100 * turn)
        self.lost.write(client, 2, f"{turn}: lost")

    def race(self, client: RawClient, turn: int) -> None:
        """A commit whose markers the broker may not live to write."""
        values = [f"{turn}: race {number}" for number in range(PARTITIONS)]
        for partition, value in enumerate(values):
            self.racing.write(client, partition, value)
        self.racing.end(client, commit=True)
        self.committed += values


def stored(data: Path, topic: str, decoder: str) -> list[tuple[dict[str, object], object]]:
    """Every record of an internal topic as Apache Kafka's reader prints it: key and value, None for a tombstone."""
    segments = sorted(data.glob(f"{topic}-*/*.log"))
    done = dump_log_segments(segments, "--deep-iteration", decoder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Dumping ") == len(segments)
    for complaint in ("isvalid: false", "ismatches", "out of order", "Error", "failed"):
        assert complaint not in done.stdout, done.stdout
    found = re.findall(r"^\| offset: .* key: (\{.*\}) payload: (.*)$", done.stdout, re.MULTILINE)
    return [(json.loads(key), None if value in ("", "<DELETE>") else json.loads(value)) for key, value in found]


def the_dump_tool_reads_all(data: Path) -> None:
    offsets = stored(data, "__consumer_offsets", "--offsets-decoder")
    text = json.dumps(offsets)
    for group in GROUPS:
        assert f'"{group}"' in text, text
    kinds = {key["type"] for key, _ in offsets}
    # Offsets, classic groups, and the six records of a group by KIP-848 (the fourth of old is no longer written).
    assert {"1", "2", "3", "5", "6", "7", "8", "16"} <= {str(kind) for kind in kinds}, kinds
    transactions = stored(data, "__transaction_state", "--transaction-log-decoder")
    assert set(TRANSACTIONS) <= {key["data"]["transactionalId"] for key, _ in transactions}  # type: ignore[index]


@pytest.mark.parametrize("how", ["stop", "kill"])
@pytest.mark.parametrize("first", list(TURNS))
def test_groups_and_transactions_go_on_with_the_next_broker(tmp_path: Path, first: Turn, how: str) -> None:
    data = tmp_path / "data"
    (controller,) = free_ports(1)
    settings = {
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "offsets.topic.num.partitions": "5",
        "transaction.state.log.num.partitions": "3",
        "group.initial.rebalance.delay.ms": "0",
    }
    millstream = MillstreamProcess(tmp_path / "millstream", data_directory=data, settings=settings)
    kafka: ApacheKafka | None = None
    if first == "apache-kafka":
        kafka = ApacheKafka(tmp_path / "kafka", data_directory=data, properties=IMPATIENT)
        kafka.format()
    cast = Cast()
    before: dict[str, object] = {}
    try:
        for number, turn in enumerate(TURNS[first]):
            if turn == "apache-kafka" and kafka is None:
                kafka = apache_kafka_on(millstream, tmp_path / "kafka", "static", **IMPATIENT)
            broker: RunningBroker = millstream if turn == "millstream" or kafka is None else kafka
            broker.start()
            if number == 0:
                create_topics(broker, TOPIC, partitions=PARTITIONS)
            with RawClient.of(broker) as client:
                if number == 0:
                    cast.arrive(client)
                else:
                    after = known_to(client)
                    for what, said in before.items():
                        assert after[what] == said, f"{turn} says other {what} than the broker before"
                    cast.go_on(client)
                    found = [(seen.value or b"").decode() for seen in read_committed(broker, TOPIC, PARTITIONS)]
                    assert sorted(found) == sorted(cast.committed)
                cast.work(client, number)
                before = known_to(client)
                if how == "kill" and number == 1:
                    # What the next one says then depends on how far this one came; that all ends well does not.
                    cast.race(client, number)
                    before = {}
                end(broker, how)
            the_dump_tool_reads_all(data)
    finally:
        millstream.kill()
        if kafka is not None:
            kafka.kill()
