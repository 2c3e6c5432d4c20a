"""What is tried in a quorum of voters of both kinds: nodes 1 and 2 are Millstream's, node 3 is Apache Kafka's.

All three are brokers, too. The steps build upon each other: fixed voters first, then voters in the log (KIP-853).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.client.admin.cluster import describe_quorum, update_features
from millstream.client.errors import ClientError
from tests.mixed.nodes import KAFKA, MILLSTREAM, MixedCluster, Place
from tests.support.apache_kafka import run_tool
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.mixed.recorder import Recorder
    from tests.mixed.steps import Scene

OURS = (1, 2)
THEIRS = 3
NO_DIRECTORY = "AAAAAAAAAAAAAAAAAAAAAA"
TRIES = 20
WITHIN_S = 120


def three_voters(directory: Path, recorder: Recorder) -> MixedCluster:
    places = [Place(node, MILLSTREAM, "broker,controller") for node in OURS]
    return MixedCluster(directory, recorder, [*places, Place(THEIRS, KAFKA, "broker,controller")])


def _quorum(scene: Scene) -> Any:
    """As the active controller describes it; None while nobody is."""
    found = scene.trying(describe_quorum)
    return None if found is None or found.state.leader_id < 0 else found.state


def _make_lead(scene: Scene, wanted: tuple[int, ...]) -> None:
    """Stop whoever leads, and start it again, until one of the wanted is elected; then it commits something."""
    for _ in range(TRIES):
        leader = wait_until(lambda: _quorum(scene), "an active controller", within_s=WITHIN_S, every_s=0.1).leader_id
        if leader in wanted:
            break
        scene.cluster.nodes[leader].stop()
        scene.cluster.start(leader)
    else:
        raise AssertionError(f"none of {wanted} was elected in {TRIES} elections")
    epoch = _quorum(scene).leader_epoch
    scene.create(f"of-epoch-{epoch}", {0: (1, 2, 3)})


def kafka_leads(scene: Scene) -> None:
    """Apache Kafka's node is elected by ours, and they follow it."""
    _make_lead(scene, (THEIRS,))


def millstream_leads(scene: Scene) -> None:
    """A node of ours is elected, and Apache Kafka's follows it."""
    _make_lead(scene, OURS)


def voters_in_the_log(scene: Scene) -> None:
    """kraft.version 1: each voter tells the leader who it is, whatever its kind and the leader's."""

    def finalized() -> bool:
        try:
            scene.client.run(update_features, {"kraft.version": 1})
        except ClientError:
            return False  # Not all voters have told yet.
        return True

    def told() -> bool:
        quorum = _quorum(scene)
        return quorum is not None and all(
            str(voter.replica_directory_id) != NO_DIRECTORY for voter in quorum.current_voters
        )

    wait_until(finalized, "kraft.version 1", within_s=WITHIN_S, every_s=1)
    wait_until(told, "the voters' directories", within_s=WITHIN_S, every_s=0.2)


def kafka_leaves_and_comes_back(scene: Scene) -> None:
    """Apache Kafka's own tool takes its node out of the quorum and puts it in again, with a node of ours leading."""
    own = next(voter for voter in _quorum(scene).current_voters if voter.replica_id == THEIRS)
    servers = ("--bootstrap-server", scene.cluster.bootstrap_servers)
    leaving = ("remove-controller", "--controller-id", str(THEIRS), "--controller-directory-id")
    run_tool("MetadataQuorumCommand", *servers, *leaving, str(own.replica_directory_id), check=True)
    assert [voter.replica_id for voter in _quorum(scene).current_voters] == list(OURS)
    node = scene.cluster.nodes[THEIRS]
    coming = ("--command-config", str(node.properties_path), "add-controller")
    run_tool("MetadataQuorumCommand", *servers, *coming, check=True)
    assert sorted(voter.replica_id for voter in _quorum(scene).current_voters) == [*OURS, THEIRS]


ALL: tuple[Callable[[Scene], None], ...] = (
    kafka_leads,
    millstream_leads,
    voters_in_the_log,
    kafka_leads,
    millstream_leads,
    kafka_leaves_and_comes_back,
)
