"""The same questions to Apache Kafka and to Millstream, the same answers.

What Apache Kafka 4.3.1 answers is kept in `kafka_answers.json`; a test with Java checks that it still holds. Where we
answer otherwise on purpose, `ON_PURPOSE` says what and why. To record the answers anew:

    RECORD_KAFKA_ANSWERS=1 pytest -m java tests/broker/handlers/test_answers_compared.py
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.broker.handlers.admin_conversations import ADMIN
from tests.broker.handlers.conversations import Talk
from tests.broker.handlers.data_conversations import DATA
from tests.broker.handlers.produce_conversations import PRODUCING
from tests.broker.handlers.transaction_conversations import TRANSACTIONS
from tests.support.raw import RawClient

from millstream.embedded import Broker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.apache_kafka import ApacheKafka

RECORDED = Path(__file__).with_name("kafka_answers.json")
CONVERSATIONS = (*ADMIN, *DATA, *PRODUCING, *TRANSACTIONS)
by_name = pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda each: each.__name__)

# (conversation, label) -> why our answer is another one.
ON_PURPOSE = {
    ("create_topics", "two that collide"): "Kafka checks new names against old ones, and not against each other",
    ("alter_configs_incrementally", "unknown of a broker"): "Kafka keeps it for plug-ins, which we don't have: a typo",
    ("alter_configs_incrementally", "no operation"): "INVALID_REQUEST rather than UNKNOWN_SERVER_ERROR",
    (
        "update_features",
        "group.version 0, downgrade allowed",
    ): "KIP-584's allow_downgrade, which Kafka does not look at",
    ("list_offsets", "with no isolation that exists"): "INVALID_REQUEST rather than UNKNOWN_SERVER_ERROR",
    ("refused_batches", "two batches"): "the log's start is told with every INVALID_RECORD; nobody reads it there",
    ("refused_batches", "cut"): "the same",
    ("metadata", "by nothing"): "INVALID_REQUEST, for this topic alone, rather than UNKNOWN_SERVER_ERROR for all",
}


@pytest.fixture(scope="module")
def embedded() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def recorded(conversation: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORDED.read_text())[conversation]
    return found


def plain(heard: dict[str, Any]) -> dict[str, Any]:
    """As JSON would bring it back."""
    again: dict[str, Any] = json.loads(json.dumps(heard))
    return again


def written(known: dict[str, dict[str, Any]]) -> str:
    """JSON with a line for each answer, so that a difference can be read."""
    blocks = []
    for name, answers in sorted(known.items()):
        lines = ",\n".join(f" {json.dumps(label)}: {json.dumps(answer)}" for label, answer in sorted(answers.items()))
        blocks.append(f"{json.dumps(name)}: {{\n{lines}\n}}")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


@by_name
def test_we_answer_as_apache_kafka_does(conversation, embedded: Broker):
    with RawClient("127.0.0.1", embedded.port) as client:
        talk = Talk(client, f"{conversation.__name__}-")
        conversation(talk)
    theirs, ours = recorded(conversation.__name__), plain(talk.heard)
    differ = {label for label in theirs if ours.get(label) != theirs[label]}
    on_purpose = {label for name, label in ON_PURPOSE if name == conversation.__name__}
    unexpected = {label: (ours.get(label), theirs[label]) for label in theirs if label in differ - on_purpose}
    assert unexpected == {}
    assert on_purpose <= differ, "these are the same by now"
    assert set(ours) == set(theirs)


@pytest.mark.java
@by_name
def test_apache_kafka_answers_as_recorded(conversation, apache_kafka: ApacheKafka):
    with RawClient("127.0.0.1", apache_kafka.port) as client:
        talk = Talk(client, f"{conversation.__name__}-")
        conversation(talk)
    if os.environ.get("RECORD_KAFKA_ANSWERS"):
        known = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
        known[conversation.__name__] = talk.heard
        RECORDED.write_text(written(known))
    assert plain(talk.heard) == recorded(conversation.__name__)
