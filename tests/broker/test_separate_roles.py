"""A controller and brokers as nodes of their own; and what becomes of a broker whose event loop is busy, or hangs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from tests.support.ports import free_ports
from tests.support.waiting import wait_until

from millstream import Broker
from millstream.broker import membership
from millstream.broker.storage_format import StorageLayout, format_storage
from millstream.runtime.real import RealPorts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from millstream.metadata.image import Broker as Registered

pytestmark = pytest.mark.slow

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
HEARTBEAT_MS, SESSION_MS, HUNG_MS = 200, 3_000, 6_000


class Cluster:
    """A controller alone, and two brokers alone: each on an event loop in a thread of its own."""

    def __init__(self, directory: Path) -> None:
        (port,) = free_ports(1)
        shared = {
            "controller.quorum.voters": f"9@127.0.0.1:{port}",
            "controller.listener.names": "CONTROLLER",
            "broker.heartbeat.interval.ms": HEARTBEAT_MS,
            "broker.session.timeout.ms": SESSION_MS,
            "default.replication.factor": 2,
        }
        for number in (9, 1, 2):
            layout = StorageLayout.of([str(directory / str(number))])
            format_storage(RealPorts(), layout, cluster_id=CLUSTER_ID, node_id=number, controller_endpoint=None)
        own = {"process.roles": "controller", "node.id": 9, "listeners": f"CONTROLLER://127.0.0.1:{port}"}
        self.controller = Broker(directory / "9", settings=shared | own)
        self.brokers = {
            number: Broker(directory / str(number), settings=shared | {"process.roles": "broker", "node.id": number})
            for number in (1, 2)
        }

    def start(self) -> None:
        self.controller.start()
        for broker in self.brokers.values():
            broker.start()

    def stop(self) -> None:
        for broker in (*self.brokers.values(), self.controller):
            broker.stop()

    def as_registered(self, number: int) -> Registered:
        return self.controller._running.image.brokers[number]

    def hold_loop(self, number: int, seconds: float) -> None:
        """Keep the broker's event loop from everything else for so long."""
        loop = self.brokers[number]._loop
        assert loop is not None
        loop.call_soon_threadsafe(time.sleep, seconds)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(membership, "HUNG_MS", HUNG_MS)
        running = Cluster(tmp_path_factory.mktemp("roles"))
        try:
            running.start()
            yield running
        finally:
            running.stop()


def test_brokers_serve_what_a_controller_of_its_own_decides(cluster: Cluster) -> None:
    for number, broker in cluster.brokers.items():
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        producer.produce(f"through-{number}", b"x")
        assert producer.flush(60) == 0
        topics = cluster.controller._running.image.topics.by_name
        assert sorted(topics[f"through-{number}"].partitions[0].replicas) == [1, 2]
    assert cluster.controller._running.partitions.count == 0


def test_a_busy_loop_keeps_its_session_and_one_that_hangs_loses_it(cluster: Cluster) -> None:
    epoch = cluster.as_registered(2).epoch
    pulse = wait_until(lambda: cluster.brokers[2]._running.membership._pulse, "a first heartbeat", within_s=60)
    sent = pulse.sent  # type: ignore[attr-defined]
    cluster.hold_loop(2, 1.4 * SESSION_MS / 1000)
    wait_until(lambda: pulse.sent >= sent + 3, "heartbeats of the thread", within_s=60)  # type: ignore[attr-defined]
    deadline = time.monotonic() + 1.4 * SESSION_MS / 1000
    while time.monotonic() < deadline:
        assert not cluster.as_registered(2).fenced
        time.sleep(0.05)
    # A loop that shows no life for longer has hung, and the thread falls silent as well.
    cluster.hold_loop(2, (HUNG_MS + 2 * SESSION_MS) / 1000)
    wait_until(lambda: cluster.as_registered(2).fenced, "the fencing of a hung broker", within_s=60)
    wait_until(lambda: not cluster.as_registered(2).fenced, "its return", within_s=60)
    assert cluster.as_registered(2).epoch == epoch
