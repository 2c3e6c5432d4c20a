"""Every error code of the protocol in one table: number, name, meaning, and whether trying again can help.

Numbers and names are Kafka's; the sentences are ours and go into the reference. RETRIABLE is what Apache Kafka's
clients take it for: they send the same request again, most of them after a refresh of their metadata.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Self

RETRIABLE = True


class ErrorCode(IntEnum):
    """Kafka's error codes by Kafka's names."""

    _value_: int
    meaning: str
    retriable: bool

    def __new__(cls, number: int, meaning: str = "", retriable: bool = False) -> Self:  # noqa: FBT001, FBT002
        member = int.__new__(cls, number)
        member._value_ = number
        member.meaning = meaning
        member.retriable = retriable
        return member

    UNKNOWN_SERVER_ERROR = -1, "Something went wrong inside the broker that no other code describes."
    NONE = 0, "All is well."
    OFFSET_OUT_OF_RANGE = 1, "The offset lies before the first or after the last one that the partition can serve."
    CORRUPT_MESSAGE = 2, "A record batch fails its checksum, its size or its format.", RETRIABLE
    UNKNOWN_TOPIC_OR_PARTITION = 3, "The broker does not know this topic or this partition of it.", RETRIABLE
    INVALID_FETCH_SIZE = 4, "The number of bytes asked for makes no sense."
    LEADER_NOT_AVAILABLE = 5, "The partition has no leader at the moment; an election should follow.", RETRIABLE
    NOT_LEADER_OR_FOLLOWER = 6, "The broker does not lead the partition, or holds no copy of it.", RETRIABLE
    REQUEST_TIMED_OUT = 7, "The work was not finished within the request's own time limit.", RETRIABLE
    BROKER_NOT_AVAILABLE = 8, "No such broker is alive."
    REPLICA_NOT_AVAILABLE = 9, "The copy that was asked for is not here, or not ready to be read.", RETRIABLE
    MESSAGE_TOO_LARGE = 10, "A record batch exceeds the topic's max.message.bytes."
    STALE_CONTROLLER_EPOCH = 11, "The sender follows a controller that has been replaced."
    OFFSET_METADATA_TOO_LARGE = 12, "The note stored with a committed offset is longer than allowed."
    NETWORK_EXCEPTION = 13, "The connection was lost before an answer came.", RETRIABLE
    COORDINATOR_LOAD_IN_PROGRESS = 14, "The coordinator is still reading its state from the log.", RETRIABLE
    COORDINATOR_NOT_AVAILABLE = 15, "The coordinator's partition has no leader yet.", RETRIABLE
    NOT_COORDINATOR = 16, "Another broker coordinates this group or transactional id.", RETRIABLE
    INVALID_TOPIC_EXCEPTION = 17, "The topic name is not allowed, or the operation is not allowed on this topic."
    RECORD_LIST_TOO_LARGE = 18, "The batches of one request together would not fit into a segment."
    NOT_ENOUGH_REPLICAS = (
        19,
        "Fewer copies are in sync than min.insync.replicas asks for; nothing was written.",
        RETRIABLE,
    )
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = (
        20,
        "The records were written, but the in-sync copies then fell below min.insync.replicas.",
        RETRIABLE,
    )
    INVALID_REQUIRED_ACKS = 21, "acks is none of 0, 1 and -1 (all)."
    ILLEGAL_GENERATION = 22, "The member speaks of a generation of the group that is over."
    INCONSISTENT_GROUP_PROTOCOL = 23, "The member shares no protocol with the rest of its group."
    INVALID_GROUP_ID = 24, "The group id is empty or otherwise unusable."
    UNKNOWN_MEMBER_ID = 25, "The group has no member of this id; it may have been removed."
    INVALID_SESSION_TIMEOUT = 26, "The session timeout is outside of the bounds that the broker sets."
    REBALANCE_IN_PROGRESS = 27, "The group is being rebalanced; the member has to join again."
    INVALID_COMMIT_OFFSET_SIZE = 28, "The committed offset and its note are larger than allowed."
    TOPIC_AUTHORIZATION_FAILED = 29, "The principal may not do this to the topic."
    GROUP_AUTHORIZATION_FAILED = 30, "The principal may not do this to the group."
    CLUSTER_AUTHORIZATION_FAILED = 31, "The principal may not do this to the cluster."
    INVALID_TIMESTAMP = 32, "A record's timestamp is too far from the broker's clock."
    UNSUPPORTED_SASL_MECHANISM = 33, "The broker does not offer this SASL mechanism."
    ILLEGAL_SASL_STATE = 34, "The request does not fit the state of the authentication."
    UNSUPPORTED_VERSION = 35, "The broker does not speak this version of the API."
    TOPIC_ALREADY_EXISTS = 36, "A topic of this name exists already."
    INVALID_PARTITIONS = 37, "The number of partitions is not possible."
    INVALID_REPLICATION_FACTOR = 38, "The replication factor is below one or above the number of usable brokers."
    INVALID_REPLICA_ASSIGNMENT = 39, "The assignment of copies to brokers is not possible."
    INVALID_CONFIG = 40, "The setting does not exist, or its value is not allowed."
    NOT_CONTROLLER = 41, "The node is not the active controller.", RETRIABLE
    INVALID_REQUEST = 42, "The request contradicts itself, or is not a request at all."
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, "The record format that is in use cannot do this."
    POLICY_VIOLATION = 44, "The request breaks a policy of this cluster."
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, "A producer's sequence number leaves a gap after its last one."
    DUPLICATE_SEQUENCE_NUMBER = 46, "The batch was written before, longer ago than the broker can say where."
    INVALID_PRODUCER_EPOCH = 47, "A newer instance of this producer has taken over."
    INVALID_TXN_STATE = 48, "The transaction is not in a state that allows this."
    INVALID_PRODUCER_ID_MAPPING = 49, "The producer id does not belong to this transactional id."
    INVALID_TRANSACTION_TIMEOUT = 50, "The transaction timeout exceeds transaction.max.timeout.ms."
    CONCURRENT_TRANSACTIONS = 51, "The last transaction of this id is still being finished.", RETRIABLE
    TRANSACTION_COORDINATOR_FENCED = 52, "A marker came from a coordinator that has been replaced."
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, "The principal may not use this transactional id."
    SECURITY_DISABLED = 54, "The cluster has no authorizer, so there are no ACLs to work on."
    OPERATION_NOT_ATTEMPTED = 55, "The broker gave up before this part, because an earlier one failed."
    KAFKA_STORAGE_ERROR = 56, "The disk that holds the partition has failed.", RETRIABLE
    LOG_DIR_NOT_FOUND = 57, "The broker has no such log directory."
    SASL_AUTHENTICATION_FAILED = 58, "The credentials were refused."
    UNKNOWN_PRODUCER_ID = 59, "The broker has forgotten this producer, or has never met it."
    REASSIGNMENT_IN_PROGRESS = 60, "The partition is being moved; that has to end first."
    DELEGATION_TOKEN_AUTH_DISABLED = 61, "The cluster does not offer delegation tokens."
    DELEGATION_TOKEN_NOT_FOUND = 62, "There is no such delegation token."
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, "The principal neither owns nor may renew the token."
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, "Tokens are not handed out over this connection."
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, "The principal may not do this to the delegation token."
    DELEGATION_TOKEN_EXPIRED = 66, "The delegation token is past its time."
    INVALID_PRINCIPAL_TYPE = 67, "The broker does not know this type of principal."
    NON_EMPTY_GROUP = 68, "The group still has members."
    GROUP_ID_NOT_FOUND = 69, "There is no group of this id."
    FETCH_SESSION_ID_NOT_FOUND = 70, "The fetch session is gone; the client starts a new one.", RETRIABLE
    INVALID_FETCH_SESSION_EPOCH = 71, "The fetch session is at another epoch than the request.", RETRIABLE
    LISTENER_NOT_FOUND = 72, "The partition's leader has no listener of the name that the client used.", RETRIABLE
    TOPIC_DELETION_DISABLED = 73, "delete.topic.enable is off on this cluster."
    FENCED_LEADER_EPOCH = 74, "The request's leader epoch is older than the partition's.", RETRIABLE
    UNKNOWN_LEADER_EPOCH = 75, "The request's leader epoch is newer than the one this broker knows.", RETRIABLE
    UNSUPPORTED_COMPRESSION_TYPE = 76, "The client's version of the API cannot carry this compression."
    STALE_BROKER_EPOCH = 77, "The broker has registered anew since this request was made."
    OFFSET_NOT_AVAILABLE = 78, "The new leader does not know its high watermark yet.", RETRIABLE
    MEMBER_ID_REQUIRED = 79, "The member has been given an id and shall join again with it."
    PREFERRED_LEADER_NOT_AVAILABLE = 80, "The preferred leader is not alive or not in sync.", RETRIABLE
    GROUP_MAX_SIZE_REACHED = 81, "The group takes no more members."
    FENCED_INSTANCE_ID = 82, "Another member with the same group.instance.id has taken over."
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, "No copy that could lead the partition is alive.", RETRIABLE
    ELECTION_NOT_NEEDED = 84, "The partition is led already as asked.", RETRIABLE
    NO_REASSIGNMENT_IN_PROGRESS = 85, "The partition is not being moved."
    GROUP_SUBSCRIBED_TO_TOPIC = 86, "The group still reads the topic, so its offsets stay."
    INVALID_RECORD = 87, "A record breaks a rule of its topic, such as a missing key where a key is needed."
    UNSTABLE_OFFSET_COMMIT = 88, "Offsets of an open transaction may still change what was asked for.", RETRIABLE
    THROTTLING_QUOTA_EXCEEDED = 89, "The client has used up its quota; it may come back later.", RETRIABLE
    PRODUCER_FENCED = 90, "Another producer with the same transactional id has taken over."
    RESOURCE_NOT_FOUND = 91, "The thing that the request names does not exist."
    DUPLICATE_RESOURCE = 92, "The request names the same thing twice."
    UNACCEPTABLE_CREDENTIAL = 93, "The new credential is empty, too weak or malformed."
    INCONSISTENT_VOTER_SET = 94, "One side takes itself or the other for a voter, and the other does not agree."
    INVALID_UPDATE_VERSION = 95, "The update was based on a version that is not the current one."
    FEATURE_UPDATE_FAILED = 96, "The feature cannot be set to this level."
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, "The principal inside a forwarded request cannot be read."
    SNAPSHOT_NOT_FOUND = 98, "There is no such snapshot (any more)."
    POSITION_OUT_OF_RANGE = 99, "The position lies outside of the snapshot."
    UNKNOWN_TOPIC_ID = 100, "The broker knows no topic of this id.", RETRIABLE
    DUPLICATE_BROKER_REGISTRATION = 101, "Another live broker is registered under this id."
    BROKER_ID_NOT_REGISTERED = 102, "No broker is registered under this id."
    INCONSISTENT_TOPIC_ID = 103, "The topic of this name has another id than the request says.", RETRIABLE
    INCONSISTENT_CLUSTER_ID = 104, "The request was meant for another cluster."
    TRANSACTIONAL_ID_NOT_FOUND = 105, "There is no such transactional id."
    FETCH_SESSION_TOPIC_ID_ERROR = 106, "The fetch session switched between topic names and topic ids.", RETRIABLE
    INELIGIBLE_REPLICA = 107, "A copy may not enter the ISR, because its broker is fenced or shutting down."
    NEW_LEADER_ELECTED = 108, "The change went through and moved the leadership away from the sender."
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, "The offset is no longer on the broker's own disks."
    FENCED_MEMBER_EPOCH = 110, "The coordinator has moved on from the member's epoch; it has to join anew."
    UNRELEASED_INSTANCE_ID = 111, "The group.instance.id is still in use by another member."
    UNSUPPORTED_ASSIGNOR = 112, "The group has no such assignor, or its members share none."
    STALE_MEMBER_EPOCH = 113, "The member's epoch is not the current one; it should heartbeat and try again."
    MISMATCHED_ENDPOINT_TYPE = 114, "The request went to a broker but is for controllers, or the other way round."
    UNSUPPORTED_ENDPOINT_TYPE = 115, "The broker does not know this type of endpoint."
    UNKNOWN_CONTROLLER_ID = 116, "No controller of this id is known."
    UNKNOWN_SUBSCRIPTION_ID = 117, "The telemetry subscription has changed; the client asks for the new one."
    TELEMETRY_TOO_LARGE = 118, "The metrics that the client pushed are larger than allowed."
    INVALID_REGISTRATION = 119, "The controller refuses the broker's registration."
    TRANSACTION_ABORTABLE = 120, "The transaction cannot be saved, but the producer can abort it and go on."
    INVALID_RECORD_STATE = 121, "A share group's record is not in a state that allows this acknowledgement."
    SHARE_SESSION_NOT_FOUND = 122, "The share session is gone; the client starts a new one.", RETRIABLE
    INVALID_SHARE_SESSION_EPOCH = 123, "The share session is at another epoch than the request.", RETRIABLE
    FENCED_STATE_EPOCH = 124, "The share group's state has moved on to a newer epoch."
    INVALID_VOTER_KEY = 125, "The voter named in the request is not the node that received it."
    DUPLICATE_VOTER = 126, "The node is a voter already."
    VOTER_NOT_FOUND = 127, "The node is not a voter."
    INVALID_REGULAR_EXPRESSION = 128, "The subscription's pattern cannot be parsed."
    REBOOTSTRAP_REQUIRED = (
        129,
        "The client's view is too old to be repaired; it starts again from its bootstrap servers.",
    )
    STREAMS_INVALID_TOPOLOGY = 130, "The Streams topology is contradictory."
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, "The epoch of the Streams topology is not valid."
    STREAMS_TOPOLOGY_FENCED = 132, "The group runs a newer Streams topology than this member."
    SHARE_SESSION_LIMIT_REACHED = 133, "The broker keeps no more share sessions.", RETRIABLE
