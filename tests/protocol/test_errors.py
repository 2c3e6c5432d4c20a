"""The table of error codes is Apache Kafka's, with our own words in it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from millstream.protocol import errors
from millstream.protocol.errors import BrokerError, ErrorCode, MalformedMessage, UnknownTopicId
from tests.support.apache_kafka import jar_directory
from tests.support.requirements import require

CAPTURE = Path(__file__).parent.parent / "wire" / "CaptureErrors.java"


def test_every_code_has_a_sentence_of_its_own() -> None:
    meanings = [code.meaning for code in ErrorCode]
    assert len(set(meanings)) == len(meanings)
    assert all(meaning[0].isalpha() and meaning.endswith(".") for meaning in meanings)


def test_a_code_is_found_by_its_number() -> None:
    assert ErrorCode(3) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ErrorCode(3).retriable
    assert not ErrorCode(10).retriable
    assert int(ErrorCode.NONE) == 0


def test_an_exception_says_its_sentence_unless_given_a_better_one() -> None:
    assert UnknownTopicId().message == "No topic has this id here."
    assert UnknownTopicId("no topic has the id abc").message == "no topic has the id abc"
    assert MalformedMessage.code is ErrorCode.INVALID_REQUEST


def test_every_exception_has_a_code() -> None:
    exceptions = [found for name in errors.__all__ if name != "ErrorCode" for found in [getattr(errors, name)]]
    assert all(issubclass(found, BrokerError) and isinstance(found.code, ErrorCode) for found in exceptions)


@pytest.mark.java
def test_the_table_is_kafkas() -> None:
    java = require("java", "it prints Apache Kafka's error codes")
    command = [java, "-XX:TieredStopAtLevel=1", "-cp", f"{jar_directory()}/*", str(CAPTURE)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    ours = [f"{code.value} {code.name} {'retriable' if code.retriable else 'final'}" for code in ErrorCode]
    assert sorted(ours) == sorted(done.stdout.splitlines())
