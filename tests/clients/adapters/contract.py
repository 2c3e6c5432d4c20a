"""What a claim asks of a client, and the words in which the client answers.

An adapter is thin: it calls its client as the client's documentation says and turns results and refusals into the
types here. What its client cannot do it leaves out of `can` and `codecs`, and the claims that need it are not run
for it. Errors carry Kafka's own names, so that a claim reads the same for a client in C, Java, Go or JavaScript.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.batches import Record

Acks = Literal["0", "1", "all"]
Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]
ALL_CODECS: tuple[Codec, ...] = ("none", "gzip", "snappy", "lz4", "zstd")

Headers = Sequence[tuple[str, bytes | None]]


class Ability(Enum):
    """What some client lacks."""

    ADMIN = "create, describe, grow and delete topics"
    CONFIGS = "describe and alter a topic's configs"
    DELETE_RECORDS = "delete records"
    CONSUME = "read partitions assigned by hand"
    BY_TIME = "look up an offset by its time"
    OFFSETS = "ask for the first and the next offset"
    HEADERS = "write headers"
    SET_TIME = "write timestamps of the caller's choice"
    ACKS_0 = "send without waiting for an answer"
    IDEMPOTENCE = "produce idempotently"
    PRODUCE_ERRORS = "tell why a record was refused"
    BINARY = "write any bytes"
    YOUNGER_ERRORS = "tell apart the error codes of recent years"
    JAVA_PARTITIONER = "choose partitions as Java does"


class Refused(Exception):
    """The broker said no; `code` is Kafka's name for why."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code


class Read(NamedTuple):
    """A record as it was read."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int


class Client(ABC):
    """One client of one broker."""

    name: ClassVar[str]
    can: ClassVar[frozenset[Ability]] = frozenset(Ability)
    codecs: ClassVar[frozenset[Codec]] = frozenset(ALL_CODECS)

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers

    @abstractmethod
    def partitions(self, topic: str) -> int:
        """How many the topic has by the cluster's metadata; Refused if there is none."""

    @abstractmethod
    def produce(
        self,
        topic: str,
        records: Sequence[Record],
        *,
        partition: int | None = None,
        acks: Acks = "all",
        codec: Codec = "none",
        idempotent: bool = False,
    ) -> None:
        """Send all records and wait for their fate."""

    @abstractmethod
    def consume(self, topic: str, partition: int, offset: int, count: int) -> list[Read]:
        """`count` records of an assigned partition, from an offset on."""

    def create_topic(
        self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None, replicas: int = 1
    ) -> None:
        raise NotImplementedError

    def grow(self, topic: str, partitions: int) -> None:
        raise NotImplementedError

    def delete_topic(self, topic: str) -> None:
        raise NotImplementedError

    def configs(self, topic: str) -> dict[str, str | None]:
        raise NotImplementedError

    def set_config(self, topic: str, name: str, value: str) -> None:
        raise NotImplementedError

    def delete_records(self, topic: str, partition: int, before_offset: int) -> None:
        raise NotImplementedError

    def first_and_next_offset(self, topic: str, partition: int) -> tuple[int, int]:
        raise NotImplementedError

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int:
        """The first offset whose record is not older."""
        raise NotImplementedError

    def close(self) -> None:  # noqa: B027  # most have nothing to let go of
        """Let go of connections and processes."""
