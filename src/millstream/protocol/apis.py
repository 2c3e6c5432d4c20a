"""Which message belongs to which number: APIs by key, records of Kafka's own logs by type.

The tables hold names only. A declaration is imported when its number is first looked up, so that a broker that answers
three APIs, or a command that sends two, does not load them all. Versions and listeners are read from the declarations.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from millstream.protocol.declare import declaration
from millstream.protocol.errors import MalformedMessage, UnknownRecordType

if TYPE_CHECKING:
    from millstream.protocol.declare import Listener, Versions

CoordinatorLog = Literal["groups", "transactions", "share_state"]

API_VERSIONS_KEY = 18

API_NAMES: dict[int, str] = {
    0: "Produce",
    1: "Fetch",
    2: "ListOffsets",
    3: "Metadata",
    8: "OffsetCommit",
    9: "OffsetFetch",
    10: "FindCoordinator",
    11: "JoinGroup",
    12: "Heartbeat",
    13: "LeaveGroup",
    14: "SyncGroup",
    15: "DescribeGroups",
    16: "ListGroups",
    17: "SaslHandshake",
    18: "ApiVersions",
    19: "CreateTopics",
    20: "DeleteTopics",
    21: "DeleteRecords",
    22: "InitProducerId",
    23: "OffsetForLeaderEpoch",
    24: "AddPartitionsToTxn",
    25: "AddOffsetsToTxn",
    26: "EndTxn",
    27: "WriteTxnMarkers",
    28: "TxnOffsetCommit",
    29: "DescribeAcls",
    30: "CreateAcls",
    31: "DeleteAcls",
    32: "DescribeConfigs",
    33: "AlterConfigs",
    34: "AlterReplicaLogDirs",
    35: "DescribeLogDirs",
    36: "SaslAuthenticate",
    37: "CreatePartitions",
    38: "CreateDelegationToken",
    39: "RenewDelegationToken",
    40: "ExpireDelegationToken",
    41: "DescribeDelegationToken",
    42: "DeleteGroups",
    43: "ElectLeaders",
    44: "IncrementalAlterConfigs",
    45: "AlterPartitionReassignments",
    46: "ListPartitionReassignments",
    47: "OffsetDelete",
    48: "DescribeClientQuotas",
    49: "AlterClientQuotas",
    50: "DescribeUserScramCredentials",
    51: "AlterUserScramCredentials",
    52: "Vote",
    53: "BeginQuorumEpoch",
    54: "EndQuorumEpoch",
    55: "DescribeQuorum",
    56: "AlterPartition",
    57: "UpdateFeatures",
    58: "Envelope",
    59: "FetchSnapshot",
    60: "DescribeCluster",
    61: "DescribeProducers",
    62: "BrokerRegistration",
    63: "BrokerHeartbeat",
    64: "UnregisterBroker",
    65: "DescribeTransactions",
    66: "ListTransactions",
    67: "AllocateProducerIds",
    68: "ConsumerGroupHeartbeat",
    69: "ConsumerGroupDescribe",
    70: "ControllerRegistration",
    71: "GetTelemetrySubscriptions",
    72: "PushTelemetry",
    73: "AssignReplicasToDirs",
    74: "ListConfigResources",
    75: "DescribeTopicPartitions",
    76: "ShareGroupHeartbeat",
    77: "ShareGroupDescribe",
    78: "ShareFetch",
    79: "ShareAcknowledge",
    80: "AddRaftVoter",
    81: "RemoveRaftVoter",
    82: "UpdateRaftVoter",
    83: "InitializeShareGroupState",
    84: "ReadShareGroupState",
    85: "WriteShareGroupState",
    86: "DeleteShareGroupState",
    87: "ReadShareGroupStateSummary",
    88: "StreamsGroupHeartbeat",
    89: "StreamsGroupDescribe",
    90: "DescribeShareGroupOffsets",
    91: "AlterShareGroupOffsets",
    92: "DeleteShareGroupOffsets",
}

METADATA_RECORD_NAMES: dict[int, str] = {
    0: "RegisterBroker",
    1: "UnregisterBroker",
    2: "Topic",
    3: "Partition",
    4: "Config",
    5: "PartitionChange",
    7: "FenceBroker",
    8: "UnfenceBroker",
    9: "RemoveTopic",
    10: "DelegationToken",
    11: "UserScramCredential",
    12: "FeatureLevel",
    14: "ClientQuota",
    15: "ProducerIds",
    17: "BrokerRegistrationChange",
    18: "AccessControlEntry",
    19: "RemoveAccessControlEntry",
    20: "NoOp",
    21: "ZkMigrationState",
    22: "RemoveUserScramCredential",
    23: "BeginTransaction",
    24: "EndTransaction",
    25: "AbortTransaction",
    26: "RemoveDelegationToken",
    27: "RegisterController",
    28: "ClearElr",
}

COORDINATOR_RECORD_NAMES: dict[CoordinatorLog, dict[int, str]] = {
    "groups": {
        0: "LegacyOffsetCommit",
        1: "OffsetCommit",
        2: "GroupMetadata",
        3: "ConsumerGroupMetadata",
        4: "ConsumerGroupPartitionMetadata",
        5: "ConsumerGroupMemberMetadata",
        6: "ConsumerGroupTargetAssignmentMetadata",
        7: "ConsumerGroupTargetAssignmentMember",
        8: "ConsumerGroupCurrentMemberAssignment",
        10: "ShareGroupMemberMetadata",
        11: "ShareGroupMetadata",
        12: "ShareGroupTargetAssignmentMetadata",
        13: "ShareGroupTargetAssignmentMember",
        14: "ShareGroupCurrentMemberAssignment",
        15: "ShareGroupStatePartitionMetadata",
        16: "ConsumerGroupRegularExpression",
        17: "StreamsGroupMetadata",
        19: "StreamsGroupMemberMetadata",
        20: "StreamsGroupTargetAssignmentMetadata",
        21: "StreamsGroupTargetAssignmentMember",
        22: "StreamsGroupCurrentMemberAssignment",
        23: "StreamsGroupTopology",
    },
    "transactions": {0: "TransactionLog"},
    "share_state": {0: "ShareSnapshot", 1: "ShareUpdate"},
}


@dataclass(frozen=True, slots=True)
class Api:
    """One API: its request and response, and what both declare."""

    key: int
    name: str
    request: type[Any]
    response: type[Any]
    versions: Versions
    flexible: Versions
    listeners: tuple[Listener, ...]
    unstable: Versions

    def response_is_tagged(self, version: int) -> bool:
        """Whether the response's header ends with tagged fields.

        ApiVersions answers before the peer knows what we speak, so its header never changes.
        """
        return self.key != API_VERSIONS_KEY and version in self.flexible


@cache
def api(key: int) -> Api:
    """Look up an API by its key; MalformedMessage if there is none."""
    name = API_NAMES.get(key)
    if name is None:
        raise MalformedMessage(f"there is no API with key {key}")
    # `messages.metadata` is the package of metadata records, so the API of that name lives beside it.
    module = import_module(f"millstream.protocol.messages.{'metadata_api' if name == 'Metadata' else _snake(name)}")
    request: type[Any] = getattr(module, name + "Request")
    declared = declaration(request)
    return Api(
        key=key,
        name=name,
        request=request,
        response=getattr(module, name + "Response"),
        versions=declared.versions,
        flexible=declared.flexible,
        listeners=declared.listeners,
        unstable=declared.unstable,
    )


def response_class(key: int) -> type[Any]:
    return api(key).response


@cache
def metadata_record_class(record_type: int) -> type[Any]:
    """The declaration of a metadata record by its number; UnknownRecordType if a newer release wrote it."""
    name = METADATA_RECORD_NAMES.get(record_type)
    if name is None:
        raise UnknownRecordType(f"metadata record type {record_type} is not known")
    found: type[Any] = _declared(f"metadata.{_snake(name)}", name + "Record")
    return found


@cache
def coordinator_record_classes(log: CoordinatorLog, record_type: int) -> tuple[type[Any], type[Any]]:
    """The key and value declarations of a coordinator's record; UnknownRecordType if a newer release wrote it."""
    name = COORDINATOR_RECORD_NAMES[log].get(record_type)
    if name is None:
        raise UnknownRecordType(f"record type {record_type} of the coordinator's log of {log} is not known")
    module = f"{log}.{_snake(name)}"
    return _declared(module, name + "Key"), _declared(module, name + "Value")


def _declared(module: str, name: str) -> type[Any]:
    found: type[Any] = getattr(import_module(f"millstream.protocol.messages.{module}"), name)
    return found


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
