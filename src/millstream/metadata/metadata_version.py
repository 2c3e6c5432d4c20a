"""metadata.version: the levels that exist, and in which version each record is written at a level.

The finalized level says what every node of the cluster can read, so a record is never written in a newer version than
it allows. Levels and names are Apache Kafka's; 7 is the oldest that Kafka 4 still opens.
"""

from __future__ import annotations

from typing import Final

from millstream.metadata.record_types import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
)

LEVEL_MIN: Final = 7
LEVEL_MAX: Final = 30

NAMES: Final[dict[int, str]] = {
    7: "3.3-IV3",
    8: "3.4-IV0",
    9: "3.5-IV0",
    10: "3.5-IV1",
    11: "3.5-IV2",
    12: "3.6-IV0",
    13: "3.6-IV1",
    14: "3.6-IV2",
    15: "3.7-IV0",
    16: "3.7-IV1",
    17: "3.7-IV2",
    18: "3.7-IV3",
    19: "3.7-IV4",
    20: "3.8-IV0",
    21: "3.9-IV0",
    22: "4.0-IV0",
    23: "4.0-IV1",
    24: "4.0-IV2",
    25: "4.0-IV3",
    26: "4.1-IV0",
    27: "4.1-IV1",
    28: "4.2-IV0",
    29: "4.2-IV1",
    30: "4.3-IV0",
}

# The first level that has a thing.
ZK_MIGRATION: Final = 8
SCRAM: Final = 11
TRANSACTIONS: Final = 13
DELEGATION_TOKENS: Final = 14
CONTROLLER_REGISTRATION: Final = 15
DIRECTORY_ASSIGNMENT: Final = 17
ELIGIBLE_LEADER_REPLICAS: Final = 23
CORDONED_LOG_DIRS: Final = 30


def record_version(record: MetadataRecord, level: int) -> int:
    """The version in which Apache Kafka writes `record` while metadata.version is `level`."""
    if isinstance(record, PartitionRecord | PartitionChangeRecord):
        if level >= ELIGIBLE_LEADER_REPLICAS:
            return 2
        return 1 if level >= DIRECTORY_ASSIGNMENT else 0
    if isinstance(record, RegisterBrokerRecord):
        return register_broker_version(level)
    if isinstance(record, BrokerRegistrationChangeRecord):
        return _lowest_that_carries(record)
    return 0


def register_broker_version(level: int) -> int:
    if level >= CORDONED_LOG_DIRS:
        return 4
    if level >= DIRECTORY_ASSIGNMENT:
        return 3
    return 2 if level >= ZK_MIGRATION else 1


def _lowest_that_carries(record: BrokerRegistrationChangeRecord) -> int:
    # Kafka writes this one in the oldest version that has the field which changed.
    if record.cordoned_log_dirs is not None:
        return 3
    if record.log_dirs:
        return 2
    return 1 if record.in_controlled_shutdown else 0
