"""Foreign-key joins: a subscription for each row of the left table, answered by the right one.

The left side sends "I refer to this foreign key" to where that key lives, through an internal topic. There it is
remembered, and answered with the row of the right table; when that row changes, all who refer to it are answered again.
An answer comes back through another internal topic with the value that the left row had when it asked, and counts only
if the row still has it: otherwise a newer question is under way.

Kafka Streams leaves questions unanswered that would only say again what is known: no row before, none now. But where
the row has changed while an answer was under way, that answer did not count, and the result would stay as it was. So
such answers are sent, and count for rows that have a result; record by record there is never one.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.streams.interpret.task import Task
    from millstream.streams.plan.nodes import ForeignKeyJoin

    StreamStep = Callable[[Any, Any, int, Any], None]
    TableStep = Callable[[Any, Any, Any, int, Any], None]
    Getter = Callable[[Any], tuple[Any, int] | None]


# No foreign key is as long as this would say.
_SHOWN: Final = b"\xff\xff\xff\xff"


class Instruction(Enum):
    """What is to become of a subscription, and whether an answer is wanted."""

    DELETE_AND_ANSWER = auto()
    DELETE = auto()
    ANSWER_ALWAYS = auto()
    ANSWER_IF_FOUND = auto()


class Subscription(NamedTuple):
    """A question: the bytes of the row's value stand for Kafka Streams' hash of them."""

    value_bytes: bytes | None
    instruction: Instruction
    primary_key: Any


class Answer(NamedTuple):
    """The foreign row for a question."""

    value_bytes: bytes | None
    foreign_value: Any
    # Nothing was found, and Kafka Streams would not say so.
    counts_if_shown: bool = False


class ForeignKeys:
    """One foreign-key join."""

    def __init__(
        self,
        task: Task,
        node: ForeignKeyJoin,
        extract: Callable[[Any, Any, int], Any],
        joiner: Callable[[Any, Any, int, Any], Any],
        primary: Getter,
        foreign: Getter,
        result: StreamStep,
    ) -> None:
        self._task = task
        self._left = node.kind == "left"
        self._extract = extract
        self._joiner = joiner
        self._primary = primary
        self._foreign = foreign
        self._result = result
        self._to_value = node.primary_value_serde.serialize
        self._to_key = node.primary_key_serde.serialize
        self._to_foreign_key = node.foreign_key_serde.serialize
        self._subscriptions: dict[bytes, dict[bytes, Subscription]] = {}
        # Rows whose last result was a value; for inner joins.
        self._shown: set[bytes] = set()
        self._ask_topic = node.part("subscription topic")
        self._answer_topic = node.part("response topic")
        task.handlers[self._ask_topic] = self._on_question
        task.handlers[self._answer_topic] = self._on_answer
        self._from_key = node.primary_key_serde.deserialize
        task.keep(self._save, self._load)

    def _save(self) -> dict[bytes, Any]:
        """Who refers to what, under both keys: the foreign one's length, it, and the row's; and rows with a result."""
        kept: dict[bytes, Any] = {
            len(foreign_key).to_bytes(4) + foreign_key + row_key: [question.value_bytes, question.instruction.value]
            for foreign_key, subscribers in self._subscriptions.items()
            for row_key, question in subscribers.items()
        }
        kept.update({_SHOWN + row_key: None for row_key in self._shown})
        return kept

    def _load(self, kept: dict[bytes, Any]) -> None:
        self._subscriptions = {}
        self._shown = {place[len(_SHOWN) :] for place in kept if place.startswith(_SHOWN)}
        for place, held in kept.items():
            if place.startswith(_SHOWN):
                continue
            value_bytes, instruction = held
            end = 4 + int.from_bytes(place[:4])
            question = Subscription(value_bytes, Instruction(instruction), self._from_key(place[end:]))
            self._subscriptions.setdefault(place[4:end], {})[place[end:]] = question

    def on_primary(self, key: Any, new: Any, old: Any, timestamp: int, headers: Any) -> None:
        """A row of the left table has changed."""
        value_bytes = None if new is None else self._to_value(new)

        def ask(foreign_key: Any, instruction: Instruction) -> None:
            question = Subscription(value_bytes, instruction, key)
            self._task.enqueue(self._ask_topic, foreign_key, question, timestamp, headers)

        old_key = None if old is None else self._extract(key, old, timestamp)
        new_key = None if new is None else self._extract(key, new, timestamp)
        changed = old_key is not None and (new_key is None or not self._same(old_key, new_key))
        if self._left:
            if old is not None or new is not None:
                if changed:
                    ask(old_key, Instruction.DELETE)
                ask(new_key, Instruction.ANSWER_ALWAYS)
        else:
            if new_key is None and old_key is None:
                # Nobody is asked, and an answer that is under way will not count.
                self._take_back(key, timestamp, headers)
            self._ask_inner(ask, new, new_key, old_key, changed=changed)

    def _ask_inner(
        self,
        ask: Callable[[Any, Instruction], None],
        new: Any,
        new_key: Any,
        old_key: Any,
        *,
        changed: bool,
    ) -> None:
        if new is not None and new_key is None:
            self._task.drop("null foreign key")
        if new_key is None:
            if old_key is not None:
                ask(old_key, Instruction.DELETE_AND_ANSWER)
        elif changed:
            ask(old_key, Instruction.DELETE)
            ask(new_key, Instruction.ANSWER_ALWAYS)
        else:
            # Where the foreign key stays and finds nothing, it found nothing before either.
            ask(new_key, Instruction.ANSWER_IF_FOUND)

    def _same(self, one: Any, other: Any) -> bool:
        return bool(self._to_foreign_key(one) == self._to_foreign_key(other))

    def _on_question(self, foreign_key: Any, question: Subscription, timestamp: int, headers: Any) -> None:
        instruction = question.instruction
        if foreign_key is None:
            if instruction is not Instruction.ANSWER_ALWAYS:
                self._task.drop("null foreign key")
                return
        else:
            subscribers = self._subscriptions.setdefault(self._to_foreign_key(foreign_key), {})
            row_key = self._to_key(question.primary_key)
            if instruction in (Instruction.DELETE, Instruction.DELETE_AND_ANSWER):
                subscribers.pop(row_key, None)
            else:
                subscribers[row_key] = question
        row = None if foreign_key is None else self._foreign(foreign_key)
        time_ms = timestamp if row is None else max(timestamp, row[1])
        if instruction is Instruction.DELETE_AND_ANSWER:
            self._answer(question, None, time_ms, headers)
        elif instruction is Instruction.ANSWER_ALWAYS:
            self._answer(question, None if row is None else row[0], time_ms, headers)
        elif instruction is Instruction.ANSWER_IF_FOUND:
            self._answer(question, None if row is None else row[0], time_ms, headers, counts_if_shown=row is None)

    def on_foreign(self, key: Any, new: Any, _old: Any, timestamp: int, headers: Any) -> None:
        """A row of the right table has changed: all who refer to it hear of it."""
        if key is None:
            self._task.drop("null key")
            return
        subscribers = self._subscriptions.get(self._to_foreign_key(key), {})
        for row_key in sorted(subscribers):
            self._answer(subscribers[row_key], new, timestamp, headers)

    def _answer(
        self,
        question: Subscription,
        foreign_value: Any,
        timestamp: int,
        headers: Any,
        *,
        counts_if_shown: bool = False,
    ) -> None:
        answer = Answer(question.value_bytes, foreign_value, counts_if_shown)
        self._task.enqueue(self._answer_topic, question.primary_key, answer, timestamp, headers)

    def _on_answer(self, key: Any, answer: Answer, timestamp: int, headers: Any) -> None:
        row = self._primary(key)
        value = None if row is None else row[0]
        if (None if value is None else self._to_value(value)) != answer.value_bytes:
            return
        if answer.counts_if_shown:
            self._take_back(key, timestamp, headers)
            return
        joined = None
        if value is not None and (answer.foreign_value is not None or self._left):
            joined = self._joiner(key, value, timestamp, answer.foreign_value)
        if not self._left:
            (self._shown.discard if joined is None else self._shown.add)(self._to_key(key))
        self._result(key, joined, timestamp, headers)

    def _take_back(self, key: Any, timestamp: int, headers: Any) -> None:
        """Delete the result of a row that has one."""
        row_key = self._to_key(key)
        if row_key in self._shown:
            self._shown.discard(row_key)
            self._result(key, None, timestamp, headers)
