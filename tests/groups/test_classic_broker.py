"""Classic groups through a broker's socket: waiting, loading, and a great many of them."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from millstream.embedded import Broker
from millstream.groups.classic.group import ClassicGroup
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.delete_groups import DeleteGroupsRequest
from millstream.protocol.messages.describe_groups import DescribeGroupsRequest
from millstream.protocol.messages.find_coordinator import FindCoordinatorRequest
from millstream.protocol.messages.heartbeat import HeartbeatRequest
from millstream.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from millstream.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from millstream.protocol.messages.list_groups import ListGroupsRequest
from millstream.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from millstream.runtime.shard import Stage
from tests.support.raw import RawClient
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


@contextmanager
def broker_with_coordinator(initial_delay_ms: int) -> Iterator[Broker]:
    with Broker(settings={"group.initial.rebalance.delay.ms": initial_delay_ms}) as broker:
        with RawClient("127.0.0.1", broker.port) as client:
            asked = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
            wait_until(lambda: client.call(asked, 4).coordinators[0].error_code == 0, "a coordinator")
        yield broker


@pytest.fixture
def running() -> Iterator[Broker]:
    with broker_with_coordinator(initial_delay_ms=0) as broker:
        yield broker


@pytest.fixture
def client(running: Broker) -> Iterator[RawClient]:
    with RawClient("127.0.0.1", running.port) as connected:
        yield connected


def join(group: str, member_id: str = "", metadata: bytes = b"") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="test",
        protocols=[JoinGroupRequestProtocol(name="any", metadata=metadata)],
    )


def sync(group: str, member_id: str, generation: int, assigned: list[str]) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=member_id,
        protocol_type="test",
        protocol_name="any",
        assignments=[SyncGroupRequestAssignment(member_id=each, assignment=each.encode()) for each in assigned],
    )


def test_a_coordinator_that_is_loading_says_so(running: Broker, client: RawClient) -> None:
    shards = running._running.groups.shards
    for shard in shards.values():
        shard.stage = Stage.LOADING
    assert client.call(join("g"), 9).error_code == LOADING
    assert client.call(sync("g", "me", 1, []), 5).error_code == LOADING
    leaving = LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="me")])
    assert client.call(leaving, 5).error_code == LOADING
    assert client.call(DescribeGroupsRequest(groups=["g"]), 6).groups[0].error_code == LOADING
    assert client.call(ListGroupsRequest(), 5).error_code == LOADING
    assert client.call(DeleteGroupsRequest(groups_names=["g"]), 2).results[0].error_code == LOADING
    heartbeat = HeartbeatRequest(group_id="g", generation_id=1, member_id="me")
    assert client.call(heartbeat, 4).error_code == ErrorCode.NONE, "nobody can tell yet, and a no would end a session"
    for shard in shards.values():
        shard.stage = Stage.ACTIVE
    assert client.call(heartbeat, 4).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_whose_connection_breaks_while_it_waits_may_come_back(running: Broker, client: RawClient) -> None:
    first = client.call(join("g"), 3)
    client.call(sync("g", first.member_id, 1, []), 5)
    waiting = RawClient("127.0.0.1", running.port)
    told = waiting.call(join("g"), 9).member_id
    waiting.send(join("g", told), 9)
    heartbeat = HeartbeatRequest(group_id="g", generation_id=1, member_id=first.member_id)
    wait_until(lambda: client.call(heartbeat, 4).error_code == ErrorCode.REBALANCE_IN_PROGRESS, "the rebalance")
    waiting.close()
    with RawClient("127.0.0.1", running.port) as back:
        back.send(join("g", told), 9)
        group = running._running.groups.shard_of("g").machine.groups["g"]
        assert isinstance(group, ClassicGroup)
        wait_until(lambda: len(group.members) == 2, "the member")
        client.send(join("g", first.member_id), 9)
        assert client.receive().generation_id == back.receive().generation_id == 2


def test_ten_thousand_groups(client: RawClient) -> None:
    count = 10_000
    for start in range(0, count, 500):
        for number in range(start, start + 500):
            client.send(join(f"group-{number}"), 9)
        for _ in range(500):
            assert client.receive().error_code == ErrorCode.MEMBER_ID_REQUIRED
    listed = client.call(ListGroupsRequest(states_filter=["Empty"]), 5).groups
    assert {group.group_id for group in listed} == {f"group-{number}" for number in range(count)}


def test_a_group_of_a_thousand_members() -> None:
    """Fifty share a connection: their JoinGroups and SyncGroups wait side by side."""
    with ExitStack() as stack:
        # A new group waits for more members as long as they keep coming, so all of them are in its first generation.
        running = stack.enter_context(broker_with_coordinator(initial_delay_ms=5_000))
        clients = [stack.enter_context(RawClient("127.0.0.1", running.port)) for _ in range(20)]
        seats = [client for client in clients for _ in range(50)]

        def all_ask(requests: list[tuple[Any, int]]) -> list[Any]:
            for seat, (request, version) in zip(seats, requests, strict=True):
                seat.send(request, version)
            return [seat.receive() for seat in seats]

        ids = [answer.member_id for answer in all_ask([(join("g"), 9)] * len(seats))]
        assert len(set(ids)) == 1000
        answers = all_ask([(join("g", member_id, b"x" * 100), 9) for member_id in ids])
        ((leader, generation),) = {(answer.leader, answer.generation_id) for answer in answers}
        shares = [(sync("g", each, generation, ids if each == leader else []), 5) for each in ids]
        assert [answer.assignment for answer in all_ask(shares)] == [member_id.encode() for member_id in ids]
