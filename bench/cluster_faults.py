"""Three nodes, one of which fails: how long a producer, or an administrator, has to wait.

Every trial takes the node that leads at the time, so the leader, the active controller and both in one are hit as it
comes; then all three are in sync again before the next one.
"""

from __future__ import annotations

import os
import signal
import statistics
import time
from typing import TYPE_CHECKING

from tests.support.waiting import wait_until

from bench import cluster_nodes
from bench.cluster_load import SteadyProducer
from bench.rows import Bar, Figures, Row
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.cluster_nodes import ThreeNodes
    from bench.session import Session

TRIALS = 30
TRIALS_QUICK = 3
ASK_TIMEOUT_S = 1.0


def _fail_over(
    session: Session, name: str, fail: Callable[[ThreeNodes, int], None], mend: Callable[[ThreeNodes, int], None]
) -> Figures:
    cluster = cluster_nodes.shared(session, name)
    waited_s: list[float] = []
    with cluster.topic(partitions=1) as topic, SteadyProducer(cluster.bootstrap_servers, topic) as producer:
        for _ in range(session.amount(TRIALS, TRIALS_QUICK)):
            leader = cluster.leader(topic)
            cluster.away.add(leader)
            began = time.perf_counter()
            fail(cluster, leader)
            waited_s.append(producer.next_acknowledged(began) - began)
            mend(cluster, leader)
            cluster.until_in_sync(topic)
            producer.next_acknowledged(time.perf_counter())
    assert not producer.failures, producer.failures[:3]
    return {"median s": statistics.median(waited_s), "worst s": max(waited_s)}


def _restart(cluster: ThreeNodes, node_id: int) -> None:
    cluster.launch(node_id)
    cluster.until_ready(node_id)


def killed(session: Session, name: str) -> Figures:
    return _fail_over(session, name, lambda cluster, leader: cluster.nodes[leader].kill(), _restart)


def stopped(session: Session, name: str) -> Figures:
    """SIGSTOP: its sockets stay open, and nothing comes out of them."""

    def go_on(cluster: ThreeNodes, node_id: int) -> None:
        os.kill(cluster.nodes[node_id].pid, signal.SIGCONT)
        cluster.away.discard(node_id)

    return _fail_over(session, name, lambda cluster, leader: os.kill(cluster.nodes[leader].pid, signal.SIGSTOP), go_on)


def restarted(session: Session, name: str) -> Figures:
    """A controlled restart of the leader: the longest time without an acknowledgement, until it is in sync again."""
    cluster = cluster_nodes.shared(session, name)
    gaps_ms: list[float] = []
    with cluster.topic(partitions=1) as topic, SteadyProducer(cluster.bootstrap_servers, topic) as producer:
        for _ in range(session.amount(TRIALS, TRIALS_QUICK)):
            leader = cluster.leader(topic)
            cluster.away.add(leader)
            began = producer.next_acknowledged(time.perf_counter())
            cluster.nodes[leader].stop()
            _restart(cluster, leader)
            cluster.until_in_sync(topic)
            producer.next_acknowledged(time.perf_counter())
            gaps_ms.append(producer.longest_gap_s(began) * 1000)
    assert not producer.failures, producer.failures[:3]
    return {"median ms": statistics.median(gaps_ms), "worst ms": max(gaps_ms)}


def controller_killed(session: Session, name: str) -> Figures:
    """The active controller is killed: when can the next topic be created?"""
    cluster = cluster_nodes.shared(session, name)
    waited_s: list[float] = []
    made: list[str] = []
    with cluster.topic(partitions=1) as topic:
        for number in range(session.amount(TRIALS, TRIALS_QUICK)):
            active = wait_until(
                lambda: max(cluster.active_controller(), 0), "an active controller", within_s=60, every_s=0.05
            )
            cluster.away.add(active)
            wanted = f"{topic}-after-{number}"
            began = time.perf_counter()
            cluster.nodes[active].kill()
            wait_until(lambda: _creates(cluster, wanted), "a topic", within_s=120, every_s=0.01)  # noqa: B023
            waited_s.append(time.perf_counter() - began)
            made.append(wanted)
            _restart(cluster, active)
            cluster.until_in_sync(topic)
        cluster.delete(made)
    return {"median s": statistics.median(waited_s), "worst s": max(waited_s)}


def _creates(cluster: ThreeNodes, name: str) -> bool:
    """One attempt, at a node that lives."""
    wanted = CreatableTopic(name=name, num_partitions=1, replication_factor=2, assignments=[], configs=[])
    request = CreateTopicsRequest(topics=[wanted], timeout_ms=int(ASK_TIMEOUT_S * 1000))
    try:
        (answer,) = cluster.ask(request, 5, timeout_s=ASK_TIMEOUT_S).topics
    except OSError:
        return False
    # An attempt whose answer came too late may have made it.
    return answer.error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


_FAIL_OVER_BARS = (
    Bar("median s", "s", at_most=3, ratio_at_most=1.0),
    Bar("worst s", "s", at_most=6, ratio_at_most=1.0),
)

ROWS = (
    Row(
        "cluster-kill",
        f"leader killed with -9: time to the next acknowledged record, {TRIALS} times",
        killed,
        _FAIL_OVER_BARS,
        rounds=1,
    ),
    Row(
        "cluster-stop",
        f"leader stopped with SIGSTOP: time to the next acknowledged record, {TRIALS} times",
        stopped,
        _FAIL_OVER_BARS,
        rounds=1,
    ),
    Row(
        "cluster-restart",
        f"controlled restart of a leader: longest gap, {TRIALS} times",
        restarted,
        (Bar("worst ms", "ms", at_most=300, ratio_at_most=1.0),),
        rounds=1,
    ),
    Row(
        "cluster-controller",
        f"controller killed: time until a topic can be created, {TRIALS} times",
        controller_killed,
        (Bar("worst s", "s", at_most=3, ratio_at_most=1.0),),
        rounds=1,
    ),
)
