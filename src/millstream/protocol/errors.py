"""The exceptions that carry an error code to a peer.

A BrokerError is a refusal that the peer should hear: whoever raises it means the code and the sentence to reach the
client. Bugs of ours are `assert`s; routine outcomes are return values.
"""

from __future__ import annotations

from typing import ClassVar

from millstream.protocol.error_codes import ErrorCode

__all__ = [
    "BrokerError",
    "ClusterAuthorizationFailed",
    "CorruptMessage",
    "ErrorCode",
    "FeatureUpdateFailed",
    "FencedLeaderEpoch",
    "InconsistentTopicId",
    "InvalidConfig",
    "InvalidPartitions",
    "InvalidProducerEpoch",
    "InvalidRecord",
    "InvalidReplicaAssignment",
    "InvalidReplicationFactor",
    "InvalidRequest",
    "InvalidRequiredAcks",
    "InvalidTimestamp",
    "InvalidTopic",
    "MalformedMessage",
    "NotController",
    "NotEnoughReplicas",
    "NotLeader",
    "OffsetOutOfRange",
    "OutOfOrderSequence",
    "PolicyViolation",
    "RecordListTooLarge",
    "RecordTooLarge",
    "RequestTimedOut",
    "ResourceNotFound",
    "StorageError",
    "TopicAuthorizationFailed",
    "TopicDeletionDisabled",
    "TopicExists",
    "UnknownLeaderEpoch",
    "UnknownProducerId",
    "UnknownRecordType",
    "UnknownTopicId",
    "UnknownTopicOrPartition",
    "UnsupportedCompression",
    "UnsupportedForMessageFormat",
    "UnsupportedVersion",
]


class BrokerError(Exception):
    """A refusal that the peer should hear."""

    code: ClassVar[ErrorCode] = ErrorCode.UNKNOWN_SERVER_ERROR

    def __init_subclass__(cls, *, code: ErrorCode | None = None) -> None:
        if code is not None:
            cls.code = code

    def __init__(self, message: str = "") -> None:
        super().__init__(message or type(self).__doc__ or self.code.name)

    @property
    def message(self) -> str:
        return str(self)


class UnknownTopicOrPartition(BrokerError, code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
    """The topic or partition does not exist on this server."""


class UnknownTopicId(BrokerError, code=ErrorCode.UNKNOWN_TOPIC_ID):
    """No topic has this id here."""


class InconsistentTopicId(BrokerError, code=ErrorCode.INCONSISTENT_TOPIC_ID):
    """The topic's id is not the one in the request."""


class NotLeader(BrokerError, code=ErrorCode.NOT_LEADER_OR_FOLLOWER):
    """The partition is led by another broker; the client refreshes its metadata."""


class FencedLeaderEpoch(BrokerError, code=ErrorCode.FENCED_LEADER_EPOCH):
    """The request's leader epoch is older than the partition's."""


class UnknownLeaderEpoch(BrokerError, code=ErrorCode.UNKNOWN_LEADER_EPOCH):
    """The request's leader epoch is newer than the one known here."""


class OffsetOutOfRange(BrokerError, code=ErrorCode.OFFSET_OUT_OF_RANGE):
    """The offset is outside of what the partition holds."""


class CorruptMessage(BrokerError, code=ErrorCode.CORRUPT_MESSAGE):
    """A record batch is corrupt."""


class InvalidRecord(BrokerError, code=ErrorCode.INVALID_RECORD):
    """A record breaks a rule of its topic."""


class InvalidTimestamp(BrokerError, code=ErrorCode.INVALID_TIMESTAMP):
    """A record timestamp is outside of the allowed range."""


class RecordTooLarge(BrokerError, code=ErrorCode.MESSAGE_TOO_LARGE):
    """A record batch is larger than the topic allows."""


class RecordListTooLarge(BrokerError, code=ErrorCode.RECORD_LIST_TOO_LARGE):
    """The record batches together are larger than a segment."""


class UnsupportedForMessageFormat(BrokerError, code=ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT):
    """The record format is too old."""


class UnsupportedCompression(BrokerError, code=ErrorCode.UNSUPPORTED_COMPRESSION_TYPE):
    """The compression is not supported here."""


class OutOfOrderSequence(BrokerError, code=ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
    """The producer's sequence number does not follow its last one."""


class InvalidProducerEpoch(BrokerError, code=ErrorCode.INVALID_PRODUCER_EPOCH):
    """A newer producer with the same id has taken over."""


class UnknownProducerId(BrokerError, code=ErrorCode.UNKNOWN_PRODUCER_ID):
    """The producer id is not known here."""


class NotEnoughReplicas(BrokerError, code=ErrorCode.NOT_ENOUGH_REPLICAS):
    """Fewer replicas are in sync than min.insync.replicas asks for."""


class StorageError(BrokerError, code=ErrorCode.KAFKA_STORAGE_ERROR):
    """The partition is offline: its disk failed."""


class InvalidRequest(BrokerError, code=ErrorCode.INVALID_REQUEST):
    """The request makes no sense."""


class MalformedMessage(BrokerError, code=ErrorCode.INVALID_REQUEST):
    """The bytes are not a message of the kind and version that they claim to be."""


class UnknownRecordType(MalformedMessage):
    """A record of Kafka's own logs has a type or version that is not known here: someone newer wrote it."""


class InvalidTopic(BrokerError, code=ErrorCode.INVALID_TOPIC_EXCEPTION):
    """The topic name is not allowed."""


class TopicExists(BrokerError, code=ErrorCode.TOPIC_ALREADY_EXISTS):
    """A topic of this name exists."""


class InvalidPartitions(BrokerError, code=ErrorCode.INVALID_PARTITIONS):
    """The number of partitions is not allowed."""


class InvalidReplicationFactor(BrokerError, code=ErrorCode.INVALID_REPLICATION_FACTOR):
    """The replication factor is not possible."""


class InvalidReplicaAssignment(BrokerError, code=ErrorCode.INVALID_REPLICA_ASSIGNMENT):
    """The replica assignment is not possible."""


class InvalidConfig(BrokerError, code=ErrorCode.INVALID_CONFIG):
    """The setting or its value is not allowed."""


class PolicyViolation(BrokerError, code=ErrorCode.POLICY_VIOLATION):
    """The request breaks a policy."""


class InvalidRequiredAcks(BrokerError, code=ErrorCode.INVALID_REQUIRED_ACKS):
    """acks must be 0, 1 or -1."""


class UnsupportedVersion(BrokerError, code=ErrorCode.UNSUPPORTED_VERSION):
    """The version of this API is not supported."""


class TopicDeletionDisabled(BrokerError, code=ErrorCode.TOPIC_DELETION_DISABLED):
    """delete.topic.enable is off."""


class RequestTimedOut(BrokerError, code=ErrorCode.REQUEST_TIMED_OUT):
    """The request was not finished in time."""


class NotController(BrokerError, code=ErrorCode.NOT_CONTROLLER):
    """Another node is the active controller."""


class ClusterAuthorizationFailed(BrokerError, code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED):
    """The principal may not do this on the cluster."""


class TopicAuthorizationFailed(BrokerError, code=ErrorCode.TOPIC_AUTHORIZATION_FAILED):
    """The principal may not do this on the topic."""


class FeatureUpdateFailed(BrokerError, code=ErrorCode.FEATURE_UPDATE_FAILED):
    """The feature level cannot be changed so."""


class ResourceNotFound(BrokerError, code=ErrorCode.RESOURCE_NOT_FOUND):
    """There is no such resource."""


class CoordinatorLoading(BrokerError, code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
    """The coordinator is reading its log and answers in a moment."""


class NotCoordinator(BrokerError, code=ErrorCode.NOT_COORDINATOR):
    """Another broker coordinates this; the client asks which."""


class CoordinatorNotAvailable(BrokerError, code=ErrorCode.COORDINATOR_NOT_AVAILABLE):
    """There is no coordinator for this at the moment."""


class GroupNotFound(BrokerError, code=ErrorCode.GROUP_ID_NOT_FOUND):
    """There is no such group."""


class UnknownMember(BrokerError, code=ErrorCode.UNKNOWN_MEMBER_ID):
    """The group does not know this member."""


class IllegalGeneration(BrokerError, code=ErrorCode.ILLEGAL_GENERATION):
    """The generation is not the group's."""


class StaleMemberEpoch(BrokerError, code=ErrorCode.STALE_MEMBER_EPOCH):
    """The member's epoch is not its current one; it asks again once it knows that."""


class FencedInstance(BrokerError, code=ErrorCode.FENCED_INSTANCE_ID):
    """Another member has taken over this instance id."""


class RebalanceInProgress(BrokerError, code=ErrorCode.REBALANCE_IN_PROGRESS):
    """The group is rebalancing; the member joins again."""


class NonEmptyGroup(BrokerError, code=ErrorCode.NON_EMPTY_GROUP):
    """The group has members."""


class InconsistentGroupProtocol(BrokerError, code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL):
    """The member's protocol type or protocols are not those of the group."""


class InvalidGroupId(BrokerError, code=ErrorCode.INVALID_GROUP_ID):
    """A group's id is not empty."""


class InvalidSessionTimeout(BrokerError, code=ErrorCode.INVALID_SESSION_TIMEOUT):
    """The session timeout is outside of what the broker allows."""


class ProducerFenced(BrokerError, code=ErrorCode.PRODUCER_FENCED):
    """Another producer with the same transactional id has taken over."""


class InvalidProducerIdMapping(BrokerError, code=ErrorCode.INVALID_PRODUCER_ID_MAPPING):
    """The producer id is not the one of this transactional id."""


class InvalidTransactionState(BrokerError, code=ErrorCode.INVALID_TXN_STATE):
    """The transaction is not in a state that allows this."""


class InvalidTransactionTimeout(BrokerError, code=ErrorCode.INVALID_TRANSACTION_TIMEOUT):
    """The transaction timeout is not above 0, or longer than transaction.max.timeout.ms."""


class ConcurrentTransactions(BrokerError, code=ErrorCode.CONCURRENT_TRANSACTIONS):
    """The last transaction of this id is still being ended; the producer asks again."""


class TransactionalIdNotFound(BrokerError, code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND):
    """There is no such transactional id."""


class CoordinatorFenced(BrokerError, code=ErrorCode.TRANSACTION_COORDINATOR_FENCED):
    """A newer transaction coordinator has written a marker already."""


class FencedMemberEpoch(BrokerError, code=ErrorCode.FENCED_MEMBER_EPOCH):
    """The member's epoch is not the one that the group knows: it gives up its partitions and joins anew."""


class UnreleasedInstance(BrokerError, code=ErrorCode.UNRELEASED_INSTANCE_ID):
    """Another member has this instance id and has not left."""


class UnsupportedAssignor(BrokerError, code=ErrorCode.UNSUPPORTED_ASSIGNOR):
    """The assignor is not one of the broker's."""


class GroupFull(BrokerError, code=ErrorCode.GROUP_MAX_SIZE_REACHED):
    """The group has as many members as it may have."""


class InvalidPattern(BrokerError, code=ErrorCode.INVALID_REGULAR_EXPRESSION):
    """The pattern is no regular expression."""
