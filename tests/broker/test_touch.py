"""When a broker may take what it knows of itself for certain: its session stands, and it has heard what came before."""

from __future__ import annotations

import asyncio
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from tests.quorum.machines import TWO, append, leader_of_three

from millstream.broker.metadata_freshness import NEVER_MS, MetadataFreshness
from millstream.broker.quorum_standing import QuorumStanding
from millstream.broker.touch import Touch
from millstream.client.admin.topics import NewTopic, create_topics
from millstream.quorum.events import FetchRequested, Flushed
from millstream.quorum.positions import LogPosition
from millstream.settings.effective import Settings
from millstream.testing.cluster import SimulatedCluster
from millstream.testing.layouts import separate
from millstream.testing.simulation import base_settings
from millstream.testing.violations import Violation

if TYPE_CHECKING:
    from millstream.broker.node import Node
    from millstream.testing.simulated_node import SimulatedNode

FETCH_TIMEOUT_MS = 2_000
TOPIC = "led"


class Standing:
    """A place in the quorum, to be set by hand."""

    epoch = 1
    decides_alone = False
    missed_after_ms = FETCH_TIMEOUT_MS
    followed_ms: int | None = None
    has_committed = True
    as_of_ms = 0

    def followed_at_ms(self, _now_ms: int) -> int | None:
        return self.followed_ms

    def metadata_as_of_ms(self, _now_ms: int) -> int:
        return self.as_of_ms if self.followed_ms is None or not self.has_committed else self.followed_ms


class Scene:
    def __init__(self, session_ms: int) -> None:
        self.now_ms = 0
        self.standing = Standing()
        node: Any = SimpleNamespace(
            settings=Settings({"broker.session.timeout.ms": str(session_ms)}),
            controller=SimpleNamespace(standing=self.standing),
            ports=SimpleNamespace(clock=SimpleNamespace(monotonic_ms=lambda: self.now_ms)),
        )
        self.touch = Touch(node)

    def at(self, now_ms: int) -> bool:
        self.now_ms = now_ms
        return self.touch.is_certain


def test_a_session_lasts_from_when_the_heartbeat_was_sent() -> None:
    scene = Scene(1_500)
    assert not scene.at(0)
    scene.touch.heard_of(100, 900)
    assert scene.at(1_599)
    assert not scene.at(1_600)


def test_who_was_away_waits_for_the_metadata_of_meanwhile() -> None:
    scene = Scene(1_500)
    scene.touch.heard_of(0, 10)
    assert scene.at(10)
    scene.touch.heard_of(5_000, 5_010)
    # One heartbeat after another is answered, and the metadata stand still.
    for now_ms in (5_010, 5_310, 5_610):
        assert not scene.at(now_ms)
        scene.touch.heard_of(now_ms, now_ms + 10)
    scene.standing.as_of_ms = 5_009
    assert not scene.at(5_700)
    scene.standing.as_of_ms = 5_010
    assert scene.at(5_700)


def test_the_active_controller_is_no_longer_in_touch_than_a_majority_follows_it() -> None:
    scene = Scene(9_000)
    scene.standing.followed_ms = 900
    scene.touch.heard_of(1_000, 1_000)
    assert scene.at(2_899)
    assert not scene.at(2_900)
    # It has resigned by now: that does not make it any better.
    scene.standing.followed_ms = None
    scene.standing.epoch = 2
    assert not scene.at(4_000)


def test_the_active_controller_stays_in_touch_between_two_heartbeats_that_are_far_apart() -> None:
    scene = Scene(9_000)
    scene.standing.followed_ms = 0
    scene.touch.heard_of(100, 100)
    scene.standing.followed_ms = 2_000
    assert scene.at(2_099)
    scene.standing.epoch = 3
    assert not scene.at(2_099), "it leads another epoch, in which nothing was answered yet"


def test_who_was_away_and_is_elected_waits_for_the_first_commit_of_its_epoch() -> None:
    scene = Scene(1_500)
    scene.touch.heard_of(0, 10)
    scene.standing.followed_ms, scene.standing.has_committed = 5_000, False
    scene.touch.heard_of(5_000, 5_000)
    assert not scene.at(5_000)
    scene.standing.has_committed = True
    assert scene.at(5_000)


def test_a_leader_calls_its_image_fresh_once_it_has_committed_in_its_epoch() -> None:
    machine = leader_of_three(1, 1)
    standing = QuorumStanding(machine, lambda: (1, 1))
    standing.freshness.fetched(1, 1, sent_ms=7)
    append(machine, 1)
    machine.step(Flushed(3), 50)
    machine.step(FetchRequested(TWO, machine.epoch, LogPosition(2, 1)), 100)
    assert standing.followed_at_ms(150) == 100
    assert standing.metadata_as_of_ms(150) == 7, "two records of the epoch before may be committed and are not shown"
    machine.step(FetchRequested(TWO, machine.epoch, LogPosition(3, machine.epoch)), 200)
    assert standing.metadata_as_of_ms(250) == 200


def test_metadata_are_as_fresh_as_the_fetch_whose_mark_they_have_reached() -> None:
    position = (1, 10)
    freshness = MetadataFreshness(lambda: position)
    assert freshness.as_of_ms() == NEVER_MS
    freshness.fetched(1, 12, sent_ms=100)
    # Writes go on: the mark moves ahead, and what was waited for stays.
    freshness.fetched(1, 14, sent_ms=200)
    assert freshness.as_of_ms() == NEVER_MS
    position = (1, 12)
    assert freshness.as_of_ms() == 100
    freshness.fetched(1, 12, sent_ms=300)
    assert freshness.as_of_ms() == 300


def test_a_leader_that_does_not_know_its_own_mark_yet_proves_nothing() -> None:
    position = (1, 12)
    freshness = MetadataFreshness(lambda: position)
    freshness.fetched(2, 10, sent_ms=100)
    assert freshness.as_of_ms() == NEVER_MS
    position = (2, 15)
    assert freshness.as_of_ms() == 100


# --- on a cluster


def in_touch_means_nobody_else_leads(cluster: SimulatedCluster, at: SimulatedNode, node: Node) -> None:
    """By what is committed, whoever knows of it already."""
    if at.serving is None or not node.membership.is_in_touch:
        return
    led = [partition for partition in node.partitions if partition.leader is not None and partition.topic == TOPIC]
    for other in cluster.serving:
        for partition in led:
            assert other.node is not None
            state = other.node.image.topics.partition(partition.topic_id, partition.index)
            if state is not None and state.leader_epoch > partition.leader_epoch and state.leader not in (-1, at.id):
                raise Violation("in touch nobody else leads", f"{at.host} leads {partition.index}, and {state.leader}")


@pytest.mark.parametrize("session_ms", [1_500, 9_000])
def test_a_broker_that_was_cut_off_is_in_touch_again_once_it_knows_of_its_successors(session_ms: int) -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        client = cluster.client()
        await create_topics(client, [NewTopic(TOPIC, partitions=3)])
        cluster.checkers.append(lambda at, node: in_touch_means_nobody_else_leads(cluster, at, node))
        for at in cluster.nodes.values():
            cluster.network.block([at.host], cluster.hosts)
            await cluster.until(partial(_cut_off, at), what="it knows that it is cut off")
            await asyncio.sleep(12)
            cluster.network.heal()
            await cluster.until(lambda: all(_in_touch(each) for each in cluster.nodes.values()), what="all are back")
        await client.close()

    for seed in range(3):
        interval_ms = "2000" if session_ms > 3_000 else "300"
        settings = base_settings(3) | {
            "broker.session.timeout.ms": str(session_ms),
            "broker.heartbeat.interval.ms": interval_ms,
            # Leadership that goes back while all are well is heard of a moment later.
            "auto.leader.rebalance.enable": "false",
        }
        SimulatedCluster(seed, nodes=3, settings=settings).run(scenario)


def test_a_broker_that_only_a_deposed_controller_hears_of_is_not_in_touch() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        client = cluster.client()
        await create_topics(client, [NewTopic(TOPIC, partitions=10)])
        cluster.checkers.append(lambda at, node: in_touch_means_nobody_else_leads(cluster, at, node))
        controllers = [cluster.nodes[number] for number in cluster.layout.controllers]
        active = next(at for at in controllers if at.node is not None and at.node.controller.is_active)
        lost, other, _ = cluster.brokers.values()
        # All other brokers go on to be heard by it: it has nothing to write that it could not commit.
        others = [at.host for at in controllers if at is not active]
        cluster.network.block([active.host, lost.host], others)
        assert other.node is not None
        seen_by = other.node
        await cluster.until(lambda: seen_by.image.brokers[lost.id].fenced, what="others go on without it")
        # They have looked for another controller as soon as theirs had resigned.
        assert [broker.id for broker in seen_by.image.brokers.values() if broker.fenced] == [lost.id]
        await asyncio.sleep(5)
        await client.close()

    for seed in range(3):
        SimulatedCluster(seed, layout=separate(3), settings=base_settings(3)).run(scenario)


def _cut_off(at: SimulatedNode) -> bool:
    return not _in_touch(at)


def _in_touch(at: SimulatedNode) -> bool:
    return at.node is not None and at.node.membership.is_in_touch
