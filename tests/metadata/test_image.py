"""Replaying metadata records gives one image, whichever way it is cut into batches, and a snapshot gives it back."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metadata.records_strategy import metadata_records, topic

from millstream.metadata.delta import BrokenMetadata, apply
from millstream.metadata.image import EMPTY_IMAGE, MetadataImage, PartitionImage
from millstream.metadata.metadata_version import record_version
from millstream.metadata.record_types import (
    KIND_BY_TYPE,
    BeginTransactionRecord,
    ClearElrRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from millstream.metadata.snapshot import snapshot_records
from millstream.protocol.metadata_frame import decode_metadata_record, encode_metadata_record
from millstream.protocol.uuid import DIRECTORY_MIGRATING, Uuid

ORDERS = topic(1)
DIRECTORY = Uuid(b"d" * 16)


def orders(partitions: int = 1) -> list[MetadataRecord]:
    return [TopicRecord(name="orders", topic_id=ORDERS), *(partition(number) for number in range(partitions))]


def partition(number: int = 0, *, topic_id: Uuid = ORDERS) -> PartitionRecord:
    return PartitionRecord(
        partition_id=number,
        topic_id=topic_id,
        replicas=[1],
        isr=[1],
        removing_replicas=[],
        adding_replicas=[],
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
        directories=[DIRECTORY],
    )


def replayed(*records: MetadataRecord) -> MetadataImage:
    return apply(EMPTY_IMAGE, records)[0]


def partition_of(image: MetadataImage, number: int = 0) -> PartitionImage:
    return image.topics.by_name["orders"].partitions[number]


def without_place(image: MetadataImage) -> MetadataImage:
    return msgspec.structs.replace(image, offset=-1, epoch=-1, timestamp_ms=0)


@given(records=metadata_records(), cuts=st.lists(st.integers(0, 30)))
def test_any_cut_into_batches_replays_to_the_same_image(records: list[MetadataRecord], cuts: list[int]) -> None:
    whole = replayed(*records)
    image = EMPTY_IMAGE
    places = sorted({0, *(cut for cut in cuts if cut < len(records)), len(records)})
    for start, end in pairwise(places):
        image, _ = apply(image, records[start:end])
    assert image == whole


@given(records=metadata_records())
def test_a_snapshot_replays_to_the_image_it_came_from(records: list[MetadataRecord]) -> None:
    image = replayed(*records)
    level = image.metadata_version
    written = [encode_metadata_record(record, record_version(record, level)) for record in snapshot_records(image)]
    assert replayed(*(decode_metadata_record(value)[0] for value in written)) == without_place(image)


@given(records=metadata_records())
def test_no_image_changes_once_it_was_seen(records: list[MetadataRecord]) -> None:
    seen: list[tuple[MetadataImage, str]] = []
    image = EMPTY_IMAGE
    for record in records:
        seen.append((image, repr(image)))
        image, _ = apply(image, [record])
    assert all(repr(earlier) == text for earlier, text in seen)


@given(records=metadata_records())
def test_changes_name_every_topic_that_differs(records: list[MetadataRecord]) -> None:
    before = EMPTY_IMAGE
    for record in records:
        after, changes = apply(before, [record])
        named = {each.id for each in (*changes.topics_created, *changes.topics_deleted)}
        named |= {after.topics.by_name[name].id for name in changes.partitions_changed}
        every = {**before.topics.by_id, **after.topics.by_id}
        assert {i for i in every if before.topics.by_id.get(i) != after.topics.by_id.get(i)} <= named
        before = after


def test_every_record_type_of_kafkas_table_is_known() -> None:
    assert sorted(KIND_BY_TYPE) == [*range(6), *range(7, 13), 14, 15, *range(17, 29)]


def test_a_changed_topic_shares_everything_else_with_the_image_before() -> None:
    many = [TopicRecord(name=f"t{number}", topic_id=topic(number + 2)) for number in range(1000)]
    before = replayed(*many, *orders(2))
    after, changes = apply(before, [PartitionChangeRecord(partition_id=0, topic_id=ORDERS, leader=-1)])
    assert changes.partitions_changed == {"orders": (0,)}
    assert partition_of(after, 1) is partition_of(before, 1)
    assert after.topics.by_name["t5"] is before.topics.by_name["t5"]
    assert after.configs is before.configs
    assert after.topics.by_name["orders"] is after.topics.by_id[ORDERS]


def test_a_named_leader_starts_a_new_leader_epoch_even_if_it_is_the_same() -> None:
    image = replayed(*orders(), PartitionChangeRecord(partition_id=0, topic_id=ORDERS, leader=1))
    assert (partition_of(image).leader_epoch, partition_of(image).partition_epoch) == (1, 1)


def test_a_change_without_a_leader_keeps_the_leader_epoch() -> None:
    image = replayed(*orders(), PartitionChangeRecord(partition_id=0, topic_id=ORDERS, isr=[1]))
    assert (partition_of(image).leader_epoch, partition_of(image).partition_epoch) == (0, 1)


def test_a_deleted_topic_takes_its_settings_along() -> None:
    config = ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="1")
    image, changes = apply(replayed(*orders(), config), [RemoveTopicRecord(topic_id=ORDERS)])
    assert not image.configs
    assert not image.topics.by_name
    assert changes.configs == ((2, "orders"),)
    assert [each.id for each in changes.topics_deleted] == [ORDERS]


def test_a_topic_deleted_and_made_again_in_one_batch_is_both() -> None:
    image, changes = apply(
        replayed(*orders()), [RemoveTopicRecord(topic_id=ORDERS), TopicRecord(name="orders", topic_id=topic(2))]
    )
    assert [each.id for each in changes.topics_deleted] == [ORDERS]
    assert [each.id for each in changes.topics_created] == [topic(2)]
    assert image.topics.by_name["orders"].id == topic(2)
    assert list(image.topics.by_id) == [topic(2)]


def test_records_of_an_open_transaction_are_not_visible() -> None:
    open_image = replayed(BeginTransactionRecord(), *orders())
    assert not open_image.topics.by_name
    image, changes = apply(open_image, [EndTransactionRecord()])
    assert [each.name for each in changes.topics_created] == ["orders"]
    assert image.pending is None


def test_clearing_eligible_leaders_of_all_topics_leaves_partitions_without_any_alone() -> None:
    eligible = PartitionChangeRecord(partition_id=0, topic_id=ORDERS, eligible_leader_replicas=[2], last_known_elr=[2])
    before = replayed(*orders(2), eligible)
    after, changes = apply(before, [ClearElrRecord(topic_name="")])
    assert changes.partitions_changed == {"orders": (0,)}
    assert partition_of(after, 0).elr == ()
    assert partition_of(after, 1) is partition_of(before, 1)


def test_partitions_from_before_directories_wait_for_theirs() -> None:
    old = partition()
    old.directories = []
    image = replayed(TopicRecord(name="orders", topic_id=ORDERS), old)
    assert partition_of(image).directories == (DIRECTORY_MIGRATING,)


def test_a_feature_at_level_zero_is_not_finalized() -> None:
    up = FeatureLevelRecord(name="group.version", feature_level=1)
    down = FeatureLevelRecord(name="group.version", feature_level=0)
    assert "group.version" not in replayed(up, down).features


@pytest.mark.parametrize(
    "records",
    [
        [partition()],
        [*orders(), TopicRecord(name="orders", topic_id=topic(2))],
        [PartitionChangeRecord(partition_id=0, topic_id=ORDERS)],
        [*orders(), PartitionChangeRecord(partition_id=7, topic_id=ORDERS)],
        [RemoveTopicRecord(topic_id=ORDERS)],
        [FenceBrokerRecord(id=1, epoch=2)],
        [EndTransactionRecord()],
        [BeginTransactionRecord(), BeginTransactionRecord()],
    ],
    ids=lambda records: "+".join(type(record).__name__ for record in records),
)
def test_a_record_that_does_not_fit_is_an_error_and_not_a_guess(records: list[MetadataRecord]) -> None:
    with pytest.raises(BrokenMetadata):
        replayed(*records)
