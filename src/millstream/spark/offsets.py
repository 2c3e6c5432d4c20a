"""Where a query stands: the JSON of Spark's Kafka source, and what must be known besides.

    {"orders": {"0": 17, "1": 4}, "@ids": {"orders": "8fYt0bQ1TQ2x4bZ0y1m1hA"}}

is what goes into the checkpoint. Offsets that a user gives look the same, without `@ids`; with it they are accepted
too, so what a checkpoint holds can be given back. A topic's name has no @, so nothing can be mistaken. The ids tell a
topic that was deleted and made again from the one that was read. `@from` stands in the end of a query's first batch:
its start. Spark does not keep that one, and a restarted first batch must begin where it began before, not at what is
the latest offset by then. `@initial` marks a start that is not yet in the checkpoint.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from millstream.client.errors import BadOption

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.client.grouping import TopicPartition

IDS: Final = "@ids"
FROM: Final = "@from"
INITIAL: Final = "@initial"


@dataclass(frozen=True)
class Offsets:
    """A place in each partition, and the ids of their topics as far as they are known."""

    places: dict[TopicPartition, int]
    ids: dict[str, str] = field(default_factory=dict)
    initial: bool = False
    """Not in the checkpoint yet."""
    begin: Offsets | None = None
    """At the end of a query's first batch: where that batch begins."""

    def to_json(self) -> dict[str, Any]:
        """In the order of topics and partitions: Spark compares texts to see whether anything is new."""
        found: dict[str, Any] = {}
        for (topic, partition), offset in sorted(self.places.items()):
            found.setdefault(topic, {})[str(partition)] = offset
        if self.ids:
            found[IDS] = dict(sorted(self.ids.items()))
        if self.initial:
            found[INITIAL] = True
        if self.begin is not None:
            found[FROM] = self.begin.to_json()
        return found

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Offsets:
        """What `to_json` made, or what a user wrote, already parsed."""
        begin = found.get(FROM)
        return cls(
            places=numbers_of({name: each for name, each in found.items() if not name.startswith("@")}),
            ids=dict(found.get(IDS, {})),
            initial=bool(found.get(INITIAL)),
            begin=None if begin is None else cls.from_json(begin),
        )


def parse_offsets(option: str, text: str) -> Offsets:
    """An option's `{"topic": {"0": 17, "1": -2}}`."""
    try:
        return Offsets.from_json(_object(text))
    except (ValueError, TypeError, AttributeError):
        example = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'
        raise BadOption(f"{option} must be JSON like {example}, not {text!r}") from None


def parse_timestamps(option: str, text: str) -> dict[TopicPartition, int]:
    """An option's `{"topic": {"0": 1000}}`, in milliseconds since 1970."""
    try:
        return numbers_of(_object(text))
    except (ValueError, TypeError, AttributeError):
        example = '{"topicA":{"0":1784109600000}}'
        raise BadOption(f"{option} must be JSON like {example}, not {text!r}") from None


def parse_assignment(option: str, text: str) -> tuple[TopicPartition, ...]:
    """An option's `{"topic": [0, 1]}`; a partition that is named twice is read once."""
    try:
        named = [(topic, _whole(index)) for topic, indexes in _object(text).items() for index in indexes]
    except (ValueError, TypeError, AttributeError):
        example = '{"topicA":[0,1],"topicB":[2,4]}'
        raise BadOption(f"{option} must be JSON like {example}, not {text!r}") from None
    for topic, index in named:
        if index < 0:
            raise BadOption(f"{option} names partition {index} of topic {topic!r}: they count from 0")
    return tuple(dict.fromkeys(named))


def numbers_of(found: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    return {
        (topic, int(partition)): _whole(number)
        for topic, numbers in found.items()
        for partition, number in numbers.items()
    }


def _whole(number: object) -> int:
    """A whole number of JSON, or the text of one; half an offset is none."""
    if isinstance(number, bool | float):
        raise TypeError
    return int(number)  # type: ignore[call-overload,no-any-return]  # what is no number raises


def _object(text: str) -> dict[str, Any]:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise TypeError
    return found
