"""The same conversations in the new consumer protocol with Apache Kafka and with Millstream: the same answers, the same
records in the log.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from millstream.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from millstream.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from millstream.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from millstream.protocol.messages.delete_groups import DeleteGroupsRequest
from millstream.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from millstream.protocol.messages.describe_groups import DescribeGroupsRequest
from millstream.protocol.messages.list_groups import ListGroupsRequest
from millstream.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from millstream.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from millstream.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from millstream.protocol.uuid import ZERO_UUID
from tests.clients.consumer_talk import Talk, both_transcripts
from tests.support.apache_kafka import dump_log_segments
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.apache_kafka import ApacheKafka
    from tests.support.millstream_process import MillstreamProcess

pytestmark = [pytest.mark.clients, pytest.mark.java]


# --- the conversations


def what_makes_no_sense(talk: Talk) -> None:
    talk.create_topic("t", 1)
    for version in (0, 1):
        talk.join("a", "t", version=version, group_id="")
        talk.join("a", "t", version=version, group_id="  ")
        talk.join("", "t", version=version, group_id=f"{talk.group}-other", rebalance_timeout_ms=-1)
        talk.join("a", "t", version=version, instance_id="")
        talk.join("a", "t", version=version, rack_id=" ")
        talk.join("a", "t", version=version, rebalance_timeout_ms=-1)
        talk.join("a", "t", version=version, owned=None)
        talk.join("a", "t", version=version, owned={"t": [0]})
        talk.join("a", version=version, subscribed_topic_names=None)
        talk.join("a", "t", version=version, server_assignor="best")
        for epoch in (-1, -2, -3, 1, 5, 2**31 - 1, -(2**31)):
            talk.beat("a", epoch, version=version)
            talk.beat("", epoch, version=version)
            talk.beat("a", epoch, version=version, instance_id="i")
    talk.join("a", subscribed_topic_names=None, subscribed_topic_regex="(GROUP")
    talk.describe()
    talk.stored()


def one_member(talk: Talk) -> None:
    talk.create_topic("t", 3)
    joined = talk.join("a", "t")
    talk.beat("a", joined.member_epoch)
    talk.beat("a", joined.member_epoch, owned={"t": [0, 1, 2]})
    # Everything again, as after a lost answer.
    talk.join("a", "t", member_epoch=joined.member_epoch, owned={"t": [0, 1, 2]})
    talk.describe()
    talk.ask("admin", ListGroupsRequest(states_filter=["stable"], types_filter=["consumer"]), 5)
    talk.ask("admin", DescribeGroupsRequest(groups=[talk.group]), 5)
    talk.ask("admin", DescribeGroupsRequest(groups=[talk.group]), 6)
    talk.ask("admin", DeleteGroupsRequest(groups_names=[talk.group]), 2)
    talk.beat("a", -1)
    talk.describe(0)
    talk.beat("a", -1)
    talk.beat("a", 1)
    talk.ask("admin", DeleteGroupsRequest(groups_names=[talk.group]), 2)
    talk.describe()
    talk.stored()


def a_member_without_topics(talk: Talk) -> None:
    talk.join("a")
    talk.join("b", "not-there-yet")
    talk.beat("a", 1)
    talk.beat("b", 2)
    talk.create_topic("not-there-yet", 2)
    settle(talk, "b")
    talk.describe()
    talk.stored()


def settle(talk: Talk, *members: str) -> None:
    """Heartbeats, let-gos included, until everybody is where the group wants them; written down as they come."""
    for _ in range(12):
        described = {member.member_id: member for member in talk.describe().members}
        state = talk.describe().group_state
        words = {topic_id: name for name, topic_id in talk.topic_ids.items()}
        for member in members:
            target = described[member].target_assignment.topic_partitions
            has = described[member].assignment.topic_partitions
            wanted = {(topic.topic_id, index) for topic in target for index in topic.partitions}
            owned: dict[str, list[int]] = {}
            for topic in has:
                kept = sorted(index for index in topic.partitions if (topic.topic_id, index) in wanted)
                if kept:
                    owned[words[topic.topic_id]] = kept
            talk.beat(member, described[member].member_epoch, owned=owned)
        if state == "Stable":
            return
    raise AssertionError("the group never becomes stable")


def partitions_move_one_by_one(talk: Talk) -> None:
    talk.create_topic("t", 3)
    first = talk.join("a", "t").member_epoch
    second = talk.join("b", "t").member_epoch
    talk.beat("b", second)
    # Told to let go of one; it takes its time.
    told = talk.beat("a", first)
    talk.beat("a", first, owned={"t": [0, 1, 2]})
    talk.describe()
    talk.beat("b", second, owned={})
    talk.beat("a", first, owned=talk.owned(told))
    talk.beat("b", second)
    talk.beat("b", second, owned={"t": [2]})
    talk.describe()
    talk.beat("a", -1)
    talk.beat("b", second)
    settle(talk, "b")
    talk.stored()


def four_members_three_partitions(talk: Talk) -> None:
    talk.create_topic("t", 3)
    members = ["a", "b", "c", "d"]
    for member in members:
        talk.join(member, "t")
    settle(talk, *members)
    talk.beat("b", -1)
    settle(talk, "a", "c", "d")
    talk.join("b", "t", server_assignor="range")
    settle(talk, *members)
    for member in members:
        talk.beat(member, -1)
    talk.describe()
    talk.stored()


def epochs_from_elsewhere(talk: Talk) -> None:
    talk.create_topic("t", 2)
    talk.join("a", "t")
    talk.join("b", "t")
    settle(talk, "a", "b")
    current = {member.member_id: member.member_epoch for member in talk.describe().members}["a"]
    talk.beat("a", current + 1)
    talk.beat("a", 2**31 - 1)
    talk.beat("a", current - 1)
    talk.beat("a", current - 1, owned={"t": [0]})
    talk.beat("a", current - 1, owned={"t": [0, 1]})
    talk.beat("stranger", current)
    talk.beat("a", 0)
    # It forgot everything and comes again.
    talk.join("a", "t")
    talk.describe()
    talk.stored()


def subscriptions_change(talk: Talk) -> None:
    talk.create_topic("t", 2)
    epoch = talk.join("a", "t").member_epoch
    talk.create_topic("u", 1)
    talk.beat("a", epoch, subscribed_topic_names=["u"])
    epoch = talk.beat("a", epoch, owned={}).member_epoch
    settle(talk, "a")
    talk.beat("a", epoch, subscribed_topic_names=[], owned={"u": [0]})
    settle(talk, "a")
    talk.stored()


def topics_grow_and_go(talk: Talk) -> None:
    talk.create_topic("t", 1)
    talk.join("a", "t")
    grown = CreatePartitionsTopic(name=f"{talk.group}.t", count=3, assignments=None)
    request = CreatePartitionsRequest(topics=[grown], timeout_ms=30_000, validate_only=False)
    talk.client("setup").call(request, 3)

    def sees_three() -> bool:
        members = talk.client("poll").call(
            ConsumerGroupDescribeRequest(group_ids=[talk.group], include_authorized_operations=False), 1
        )
        (member,) = members.groups[0].members
        answer = talk.client("poll").call(beat_of(talk, "a", member.member_epoch), 1)
        assert answer.error_code == 0, answer
        return sum(len(topic.partitions) for topic in member.target_assignment.topic_partitions) == 3

    wait_until(sees_three, "the new partitions")
    settle(talk, "a")
    gone = DeleteTopicsRequest(topics=[DeleteTopicState(name=f"{talk.group}.t", topic_id=ZERO_UUID)], timeout_ms=30_000)
    talk.client("setup").call(gone, 6)

    def sees_none() -> bool:
        described = talk.client("poll").call(
            ConsumerGroupDescribeRequest(group_ids=[talk.group], include_authorized_operations=False), 1
        )
        (member,) = described.groups[0].members
        talk.client("poll").call(beat_of(talk, "a", member.member_epoch), 1)
        return bool(described.groups[0].group_epoch == 4)

    wait_until(sees_none, "the end of the topic")
    talk.beat("a", 3, owned={})
    talk.describe()


def beat_of(talk: Talk, member: str, epoch: int) -> Any:
    return ConsumerGroupHeartbeatRequest(group_id=talk.group, member_id=member, member_epoch=epoch)


def static_members(talk: Talk) -> None:
    talk.create_topic("t", 2)
    talk.join("a", "t", instance_id="one")
    talk.join("b", "t", instance_id="two")
    settle_static(talk, {"a": "one", "b": "two"})
    talk.join("c", "t", instance_id="one")
    talk.beat("c", 3, instance_id="one")
    talk.beat("a", 3, instance_id="nobody")
    talk.beat("a", -2)
    talk.beat("a", -2, instance_id="one")
    talk.describe()
    talk.beat("a", 3, instance_id="one")
    # Its next self takes over, without a rebalance.
    talk.join("c", "t", instance_id="one")
    talk.describe()
    talk.beat("a", 3, instance_id="one")
    talk.beat("c", -1, instance_id="one")
    talk.describe()
    talk.stored()


def settle_static(talk: Talk, members: dict[str, str]) -> None:
    for _ in range(4):
        described = {member.member_id: member for member in talk.describe().members}
        for name, instance_id in members.items():
            wanted = described[name].target_assignment.topic_partitions
            has = {index for topic in described[name].assignment.topic_partitions for index in topic.partitions}
            kept = sorted(index for topic in wanted for index in topic.partitions if index in has)
            owned = {"t": kept} if kept else {}
            talk.beat(name, described[name].member_epoch, instance_id=instance_id, owned=owned)


def patterns(talk: Talk) -> None:
    talk.create_topic("red", 1)
    talk.create_topic("blue", 2)
    talk.join("a", subscribed_topic_names=None, subscribed_topic_regex=r"GROUP\.(red|green)")
    wait_for_epoch(talk, 2)
    settle(talk, "a")
    # The same pattern is known, another one is not.
    talk.join("b", subscribed_topic_names=None, subscribed_topic_regex=r"GROUP\.(red|green)")
    settle(talk, "a", "b")
    talk.beat("a", 3, subscribed_topic_regex="")
    settle(talk, "a", "b")
    talk.beat("b", -1)
    talk.describe()
    talk.stored()


def wait_for_epoch(talk: Talk, epoch: int) -> None:
    request = ConsumerGroupDescribeRequest(group_ids=[talk.group], include_authorized_operations=False)
    wait_until(lambda: talk.client("poll").call(request, 1).groups[0].group_epoch == epoch, f"epoch {epoch}")


def commits(talk: Talk) -> None:
    talk.create_topic("t", 2)
    talk.join("a", "t")
    talk.join("b", "t")
    settle(talk, "a", "b")
    epochs = {member.member_id: member.member_epoch for member in talk.describe().members}
    for version in (8, 9, 10):
        for member, epoch in (("a", epochs["a"]), ("a", epochs["a"] - 1), ("a", 99), ("x", 1), ("", -1)):
            for partition in (0, 1):
                talk.ask(member or "admin", commit(talk, member, epoch, partition), version)
    for member, epoch in (("a", epochs["a"]), ("a", 0), ("a", 99), ("x", 1), (None, -1)):
        groups = [
            OffsetFetchRequestGroup(
                group_id=talk.group,
                member_id=member,
                member_epoch=epoch,
                topics=[OffsetFetchRequestTopics(name=f"{talk.group}.t", partition_indexes=[0, 1])],
            )
        ]
        talk.ask("admin", OffsetFetchRequest(groups=groups, require_stable=False), 9)
    deleting = OffsetDeleteRequest(
        group_id=talk.group,
        topics=[
            OffsetDeleteRequestTopic(
                name=f"{talk.group}.t", partitions=[OffsetDeleteRequestPartition(partition_index=0)]
            )
        ],
    )
    talk.ask("admin", deleting, 0)
    talk.beat("a", -1)
    talk.beat("b", -1)
    talk.ask("admin", commit(talk, "", -1, 0), 9)
    talk.ask("admin", deleting, 0)
    talk.stored()


def commit(talk: Talk, member: str, epoch: int, partition: int) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=talk.group,
        generation_id_or_member_epoch=epoch,
        member_id=member,
        topics=[
            OffsetCommitRequestTopic(
                name=f"{talk.group}.t",
                topic_id=talk.topic_ids["t"],
                partitions=[
                    OffsetCommitRequestPartition(partition_index=partition, committed_offset=1, committed_metadata="m")
                ],
            )
        ],
    )


CONVERSATIONS: list[Callable[[Talk], None]] = [
    what_makes_no_sense,
    one_member,
    a_member_without_topics,
    partitions_move_one_by_one,
    four_members_three_partitions,
    epochs_from_elsewhere,
    subscriptions_change,
    topics_grow_and_go,
    static_members,
    patterns,
    commits,
]


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda conversation: conversation.__name__)
def test_both_brokers_say_and_store_the_same(
    conversation: Callable[[Talk], None],
    apache_kafka: ApacheKafka,
    millstream: MillstreamProcess,
    fresh_name: str,
) -> None:
    theirs, ours = both_transcripts(conversation, (apache_kafka, millstream), fresh_name)
    assert ours == theirs


def test_kafkas_own_reader_reads_what_consumer_groups_store(
    fresh_millstream: Callable[..., MillstreamProcess], fresh_name: str
) -> None:
    broker = fresh_millstream(settings={"offsets.topic.num.partitions": "1"}, controller_listener=True)
    broker.start()
    with Talk(broker, fresh_name) as talk:
        four_members_three_partitions(talk)
        with Talk(broker, f"{fresh_name}-patterns") as other:
            patterns(other)
    broker.stop()
    (segment,) = broker.data_directory.glob("**/__consumer_offsets-0/*.log")
    dump = dump_log_segments([segment], "--offsets-decoder", "--deep-iteration")
    assert dump.returncode == 0, dump.stderr
    lines = [line for line in dump.stdout.splitlines() if line.startswith("| offset")]
    types = {found[1] for line in lines if (found := re.search(r'key: {"type":"(\d+)"', line))}
    # Group, old metadata (its tombstone), member, target, target of a member, assignment, pattern.
    assert types == {"3", "4", "5", "6", "7", "8", "16"}
    assert all("payload: <DELETE>" in line or '"version":"0","data":{' in line for line in lines)
