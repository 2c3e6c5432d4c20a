from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, String, message, struct


@message(coordinator_type=23, versions="0")
class StreamsGroupTopologyKey:
    """The topology of a Streams group (KIP-1071)."""

    group_id: String


@struct
class TopicConfig:
    key: String
    value: String


@struct
class TopicInfo:
    name: String
    partitions: Int32
    replication_factor: Int16
    topic_configs: list[TopicConfig]


@struct
class CopartitionGroup:
    source_topics: list[Int16]
    source_topic_regex: list[Int16]
    repartition_source_topics: list[Int16]


@struct
class Subtopology:
    subtopology_id: String
    source_topics: list[String]
    source_topic_regex: list[String]
    state_changelog_topics: list[TopicInfo]
    repartition_sink_topics: list[String]
    repartition_source_topics: list[TopicInfo]
    copartition_groups: list[CopartitionGroup]


@message(coordinator_type=23, versions="0", flexible="0+")
class StreamsGroupTopologyValue:
    """Subtopologies with their source, repartition and changelog topics."""

    epoch: Int32
    subtopologies: list[Subtopology]
