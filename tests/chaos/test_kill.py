"""The broker is killed with -9 again and again while writers, exactly-once copiers and readers go on: no anomaly.

The same run on Apache Kafka raises no alarm either, or the checker would be the one that errs. Each run also shows that
the checker had something to judge: its rules are fed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.chaos.workload import Workload, create_topics, judged, must_be_fed, progress, until_compacted
from tests.support.apache_kafka import ApacheKafka
from tests.support.millstream_process import MillstreamProcess

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.clients]

KILLS = int(os.environ.get("MILLSTREAM_KILLS", "12"))
# Apache Kafka needs seconds for each start, and clients some more: every tenth will do.
APACHE_KILLS = max(KILLS // 10, 1)
# Compaction and the end of a dead broker's session are waited for: both come soon.
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "log.cleaner.backoff.ms": "3000",
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}


def must_hold(broker: MillstreamProcess | ApacheKafka, *, kills: int, clean_restarts: int) -> None:
    """Clients work while the broker is killed and restarted so many times; then the history is judged."""
    # With one replica no follower can miss a tombstone, so these may go soon.
    create_topics(broker.bootstrap_servers, delete_retention_ms="1000")
    workload = Workload(broker.bootstrap_servers)
    workload.start()
    try:
        progress(workload, acked=200, copied=100, exchanged=5)
        for number in range(kills + clean_restarts):
            if number < kills:
                broker.kill()
            else:
                broker.stop()
            broker.start()
            progress(workload, acked=100, copied=50, exchanged=2)
        until_compacted(broker.bootstrap_servers)
    finally:
        history = judged(workload)
    must_be_fed(history)


def test_nothing_is_lost_doubled_or_torn_over_a_dozen_kills(tmp_path: Path) -> None:
    with MillstreamProcess(tmp_path, settings=SETTINGS, controller_listener=True) as broker:
        broker.start()
        must_hold(broker, kills=KILLS, clean_restarts=1)


@pytest.mark.java
def test_the_checker_raises_no_alarm_on_apache_kafka_under_kills_and_restarts(tmp_path: Path) -> None:
    with ApacheKafka(tmp_path, properties=SETTINGS) as broker:
        broker.format()
        broker.start()
        must_hold(broker, kills=APACHE_KILLS, clean_restarts=1)
