"""What can go wrong for a client, as sentences that a person can act on.

`Refusal` is a broker's "no": an error code with the topic, partition, group or broker it is about. The others are
about the way there: no broker answered, the connection broke, the answer took too long, the login failed.
"""

from __future__ import annotations

from millstream.protocol.errors import ErrorCode


class ClientError(Exception):
    """The base of everything that this package raises; its text is one sentence for a person."""

    retriable = False


class BadOption(ClientError):
    """An option of the client makes no sense."""


class Unreachable(ClientError):
    """No broker of the list could be reached."""

    retriable = True


class NeverReached(Unreachable):
    """Not even the first contact worked: more likely a wrong address than a passing trouble, so it is said at once."""

    retriable = False


class ConnectionLost(ClientError):
    """The connection broke with requests under way; whether they were carried out is unknown."""

    retriable = True


class TimedOut(ClientError):
    """No answer in time."""

    retriable = True


class AuthenticationFailed(ClientError):
    """The broker did not accept who we say we are."""


class TlsFailed(ClientError):
    """The connection could not be encrypted or the broker's certificate is not trusted."""


class NotSupported(ClientError):
    """The broker is too old, or too new, for this request."""


class ProtocolViolation(ClientError):
    """The peer sent something that is not Kafka's protocol."""


class CorruptBatch(ClientError):
    """A record batch that cannot be read; `offset` is its first, or the one that was asked for where that is lost.

    `next_offset` is where to read on behind it, None if the damage hides where it ends.
    """

    def __init__(self, topic: str, partition: int, offset: int, reason: str, *, next_offset: int | None = None) -> None:
        super().__init__(f"{partition_subject(topic, partition)} offset {offset}: {reason}")
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.next_offset = next_offset


class Refusal(ClientError):
    """A broker refused; `code` says why, `subject` says what it is about."""

    def __init__(self, code: int, message: str | None = None, *, subject: str = "") -> None:
        self.code = error_code(code)
        self.subject = subject
        self.broker_message = message or None
        said = message or MEANINGS.get(self.code) or self.code.name.replace("_", " ").lower()
        sentence = said.rstrip(".")
        super().__init__(
            f"{subject}: {sentence} ({self.code.name})" if subject else f"{sentence} ({self.code.name})",
        )

    @property
    def retriable(self) -> bool:  # type: ignore[override]  # a fact about the code, not about the class
        return self.code.retriable


def error_code(number: int) -> ErrorCode:
    """The code, or UNKNOWN_SERVER_ERROR for one that a newer broker may have invented."""
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def refuse(code: int, message: str | None = None, *, subject: str = "") -> None:
    """Raise a Refusal unless the code says that all is well."""
    if code:
        raise Refusal(code, message, subject=subject)


def topic_subject(topic: str) -> str:
    return f"topic {topic!r}"


def partition_subject(topic: str, partition: int) -> str:
    return f"topic {topic!r} partition {partition}"


# A coordinator that aborts a transaction for its age counts up the epoch, as one does for a newer producer: whoever had
# the old one hears the same in both cases.
_FENCED = (
    "another producer with the same id has started, or the transaction took longer than its timeout "
    "(transaction.timeout.ms) and was aborted"
)

# For the codes that brokers usually send without a text of their own.
MEANINGS = {
    ErrorCode.OFFSET_OUT_OF_RANGE: "the offset is outside of what the partition holds",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such topic or partition",
    ErrorCode.UNKNOWN_TOPIC_ID: "there is no topic with this id",
    ErrorCode.LEADER_NOT_AVAILABLE: "no leader is available at the moment",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "the broker does not lead the partition",
    ErrorCode.REQUEST_TIMED_OUT: "the broker did not finish in time",
    ErrorCode.MESSAGE_TOO_LARGE: "the record batch is larger than the topic allows (max.message.bytes)",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "no coordinator is available",
    ErrorCode.NOT_ENOUGH_REPLICAS: "fewer replicas are in sync than min.insync.replicas asks for",
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: "the records were written, but to fewer replicas than asked for",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "the topic name is not allowed",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "not allowed for this user",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "not allowed for this user",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "not allowed on the cluster for this user",
    ErrorCode.TOPIC_ALREADY_EXISTS: "a topic of this name exists already",
    ErrorCode.INVALID_RECORD: "the broker found a record that breaks the topic's rules",
    ErrorCode.CORRUPT_MESSAGE: "the record batch was damaged on its way",
    ErrorCode.KAFKA_STORAGE_ERROR: "the partition's disk failed on the broker",
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: "the producer's sequence numbers have a gap",
    ErrorCode.INVALID_PRODUCER_EPOCH: _FENCED,
    ErrorCode.PRODUCER_FENCED: _FENCED,
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: (
        "transaction.timeout.ms is longer than the broker allows (transaction.max.timeout.ms)"
    ),
    ErrorCode.UNSUPPORTED_VERSION: "the broker does not support this version of the request",
    ErrorCode.REPLICA_NOT_AVAILABLE: "a replica is not available",
    ErrorCode.NOT_CONTROLLER: "the broker is not the controller",
    ErrorCode.TOPIC_DELETION_DISABLED: "deleting topics is turned off on the broker (delete.topic.enable)",
    ErrorCode.ELECTION_NOT_NEEDED: "the preferred replica leads already",
    ErrorCode.SASL_AUTHENTICATION_FAILED: "user name or password is wrong",
}
