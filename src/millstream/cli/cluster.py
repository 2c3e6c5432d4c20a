"""`millstream cluster`: start one, see who is there and what they agreed on, move leaders and replicas."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from millstream.cli.connect import key_value
from millstream.cli.declare import Group, UsageError, argument, flag, option
from millstream.cli.moves import plan_drain, plan_spread
from millstream.cli.output import Exit, Rows
from millstream.client.admin import raise_first
from millstream.client.admin.cluster import (
    describe_cluster,
    describe_features,
    describe_log_dirs,
    describe_quorum,
    unregister_broker,
    update_features,
)
from millstream.client.admin.partitions import Election, alter_reassignments, elect_leaders, list_reassignments
from millstream.client.admin.topics import list_topics
from millstream.client.errors import NotSupported, Refusal, TimedOut
from millstream.protocol.errors import ErrorCode
from millstream.protocol.uuid import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.client.admin.cluster import Cluster
    from millstream.client.sync import SyncClient

    Place = tuple[str, int]

# How often a command that waits for moves looks at them.
LOOK_S = 0.5

GROUP = Group("cluster", "The cluster: brokers, controllers, features, disks.")
GROUPS = {"cluster": GROUP}


@GROUP.command(
    "up",
    option("--brokers", "-n", type=int, help="how many nodes (default: as many as there were, 3 the first time)"),
    option("--data-dir", "-d", metavar="DIR", required=True, help="where their directories are made"),
    option("--port", "-p", type=int, help="of the first one, the first time (default: 9092); 0 picks free ports"),
    offline=True,
    example="millstream cluster up --brokers 3 --data-dir ./cluster",
)
def up(*, brokers: int | None, data_dir: str, port: int | None) -> Exit:
    """Run a local cluster of processes until it is stopped."""
    from millstream.cli.cluster_up import run_cluster

    return Exit(run_cluster(brokers, data_dir, port))


@GROUP.command("describe", example="millstream cluster describe")
def describe(client: SyncClient) -> Rows:
    """Show the cluster's id and its brokers."""
    cluster = client.run(describe_cluster)
    controller = _active_controller(client, cluster)
    rows = [
        (
            broker.id,
            broker.address.host,
            broker.address.port,
            broker.rack,
            None if controller is None else broker.id == controller,
            cluster.id,
        )
        for broker in cluster.brokers
    ]
    note = ""
    if controller is not None and all(broker.id != controller for broker in cluster.brokers):
        note = f"the active controller, node {controller}, is no broker in service"
    return Rows(("broker", "host", "port", "rack", "controller", "cluster_id"), rows, note=note)


def _active_controller(client: SyncClient, cluster: Cluster) -> int | None:
    """The leader of the quorum: with KRaft, DescribeCluster names any broker that passes requests on to it. None where
    there is none, or we may not know."""
    try:
        leader = client.run(describe_quorum).state.leader_id
    except NotSupported:
        # A cluster from before KRaft, where the answer meant what it says.
        return cluster.controller_id
    except (Refusal, TimedOut):
        return None
    return leader if leader >= 0 else None


@GROUP.command("quorum", example="millstream cluster quorum")
def quorum(client: SyncClient) -> Rows:
    """Show the controllers' quorum; in a dynamic one a voter is its number and its directory."""
    found = client.run(describe_quorum)
    state = found.state
    rows = [
        (
            replica.replica_id,
            "leader" if replica.replica_id == state.leader_id else role,
            replica.log_end_offset,
            max(state.high_watermark - replica.log_end_offset, 0),
            state.leader_epoch,
            tuple(str(address) for address in found.nodes.get(replica.replica_id, ())),
            None if replica.replica_directory_id == ZERO_UUID else str(replica.replica_directory_id),
        )
        for role, replicas in (("voter", state.current_voters), ("observer", state.observers))
        for replica in replicas
    ]
    return Rows(("node", "role", "log_end_offset", "lag", "epoch", "addresses", "directory"), rows)


@GROUP.command(
    "features",
    option("--level", "-l", repeat=True, metavar="NAME=LEVEL", help="raise a feature to this level first"),
    flag("--downgrade", help="lower it instead; 0 turns it off"),
    flag("--dry-run", help="check only"),
    example="millstream cluster features --level kraft.version=1",
)
def features(client: SyncClient, *, level: list[str], downgrade: bool, dry_run: bool) -> Rows:
    """Show feature levels: what the brokers support, and what is in force. Change them for the whole cluster."""
    if level:
        client.run(update_features, _levels(level), downgrade=downgrade, validate_only=dry_run)
    return Rows(
        ("feature", "lowest", "highest", "finalized"),
        [(feature.name, *feature.supported, feature.finalized) for feature in client.run(describe_features)],
    )


def _levels(pairs: list[str]) -> dict[str, int]:
    levels = {}
    for name, value in map(key_value, pairs):
        if not value.isdecimal():
            raise UsageError(f"{name}={value}: a level is a number.")
        levels[name] = int(value)
    return levels


@GROUP.command("disks", example="millstream cluster disks")
def disks(client: SyncClient) -> Rows:
    """Show the brokers' directories and what lies in them."""
    cluster = client.run(describe_cluster)
    found = raise_first(client.run(describe_log_dirs, [broker.id for broker in cluster.brokers]))
    rows = []
    for node_id, directories in found.items():
        for directory in directories:
            partitions = [partition for topic in directory.topics for partition in topic.partitions]
            rows.append(
                (
                    node_id,
                    directory.log_dir,
                    len(partitions),
                    sum(partition.partition_size for partition in partitions),
                    directory.usable_bytes,
                    directory.total_bytes,
                )
            )
    return Rows(("broker", "directory", "partitions", "log_bytes", "usable_bytes", "total_bytes"), rows)


@GROUP.command(
    "elect",
    argument("partitions", "topics or topic:partition (default: all)", nargs="*"),
    flag("--unclean", help="any replica will do where there is no leader: this may lose records"),
    example="millstream cluster elect orders",
)
def elect(client: SyncClient, *, partitions: list[str], unclean: bool) -> Rows:
    """Give partitions their preferred leader back, or any leader at all."""
    if unclean and not partitions:
        raise UsageError("name the topics or partitions whose records may be lost")
    wanted = _places(client, partitions) if partitions else None
    outcomes = client.run(elect_leaders, wanted, election=Election.UNCLEAN if unclean else Election.PREFERRED)
    rows = [
        (topic, index, "elected" if refusal is None else refusal.code.name)
        for (topic, index), refusal in sorted(outcomes.items())
        if refusal is None or refusal.code is not ErrorCode.ELECTION_NOT_NEEDED
    ]
    rest = "all have a leader" if unclean else "all have their preferred leader"
    return Rows(("topic", "partition", "outcome"), rows, note="" if rows else rest)


@GROUP.command(
    "reassign",
    argument("partitions", "topics or topic:partition; without any, moves under way are shown", nargs="*"),
    option("--to", metavar="1,2,3", help="the brokers to spread them over (default: all)"),
    option("--replicas", "-r", type=int, help="how many replicas each gets (default: as many as it has)"),
    flag("--cancel", help="call moves off instead"),
    flag("--wait", help="return when all moves are complete"),
    example="millstream cluster reassign orders --to 2,3,4",
)
def reassign(
    client: SyncClient, *, partitions: list[str], to: str | None, replicas: int | None, cancel: bool, wait: bool
) -> Rows:
    """Move partitions to other brokers, give them more or fewer replicas, or show what moves."""
    if not partitions:
        return _moves(client)
    if replicas is not None and replicas < 1:
        raise UsageError(f"--replicas takes a number from 1 on, not {replicas}")
    places = _places(client, partitions)
    if cancel:
        return _move(client, dict.fromkeys(places), wait=False)
    assigned = _assigned(client)
    racks = {broker.id: broker.rack for broker in client.run(describe_cluster).brokers}
    if to is not None:
        try:
            racks = {int(each): racks.get(int(each)) for each in to.split(",")}
        except ValueError:
            raise UsageError(f"--to takes numbers of brokers with commas between them, not {to!r}") from None
    plan: dict[Place, tuple[int, ...]] = {}
    for topic in dict.fromkeys(topic for topic, _ in places):
        own = [place for place in places if place[0] == topic]
        # A topic's partitions need not have as many replicas each.
        for count in dict.fromkeys(replicas or len(assigned[place]) for place in own):
            alike = [place for place in own if (replicas or len(assigned[place])) == count]
            plan |= plan_spread(alike, racks, count, first_turn=len(plan))
    return _move(client, {place: each for place, each in plan.items() if each != assigned[place]}, wait=wait)


@GROUP.command(
    "drain",
    argument("broker", "the number of the broker", type=int),
    flag("--unregister", help="forget the broker afterwards; it must be stopped"),
    flag("--dry-run", help="show what would move"),
    example="millstream cluster drain 3",
)
def drain(client: SyncClient, *, broker: int, unregister: bool, dry_run: bool) -> Rows:
    """Move everything off a broker that is to leave the cluster for good."""
    cluster = client.run(describe_cluster, fenced=True)
    # Nothing is moved to a broker that is not in service; the one that leaves often is not.
    racks = {each.id: each.rack for each in cluster.brokers if each.id == broker or each.id not in cluster.fenced}
    plan = plan_drain(_assigned(client), broker, racks)
    # With --unregister the controller is asked, who knows also what old brokers do not tell: those that are stopped.
    if not plan and broker not in racks and (dry_run or not unregister):
        raise UsageError(f"there is no broker {broker}")
    if dry_run:
        return _planned(plan, note="nothing was moved")
    moved = _move(client, plan, wait=True)
    if unregister:
        client.run(unregister_broker, broker)
    return moved


def _places(client: SyncClient, words: list[str]) -> list[Place]:
    """The partitions that are meant by `topic` and `topic:partition`."""
    known = _assigned(client)
    places: dict[Place, None] = {}
    for word in words:
        topic, colon, number = word.rpartition(":")
        if colon and number.isdecimal():
            found = [(topic, int(number))] if (topic, int(number)) in known else []
        else:
            found = [place for place in known if place[0] == word]
        if not found:
            raise UsageError(f"there is no topic or partition {word!r}")
        places |= dict.fromkeys(found)
    return list(places)


def _assigned(client: SyncClient) -> dict[Place, tuple[int, ...]]:
    """All partitions and where they will be, moves under way taken as done."""
    moving = client.run(list_reassignments)
    found: dict[Place, tuple[int, ...]] = {}
    for topic in sorted(client.run(list_topics), key=lambda topic: topic.name):
        for partition in topic.partitions:
            place = (topic.name, partition.index)
            leaving = moving[place].removing if place in moving else ()
            found[place] = tuple(each for each in partition.replicas if each not in leaving)
    return found


def _moves(client: SyncClient) -> Rows:
    moving = sorted(client.run(list_reassignments).items())
    rows = [(topic, index, each.replicas, each.adding, each.removing) for (topic, index), each in moving]
    note = "" if rows else "no partition is being moved"
    return Rows(("topic", "partition", "replicas", "adding", "removing"), rows, note=note)


def _move(client: SyncClient, plan: Mapping[Place, tuple[int, ...] | None], *, wait: bool) -> Rows:
    if plan:
        raise_first(client.run(alter_reassignments, plan))
    while wait and any(place in plan for place in client.run(list_reassignments)):
        time.sleep(LOOK_S)
    return _planned(plan, note="" if plan else "nothing has to be moved")


def _planned(plan: Mapping[Place, tuple[int, ...] | None], *, note: str) -> Rows:
    rows = [(topic, index, replicas) for (topic, index), replicas in sorted(plan.items())]
    return Rows(("topic", "partition", "to"), rows, note=note)
