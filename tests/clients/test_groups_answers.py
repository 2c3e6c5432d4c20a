"""The same conversations about groups with Apache Kafka and with Millstream: the same answers, the same stored records.

A conversation is written down as a transcript, with member ids, times and ports replaced by names; the two transcripts
have to be equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from millstream.protocol.messages.delete_groups import DeleteGroupsRequest
from millstream.protocol.messages.describe_groups import DescribeGroupsRequest
from millstream.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from millstream.protocol.messages.list_groups import ListGroupsRequest
from tests.clients.group_talk import OTHER, SUBSCRIPTION, Talk
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.apache_kafka import ApacheKafka
    from tests.support.millstream_process import MillstreamProcess

pytestmark = [pytest.mark.clients, pytest.mark.java]


# --- the conversations


def every_version_of_joining(talk: Talk) -> None:
    for version in range(10):
        joined = talk.joined("a", version)
        leaving = LeaveGroupRequest(group_id=talk.group, members=[MemberIdentity(member_id=joined.member_id)])
        talk.ask("a", leaving, 5)
    talk.stored()


def every_version_of_syncing_and_heartbeats(talk: Talk) -> None:
    joined = talk.joined("a")
    for version in range(6):
        talk.ask("a", talk.sync(joined.member_id, 1, {joined.member_id: b"all"}), version)
    for version in range(5):
        talk.ask("a", talk.heartbeat(joined.member_id, 1), version)
    talk.stored()


def every_version_of_leaving(talk: Talk) -> None:
    for version in range(6):
        joined = talk.stable("a")
        request = LeaveGroupRequest(
            group_id=talk.group,
            member_id=joined.member_id,
            members=[MemberIdentity(member_id=joined.member_id), MemberIdentity(member_id="nobody")],
        )
        talk.ask("a", request, version)
        talk.ask("a", request, version)
    talk.ask("a", LeaveGroupRequest(group_id=f"{talk.group}-missing", member_id="x"), 2)
    missing = LeaveGroupRequest(group_id=f"{talk.group}-missing", members=[MemberIdentity(member_id="x")])
    talk.ask("a", missing, 5)
    talk.ask("a", LeaveGroupRequest(group_id=talk.group, members=[]), 5)
    talk.ask("a", LeaveGroupRequest(group_id="", members=[MemberIdentity(member_id="x")]), 5)


def two_members(talk: Talk) -> None:
    first = talk.stable("a")
    told = talk.ask("b", talk.join(), 9)
    talk.describe()
    talk.begin("b", talk.join(told.member_id, protocols={"range": OTHER}), 9)
    wait_until(lambda: talk.client("poll").call(talk.heartbeat(first.member_id, 1), 4).error_code, "a rebalance")
    talk.describe()
    talk.ask("a", talk.sync(first.member_id, 1, {}), 5)
    talk.begin("a", talk.join(first.member_id), 9)
    leader, follower = talk.end("a"), talk.end("b")
    talk.describe()
    talk.ask("admin", talk.join(leader.member_id), 9)
    talk.ask("admin", talk.join(follower.member_id, protocols={"range": OTHER}), 9)
    talk.begin("b", talk.sync(follower.member_id, 2, {}), 5)
    shares = {leader.member_id: b"some", "a stranger": b"all"}
    talk.ask("a", talk.sync(leader.member_id, 2, shares), 5)
    talk.end("b")
    talk.describe()
    talk.ask("b", talk.join(follower.member_id, protocols={"range": OTHER}), 9)
    talk.ask("admin", DeleteGroupsRequest(groups_names=[talk.group]), 2)
    talk.ask("a", talk.heartbeat(leader.member_id, 1), 4)
    both = [MemberIdentity(member_id=each.member_id) for each in (leader, follower)]
    talk.ask("a", LeaveGroupRequest(group_id=talk.group, members=both), 5)
    talk.describe()
    talk.stored()
    talk.ask("admin", DeleteGroupsRequest(groups_names=[talk.group, talk.group, f"{talk.group}-missing"]), 2)
    talk.describe(5)
    talk.describe(6)
    talk.stored()


def refusals(talk: Talk) -> None:
    for session_ms in (5_999, 1_800_001, -1, 2**31 - 1):
        talk.ask("a", talk.join(session_timeout_ms=session_ms), 9)
    talk.ask("a", talk.join(group_id=""), 9)
    talk.ask("a", talk.join(group_id="", session_timeout_ms=0), 6)
    talk.ask("a", talk.join("never given"), 9)
    talk.describe()
    talk.ask("a", talk.join(protocols={}), 9)
    # The refused member has founded the group; Apache Kafka tells of it some milliseconds after it has answered.
    talk.until_known()
    talk.describe()
    talk.ask("a", talk.join(protocol_type=""), 9)
    talk.ask("a", talk.join("never given", protocols={}), 9)
    for group in ("", f"{talk.group}-missing", talk.group):
        talk.ask("a", talk.sync("me", 1, {}, group_id=group), 5)
        talk.ask("a", talk.heartbeat("me", 1, group_id=group), 4)
    talk.ask("a", talk.sync("me", 1, {}, protocol_type=None), 5)
    talk.ask("a", talk.sync("me", 1, {}, protocol_name=None), 5)
    member = talk.stable("a").member_id
    for bent in (
        {"protocol_type": "connect"},
        {"protocols": {"sticky": b""}},
        {"protocols": {}},
        {"instance_id": "x", "member_id": "me"},
    ):
        talk.ask("b", talk.join(**bent), 9)
    for generation in (0, 2, -1, 2**31 - 1):
        talk.ask("a", talk.sync(member, generation, {}), 5)
        talk.ask("a", talk.heartbeat(member, generation), 4)
    talk.ask("a", talk.sync(member, 1, {}, protocol_type="connect"), 5)
    talk.ask("a", talk.sync(member, 1, {}, protocol_name="sticky"), 5)
    talk.ask("a", talk.sync(member, 1, {}, group_instance_id="x"), 5)
    talk.ask("a", talk.heartbeat(member, 1, group_instance_id="x"), 4)
    talk.ask("a", talk.heartbeat("", 1), 4)


def static_members(talk: Talk) -> None:
    first = talk.stable("a", instance_id="one")
    talk.describe()
    for version in (5, 7, 9):
        back = talk.ask("b", talk.join(instance_id="one"), version)
        talk.ask("b", talk.sync(back.member_id, 1, {}, group_instance_id="one"), 5)
    talk.stored()
    talk.ask("a", talk.heartbeat(first.member_id, 1, group_instance_id="one"), 4)
    talk.ask("a", talk.heartbeat(first.member_id, 1), 4)
    talk.ask("a", talk.join(first.member_id, instance_id="one"), 9)
    talk.ask("a", talk.sync(first.member_id, 1, {}, group_instance_id="one"), 5)
    leaving = [
        MemberIdentity(member_id=first.member_id, group_instance_id="one"),
        MemberIdentity(member_id="", group_instance_id="two"),
        MemberIdentity(member_id="", group_instance_id="one"),
        MemberIdentity(member_id="", group_instance_id=None),
    ]
    # Who comes with other protocols changes the choice, and that takes a rebalance.
    changed = talk.ask("b", talk.join(instance_id="one", protocols={"range": OTHER, "sticky": SUBSCRIPTION}), 9)
    talk.ask(
        "b", talk.join(changed.member_id, instance_id="one", protocols={"sticky": SUBSCRIPTION, "range": OTHER}), 9
    )
    talk.describe()
    talk.ask("admin", LeaveGroupRequest(group_id=talk.group, members=leaving), 5)
    talk.describe()
    talk.stored()


def other_kinds_of_group(talk: Talk) -> None:
    joined = talk.joined("a", protocol_type="connect", protocols={"sessioned": b"\x00\x01", "default": b"\xff"})
    talk.ask(
        "a",
        talk.sync(joined.member_id, 1, {joined.member_id: b"\xff"}, protocol_type="connect", protocol_name="sessioned"),
        5,
    )
    talk.describe()
    talk.stored()


def what_is_too_large_to_be_stored(talk: Talk) -> None:
    large = {"range": SUBSCRIPTION + b"x" * 1_200_000}
    joined = talk.joined("a", protocols=large)
    talk.ask("a", talk.sync(joined.member_id, 1, {joined.member_id: b"all"}), 5)
    talk.ask("a", talk.heartbeat(joined.member_id, 1), 4)
    talk.describe()
    again = talk.ask("a", talk.join(joined.member_id), 9)
    talk.ask("a", talk.sync(joined.member_id, again.generation_id, {joined.member_id: b"all"}), 5)
    talk.stored()


def listing(talk: Talk) -> None:
    talk.stable("a")
    talk.ask("b", talk.join(group_id=f"{talk.group}-empty"), 9)

    def listed(version: int, **filters: Any) -> None:
        answer = talk.client("admin").call(ListGroupsRequest(**filters), version)
        answer.groups = [group for group in answer.groups if group.group_id.startswith(talk.group)]
        talk.lines.append(f"listed v{version} {filters}: {talk.plain(answer)}")

    for version in range(6):
        listed(version)
    for states in (["Stable"], ["stable"], ["EMPTY"], ["Empty", "Stable"], ["Nonsense"], ["Dead"], [""]):
        listed(4, states_filter=states)
    for types in (["classic"], ["Classic"], ["consumer"], ["share"], ["nonsense"], [""], ["classic", "nonsense"]):
        listed(5, types_filter=types)
    listed(5, types_filter=["classic"], states_filter=["stable"])


def describing(talk: Talk) -> None:
    talk.stable("a")
    for version in range(7):
        asked = [talk.group, f"{talk.group}-missing", "", talk.group]
        talk.ask("admin", DescribeGroupsRequest(groups=asked), version)
        talk.ask("admin", DescribeGroupsRequest(groups=asked, include_authorized_operations=version >= 3), version)
    talk.ask("admin", DescribeGroupsRequest(groups=[]), 6)


def deleting(talk: Talk) -> None:
    for version in range(3):
        joined = talk.stable("a")
        talk.ask("admin", DeleteGroupsRequest(groups_names=[talk.group, ""]), version)
        leaving = LeaveGroupRequest(group_id=talk.group, members=[MemberIdentity(member_id=joined.member_id)])
        talk.ask("a", leaving, 5)
        talk.ask("admin", DeleteGroupsRequest(groups_names=[talk.group]), version)
        talk.ask("admin", DeleteGroupsRequest(groups_names=[talk.group]), version)
        talk.ask("a", talk.join(joined.member_id), 9)
    talk.ask("admin", DeleteGroupsRequest(groups_names=[]), 2)
    talk.stored()


CONVERSATIONS = (
    every_version_of_joining,
    every_version_of_syncing_and_heartbeats,
    every_version_of_leaving,
    two_members,
    refusals,
    static_members,
    other_kinds_of_group,
    what_is_too_large_to_be_stored,
    listing,
    describing,
    deleting,
)


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda each: each.__name__)
def test_both_brokers_say_and_store_the_same(
    conversation: Callable[[Talk], None], apache_kafka: ApacheKafka, millstream: MillstreamProcess, fresh_name: str
) -> None:
    transcripts = []
    for broker in (apache_kafka, millstream):
        with Talk(broker, fresh_name) as talk:
            conversation(talk)
        transcripts.append(talk.lines)
    assert transcripts[1] == transcripts[0]
