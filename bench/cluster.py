"""Three nodes at work, all of them well: throughput, latency, many topics, memory."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING

from tests.support.running import cpu_seconds

from bench import cluster_nodes, java_clients
from bench.latency import one_at_a_time
from bench.rows import Bar, Figures, Row
from bench.throughput import BATCHED

if TYPE_CHECKING:
    from bench.session import Session

TOPICS = 1_000
PARTITIONS = 3
_runs = itertools.count(1)


def produce(session: Session, name: str) -> Figures:
    cluster = cluster_nodes.shared(session, name)
    count = session.amount(5_000_000, 300_000)
    with cluster.topic(partitions=6) as topic:
        cpu_before = sum(cpu_seconds(node.pid) for node in cluster.nodes.values())
        produced = java_clients.produce(cluster, topic, count=count, size=100, client_settings=BATCHED)
        cpu_s = sum(cpu_seconds(node.pid) for node in cluster.nodes.values()) - cpu_before
    return {
        "records/s": produced.records_per_s,
        "latency ms": produced.latency_ms,
        "latency p99 ms": produced.latency_ms_p99,
        "CPU s of the three": cpu_s,
    }


def end_to_end(session: Session, name: str) -> Figures:
    """One record at a time, from `produce` to `poll`: it is read once two more nodes hold it."""
    with cluster_nodes.alone(session, name) as cluster, cluster.topic(partitions=1) as topic:
        return one_at_a_time(cluster.bootstrap_servers, topic, session.amount(5_000, 500))


def create_topics(session: Session, name: str) -> Figures:
    """One request after the other, and all in one; until the leader of every partition serves it."""
    cluster = cluster_nodes.shared(session, name)
    count = session.amount(TOPICS, TOPICS // 10)
    figures: Figures = {}
    for how, size in (("one by one", 1), ("in one request", count)):
        run = next(_runs)
        names = [f"many-{run}-{number}" for number in range(count)]
        began = time.perf_counter()
        for first in range(0, count, size):
            cluster.create(names[first : first + size], PARTITIONS)
        cluster.until_served(names, PARTITIONS)
        figures[f"s {how}"] = time.perf_counter() - began
        cluster.delete(names)
    return figures


def memory(session: Session, name: str) -> Figures:
    """Resident memory of the nodes that did the rows before."""
    return {"MB": cluster_nodes.shared(session, name).memory_mb()}


ROWS = (
    Row(
        "cluster-produce",
        "ProducerPerformance, 3 brokers, replication 3, min ISR 2, acks=all, 100 B",
        produce,
        (Bar("records/s", "records/s", ratio_at_least=1.3),),
    ),
    Row(
        "cluster-latency",
        "end-to-end latency there, one record at a time",
        end_to_end,
        (Bar("p50 ms", "ms", ratio_at_most=0.7), Bar("p99 ms", "ms", ratio_at_most=0.7, at_most=10)),
    ),
    Row(
        "cluster-topics",
        f"create {TOPICS:,} topics of {PARTITIONS} partitions, replication 3",
        create_topics,
        (Bar("s one by one", "s", ratio_at_most=1.0), Bar("s in one request", "s", ratio_at_most=1.0)),
    ),
    Row("cluster-memory", "memory of the three nodes", memory, (Bar("MB", "MB", ratio_at_most=1 / 8),), rounds=1),
)
