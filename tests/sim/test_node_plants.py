"""Bugs planted into real nodes, each with a short scenario that shows it: replication, quorum, snapshots, producers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from millstream.broker import metadata_snapshotting
from millstream.broker.metadata_files import MetadataFiles
from millstream.broker.partition import Partition
from millstream.client.admin.topics import NewTopic, create_topics
from millstream.client.errors import ClientError
from millstream.client.produce import init_producer_id, produce
from millstream.log.producers import ProducerStates
from millstream.metadata import broker_lifecycle
from millstream.metadata.record_types import ConfigRecord, ProducerIdsRecord
from millstream.metadata.snapshot import snapshot_records
from millstream.quorum import leading
from millstream.quorum.voters import VoterSet
from millstream.records.building import encode_batch
from millstream.replication.follower import PartitionFollower
from millstream.replication.leader import PartitionLeader
from millstream.testing.checking import Kind, check
from millstream.testing.history import History, Outcome, Sent
from millstream.testing.readers import read_once
from millstream.testing.replica_invariants import IN_SYNC_HOLD, MIN_ISR_HOLD
from millstream.testing.violations import Violation
from millstream.testing.workers import produce_once
from tests.sim.directed import PLACE, active_controller, end_at, loses_touch, play, until_isr, until_led_by, write
from tests.sim.planting import Plant, must_be_found, replaces
from tests.sim.test_directed_plants import SCENARIOS as OTHERS
from tests.sim.test_replication_world import (
    _acknowledges_at_once,
    _goes_by_majority,
    _never_says_its_epoch,
    _passes_over_min_isr,
    _starts_at_its_end,
)

if TYPE_CHECKING:
    from millstream.client.client import Client
    from millstream.testing.cluster import SimulatedCluster
    from millstream.testing.simulated_node import SimulatedNode

BATCH = encode_batch([(b"key", b"not committed", (), 0)])
SMALL_SNAPSHOTS = {
    "metadata_log_max_record_bytes_between_snapshots": "400",
    "metadata_max_retention_bytes": "1",
}


# --- replication


async def follower_comes_back(cluster: SimulatedCluster, client: Client) -> None:
    """A follower is out of touch while others write, leaves the ISR and is back."""
    await write(client, 2)
    await until_isr(cluster, 1, 2, 3)
    await loses_touch(cluster, client)
    cluster.network.heal()
    # What it asks for arrives at once, what it gets takes a while.
    cluster.network.slow_down("node-1", "node-3", 0.5, one_way=True)
    await until_isr(cluster, 1, 2, 3)
    await write(client, 1)


async def leader_is_alone(cluster: SimulatedCluster, client: Client) -> None:
    """Below min.insync.replicas a leader takes acks=1, and commits nothing of it."""
    await write(client, 1)
    for number in (2, 3):
        cluster.nodes[number].kill()
    await until_isr(cluster, 1)
    await produce(client, {PLACE: BATCH}, acks=1)
    await asyncio.sleep(2)
    for number in (2, 3):
        cluster.nodes[number].boot()
    await until_isr(cluster, 1, 2, 3)
    await write(client, 1)


async def last_leader_loses_power(cluster: SimulatedCluster, client: Client) -> None:
    """KIP-966: the last in sync comes back without what it had not synced; others are eligible and hold it."""
    await write(client, 8)
    await cluster.until(lambda: end_at(cluster, 2) == end_at(cluster, 3) == end_at(cluster, 1))
    for number in (2, 3):
        await cluster.nodes[number].shut_down()
    await until_isr(cluster, 1)
    cluster.nodes[1].kill(power=True)
    await cluster.nodes[1].restart()
    await asyncio.sleep(2)
    for number in (2, 3):
        cluster.nodes[number].boot()
    await until_isr(cluster, 1, 2, 3)
    await write(client, 1)


# --- the quorum and its snapshots


async def voters_restart(cluster: SimulatedCluster, client: Client) -> None:
    """Each node is killed and restarted while others decide something."""
    for number in cluster.nodes:
        await create_topics(client, [NewTopic(f"before-{number}", 1, 1)])
        cluster.nodes[number].kill()
        await cluster.until(lambda: active_controller(cluster) is not None)
        await cluster.nodes[number].restart()


async def voter_is_killed_behind_its_vote(cluster: SimulatedCluster, client: Client) -> None:
    """A voter dies when it has voted, and before the new leader's first record has reached its log."""
    leader = active_controller(cluster)
    assert leader is not None
    leader.kill()

    def voted() -> SimulatedNode | None:
        for at in cluster.serving:
            log = at.node.controller.log if at.node is not None else None
            if log is not None and log.epoch > log.log.latest_epoch and not log.quorum.leads:
                return at
        return None

    await cluster.until(
        lambda: voted() is not None, what="a voter is in an epoch that its log does not know", every_s=0.0002
    )
    voter = voted()
    assert voter is not None
    voter.kill()
    voter.boot()
    await leader.restart()
    await voter.until_ready()


async def snapshots_are_loaded(cluster: SimulatedCluster, client: Client) -> None:
    """Snapshots follow each other closely; each node starts from one of them."""
    for number in range(6):
        await init_producer_id(client)
        configs = {"retention.ms": str(1_000_000 + number)}
        await create_topics(client, [NewTopic(f"topic-{number}", 2, 3, configs)])
        await asyncio.sleep(1)
    await cluster.until(
        lambda: all(at.node is not None and at.node.controller.log.files.snapshots for at in cluster.nodes.values()),
        what="every node has a snapshot",
    )
    for node in cluster.nodes.values():
        await node.shut_down()
        await node.restart()
    await asyncio.sleep(2)


# --- producers


async def batch_comes_again(cluster: SimulatedCluster, client: Client) -> None:
    """A client has not heard the answer and sends its batch again: to another leader, and after all have restarted."""
    producer = await init_producer_id(client)
    history = History()

    async def send(value: str, sequence: int) -> None:
        records = [(b"key", value.encode(), (), client.ports.clock.wall_ms())]
        batch = encode_batch(records, producer_id=producer.id, producer_epoch=producer.epoch, base_sequence=sequence)
        for _ in range(100):
            try:
                offset = await produce_once(client, PLACE, bytes(batch))
            except ClientError:
                await asyncio.sleep(0.2)
                continue
            history.sent.append(Sent(value, PLACE, Outcome.OK, offset))
            return

    await send("first", 0)
    await cluster.until(lambda: end_at(cluster, 1) == end_at(cluster, 2) == end_at(cluster, 3))
    cluster.nodes[1].kill()
    await until_led_by(cluster, 2)
    await send("first", 0)
    await cluster.nodes[1].restart()
    await until_isr(cluster, 1, 2, 3)
    for number in (1, 2, 3):
        await cluster.nodes[number].shut_down()
    for number in (1, 2, 3):
        cluster.nodes[number].boot()
    await until_isr(cluster, 1, 2, 3)
    await send("first", 0)
    await send("second", 1)
    position, records = 0, []
    while position <= max(sent.offset or 0 for sent in history.sent):
        found, position = await read_once(client, PLACE, position, committed_only=True)
        records += found
    history.final = {PLACE: tuple(records)}
    for anomaly in check(history):
        raise Violation(anomaly.kind.value, anomaly.text)


# --- wrong code


def _counts_the_longest(role: Any, voters: VoterSet) -> int:
    return max((progress.end_offset for progress in role.voters.values()), default=0)


def _snapshot_without(kind: type) -> Any:
    return lambda image: (record for record in snapshot_records(image) if not isinstance(record, kind))


RIGHT_FORGET = MetadataFiles.forget_before
RIGHT_LEAD = Partition.lead


def _forgets_all_that_is_committed(self: MetadataFiles, offset: int) -> int:
    return RIGHT_FORGET(self, max(offset, self.log.high_watermark))


def _leads_without_producers(self: Partition, *arguments: Any, **more: Any) -> None:
    self.log.producers.clear()
    RIGHT_LEAD(self, *arguments, **more)


def _may_join_behind_the_mark(self: PartitionLeader, follower: Any) -> bool:
    return self.proposal is None and follower.id not in self.isr


SCENARIOS = {
    "follower comes back": lambda seed: play(seed, follower_comes_back),
    "leader is alone": lambda seed: play(seed, leader_is_alone, configs={"min.insync.replicas": "2"}),
    "last leader loses power": lambda seed: play(seed, last_leader_loses_power, configs={"min.insync.replicas": "2"}),
    "voters restart": lambda seed: play(seed, voters_restart, apart=False),
    "voter is killed behind its vote": lambda seed: play(seed, voter_is_killed_behind_its_vote, apart=False),
    "snapshots are loaded": lambda seed: play(seed, snapshots_are_loaded, apart=False, **SMALL_SNAPSHOTS),
    "batch comes again": lambda seed: play(seed, batch_comes_again),
}
MAJORITY = "a majority holds what is committed"
IMAGES = "images of one offset are equal"


def planted(scenario: str, what: str, target: object, name: str, wrong: object, rule: str | Kind) -> tuple[Plant, Any]:
    """A plant, and the scenario that shows it."""
    run = SCENARIOS[scenario] if scenario in SCENARIOS else OTHERS[scenario]
    return replaces(what, target, name, wrong, rule=rule, seeds=2), run


PLANTS = [
    planted(
        "follower comes back",
        "a majority of the replicas is enough",
        PartitionLeader,
        "_advance",
        _goes_by_majority,
        IN_SYNC_HOLD,
    ),
    planted(
        "follower comes back",
        "committed once it is written",
        PartitionLeader,
        "_advance",
        _acknowledges_at_once,
        IN_SYNC_HOLD,
    ),
    planted(
        "follower comes back",
        "who is behind the mark may join",
        PartitionLeader,
        "may_join",
        _may_join_behind_the_mark,
        IN_SYNC_HOLD,
    ),
    planted(
        "leader is alone",
        "the mark rises below min.insync.replicas",
        PartitionLeader,
        "_settle",
        _passes_over_min_isr,
        MIN_ISR_HOLD,
    ),
    planted(
        "epochs without writes",
        "a new leader commits all that it has",
        PartitionLeader,
        "__init__",
        _starts_at_its_end,
        IN_SYNC_HOLD,
    ),
    planted(
        "epochs without writes",
        "rule 1: logs are not matched by epoch",
        PartitionFollower,
        "position",
        _never_says_its_epoch,
        IN_SYNC_HOLD,
    ),
    planted(
        "last leader loses power",
        "KIP-966: an unclean stop is not noted",
        broker_lifecycle,
        "changes_after_unclean_shutdown",
        lambda *_: (),
        IN_SYNC_HOLD,
    ),
    planted(
        "voters restart",
        "one of three voters is a majority",
        VoterSet,
        "majority",
        property(lambda it: len(it) // 2),
        MAJORITY,
    ),
    planted(
        "voters restart",
        "the longest log counts as the majority's",
        leading,
        "held_by_majority",
        _counts_the_longest,
        MAJORITY,
    ),
    planted(
        "voter is killed behind its vote",
        "the epoch and the vote are not written down",
        MetadataFiles,
        "write_election_state",
        lambda *_, **__: None,
        "epochs only grow",
    ),
    planted(
        "snapshots are loaded",
        "a snapshot without producer ids",
        metadata_snapshotting,
        "snapshot_records",
        _snapshot_without(ProducerIdsRecord),
        IMAGES,
    ),
    planted(
        "snapshots are loaded",
        "a snapshot without configs",
        metadata_snapshotting,
        "snapshot_records",
        _snapshot_without(ConfigRecord),
        IMAGES,
    ),
    planted(
        "snapshots are loaded",
        "the log is forgotten beyond its snapshot",
        MetadataFiles,
        "forget_before",
        _forgets_all_that_is_committed,
        "a snapshot begins where the log starts",
    ),
    planted(
        "batch comes again",
        "a new leader knows no producers",
        Partition,
        "lead",
        _leads_without_producers,
        Kind.ONE_VALUE_AT_TWO_OFFSETS,
    ),
    planted(
        "batch comes again",
        "producers are not read from their snapshot",
        ProducerStates,
        "restore",
        lambda self, *_: self.clear(),
        Kind.ONE_VALUE_AT_TWO_OFFSETS,
    ),
]


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_right_code_stands_it(name: str) -> None:
    SCENARIOS[name](0)


@pytest.mark.slow
@pytest.mark.parametrize(("plant", "run"), PLANTS, ids=lambda each: str(each) if isinstance(each, Plant) else "")
def test_a_planted_bug_is_found(plant: Plant, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plant.plant(monkeypatch)
    must_be_found(plant, run)
