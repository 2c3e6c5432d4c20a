"""Topics that are made because somebody asked for them: what each looks like.

An ordinary topic gets the defaults. The cluster's own topics, which coordinators and clients may ask for first, get
what Kafka gives them, whoever asks: a `__consumer_offsets` with the defaults of an ordinary topic could never be
repaired, since groups are spread over its partitions for ever. Coordinators compress their batches themselves, so
their topics keep what they are given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.metadata.decide_create_topics import USE_DEFAULT
from millstream.metadata.names import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from millstream.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig
from millstream.settings import (
    OFFSETS_TOPIC_NUM_PARTITIONS,
    OFFSETS_TOPIC_REPLICATION_FACTOR,
    OFFSETS_TOPIC_SEGMENT_BYTES,
    SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR,
    SHARE_COORDINATOR_STATE_TOPIC_NUM_PARTITIONS,
    SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR,
    SHARE_COORDINATOR_STATE_TOPIC_SEGMENT_BYTES,
    TRANSACTION_STATE_LOG_MIN_ISR,
    TRANSACTION_STATE_LOG_NUM_PARTITIONS,
    TRANSACTION_STATE_LOG_REPLICATION_FACTOR,
    TRANSACTION_STATE_LOG_SEGMENT_BYTES,
)

if TYPE_CHECKING:
    from millstream.settings.effective import Settings


def automatic_topic(name: str, settings: Settings) -> CreatableTopic:
    """The topic as it is made when somebody asks for it."""
    if name == OFFSETS_TOPIC:
        return _own(
            name,
            settings[OFFSETS_TOPIC_NUM_PARTITIONS],
            settings[OFFSETS_TOPIC_REPLICATION_FACTOR],
            {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(settings[OFFSETS_TOPIC_SEGMENT_BYTES]),
            },
        )
    if name == TRANSACTIONS_TOPIC:
        return _own(
            name,
            settings[TRANSACTION_STATE_LOG_NUM_PARTITIONS],
            settings[TRANSACTION_STATE_LOG_REPLICATION_FACTOR],
            {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": str(settings[TRANSACTION_STATE_LOG_MIN_ISR]),
                "segment.bytes": str(settings[TRANSACTION_STATE_LOG_SEGMENT_BYTES]),
                "unclean.leader.election.enable": "false",
            },
        )
    if name == SHARE_STATE_TOPIC:
        return _own(
            name,
            settings[SHARE_COORDINATOR_STATE_TOPIC_NUM_PARTITIONS],
            settings[SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR],
            {
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "min.insync.replicas": str(settings[SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR]),
                "retention.ms": "-1",
                "segment.bytes": str(settings[SHARE_COORDINATOR_STATE_TOPIC_SEGMENT_BYTES]),
            },
        )
    return _own(name, USE_DEFAULT, USE_DEFAULT, {})


def _own(name: str, partitions: int, replication_factor: int, configs: dict[str, str]) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=[],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )
