"""Three nodes on a machine that has no time for them: nobody may be taken for dead who is only waiting for a processor.

Twice as many programs that do nothing but count as there are processors, a producer that sends as much as it can, and
another that keeps a steady pace. The controllers' logs tell who was fenced.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from bench import cluster_nodes, java_clients
from bench.cluster_load import SteadyProducer
from bench.contenders import MILLSTREAM
from bench.rows import Bar, Figures, Row
from bench.throughput import BATCHED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.cluster_nodes import ThreeNodes
    from bench.session import Session

MINUTES = 30
COUNTERS_PER_PROCESSOR = 2
RECORDS_AT_ONCE = 1_000_000


def full_load(session: Session, name: str) -> Figures:
    """How many brokers were fenced, and how many controllers changed, that nobody had touched."""
    cluster = cluster_nodes.shared(session, name)
    deadline = time.monotonic() + session.amount(MINUTES * 60, 20)
    with cluster.topic(partitions=1) as steady:
        fenced, elected = _fencings(cluster), _elections(cluster)
        with _counting(), SteadyProducer(cluster.bootstrap_servers, steady) as producer:
            began = time.perf_counter()
            while time.monotonic() < deadline:
                # A new topic each time: half an hour of records, three times, would fill a small disk.
                with cluster.topic(partitions=6) as topic:
                    java_clients.produce(cluster, topic, count=RECORDS_AT_ONCE, size=100, client_settings=BATCHED)
            longest_gap_s = producer.longest_gap_s(began)
        assert not producer.failures, producer.failures[:3]
        return {
            "fencings": _fencings(cluster) - fenced,
            "elections": _elections(cluster) - elected,
            "longest gap s": longest_gap_s,
        }


@contextlib.contextmanager
def _counting() -> Iterator[None]:
    count = COUNTERS_PER_PROCESSOR * (os.cpu_count() or 1)
    programs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


def _fencings(cluster: ThreeNodes) -> int:
    return _mentions(cluster, "gets fenced")


def _elections(cluster: ThreeNodes) -> int:
    """Of controllers; each node tells of each new one."""
    return _mentions(cluster, "the metadata quorum has a leader")


def _mentions(cluster: ThreeNodes, words: str) -> int:
    logs = [node.data_directory.parent / "broker.log" for node in cluster.nodes.values()]
    return sum(log.read_text(errors="replace").count(words) for log in logs)


ROWS = (
    Row(
        "cluster-busy",
        f"{MINUTES} minutes under full load of all processors: brokers fenced, controllers replaced",
        full_load,
        (Bar("fencings", "brokers", at_most=0), Bar("elections", "controllers", at_most=0)),
        rounds=1,
        contenders=(MILLSTREAM,),
    ),
)
