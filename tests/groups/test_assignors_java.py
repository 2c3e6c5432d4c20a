"""The assignors here and Apache Kafka's own give the same answer, to the last partition, for any group and its past."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millstream.groups.assignors import ASSIGNORS
from millstream.groups.assignors.spec import GroupSpec, MemberSpec
from millstream.groups.consumer.topic_hash import group_hash
from millstream.metadata.image import Broker, MetadataImage, PartitionImage, TopicImage, Topics
from millstream.protocol.uuid import Uuid
from tests.groups.kafka_assignors import KafkaAssignors, as_kafka_prints

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.java

ids = st.binary(min_size=16, max_size=16).map(Uuid)
names = st.text("abcdefghij-0123456789", min_size=1, max_size=12)


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaAssignors]:
    with KafkaAssignors() as kafka:
        yield kafka


@st.composite
def groups(draw: st.DrawFn) -> list[GroupSpec]:
    """A group's life: who is there and what they read, step by step; what they own follows from the assignor."""
    topics = draw(st.lists(ids, min_size=1, max_size=6, unique=True))
    counts = {topic: draw(st.integers(1, 40)) for topic in topics}
    everybody = draw(st.lists(names, min_size=1, max_size=20, unique=True))
    instances = {name: draw(st.sampled_from([None, f"i-{name}"])) for name in everybody}
    life = []
    for _ in range(draw(st.integers(1, 4))):
        present = draw(st.lists(st.sampled_from(everybody), min_size=1, unique=True))
        shared = frozenset(draw(st.lists(st.sampled_from(topics), unique=True)))
        homogeneous = draw(st.booleans())
        members = {}
        for name in present:
            read = shared if homogeneous else frozenset(draw(st.lists(st.sampled_from(topics), unique=True)))
            members[name] = MemberSpec(read, {}, instances[name])
        # Topics only ever grow.
        counts = {topic: count + draw(st.sampled_from([0, 0, 0, 3])) for topic, count in counts.items()}
        life.append(GroupSpec(members, counts, homogeneous))
    return life


@pytest.mark.parametrize("assignor", ["uniform", "range"])
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(life=groups())
def test_a_group_is_assigned_as_by_kafka_at_every_step_of_its_life(
    kafka: KafkaAssignors, assignor: str, life: list[GroupSpec]
) -> None:
    owned: dict[str, dict[Uuid, frozenset[int]]] = {}
    for told in life:
        members = {
            name: MemberSpec(member.topics, owned.get(name, {}), member.instance_id)
            for name, member in told.members.items()
        }
        spec = told._replace(members=members)
        assigned = ASSIGNORS[assignor](spec)
        assert as_kafka_prints(assigned) == kafka.assign(assignor, spec)
        owned = {name: dict(partitions) for name, partitions in assigned.items()}


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    told=st.lists(
        st.tuples(
            st.text("abcxyz._-", min_size=1, max_size=40),
            ids,
            st.lists(st.lists(st.sampled_from(["r1", "rack-2", "ß"]), max_size=3), min_size=1, max_size=30),
        ),
        min_size=1,
        max_size=5,
        unique_by=lambda topic: topic[0],
    )
)
def test_topics_hash_as_in_kafka(kafka: KafkaAssignors, told: list[tuple[str, Uuid, list[list[str]]]]) -> None:
    # One broker for each rack that a replica of some partition has.
    brokers: dict[int, Broker] = {}
    topics = {}
    for name, topic_id, racks in told:
        partitions = {}
        for index, of_partition in enumerate(racks):
            replicas = tuple(range(len(brokers), len(brokers) + len(of_partition)))
            brokers |= {
                node: Broker(id=node, epoch=0, rack=rack) for node, rack in zip(replicas, of_partition, strict=True)
            }
            partitions[index] = PartitionImage(
                replicas=replicas, isr=replicas, leader=-1, leader_epoch=0, partition_epoch=0
            )
        topics[name] = TopicImage(name=name, id=topic_id, partitions=partitions)
    image = MetadataImage(brokers=brokers, topics=Topics(topics, {topic.id: topic for topic in topics.values()}))
    assert group_hash(topics, image, {}) == kafka.hash(told)
