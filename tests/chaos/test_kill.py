"""The broker is killed with -9 again and again while writers, exactly-once copiers and readers go on: no anomaly.

The same run on Apache Kafka (with clean restarts, which take it long enough) must raise no alarm either, or the checker
would be the one that errs.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.chaos.workload import INPUT, OUTPUT, PARTITIONS, Workload, judged
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from tests.support.apache_kafka import ApacheKafka
    from tests.support.millstream_process import MillstreamProcess

pytestmark = [pytest.mark.slow, pytest.mark.clients]

KILLS = int(os.environ.get("MILLSTREAM_KILLS", "12"))


def create_topics(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    made = admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in (INPUT, OUTPUT)])
    for future in made.values():
        future.result(90)


def progress(workload: Workload, *, acked: int, copied: int) -> None:
    """Wait until that much more was written and copied."""
    acked += workload.acked
    copied += workload.copied
    wait_until(
        lambda: workload.acked >= acked and workload.copied >= copied,
        f"{acked} written and {copied} copied (there are {workload.acked} and {workload.copied})",
        within_s=240,
    )


def test_nothing_is_lost_doubled_or_torn_over_a_dozen_kills(own_broker: MillstreamProcess | ApacheKafka) -> None:
    create_topics(own_broker.bootstrap_servers)
    workload = Workload(own_broker.bootstrap_servers)
    workload.start()
    try:
        progress(workload, acked=200, copied=100)
        if own_broker.name == "apache-kafka":
            # It needs half a minute to come back, and its clients' patience: one clean restart shows enough.
            own_broker.stop()
            own_broker.start()
            progress(workload, acked=100, copied=50)
            return
        for _ in range(KILLS):
            own_broker.kill()
            own_broker.start()
            progress(workload, acked=100, copied=50)
    finally:
        judged(workload)
