"""What `millstream cluster` makes of the cluster's answers, without a cluster."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from millstream.cli import cluster as commands
from millstream.cli.declare import UsageError
from millstream.client.admin.cluster import Cluster, Quorum, describe_cluster, describe_quorum
from millstream.client.admin.partitions import list_reassignments
from millstream.client.admin.topics import list_topics
from millstream.client.errors import NotSupported, Refusal
from millstream.client.nodes import Broker
from millstream.client.options import Address
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.describe_quorum import DescribeQuorumResponsePartitionData, ReplicaState
from millstream.protocol.uuid import ZERO_UUID, Uuid
from tests.cli.conftest import run_command

if TYPE_CHECKING:
    from pathlib import Path

    from millstream.cli.output import Rows
    from millstream.client.sync import SyncClient

DISK = Uuid(bytes(range(16)))
FENCED = 4


class Answers:
    """A client that was told what is answered; exceptions are raised."""

    def __init__(self, *, leader: int = 2, quorum: Exception | None = None) -> None:
        brokers = tuple(Broker(each, Address("h", 9090 + each), None) for each in (1, 2, 3, FENCED))
        state = DescribeQuorumResponsePartitionData(
            partition_index=0,
            leader_id=leader,
            leader_epoch=5,
            high_watermark=90,
            current_voters=[ReplicaState(replica_id=2, log_end_offset=90, replica_directory_id=DISK)],
            observers=[ReplicaState(replica_id=3, log_end_offset=80, replica_directory_id=ZERO_UUID)],
        )
        self.answers: dict[Any, Any] = {
            describe_cluster: Cluster("id", controller_id=1, brokers=brokers, fenced=(FENCED,)),
            describe_quorum: quorum or Quorum(state, {}),
            list_reassignments: {},
            list_topics: [SimpleNamespace(name="t", partitions=[SimpleNamespace(index=0, replicas=(1, 2))])],
        }

    def run(self, ask: object, *_: object, **__: object) -> Any:
        answer = self.answers[ask]
        if isinstance(answer, Exception):
            raise answer
        return answer


def client(**told: Any) -> SyncClient:
    return cast("SyncClient", Answers(**told))


def described(**told: Any) -> tuple[list[Any], str]:
    rows = cast("Rows", commands.describe(client(**told)))
    return [row["controller"] for row in rows.as_objects()], rows.note


def test_the_controller_is_the_leader_of_the_quorum_and_not_whoever_answers() -> None:
    assert described(leader=2) == ([False, True, False, False], "")


def test_a_controller_that_is_no_broker_is_named_beside_the_table() -> None:
    controllers, note = described(leader=100)
    assert not any(controllers)
    assert "node 100" in note


def test_who_may_not_know_the_controller_sees_the_brokers_all_the_same() -> None:
    refused = Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    assert described(quorum=refused) == ([None] * 4, "")
    assert described(leader=-1) == ([None] * 4, "")


def test_a_cluster_from_before_kraft_is_believed() -> None:
    assert described(quorum=NotSupported("DescribeQuorum"))[0] == [True, False, False, False]


def test_the_quorum_shows_each_voters_directory() -> None:
    rows = cast("Rows", commands.quorum(client())).as_objects()
    assert [(row["node"], row["role"], row["directory"]) for row in rows] == [
        (2, "leader", str(DISK)),
        (3, "observer", None),
    ]


def drained(broker: int) -> list[tuple[Any, ...]]:
    return cast("Rows", commands.drain(client(), broker=broker, unregister=False, dry_run=True)).rows


def test_a_broker_that_does_not_exist_cannot_be_drained() -> None:
    with pytest.raises(UsageError, match="there is no broker 9"):
        drained(9)


def test_a_broker_without_replicas_has_nothing_to_drain_stopped_or_not() -> None:
    assert drained(3) == drained(FENCED) == []


def test_nothing_is_moved_to_a_broker_that_is_stopped() -> None:
    assert drained(1) == [("t", 0, (3, 2))]


def reassigned(replicas: int | None, monkeypatch: pytest.MonkeyPatch) -> dict[Any, tuple[int, ...]]:
    """The moves that are planned for a topic whose partitions have two, one and three replicas."""
    planned: dict[Any, tuple[int, ...]] = {}
    monkeypatch.setattr(commands, "_move", lambda _, plan, **__: planned.update(plan))
    answering = Answers()
    assigned = ((1, 2), (1,), (1, 2, 3))
    parts = [SimpleNamespace(index=index, replicas=each) for index, each in enumerate(assigned)]
    answering.answers[list_topics] = [SimpleNamespace(name="t", partitions=parts)]
    told = cast("SyncClient", answering)
    commands.reassign(told, partitions=["t"], to="2,3,4", replicas=replicas, cancel=False, wait=False)
    return planned


def test_each_partition_keeps_as_many_replicas_as_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = {place: len(brokers) for place, brokers in reassigned(None, monkeypatch).items()}
    assert counts == {("t", 0): 2, ("t", 1): 1, ("t", 2): 3}


def test_all_get_as_many_replicas_as_is_said_and_one_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [len(brokers) for brokers in reassigned(2, monkeypatch).values()] == [2, 2, 2]
    for few in (0, -2):
        with pytest.raises(UsageError, match="from 1 on"):
            reassigned(few, monkeypatch)


def test_a_controller_without_listeners_is_not_told_of_a_listener_that_it_does_not_have(tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text(f"process.roles=controller\nnode.id=1\nlog.dirs={tmp_path / 'data'}\n")
    refused = run_command("broker", str(properties))
    assert refused.code == 2
    assert "needs listeners" in refused.err
    assert "9092" not in refused.err
