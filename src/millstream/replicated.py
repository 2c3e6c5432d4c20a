"""What a replicated machine says: records to write, answers to give once they are committed, timers to set.

A machine (a coordinator's shard of groups, of transactions) is pure. Its `decide_*` methods may read and refuse (by a
BrokerError) but change nothing that is stored; its `apply(key, value)` alone writes stored state, and replaying the log
through `apply` must rebuild the same state. `runtime/shard.py` drives it: append, apply, commit, answer.

Soft state, such as a classic group's join barrier, may change in a `decide_*`: it is lost with the broker, as in Kafka.
A request that has to wait for others (JoinGroup, SyncGroup) is kept as its token; a later decision answers it with a
`Reply`. A decision whose records could not be written is told so through `undo`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from millstream.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

Response = TypeVar("Response")

# The place of a request in the driver, given to `decide_*` so that it can be answered later.
Token = int


class Record(NamedTuple):
    """A coordinator's record: a declared key, and a declared value with the version to write it in, or a tombstone."""

    key: Any
    value: Any | None
    version: int = 0


class Reply(NamedTuple):
    """The answer to a request that was kept waiting."""

    token: Token
    response: Any


class Schedule(NamedTuple):
    """Call the machine's `on_timer(key, now_ms)` in `delay_ms`; replaces a timer of the same key."""

    key: Hashable
    delay_ms: int


class Cancel(NamedTuple):
    """Forget the timer of this key, if there is one."""

    key: Hashable


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(Generic[Response]):
    """What a machine decided.

    `response` is None where the answer comes later, as a Reply. `replies` answer requests that waited. Everything is
    said once the records are committed; timers run from the append on. `effects` are things for the coordinator around
    the shard to do after the commit (write transaction markers, …). `transaction` makes the records part of a
    producer's transaction: (producer id, producer epoch). `undo` hears why the records could not be written.
    """

    records: tuple[Record, ...] = ()
    response: Response | None = None
    replies: tuple[Reply, ...] = ()
    timers: tuple[Schedule | Cancel, ...] = ()
    effects: tuple[Any, ...] = ()
    transaction: tuple[int, int] | None = None
    undo: Callable[[ErrorCode], Decision[Any]] | None = None


def told_to_clients(code: ErrorCode) -> ErrorCode:
    """What went wrong while writing, in words that clients of a coordinator understand (and retry by)."""
    return _WRITE_ERRORS.get(code, code)


_WRITE_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
