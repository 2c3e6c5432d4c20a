"""The difference of two images says what replaying the records between them would have said."""

from __future__ import annotations

from millstream.metadata.delta import NO_CHANGES, apply
from millstream.metadata.difference import difference
from millstream.metadata.image import EMPTY_IMAGE
from millstream.metadata.record_types import (
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from millstream.protocol.uuid import Uuid

ONE, TWO = Uuid(b"1" * 16), Uuid(b"2" * 16)


def topic(name: str, topic_id: Uuid) -> tuple[MetadataRecord, ...]:
    return (
        TopicRecord(name=name, topic_id=topic_id),
        PartitionRecord(
            partition_id=0,
            topic_id=topic_id,
            replicas=[1],
            isr=[1],
            removing_replicas=[],
            adding_replicas=[],
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=[Uuid(b"d" * 16)],
        ),
    )


BEFORE, _ = apply(
    EMPTY_IMAGE, (FeatureLevelRecord(name="metadata.version", feature_level=25), *topic("a", ONE), *topic("b", TWO))
)


def test_an_image_differs_in_nothing_from_itself() -> None:
    assert difference(BEFORE, BEFORE) == NO_CHANGES


def test_the_same_changes_are_found_as_by_replay() -> None:
    for records in (
        (ConfigRecord(resource_type=2, resource_name="a", name="retention.ms", value="1"),),
        (PartitionChangeRecord(partition_id=0, topic_id=ONE, leader=-1),),
        (RemoveTopicRecord(topic_id=TWO),),
        topic("c", Uuid(b"3" * 16)),
        (RemoveTopicRecord(topic_id=TWO), *topic("b", Uuid(b"3" * 16))),
        (ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=1000),),
        (FeatureLevelRecord(name="group.version", feature_level=1),),
    ):
        after, changes = apply(BEFORE, records)
        assert difference(BEFORE, after) == changes


def test_everything_is_new_to_who_knows_nothing() -> None:
    changes = difference(EMPTY_IMAGE, BEFORE)
    assert [topic.name for topic in changes.topics_created] == ["a", "b"]
    assert [topic.name for topic in difference(BEFORE, EMPTY_IMAGE).topics_deleted] == ["a", "b"]
