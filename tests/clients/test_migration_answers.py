"""Both protocols in one group: the same conversations with Apache Kafka and with Millstream, the same answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from millstream.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tests.clients.classic_talk import (
    assignment,
    await_rebalance,
    classic_beat,
    classic_join,
    classic_sync,
    joining,
    subscription,
)
from tests.clients.consumer_talk import Talk, both_transcripts

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.apache_kafka import ApacheKafka
    from tests.support.millstream_process import MillstreamProcess

pytestmark = [pytest.mark.clients, pytest.mark.java]


def a_group_is_upgraded_and_downgraded(talk: Talk) -> None:
    talk.create_topic("t", 2)
    told = classic_join(talk, "old", "", subscription(talk, "t"))
    joined = classic_join(talk, "old", told.member_id, subscription(talk, "t"))
    classic_sync(talk, "old", joined, {joined.member_id: assignment(talk, {"t": [0, 1]})})
    talk.beat("new", 5)
    # The new one comes; the old one is told to let go of a partition in its own words.
    talk.join("new", "t")
    talk.describe_types()
    classic_beat(talk, "old", joined, 7)
    classic_beat(talk, "old", joined)
    again = classic_join(talk, "old", joined.member_id, subscription(talk, "t", owned={"t": [0, 1]}))
    classic_sync(talk, "old", again)
    classic_beat(talk, "old", again)
    kept = next(
        index
        for member in talk.client("poll")
        .call(ConsumerGroupDescribeRequest(group_ids=[talk.group], include_authorized_operations=False), 1)
        .groups[0]
        .members
        if member.member_id != "new"
        for topic in member.target_assignment.topic_partitions
        for index in topic.partitions
    )
    third = classic_join(talk, "old", joined.member_id, subscription(talk, "t", owned={"t": [kept]}))
    classic_sync(talk, "old", third)
    classic_beat(talk, "old", third)
    talk.beat("new", 2)
    talk.beat("new", 2, owned={"t": [1 - kept]})
    talk.describe_types()
    # The new one goes: the group is a classic one again, and rebalances.
    talk.beat("new", -1)
    await_rebalance(talk, joined.member_id, third.generation_id)
    classic_beat(talk, "old", third)
    talk.describe_types()
    last = classic_join(talk, "old", joined.member_id, subscription(talk, "t"))
    classic_sync(talk, "old", last, {joined.member_id: assignment(talk, {"t": [0, 1]})})
    talk.describe_types()
    leaving = LeaveGroupRequest(group_id=talk.group, members=[MemberIdentity(member_id=joined.member_id)])
    talk.client("old").call(leaving, 5)
    # What is left is an empty classic group, which gives way.
    talk.join("new", "t")
    talk.beat("new", -1)
    told = classic_join(talk, "old", "", subscription(talk, "t"))
    talk.describe_types()


def classic_members_come_and_go(talk: Talk) -> None:
    talk.create_topic("t", 2)
    talk.join("new", "t")
    wrong = classic_join(talk, "old", "", subscription(talk, "t"), protocol_type="connect")
    assert wrong.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    told = classic_join(talk, "old", "", subscription(talk, "t"))
    joined = classic_join(talk, "old", told.member_id, subscription(talk, "t"))
    classic_sync(talk, "old", joined)
    talk.beat("new", 2, owned=talk.owned(talk.beat("new", 2)))
    classic_beat(talk, "old", joined)
    again = classic_join(talk, "old", told.member_id, subscription(talk, "t"))
    classic_sync(talk, "old", again)
    classic_beat(talk, "old", again)
    talk.describe_types()
    leaving = LeaveGroupRequest(
        group_id=talk.group,
        members=[MemberIdentity(member_id=told.member_id), MemberIdentity(member_id="nobody")],
    )
    answer = talk.client("old").call(leaving, 5)
    talk.lines.append(f"old leaves: {[ErrorCode(member.error_code).name for member in answer.members]}")
    talk.describe_types()


def a_static_member_changes_its_protocol(talk: Talk) -> None:
    talk.create_topic("t", 2)
    one = {"group_instance_id": "one"}
    joined = classic_join(talk, "old", "", subscription(talk, "t"), **one)
    classic_sync(talk, "old", joined, {joined.member_id: assignment(talk, {"t": [0, 1]})}, **one)
    talk.join("new", "t", instance_id="one")
    talk.describe_types()
    talk.join("other", "t", instance_id="one")
    talk.beat("new", -2, instance_id="one")
    back = classic_join(talk, "old", "", subscription(talk, "t"), **one)
    talk.describe_types()
    classic_sync(talk, "old", back, **one)
    talk.describe_types()
    # With somebody else in the group, it stays what it is.
    talk.join("new", "t", instance_id="one")
    talk.join("second", "t")
    talk.beat("new", -2, instance_id="one")
    again = classic_join(talk, "old", "", subscription(talk, "t"), **one)
    classic_sync(talk, "old", again, **one)
    talk.describe_types()


def members_that_wait_are_told_to_come_again(talk: Talk) -> None:
    talk.create_topic("t", 2)
    told = classic_join(talk, "old", "", subscription(talk, "t"))
    joined = classic_join(talk, "old", told.member_id, subscription(talk, "t"))
    classic_sync(talk, "old", joined, {joined.member_id: assignment(talk, {"t": [0, 1]})})
    second = classic_join(talk, "second", "", subscription(talk, "t"))
    talk.client("second").send(joining(talk, second.member_id, subscription(talk, "t")), 9)
    await_rebalance(talk, joined.member_id, 1)
    talk.join("new", "t")
    answer = talk.client("second").receive()
    talk.lines.append(f"who waited hears {ErrorCode(answer.error_code).name}")
    talk.describe_types(targets=False)
    classic_beat(talk, "old", joined)


CONVERSATIONS: list[Callable[[Talk], None]] = [
    a_group_is_upgraded_and_downgraded,
    classic_members_come_and_go,
    a_static_member_changes_its_protocol,
    members_that_wait_are_told_to_come_again,
]


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda conversation: conversation.__name__)
def test_both_brokers_say_the_same(
    conversation: Callable[[Talk], None], apache_kafka: ApacheKafka, millstream: MillstreamProcess, fresh_name: str
) -> None:
    theirs, ours = both_transcripts(conversation, (apache_kafka, millstream), fresh_name)
    assert ours == theirs
