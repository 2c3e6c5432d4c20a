"""A member that the group does not let in tries again, and nothing waits for ever; what the group says is made up."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from millstream.client.client import Client
from millstream.client.errors import Refusal, TimedOut, Unreachable
from millstream.client.group_member import GroupMember
from millstream.client.groups import Committed
from millstream.protocol.errors import ErrorCode
from millstream.streams.lower import membership
from millstream.streams.lower.membership import Membership
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

OFFSETS = {("in", 0): Committed(7)}


class Member:
    """Answers as it is told; then it is let in, and stays."""

    def __init__(self) -> None:
        self.joins: list[Exception] = []
        self.takes_offsets = True
        self.joined = 0

    async def join(self) -> None:
        if self.joins:
            raise self.joins.pop(0)
        self.joined += 1

    async def heartbeat(self) -> bool:
        return True

    async def commit(self, _: object) -> bool:
        return self.takes_offsets

    async def leave(self, _: int) -> None:
        pass


@pytest.fixture
def member() -> Member:
    return Member()


@pytest.fixture
def alone(member: Member, monkeypatch: pytest.MonkeyPatch) -> Iterator[Membership]:
    monkeypatch.setattr(membership, "_BEAT_S", 0.01)
    monkeypatch.setattr(membership, "_PAUSE_S", 0.01)
    made = Membership({"bootstrap.servers": "127.0.0.1:1"}, "app", ["in"])
    made._member = member  # type: ignore[assignment]
    yield made
    made.close()


def test_nobody_there_yet_is_no_wrong_address(alone: Membership) -> None:
    with pytest.raises(Unreachable) as caught:
        alone._client.run(Client.connection, 0)
    assert caught.value.retriable


@pytest.mark.parametrize(
    "trouble", [Refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED), Unreachable("away"), ValueError("nobody's fault")]
)
def test_it_is_let_in_after_all(alone: Membership, member: Member, trouble: Exception) -> None:
    member.joins = [trouble, trouble]
    alone.start()
    wait_until(lambda: alone._is_member, "the member to be let in")
    assert member.joined == 1
    alone.commit(OFFSETS)


def test_a_commit_that_is_never_taken_ends(alone: Membership, member: Member, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(membership, "_COMMIT_S", 0.2)
    member.takes_offsets = False
    alone.start()
    with pytest.raises(TimedOut, match="has taken no offsets"):
        alone.commit(OFFSETS)


def test_without_a_place_offsets_are_stored_as_they_can_be(
    alone: Membership, member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(membership, "_PAUSE_S", 60.0)
    # The first is refused since the group has a member: the one that was here a moment ago.
    answers: list[Exception | None] = [Refusal(ErrorCode.UNKNOWN_MEMBER_ID), None]
    stored = []

    async def commit_offsets(_: Client, group: str, offsets: object) -> None:
        answer = answers.pop(0)
        if answer is not None:
            raise answer
        stored.append((group, offsets))

    monkeypatch.setattr(membership, "commit_offsets", commit_offsets)
    member.joins = [Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)]
    alone.start()
    alone.commit(OFFSETS)
    assert stored == [("app", OFFSETS)]


class LateAnswers:
    """A client whose answers come when the member has another id already."""

    def __init__(self, refusal: ErrorCode) -> None:
        self.member: Any = None
        self._refusal = refusal

    async def retrying(self, _: Callable[[], Awaitable[None]], **__: object) -> None:
        self.member._member_id = "new"
        raise Refusal(self._refusal)


@pytest.mark.parametrize("refusal", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID])
@pytest.mark.parametrize("call", [GroupMember.heartbeat, lambda member: member.commit(OFFSETS)])
def test_a_late_refusal_is_not_about_the_new_place(
    refusal: ErrorCode, call: Callable[[GroupMember], Awaitable[bool]]
) -> None:
    client: Any = LateAnswers(refusal)
    client.member = made = GroupMember(client, "app", ["in"], instance_id="app")
    made._member_id = "old"

    async def ask() -> bool:
        return await call(made)

    assert not asyncio.run(ask())
    assert made._member_id == "new"
