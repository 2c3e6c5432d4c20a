"""What the source under a query says of a loss, in the words of streams; test_changing_topics.py does what they say."""

from __future__ import annotations

import pytest

from millstream.spark.loss import DataLost, recreated, report_loss
from millstream.streams import InputLost, StreamsBuilder
from millstream.streams.lower.losses import in_words_of_streams
from millstream.streams.lower.subtopologies import SubTopology, subtopologies


def part_of(number: int) -> SubTopology:
    """The first reads `app-in`, a topic of somebody's, the second the application's own."""
    builder = StreamsBuilder(key=str, value=str)
    builder.stream("app-in").repartition(name="mine").to("out")
    return subtopologies(builder.build().plan)[number]


def said_by_spark(what: str) -> RuntimeError:
    """As it comes out of a query: with the stack traces of two languages around it."""
    with pytest.raises(DataLost) as lost:
        report_loss(what, fail=True, instead="it is read on from 7")
    return RuntimeError(
        f"[STREAM_FAILED] Query failed\nmillstream.spark.loss.DataLost: {lost.value}\n\tat org.apache.spark"
    )


EXPIRED = "topic '{}' partition 3 should be read on from offset 5, but it begins at 7: what lay between has expired"


def test_it_says_how_to_go_on() -> None:
    failure = said_by_spark(EXPIRED.format("app-in"))
    found = in_words_of_streams(failure, part_of(0), "app", "/state/app/0")
    assert isinstance(found, InputLost)
    assert found.__cause__ is failure
    assert str(found) == (
        f"{EXPIRED.format('app-in')}. To go on with what is left, and with the state as it is: "
        "`millstream group reset-offsets app --topic app-in:3 --to-earliest --execute`, and delete the checkpoint "
        "/state/app/0. To begin anew: `millstream streams reset`"
    )


def test_a_topic_that_is_another_one_is_meant_whole() -> None:
    failure = said_by_spark(recreated("app-in", "a", "b"))
    assert "--topic app-in --to-earliest" in str(in_words_of_streams(failure, part_of(0), "app", "/state/app/0"))


def test_of_its_own_topics_the_application_deletes_only_what_is_done() -> None:
    failure = said_by_spark(EXPIRED.format("app-mine-repartition"))
    said = str(in_words_of_streams(failure, part_of(1), "app", "/state/app/1"))
    assert "the checkpoint /state/app/1 is an old one: delete it" in said
    assert "reset-offsets" not in said


def test_any_other_failure_stays_what_it_is() -> None:
    failure = RuntimeError("CheckpointMismatch: it is a copy")
    assert in_words_of_streams(failure, part_of(0), "app", "/state/app/0") is failure
