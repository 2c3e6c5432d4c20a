"""Records are written in the versions that Apache Kafka's MetadataVersion prescribes for a level."""

from __future__ import annotations

import pytest

from millstream.metadata.metadata_version import LEVEL_MAX, LEVEL_MIN, NAMES, record_version
from millstream.metadata.record_types import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from millstream.protocol.uuid import ZERO_UUID

BROKER = RegisterBrokerRecord(
    broker_id=1, incarnation_id=ZERO_UUID, broker_epoch=1, end_points=[], features=[], rack=None
)
PARTITION = PartitionChangeRecord(topic_id=ZERO_UUID)


@pytest.mark.parametrize(
    ("record", "level", "version"),
    [
        (BROKER, 7, 1),
        (BROKER, 8, 2),
        (BROKER, 16, 2),
        (BROKER, 17, 3),
        (BROKER, 29, 3),
        (BROKER, 30, 4),
        (PARTITION, 16, 0),
        (PARTITION, 17, 1),
        (PARTITION, 22, 1),
        (PARTITION, 23, 2),
        (TopicRecord(name="t", topic_id=ZERO_UUID), 30, 0),
        (BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1, fenced=1), 30, 0),
        (BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1, in_controlled_shutdown=1), 30, 1),
        (BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1, log_dirs=[ZERO_UUID]), 30, 2),
        (BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1, cordoned_log_dirs=[]), 30, 3),
    ],
)
def test_the_level_decides_the_version(record: MetadataRecord, level: int, version: int) -> None:
    assert record_version(record, level) == version


def test_every_level_has_its_name() -> None:
    assert list(NAMES) == list(range(LEVEL_MIN, LEVEL_MAX + 1))
