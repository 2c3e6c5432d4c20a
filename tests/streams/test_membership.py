"""A running application is a member of its group: a reset sees it, and its offsets are not forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from millstream.client.admin import raise_first
from millstream.client.admin.described_groups import GroupDescription, describe_groups
from millstream.client.admin.groups import remove_members
from millstream.client.admin.topics import NewTopic, create_topics
from millstream.client.errors import ClientError, Refusal
from millstream.client.group_member import GroupMember
from millstream.client.groups import Committed, commit_offsets, committed_offsets
from millstream.client.sync import SyncClient
from millstream.client.transactions import commit_offsets_in, end_transaction
from millstream.spark.exactly_once_sink import begin
from millstream.streams.lower import membership
from millstream.streams.lower.membership import Membership, TakenOver
from tests.cli.conftest import run_command
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.client.client import Client
    from tests.support.running import RunningBroker


class Group:
    """The group of an application, as others see it."""

    def __init__(self, servers: str, name: str) -> None:
        self.name = name
        self.place = (f"{name}-in", 0)
        self.servers = servers
        self.client = SyncClient({"bootstrap.servers": servers})
        raise_first(self.client.run(create_topics, [NewTopic(self.place[0], 1)]))

    def described(self) -> GroupDescription | None:
        try:
            found = self.client.run(describe_groups, [self.name])[self.name]
        except ClientError:
            return None
        return None if isinstance(found, Refusal) else found

    def members(self) -> int:
        found = self.described()
        return 0 if found is None or found.state != "Stable" else len(found.members)

    def stored(self) -> Committed | None:
        return self.client.run(committed_offsets, self.name, [self.place]).get(self.place)

    def reset(self, *more: str) -> Any:
        words = ("streams", "reset", "--application-id", self.name, "--input-topics", self.place[0], *more)
        return run_command(*words, servers=self.servers)


@pytest.fixture
def group(either: RunningBroker, fresh_name: str) -> Iterator[Group]:
    made = Group(either.bootstrap_servers, fresh_name[-60:])
    yield made
    made.client.close()


@pytest.fixture
def member(group: Group, monkeypatch: pytest.MonkeyPatch) -> Iterator[Membership]:
    monkeypatch.setattr(membership, "_BEAT_S", 0.1)
    made = Membership({"bootstrap.servers": group.servers}, group.name, [group.place[0]])
    made.start()
    yield made
    made.close()


def test_a_reset_sees_that_it_runs(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(membership, "_BEAT_S", 0.1)
    member = Membership({"bootstrap.servers": group.servers}, group.name, [group.place[0]])
    member.start()
    wait_until(lambda: group.members() == 1, "the application to be let in")
    refused = group.reset()
    assert refused.code != 0
    assert "has 1 members and is Stable: stop all of it first" in refused.err
    member.close()
    found = group.described()
    assert found is not None
    assert found.state == "Empty", "it has left, and nobody waits for its session to end"
    assert group.reset().code == 0


def test_offsets_are_stored_in_both_guarantees(group: Group, member: Membership) -> None:
    wait_until(lambda: group.members() == 1, "the application to be let in")
    # As others would: that is refused, which is why an application goes through its member.
    with pytest.raises(Refusal, match="UNKNOWN_MEMBER_ID"):
        group.client.run(commit_offsets, group.name, {group.place: Committed(1)})
    member.commit({group.place: Committed(2, "a note")})
    assert group.stored() == Committed(2, "a note")
    transaction = group.client.run(begin, f"{group.name}-0", 60_000)
    group.client.run(commit_offsets_in, transaction, group.name, {group.place: Committed(3, "another")})
    group.client.run(end_transaction, transaction, commit=True)
    assert group.stored() == Committed(3, "another")


def test_one_that_was_put_out_comes_back(group: Group, member: Membership) -> None:
    wait_until(lambda: group.members() == 1, "the application to be let in")
    found = group.described()
    assert found is not None
    group.client.run(remove_members, group.name, [(each.id, each.instance_id) for each in found.members])
    member.commit({group.place: Committed(7)})
    assert group.stored() == Committed(7)
    assert group.members() == 1


def killed(member: Membership) -> None:
    """Its connections break, and nobody has left."""
    assert member._staying is not None
    member._staying.cancel()
    member._client.close()


def test_a_driver_takes_the_place_of_one_that_was_killed_at_once(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(membership, "_BEAT_S", 0.1)
    # A rebalance would wait for the one that is gone for longer than a commit may take.
    monkeypatch.setattr(membership, "_REBALANCE_MS", 300_000)
    old = Membership({"bootstrap.servers": group.servers}, group.name, [group.place[0]])
    old._member.session_timeout_ms = 300_000
    old.start()
    old.commit({group.place: Committed(1)})
    killed(old)
    new = Membership({"bootstrap.servers": group.servers}, group.name, [group.place[0]])
    new.start()
    new.commit({group.place: Committed(2)})
    assert group.stored() == Committed(2)
    assert group.members() == 1
    new.close()


def test_a_driver_whose_place_was_taken_stores_nothing_any_more(group: Group, member: Membership) -> None:
    member.commit({group.place: Committed(1)})
    new = Membership({"bootstrap.servers": group.servers}, group.name, [group.place[0]])
    new.start()
    new.commit({group.place: Committed(5)})
    with pytest.raises(TakenOver, match="another driver runs the application"):
        member.commit({group.place: Committed(2)})
    wait_until(lambda: member._is_taken_over, "the one before to hear of it")
    with pytest.raises(TakenOver, match="another driver runs the application"):
        member.commit({group.place: Committed(3)})
    member.close()
    new.commit({group.place: Committed(6)})
    assert group.stored() == Committed(6)
    assert group.members() == 1, "the one before has not put it out"
    new.close()


def test_one_that_is_not_in_yet_can_leave(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(membership, "_BEAT_S", 0.1)
    silent = GroupMember(group.client.client, group.name, [group.place[0]])

    async def join(_: Client) -> None:
        await silent.join()

    group.client.run(join)
    member = Membership({"bootstrap.servers": group.servers}, group.name, [group.place[0]])
    member.start()

    def count() -> int:
        found = group.described()
        return 0 if found is None else len(found.members)

    wait_until(lambda: count() == 2, "the application to wait for the other one")
    member.close()
    wait_until(lambda: count() == 1, "the application to be gone")
