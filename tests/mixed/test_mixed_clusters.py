"""A broker of Apache Kafka with a controller of Millstream, and the other way around: what they say to each other.

docs/mixed-clusters.md reports what was captured here: these exchanges, in these versions. Everything else that was
tried is in steps.py and voters.py, for `python -m tests.mixed`; voters of both kinds and three brokers have tests of
their own (tests/broker/test_quorum_with_apache_kafka.py, test_replica_with_apache_kafka.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.broker.membership import PULSE_VERSION
from millstream.client.sync import SyncClient
from tests.mixed import steps
from tests.mixed.nodes import KAFKA, MILLSTREAM, two_kinds
from tests.mixed.recorder import Recorder
from tests.mixed.telling import errors_of
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.mixed.recorder import Exchange

pytestmark = pytest.mark.java

TO_CONTROLLER = {
    "BrokerRegistration": 4,
    "BrokerHeartbeat": 2,
    "Fetch": 18,
    "AssignReplicasToDirs": 0,
}
# Followers of ours have no use for what version 18 adds.
REPLICA_FETCH = {KAFKA: 18, MILLSTREAM: 17}


@pytest.mark.parametrize("controller", [MILLSTREAM, KAFKA])
def test_the_two_kinds_say_what_the_report_says(controller: str, tmp_path: Path) -> None:
    other = KAFKA if controller == MILLSTREAM else MILLSTREAM

    def said(api: str, asker: str, asked: str) -> list[Exchange]:
        return [each for each in recorder.of(api, asker=asker, asked=asked) if not errors_of(each.answer())]

    with Recorder() as recorder:
        cluster = two_kinds(controller, tmp_path, recorder)
        try:
            cluster.start_in_turn()
            with SyncClient({"bootstrap.servers": cluster.bootstrap_servers}) as client:
                scene = steps.Scene(cluster, client)
                for step in (steps.registration, steps.replication, steps.transactions):
                    step(scene)
            for api in TO_CONTROLLER:
                wait_until(lambda: said(api, f"{other} 2", "controller"), f"an answer to {api}", within_s=60)  # noqa: B023
            cluster.nodes[2].stop()
        finally:
            cluster.kill()

    for api, version in TO_CONTROLLER.items():
        found = said(api, f"{other} 2", f"{controller} 1 controller")
        assert found, f"no {api} of the {other} broker was answered without an error"
        # A thread of ours repeats the heartbeats of a loop that is busy, in a version that every controller knows.
        others = {PULSE_VERSION} if api == "BrokerHeartbeat" and other == MILLSTREAM else set()
        assert {each.version for each in found} - others == {version}, api
    for asker, asked in ((f"{other} 2", f"{controller} 1 broker"), (f"{controller} 1", f"{other} 2 broker")):
        kind = asker.split()[0]
        assert {each.version for each in said("Fetch", asker, asked)} == {REPLICA_FETCH[kind]}
    registered = said("BrokerRegistration", f"{other} 2", "controller")[0]
    assert registered.answer().broker_epoch > 0
    assert len(registered.question().log_dirs) == 2
    leaving = said("BrokerHeartbeat", f"{other} 2", "controller")[-1]
    assert leaving.question().want_shut_down
    assert leaving.answer().should_shut_down
