"""What goes through internal topics, as bytes.

A repartitioned record is its key and value as they are. A table's change under a new key is the pair of what enters the
group and what leaves it; a foreign-key join sends questions and answers. In the test driver those are objects; here
they are MessagePack, which only we read: Kafka Streams' own form depends on its version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from millstream.streams.interpret.foreign_keys import Answer, Instruction, Subscription
from millstream.streams.plan.nodes import ForeignKeyJoin, TableGroup

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.streams.plan.plan import Plan

pack = msgspec.msgpack.Encoder().encode
unpack = msgspec.msgpack.Decoder().decode


class Wire(NamedTuple):
    """How key and value of one internal topic become bytes, and back."""

    encode: Callable[[Any, Any], tuple[bytes | None, bytes | None]]
    decode: Callable[[bytes | None, bytes | None], tuple[Any, Any]]


def wires_of(plan: Plan) -> dict[str, Wire]:
    """For each internal topic that does not hold plain keys and values."""
    found: dict[str, Wire] = {}
    for node in plan.nodes:
        if isinstance(node, TableGroup):
            found[node.topic] = Wire(lambda key, change: (key, pack(change)), lambda key, held: (key, _unpacked(held)))
        elif isinstance(node, ForeignKeyJoin):
            found[node.part("subscription topic")] = _questions(node)
            found[node.part("response topic")] = _answers(node)
    return found


def _unpacked(held: bytes | None) -> Any:
    assert held is not None, "a change of a grouped table has two values, and is never null itself"
    return unpack(held)


def _questions(node: ForeignKeyJoin) -> Wire:
    foreign, primary = node.foreign_key_serde, node.primary_key_serde

    def encode(foreign_key: Any, question: Subscription) -> tuple[bytes | None, bytes]:
        row_key = primary.serialize(question.primary_key)
        return (
            None if foreign_key is None else foreign.serialize(foreign_key),
            pack([question.value_bytes, question.instruction.value, row_key]),
        )

    def decode(key: bytes | None, held: bytes | None) -> tuple[Any, Subscription]:
        value_bytes, instruction, row_key = _unpacked(held)
        question = Subscription(value_bytes, Instruction(instruction), primary.deserialize(row_key))
        return None if key is None else foreign.deserialize(key), question

    return Wire(encode, decode)


def _answers(node: ForeignKeyJoin) -> Wire:
    primary, value = node.primary_key_serde, node.foreign_value_serde

    def encode(primary_key: Any, answer: Answer) -> tuple[bytes, bytes]:
        held = None if answer.foreign_value is None else value.serialize(answer.foreign_value)
        return primary.serialize(primary_key), pack([answer.value_bytes, held, answer.counts_if_shown])

    def decode(key: bytes | None, held: bytes | None) -> tuple[Any, Answer]:
        assert key is not None, "an answer is for a row"
        value_bytes, found, counts_if_shown = _unpacked(held)
        answer = Answer(value_bytes, None if found is None else value.deserialize(found), counts_if_shown)
        return primary.deserialize(key), answer

    return Wire(encode, decode)
