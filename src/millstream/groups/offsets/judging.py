"""What OffsetCommit, TxnOffsetCommit and OffsetDelete have in common: which of the partitions named are there at all.

A request is first held against the metadata. Partitions that do not exist, or that the client may not see, are answered
for themselves; the group is only asked about the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from millstream.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.metadata.image import TopicImage

Answer = TypeVar("Answer")
Answer_co = TypeVar("Answer_co", covariant=True)


class Named(Protocol):
    """A partition in a request."""

    partition_index: int


class AnswerType(Protocol[Answer_co]):
    """A partition in a response."""

    def __call__(self, *, partition_index: int, error_code: int) -> Answer_co: ...


def judge(
    partitions: Iterable[Named],
    topic: TopicImage | None,
    answer: AnswerType[Answer],
    *,
    allowed: bool,
    unknown: ErrorCode = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
) -> list[Answer]:
    """An answer for each partition, with an error unless it exists; `topic` is None where there is none.

    Whether a topic exists is nobody's business who is not `allowed` to know.
    """
    known = () if topic is None else topic.partitions
    answers = []
    for named in partitions:
        index = named.partition_index
        if not allowed:
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif index in known:
            code = ErrorCode.NONE
        else:
            code = unknown if topic is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        answers.append(answer(partition_index=index, error_code=code))
    return answers


def is_longer_than(text: str, units_max: int) -> bool:
    """Whether Java would say so: it counts a text's UTF-16 units, of which a character has one or two."""
    if len(text) > units_max:
        return True
    return 2 * len(text) > units_max and len(text.encode("utf-16-le", "surrogatepass")) // 2 > units_max
