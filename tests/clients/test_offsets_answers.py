"""The same conversations about committed offsets with Apache Kafka and with Millstream: the same answers, the same
records in the log. Every version, every way to be refused, offsets inside and outside of transactions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.protocol.messages.delete_groups import DeleteGroupsRequest
from millstream.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from millstream.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from millstream.protocol.uuid import ZERO_UUID
from tests.clients.classic_talk import await_rebalance, classic_join, classic_sync, joining, subscription
from tests.clients.consumer_talk import both_transcripts
from tests.clients.offsets_talk import OffsetTalk, Producer, classic_member, commit, delete, fetch, leave, seen
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.apache_kafka import ApacheKafka
    from tests.support.millstream_process import MillstreamProcess

pytestmark = [pytest.mark.clients, pytest.mark.java]

HOUR_MS = 3_600_000


def every_version_of_committing_and_fetching(talk: OffsetTalk) -> None:
    talk.create_topic("t", 2)
    talk.create_topic("u", 1)
    for version in range(2, 11):
        retention = {"retention_time_ms": HOUR_MS} if version in (3, 4) else {}
        commit(talk, ("t", 0), ("u", 0), version=version, offset=10 * version, leader_epoch=version, **retention)
        commit(talk, ("t", 1), version=version, offset=version, metadata=None)
    for version in range(1, 11):
        fetch(talk, ["t", "u", "nowhere"], version)
        fetch(talk, [], version)
        fetch(talk, ["t"], version, group=f"{talk.group}-missing")
        if version >= 2:
            fetch(talk, None, version)
            fetch(talk, None, version, group=f"{talk.group}-missing")
        if version >= 7:
            fetch(talk, ["t"], version, stable=True)
    seen(talk)
    talk.stored()


def commits_that_are_refused(talk: OffsetTalk) -> None:
    talk.create_topic("t", 2)
    for version in (8, 9, 10):
        for generation in (0, 1, 2**31 - 1):
            commit(talk, ("t", 0), version=version, generation_id_or_member_epoch=generation)
        commit(talk, ("t", 0), version=version, generation_id_or_member_epoch=1, member_id="m")
    seen(talk)
    commit(talk, ("t", 0), ("t", 2), ("t", -1), ("t", 2**31 - 1), ("nowhere", 0))
    commit(talk, ("t", 2), ("nowhere", 0), version=10)
    commit(talk, ("t", 0), version=10, topics=[])
    for offset in (-1, -2, 0, 2**63 - 1, -(2**63)):
        commit(talk, ("t", 0), offset=offset)
        fetch(talk, ["t"])
    for metadata in ("", "x" * 4096, "x" * 4097, "\u00e9" * 4096, "\U0001f40e" * 2048, "\U0001f40e" * 2049, None):
        commit(talk, ("t", 0), ("t", 1), metadata=metadata)
    # The same partition twice, within a topic and by naming the topic twice.
    commit(talk, ("t", 0), ("t", 0))
    fetch(talk, ["t", "t"])
    # Somebody who is nobody, in a group without members.
    commit(talk, ("t", 0), member_id="x")
    commit(talk, ("t", 0), member_id="x", generation_id_or_member_epoch=-2, group_instance_id="i")
    commit(talk, ("t", 0), member_id="x", generation_id_or_member_epoch=0)
    commit(talk, ("t", 0), group_id="")
    fetch(talk, ["t"], group="")
    for version in (2, 3, 4):
        for retention_ms in (0, -2, 2**63 - 1):
            commit(talk, ("t", 0), version=version, retention_time_ms=retention_ms)
            fetch(talk, ["t"])
    seen(talk)


def commits_of_members(talk: OffsetTalk) -> None:
    talk.create_topic("t", 2)
    commit(talk, ("t", 0), offset=1)
    joined = classic_member(talk)
    me = {"member_id": joined.member_id, "generation_id_or_member_epoch": joined.generation_id}
    for version in (2, 8, 9, 10):
        commit(talk, ("t", 0), version=version, **me)
        commit(talk, ("t", 0), version=version)
        commit(talk, ("t", 0), version=version, **me | {"generation_id_or_member_epoch": joined.generation_id + 1})
        commit(talk, ("t", 0), version=version, **me | {"generation_id_or_member_epoch": joined.generation_id - 1})
        commit(talk, ("t", 0), version=version, **me | {"generation_id_or_member_epoch": -1})
        commit(talk, ("t", 0), version=version, **me | {"member_id": "stranger"})
        commit(talk, ("t", 0), version=version, **me | {"member_id": ""})
    commit(talk, ("t", 0), **me, group_instance_id="nobody")
    commit(talk, ("t", 0), member_id="", group_instance_id="nobody")
    # Version 9 asks who fetches; classic groups don't care.
    for member_id, epoch in ((joined.member_id, 1), (joined.member_id, 99), ("stranger", 5), (None, 7), ("", -1)):
        topics = [OffsetFetchRequestTopics(name=f"{talk.group}.t", partition_indexes=[0])]
        asked = OffsetFetchRequestGroup(group_id=talk.group, member_id=member_id, member_epoch=epoch, topics=topics)
        answer = talk.client("reader").call(OffsetFetchRequest(groups=[asked], require_stable=False), 9)
        talk.lines.append(f"fetch as {member_id is None} {epoch}: {talk.plain(answer)}")
    delete(talk, ("t", 0))
    leave(talk, joined.member_id)
    commit(talk, ("t", 0), **me)
    commit(talk, ("t", 1), offset=12)
    fetch(talk, None)
    seen(talk)


def commits_while_the_group_rebalances(talk: OffsetTalk) -> None:
    talk.create_topic("t", 2)
    joined = classic_member(talk)
    me = {"member_id": joined.member_id, "generation_id_or_member_epoch": joined.generation_id}
    # The leader joins again: everybody has come, and nobody has an assignment yet.
    again = classic_join(talk, "m", joined.member_id, subscription(talk, "t"))
    commit(talk, ("t", 0), **me)
    commit(talk, ("t", 0), **me | {"generation_id_or_member_epoch": again.generation_id})
    producer = Producer(talk, "p")
    fencing = {"member_id": joined.member_id, "generation_id": again.generation_id}
    producer.commit(("t", 0), **fencing)
    delete(talk, ("t", 0), ("t", 1))
    classic_sync(talk, "m", again, {joined.member_id: b"all"})
    commit(talk, ("t", 0), **me | {"generation_id_or_member_epoch": again.generation_id})
    # Somebody new wants to come in.
    told = classic_join(talk, "n", "", subscription(talk, "t"))
    talk.client("n").send(joining(talk, told.member_id, subscription(talk, "t")), 9)
    await_rebalance(talk, joined.member_id, again.generation_id)
    commit(talk, ("t", 0), offset=77, **me | {"generation_id_or_member_epoch": again.generation_id})
    commit(talk, ("t", 0), member_id=told.member_id, generation_id_or_member_epoch=-1)
    commit(talk, ("t", 0), member_id=told.member_id, generation_id_or_member_epoch=again.generation_id)
    producer.commit(("t", 1), **fencing)
    producer.commit(("t", 1), member_id=told.member_id, generation_id=-1)
    producer.end(commit=True)
    producer.ended(("t", 0))
    fetch(talk, ["t"])


def static_members_commit(talk: OffsetTalk) -> None:
    talk.create_topic("t", 2)
    joined = classic_member(talk, group_instance_id="one")
    me = {
        "member_id": joined.member_id,
        "generation_id_or_member_epoch": joined.generation_id,
        "group_instance_id": "one",
    }
    for version in (7, 9):
        commit(talk, ("t", 0), version=version, **me)
        commit(talk, ("t", 0), version=version, **me | {"group_instance_id": None})
        commit(talk, ("t", 0), version=version, **me | {"group_instance_id": "two"})
        commit(talk, ("t", 0), version=version, **me | {"member_id": "stranger"})
        commit(talk, ("t", 0), version=version, **me | {"member_id": ""})
        commit(talk, ("t", 0), version=version, **me | {"generation_id_or_member_epoch": 99})
    producer = Producer(talk, "p")
    fencing = {"member_id": joined.member_id, "generation_id": joined.generation_id, "group_instance_id": "one"}
    producer.commit(("t", 0), **fencing)
    producer.commit(("t", 0), **fencing | {"group_instance_id": "two"})
    producer.commit(("t", 0), **fencing | {"member_id": "stranger"})
    producer.commit(("t", 0), **fencing | {"generation_id": 99})
    producer.end(commit=False)


def offsets_deleted(talk: OffsetTalk) -> None:
    talk.create_topic("t", 2)
    talk.create_topic("u", 1)
    delete(talk, ("t", 0))
    delete(talk, ("t", 0), group="")
    delete(talk)
    commit(talk, ("t", 0), ("t", 1), ("u", 0))
    delete(talk, ("t", 0), ("t", 0), ("t", 9), ("nowhere", 0), ("t", -1))
    fetch(talk, None)
    joined = classic_member(talk)
    delete(talk, ("t", 0), ("t", 1), ("u", 0), ("nowhere", 0))
    fetch(talk, None)
    talk.ask("admin", DeleteGroupsRequest(groups_names=[talk.group]), 2)
    leave(talk, joined.member_id)
    delete(talk, ("t", 1))
    fetch(talk, None)
    commit(talk, ("t", 1), ("u", 0))
    talk.ask("admin", DeleteGroupsRequest(groups_names=[talk.group]), 2)
    fetch(talk, None)
    seen(talk)
    talk.stored()


def offsets_of_other_kinds_of_group_deleted(talk: OffsetTalk) -> None:
    talk.create_topic("t", 2)
    commit(talk, ("t", 0), ("t", 1))
    joined = classic_member(talk, protocol_type="connect")
    delete(talk, ("t", 0))
    commit(talk, ("t", 0), member_id=joined.member_id, generation_id_or_member_epoch=joined.generation_id)
    leave(talk, joined.member_id)
    delete(talk, ("t", 0))
    fetch(talk, None)


def what_only_offsets_are_left_of(talk: OffsetTalk) -> None:
    talk.create_topic("t", 2)
    commit(talk, ("t", 0))
    delete(talk, ("t", 0))
    seen(talk)
    fetch(talk, None)
    delete(talk, ("t", 0))
    commit(talk, ("t", 0), generation_id_or_member_epoch=0, member_id="x")
    talk.ask("admin", DeleteGroupsRequest(groups_names=[talk.group]), 2)
    talk.ask("admin", DeleteGroupsRequest(groups_names=[talk.group]), 2)
    seen(talk)
    commit(talk, ("t", 0), metadata="x" * 5000)
    seen(talk)


def offsets_before_members(talk: OffsetTalk) -> None:
    talk.create_topic("t", 1)
    commit(talk, ("t", 0))
    epoch = talk.join("a", "t").member_epoch
    commit(talk, ("t", 0), member_id="a", generation_id_or_member_epoch=epoch, offset=6)
    talk.beat("a", -1)
    seen(talk)
    delete(talk, ("t", 0))
    talk.describe()
    fetch(talk, None)
    # The consumer group is empty: it gives way to a classic one, which inherits nothing but the name.
    joined = classic_member(talk)
    leave(talk, joined.member_id)
    seen(talk)
    talk.ask("admin", DeleteGroupsRequest(groups_names=[talk.group]), 2)
    seen(talk)
    talk.stored()


def a_topic_of_the_same_name(talk: OffsetTalk) -> None:
    talk.create_topic("t", 2)
    commit(talk, ("t", 0), version=10)
    old = talk.topic_ids["t"]
    gone = DeleteTopicsRequest(topics=[DeleteTopicState(name=f"{talk.group}.t", topic_id=ZERO_UUID)], timeout_ms=30_000)
    talk.client("setup").call(gone, 6)

    def forgotten() -> bool:
        asked = OffsetFetchRequestGroup(group_id=talk.group, topics=None)
        found = talk.client("poll").call(OffsetFetchRequest(groups=[asked], require_stable=False), 9)
        return not found.groups[0].topics

    wait_until(forgotten, "the offsets to go with their topic")
    talk.create_topic("t", 2)
    new, talk.topic_ids["old"] = talk.topic_ids["t"], old
    commit(talk, ("old", 0), version=10)
    fetch(talk, ["t", "old"], 10)
    commit(talk, ("t", 1), version=10)
    fetch(talk, ["t", "old"], 10)
    fetch(talk, None, 10)
    assert new != old


def many_groups_at_once(talk: OffsetTalk) -> None:
    talk.create_topic("t", 2)
    commit(talk, ("t", 0))
    topics = [OffsetFetchRequestTopics(name=f"{talk.group}.t", topic_id=talk.topic_ids["t"], partition_indexes=[0, 1])]
    asked = [
        OffsetFetchRequestGroup(group_id=talk.group, topics=topics),
        OffsetFetchRequestGroup(group_id=f"{talk.group}-missing", topics=topics),
        OffsetFetchRequestGroup(group_id=talk.group, topics=None),
        OffsetFetchRequestGroup(group_id=talk.group, topics=[]),
        OffsetFetchRequestGroup(group_id="", topics=[]),
    ]
    for version in (8, 9, 10):
        talk.ask("reader", OffsetFetchRequest(groups=asked, require_stable=True), version)
    talk.ask("reader", OffsetFetchRequest(groups=[], require_stable=True), 9)


def offsets_in_transactions(talk: OffsetTalk) -> None:
    talk.create_topic("t", 2)
    talk.create_topic("u", 1)
    commit(talk, ("t", 0), offset=1)
    producer, rival = Producer(talk, "p"), Producer(talk, "r")
    producer.commit(("t", 0), ("u", 0), offset=20)
    for version in (7, 8, 9, 10):
        for stable in (False, True):
            fetch(talk, ["t", "u"], version, stable=stable)
            fetch(talk, None, version, stable=stable)
    seen(talk)
    # A plain commit comes later, and a rival's: the last in the log counts.
    commit(talk, ("t", 0), offset=30)
    rival.commit(("t", 0), offset=40)
    producer.end(commit=True)
    producer.ended(("u", 0))
    fetch(talk, ["t", "u"])
    rival.end(commit=True)
    rival.ended(("t", 0))
    fetch(talk, ["t", "u"])
    # Deleted while it is pending.
    producer.commit(("t", 1), ("u", 0), offset=50)
    delete(talk, ("t", 1), ("u", 0))
    fetch(talk, ["t", "u"], stable=True)
    talk.ask("admin", DeleteGroupsRequest(groups_names=[talk.group]), 2)
    fetch(talk, ["t", "u"], stable=True)
    seen(talk)
    producer.end(commit=True)
    producer.ended(("t", 1), ("u", 0))
    fetch(talk, ["t", "u"])
    seen(talk)
    # Nothing but what a transaction brings, and takes away again.
    producer.commit(("t", 0), offset=60)
    seen(talk)
    producer.end(commit=False)
    producer.ended(("t", 0))
    fetch(talk, ["t"])
    seen(talk)
    talk.stored()


def transactional_commits_that_are_refused(talk: OffsetTalk) -> None:
    talk.create_topic("t", 2)
    producer = Producer(talk, "p")
    for version in range(6):
        producer.commit(("t", 0), version=version)
        producer.commit(("t", 0), ("t", 9), ("nowhere", 0), ("t", -1), version=version)
        producer.commit(("nowhere", 0), version=version)
        producer.commit(version=version)
    for generation, member_id in ((0, ""), (5, "x"), (-1, "x"), (-2, "")):
        producer.commit(("t", 0), generation_id=generation, member_id=member_id)
    producer.commit(("t", 0), group_instance_id="one")
    producer.commit(("t", 0), ("t", 1), metadata="x" * 4097)
    producer.commit(("t", 0), ("t", 1), metadata=None)
    producer.commit(("t", 0), group_id="")
    producer.commit(("t", 0), transactional_id="")
    producer.commit(("t", 0), transactional_id=f"{talk.group}.nobody")
    producer.commit(("t", 0), producer_id=producer.id + 100_000)
    producer.commit(("t", 0), producer_epoch=producer.epoch + 1)
    producer.commit(("t", 0), producer_epoch=-1)
    producer.commit(("t", 0), producer_id=-1, producer_epoch=-1)
    producer.commit(("t", 0), offset=-1)
    joined = classic_member(talk)
    for bent in (
        {},
        {"member_id": joined.member_id, "generation_id": joined.generation_id},
        {"member_id": joined.member_id, "generation_id": -1},
        {"member_id": joined.member_id, "generation_id": 99},
        {"member_id": "stranger", "generation_id": joined.generation_id},
        {"member_id": "", "generation_id": joined.generation_id},
        {"member_id": joined.member_id, "generation_id": joined.generation_id, "group_instance_id": "one"},
    ):
        for version in (3, 5):
            producer.commit(("t", 0), version=version, **bent)
    producer.end(commit=False)
    producer.ended(("t", 0))
    fetch(talk, ["t"])


def transactional_commits_of_a_consumer_group(talk: OffsetTalk) -> None:
    talk.create_topic("t", 1)
    epoch = talk.join("a", "t").member_epoch
    producer = Producer(talk, "p")
    for member_id, generation in (("a", epoch), ("a", epoch - 1), ("a", epoch + 1), ("a", -1), ("x", epoch), ("", -1)):
        for version in (3, 5):
            producer.commit(("t", 0), version=version, member_id=member_id, generation_id=generation)
    producer.commit(("t", 0), member_id="a", generation_id=epoch, group_instance_id="one")
    producer.commit(("t", 0), member_id="", generation_id=-1, group_instance_id="one")
    delete(talk, ("t", 0))
    producer.end(commit=True)
    producer.ended(("t", 0))
    fetch(talk, ["t"])
    talk.stored()


CONVERSATIONS: list[Callable[[OffsetTalk], None]] = [
    every_version_of_committing_and_fetching,
    commits_that_are_refused,
    commits_of_members,
    commits_while_the_group_rebalances,
    static_members_commit,
    offsets_deleted,
    offsets_of_other_kinds_of_group_deleted,
    what_only_offsets_are_left_of,
    offsets_before_members,
    a_topic_of_the_same_name,
    many_groups_at_once,
    offsets_in_transactions,
    transactional_commits_that_are_refused,
    transactional_commits_of_a_consumer_group,
]


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda conversation: conversation.__name__)
def test_both_brokers_say_and_store_the_same(
    conversation: Callable[[OffsetTalk], None],
    apache_kafka: ApacheKafka,
    millstream: MillstreamProcess,
    fresh_name: str,
) -> None:
    theirs, ours = both_transcripts(conversation, (apache_kafka, millstream), fresh_name, OffsetTalk)
    assert ours == theirs
