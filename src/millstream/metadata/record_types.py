"""Every record type of the metadata log, by its number and as one union.

The frame around a record in the log (`frame.py`) names the type by number.
"""

from __future__ import annotations

from typing import Any, get_args

from millstream.protocol.declare import declaration
from millstream.protocol.messages.metadata.abort_transaction import AbortTransactionRecord
from millstream.protocol.messages.metadata.access_control_entry import AccessControlEntryRecord
from millstream.protocol.messages.metadata.begin_transaction import BeginTransactionRecord
from millstream.protocol.messages.metadata.broker_registration_change import BrokerRegistrationChangeRecord
from millstream.protocol.messages.metadata.clear_elr import ClearElrRecord
from millstream.protocol.messages.metadata.client_quota import ClientQuotaRecord
from millstream.protocol.messages.metadata.config import ConfigRecord
from millstream.protocol.messages.metadata.delegation_token import DelegationTokenRecord
from millstream.protocol.messages.metadata.end_transaction import EndTransactionRecord
from millstream.protocol.messages.metadata.feature_level import FeatureLevelRecord
from millstream.protocol.messages.metadata.fence_broker import FenceBrokerRecord
from millstream.protocol.messages.metadata.no_op import NoOpRecord
from millstream.protocol.messages.metadata.partition import PartitionRecord
from millstream.protocol.messages.metadata.partition_change import PartitionChangeRecord
from millstream.protocol.messages.metadata.producer_ids import ProducerIdsRecord
from millstream.protocol.messages.metadata.register_broker import RegisterBrokerRecord
from millstream.protocol.messages.metadata.register_controller import RegisterControllerRecord
from millstream.protocol.messages.metadata.remove_access_control_entry import RemoveAccessControlEntryRecord
from millstream.protocol.messages.metadata.remove_delegation_token import RemoveDelegationTokenRecord
from millstream.protocol.messages.metadata.remove_topic import RemoveTopicRecord
from millstream.protocol.messages.metadata.remove_user_scram_credential import RemoveUserScramCredentialRecord
from millstream.protocol.messages.metadata.topic import TopicRecord
from millstream.protocol.messages.metadata.unfence_broker import UnfenceBrokerRecord
from millstream.protocol.messages.metadata.unregister_broker import UnregisterBrokerRecord
from millstream.protocol.messages.metadata.user_scram_credential import UserScramCredentialRecord
from millstream.protocol.messages.metadata.zk_migration_state import ZkMigrationStateRecord

__all__ = [
    "KIND_BY_TYPE",
    "AbortTransactionRecord",
    "AccessControlEntryRecord",
    "BeginTransactionRecord",
    "BrokerRegistrationChangeRecord",
    "ClearElrRecord",
    "ClientQuotaRecord",
    "ConfigRecord",
    "DelegationTokenRecord",
    "EndTransactionRecord",
    "FeatureLevelRecord",
    "FenceBrokerRecord",
    "MetadataRecord",
    "NoOpRecord",
    "PartitionChangeRecord",
    "PartitionRecord",
    "ProducerIdsRecord",
    "RegisterBrokerRecord",
    "RegisterControllerRecord",
    "RemoveAccessControlEntryRecord",
    "RemoveDelegationTokenRecord",
    "RemoveTopicRecord",
    "RemoveUserScramCredentialRecord",
    "TopicRecord",
    "UnfenceBrokerRecord",
    "UnregisterBrokerRecord",
    "UserScramCredentialRecord",
    "ZkMigrationStateRecord",
]

MetadataRecord = (
    AbortTransactionRecord
    | AccessControlEntryRecord
    | BeginTransactionRecord
    | BrokerRegistrationChangeRecord
    | ClearElrRecord
    | ClientQuotaRecord
    | ConfigRecord
    | DelegationTokenRecord
    | EndTransactionRecord
    | FeatureLevelRecord
    | FenceBrokerRecord
    | NoOpRecord
    | PartitionRecord
    | PartitionChangeRecord
    | ProducerIdsRecord
    | RegisterBrokerRecord
    | RegisterControllerRecord
    | RemoveAccessControlEntryRecord
    | RemoveDelegationTokenRecord
    | RemoveTopicRecord
    | RemoveUserScramCredentialRecord
    | TopicRecord
    | UnfenceBrokerRecord
    | UnregisterBrokerRecord
    | UserScramCredentialRecord
    | ZkMigrationStateRecord
)

KIND_BY_TYPE: dict[int, type[Any]] = {
    number: kind for kind in get_args(MetadataRecord) if (number := declaration(kind).record_type) is not None
}
