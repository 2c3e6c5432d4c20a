"""What a client hears when it commits, fetches and deletes offsets."""

from __future__ import annotations

import pytest

from millstream.groups.offsets.delete import decide_topics_deleted
from millstream.groups.offsets.fetch import decide_offset_fetch, groups_of, refuse_fetch, response_of
from millstream.protocol.coordinator_frame import encode_coordinator_key, encode_coordinator_value
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.groups.group_metadata import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from millstream.protocol.messages.groups.offset_commit import OffsetCommitKey
from millstream.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from millstream.protocol.uuid import Uuid
from tests.groups.offsets_scene import START_MS, Scene, everything_allowed, offsets_in

OTHER_ID = Uuid(b"another topic id")


@pytest.fixture
def scene() -> Scene:
    return Scene()


def a_stable_group(scene: Scene, group: str = "g", member: str = "m") -> None:
    scene.machine.apply(
        GroupMetadataKey(group=group),
        GroupMetadataValue(
            protocol_type="consumer",
            generation=4,
            protocol="range",
            leader=member,
            current_state_timestamp=START_MS,
            members=[
                MemberMetadata(
                    member_id=member,
                    client_id="c",
                    client_host="/127.0.0.1",
                    rebalance_timeout=60_000,
                    session_timeout=10_000,
                    subscription=b"\0\0\0\0\0\x01\0\x06orders\xff\xff\xff\xff",
                    assignment=b"",
                )
            ],
        ),
        transaction=None,
        offset=0,
    )


def test_what_was_committed_is_fetched(scene: Scene) -> None:
    assert scene.commit(42, metadata="why") is ErrorCode.NONE
    assert scene.fetch() == (42, ErrorCode.NONE)
    assert offsets_in(scene.machine)["g", "orders", 0].metadata == "why"


@pytest.mark.parametrize("version", range(2, 11))
def test_every_version_stores_the_topic_s_id(scene: Scene, version: int) -> None:
    scene.commit(1, version=version)
    assert offsets_in(scene.machine)["g", "orders", 0].topic_id == scene.image.topics.by_name["orders"].id


def test_an_unknown_group_has_read_nothing(scene: Scene) -> None:
    assert scene.fetch(group="nobody") == (-1, ErrorCode.NONE)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"topic": "nothing"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"topic": "nothing", "version": 10}, ErrorCode.UNKNOWN_TOPIC_ID),
        ({"partition": 99}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"generation": 1, "group": "new"}, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"generation": 1, "group": "new", "version": 8}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation": -1, "member": "whoever"}, ErrorCode.NONE),
        ({"metadata": "m" * 4096}, ErrorCode.NONE),
        ({"metadata": "m" * 4097}, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ({"group": ""}, ErrorCode.NONE),
    ],
)
def test_a_commit_is_answered_as_apache_kafka_answers_it(
    scene: Scene, arguments: dict[str, object], error: ErrorCode
) -> None:
    scene.commit(1)
    assert scene.commit(2, **arguments) is error  # type: ignore[arg-type]


def test_only_members_of_its_generation_commit_for_a_group(scene: Scene) -> None:
    a_stable_group(scene)
    assert scene.commit(1, member="m", generation=4) is ErrorCode.NONE
    assert scene.commit(1, member="m", generation=3) is ErrorCode.ILLEGAL_GENERATION
    assert scene.commit(1, member="stranger", generation=4) is ErrorCode.UNKNOWN_MEMBER_ID
    assert scene.commit(1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert scene.fetch() == (1, ErrorCode.NONE)


def test_a_group_of_offsets_alone_is_an_empty_classic_group(scene: Scene) -> None:
    scene.commit(1)
    group = scene.machine.group("g")
    assert group is not None
    listed = group.listed(START_MS)
    assert (listed.group_type, listed.group_state, listed.protocol_type) == ("classic", "Empty", "")


def test_a_retention_time_is_kept_as_a_time_of_expiry_even_the_largest(scene: Scene) -> None:
    scene.commit(1, version=2, retention_ms=5_000)
    assert offsets_in(scene.machine)["g", "orders", 0].expire_timestamp == START_MS + 5_000
    scene.commit(1, version=2, retention_ms=2**63 - 1)
    assert offsets_in(scene.machine)["g", "orders", 0].expire_timestamp == 2**63 - 1
    assert offsets_in(scene.replayed()) == offsets_in(scene.machine)


def test_offsets_of_a_topic_of_the_same_name_are_told_apart_by_id(scene: Scene) -> None:
    scene.commit(1)
    value = offsets_in(scene.machine)["g", "orders", 0]
    value.topic_id = OTHER_ID
    known = scene.image.topics.by_name["orders"].id
    asked = OffsetFetchRequestGroup(
        group_id="g", topics=[OffsetFetchRequestTopics(topic_id=known, partition_indexes=[0])]
    )
    decision = decide_offset_fetch(scene.machine, asked, 10, everything_allowed, require_stable=False)
    assert decision.response is not None
    assert decision.response.topics[0].partitions[0].committed_offset == -1


def test_all_offsets_of_a_group_are_fetched_and_only_topics_the_client_may_see(scene: Scene) -> None:
    scene.commit(1)
    scene.commit(2, topic="payments", partition=1)
    everything = OffsetFetchRequestGroup(group_id="g", topics=None)
    decision = decide_offset_fetch(scene.machine, everything, 9, lambda name: name == "payments", require_stable=False)
    assert decision.response is not None
    assert [(found.name, found.partitions[0].committed_offset) for found in decision.response.topics] == [
        ("payments", 2)
    ]


def test_the_first_version_tells_a_group_s_error_at_each_partition() -> None:
    request = OffsetFetchRequest(
        group_id="g", topics=[OffsetFetchRequestTopic(name="orders", partition_indexes=[0, 1])]
    )
    (group,) = asked = groups_of(request, 1)
    response = response_of([refuse_fetch(group, ErrorCode.NOT_COORDINATOR)], asked, 1)
    assert [partition.error_code for partition in response.topics[0].partitions] == [ErrorCode.NOT_COORDINATOR] * 2


def test_offsets_are_deleted_unless_the_group_reads_the_topic(scene: Scene) -> None:
    a_stable_group(scene)
    scene.commit(1, member="m", generation=4)
    scene.commit(1, topic="payments", member="m", generation=4)
    assert scene.delete() is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert scene.delete(topic="payments") is ErrorCode.NONE
    assert [place[1] for place in offsets_in(scene.machine)] == ["orders"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"group": "nobody"}, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"group": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"topic": "nothing"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"partition": 2}, ErrorCode.NONE),
        ({"partition": 99}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_a_deletion_is_answered_as_apache_kafka_answers_it(
    scene: Scene, arguments: dict[str, object], error: ErrorCode
) -> None:
    scene.commit(1)
    assert scene.delete(**arguments) is error  # type: ignore[arg-type]


def test_a_transaction_s_offsets_count_once_it_commits(scene: Scene) -> None:
    scene.commit(1)
    assert scene.txn_commit(5) is ErrorCode.NONE
    assert scene.fetch() == (1, ErrorCode.NONE)
    assert scene.fetch(stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    scene.end_transaction(commit=True)
    assert scene.fetch(stable=True) == (5, ErrorCode.NONE)


def test_a_transaction_that_aborts_leaves_an_empty_group(scene: Scene) -> None:
    scene.txn_commit(5)
    scene.end_transaction(commit=False)
    assert scene.fetch(stable=True) == (-1, ErrorCode.NONE)
    left = scene.machine.group("g")
    assert left is not None
    assert left.state_name(scene.now_ms) == "Empty"


def test_a_group_outlives_its_offsets_until_it_is_deleted_or_expires(scene: Scene) -> None:
    scene.commit(1)
    scene.delete()
    assert scene.machine.group("g") is not None
    assert scene.replayed().group("g") is not None
    scene.run_expiry()
    assert scene.machine.group("g") is None


def test_a_later_commit_is_not_undone_by_an_older_transaction(scene: Scene) -> None:
    scene.txn_commit(5)
    scene.commit(9)
    scene.end_transaction(commit=True)
    assert scene.fetch() == (9, ErrorCode.NONE)


def test_a_transaction_of_a_generation_that_is_gone_is_refused(scene: Scene) -> None:
    assert scene.txn_commit(5, generation=3) is ErrorCode.ILLEGAL_GENERATION
    a_stable_group(scene)
    assert scene.txn_commit(5) is ErrorCode.NONE  # producers before KIP-447 tell no generation


def test_stored_bytes_are_apache_kafka_s() -> None:
    # Read from __consumer_offsets of Apache Kafka 4.3.1 after an OffsetCommit 9 of offset 5, epoch 3, note "m".
    scene = Scene({"a": 1})
    scene.commit(5, topic="a", metadata="m")
    value = offsets_in(scene.machine)["g", "a", 0]
    value.leader_epoch = 3
    key = OffsetCommitKey(group="g", topic="a", partition=0)
    assert encode_coordinator_key(key) == bytes.fromhex("0001 0001 67 0001 61 00000000")
    assert encode_coordinator_value(value, 4) == (
        bytes.fromhex("0004 0000000000000005 00000003 02 6d")
        + START_MS.to_bytes(8, "big")
        + bytes.fromhex("01 00 10")
        + value.topic_id
    )


def test_offsets_go_with_their_topic_and_stay_for_one_of_the_same_name(scene: Scene) -> None:
    scene.commit(1)
    scene.commit(1, topic="payments")
    scene.txn_commit(5, partition=1)
    gone = scene.image.topics.by_name["orders"]

    scene.carry_out(decide_topics_deleted(scene.machine, (gone,)))
    assert list(offsets_in(scene.machine)) == [("g", "payments", 0)]
    assert not scene.machine.offsets.has_open_transactions("g")
    scene.commit(2)
    offsets_in(scene.machine)["g", "orders", 0].topic_id = OTHER_ID
    scene.carry_out(decide_topics_deleted(scene.machine, (gone,)))
    assert scene.fetch() == (2, ErrorCode.NONE)
