"""What a batch read plans, without Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from millstream import arrow
from millstream.client.admin import raise_first
from millstream.client.admin.topics import delete_records, delete_topics
from millstream.client.errors import BadOption
from millstream.client.sync import SyncClient
from millstream.spark.batch_reader import plan_batch
from millstream.spark.following import new_since, plan_between
from millstream.spark.loss import DataLost
from millstream.spark.offsets import Offsets
from millstream.spark.options import parse_read
from millstream.spark.ranges import Range

if TYPE_CHECKING:
    from collections.abc import Callable

RECORDS = 20


@pytest.fixture
def plan(bootstrap: str, make_topic: Callable[..., str]) -> Callable[..., list[Range]]:
    """The ranges of a topic with two partitions, in which offset n has time n."""
    topic = make_topic(2)
    times = pa.array([number // 2 for number in range(2 * RECORDS)], pa.int64())
    where = pa.array([number % 2 for number in range(2 * RECORDS)], pa.int32())
    rows = pa.table({"value": [b"x"] * (2 * RECORDS), "timestamp": times, "where": where})
    arrow.write(bootstrap, topic, rows, partition_by="where")

    def planned(*, expired: int = 0, **options: Any) -> list[Range]:
        texts = {
            name: json.dumps({topic: dict(enumerate(value))}) if isinstance(value, list) else value
            for name, value in options.items()
        }
        with SyncClient({"bootstrap.servers": bootstrap}) as client:
            if expired:
                raise_first(client.run(delete_records, {(topic, 1): expired}))
            given = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, **texts}
            return client.run(plan_batch, parse_read(given, streaming=False))

    return planned


def test_a_start_after_its_end_is_refused_with_both(plan: Callable[..., list[Range]]) -> None:
    found = plan(startingOffsets=[5, 7], endingOffsets=[8, 7])
    assert [(each.start, each.end) for each in found] == [(5, 8), (7, 7)]
    said = r"partition 1 would be read from offset 9 \(startingOffsets\) to 7 \(endingOffsets\)"
    for loss in ("true", "false"):
        with pytest.raises(BadOption, match=said):
            plan(startingOffsets=[5, 9], endingOffsets=[8, 7], failOnDataLoss=loss)
    said = r"partition 0 would be read from offset 12 \(startingTimestamp\) to 3 \(endingTimestamp\)"
    with pytest.raises(BadOption, match=said):
        plan(startingTimestamp="12", endingTimestamp="3")


def test_an_end_that_has_expired_is_a_loss(plan: Callable[..., list[Range]]) -> None:
    with pytest.raises(DataLost, match="partition 1 should be read up to offset 7, but it begins at 10"):
        plan(startingOffsets="earliest", endingOffsets=[8, 7], expired=10)
    found = plan(startingOffsets="earliest", endingOffsets=[8, 7], failOnDataLoss="false")
    assert [each.size > 0 for each in found] == [True, False]


def test_a_topic_that_was_deleted_after_a_batch_was_planned(bootstrap: str, make_topic: Callable[..., str]) -> None:
    """A restarted query runs its last plan again, whatever has happened meanwhile."""
    kept, gone = make_topic(1, "-kept"), make_topic(1, "-gone")
    with SyncClient({"bootstrap.servers": bootstrap, "api.timeout.ms": "1000"}) as client:
        raise_first(client.run(delete_topics, [gone]))
        end = Offsets({(kept, 0): 5, (gone, 0): 3}, {kept: "id", gone: "other id"})
        given = {"kafka.bootstrap.servers": bootstrap, "subscribe": f"{kept},{gone}"}
        with pytest.raises(DataLost, match=f"'{gone}' partition 0 is not there any more"):
            client.run(plan_between, Offsets({}), end, parse_read(given, streaming=True))
        options = parse_read({**given, "failOnDataLoss": "false"}, streaming=True)
        assert client.run(plan_between, Offsets({}), end, options) == [Range(kept, "id", 0, 0, 5)]


def test_a_topic_that_the_options_do_not_name_any_more(bootstrap: str, make_topic: Callable[..., str]) -> None:
    kept, left = make_topic(1, "-kept"), make_topic(1, "-left")
    stood, latest = Offsets({(kept, 0): 0, (left, 0): 3}), Offsets({(kept, 0): 0})
    options = parse_read({"kafka.bootstrap.servers": bootstrap, "subscribe": kept}, streaming=True)
    with SyncClient({"bootstrap.servers": bootstrap}) as client:
        said = f"'{left}' partition 0 is not among what the options say to read any more; the query has read it up to"
        with pytest.raises(DataLost, match=said):
            client.run(new_since, stood, latest, options)
