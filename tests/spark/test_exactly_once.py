"""Exactly once: each micro-batch is one transaction, with the source's offsets in it."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as f

from millstream import arrow
from millstream.client.groups import committed_offsets
from millstream.client.sync import SyncClient
from millstream.spark import exactly_once_sink
from millstream.spark.exactly_once import start
from millstream.spark.exactly_once_checkpoint import offsets_in
from millstream.spark.exactly_once_sink import Note
from tests.support.topics import until_settled

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    MakeTopic = Callable[..., str]
    Load = Callable[..., DataFrame]


def fill(bootstrap: str, topic: str, count: int, *, first: int = 0, keys: bool = True) -> list[bytes]:
    """Numbers as values, and as keys too."""
    values = [str(number).encode() for number in range(first, first + count)]
    arrow.write(bootstrap, topic, pa.table({"value": values, **({"key": values} if keys else {})}))
    return values


def values_in(bootstrap: str, topic: str, *, settled: bool = True) -> list[bytes]:
    """What was committed; not `settled` where a transaction stays open."""
    if settled:
        until_settled(bootstrap, topic)
    return sorted(arrow.read(bootstrap, topic, columns=["value"])["value"].to_pylist())


def test_a_copy_has_every_record_once_where_its_key_belongs(
    bootstrap: str, make_topic: MakeTopic, load_stream: Load, tmp_path: Path
) -> None:
    source, target, javas = make_topic(3), make_topic(5, "-copy"), make_topic(5, "-java")
    values = fill(bootstrap, source, 1000)
    rows = load_stream(subscribe=source, maxOffsetsPerTrigger="400").select("key", "value", "timestamp")
    query = start(rows, servers=bootstrap, topic=target, checkpoint=tmp_path, trigger="available_now")
    query.awaitTermination()
    assert len([batch for batch in query.recentProgress if batch["numInputRows"]]) >= 3
    assert values_in(bootstrap, target) == sorted(values)
    columns = ["key", "partition", "timestamp"]
    copied = arrow.read(bootstrap, target, columns=columns).to_pylist()
    arrow.write(bootstrap, javas, arrow.read(bootstrap, source, columns=["key", "value", "timestamp"]))
    assert sorted(map(str, copied)) == sorted(map(str, arrow.read(bootstrap, javas, columns=columns).to_pylist()))


def test_rows_without_keys_use_every_partition(
    bootstrap: str, make_topic: MakeTopic, load_stream: Load, tmp_path: Path
) -> None:
    source, target, single = make_topic(3), make_topic(3, "-copy"), make_topic(1, "-single")
    values = fill(bootstrap, source, 900, keys=False)
    rows = load_stream(subscribe=source, maxOffsetsPerTrigger="200").select("value")
    for topic in (target, single):
        start(
            rows, servers=bootstrap, topic=topic, checkpoint=tmp_path / topic, trigger="available_now"
        ).awaitTermination()
        assert values_in(bootstrap, topic) == sorted(values)
    spread = Counter(arrow.read(bootstrap, target, columns=["partition"])["partition"].to_pylist())
    assert sorted(spread) == [0, 1, 2]


def test_offsets_are_committed_to_a_group_with_the_batch(
    bootstrap: str, make_topic: MakeTopic, load_stream: Load, tmp_path: Path
) -> None:
    source, target = make_topic(2), make_topic(1, "-copy")
    fill(bootstrap, source, 100)
    rows = load_stream(subscribe=source).select("value")
    for guarantee, known in (("exactly_once", f"{source}-lag"), ("at_least_once", None)):
        query = start(
            rows,
            servers={"kafka.bootstrap.servers": bootstrap},
            topic=target,
            checkpoint=tmp_path / guarantee,
            guarantee=guarantee,  # type: ignore[arg-type]
            trigger="available_now",
            group=known,
        )
        query.awaitTermination()
        with SyncClient({"bootstrap.servers": bootstrap}) as client:
            # By name: the answer then waits for a commit that is under way, even if it is the first.
            places = [(source, 0), (source, 1)]
            stored = client.run(committed_offsets, str(query.id), places)
            assert known is None or client.run(committed_offsets, known, places) == stored
        ends = offsets_in(query.lastProgress["sources"][0]["endOffset"])  # type: ignore[index]
        assert {place: each.offset for place, each in stored.items()} == ends
        assert sum(ends.values()) == 100
        notes = [Note.parse(each.metadata) for each in stored.values()]
        assert [note.query_id for note in notes if note] == [str(query.id)] * 2


def test_counts_go_out_in_update_mode(bootstrap: str, make_topic: MakeTopic, load_stream: Load, tmp_path: Path) -> None:
    source, target = make_topic(2), make_topic(2, "-counts")
    fill(bootstrap, source, 1000)
    digit = f.substring(f.col("value").cast("string"), -1, 1).alias("digit")
    counts = load_stream(subscribe=source, maxOffsetsPerTrigger="300").groupBy(digit).count()
    start(
        counts,
        servers=bootstrap,
        topic=target,
        checkpoint=tmp_path,
        output_mode="update",
        key="digit",
        value_format="json",
        trigger="available_now",
    ).awaitTermination()
    until_settled(bootstrap, target)
    written = arrow.read(bootstrap, target, columns=["key", "value"]).to_pylist()
    assert len(written) >= 30, "each batch brings the new totals"
    totals = {row["key"].decode(): json.loads(row["value"])["count"] for row in written}
    assert totals == {str(number): 100 for number in range(10)}


def test_a_column_says_which_topic(bootstrap: str, make_topic: MakeTopic, load_stream: Load, tmp_path: Path) -> None:
    source, even, odd = make_topic(2), make_topic(3, "-even"), make_topic(1, "-odd")
    values = fill(bootstrap, source, 500)
    number = f.col("value").cast("string").cast("int")
    rows = load_stream(subscribe=source, maxOffsetsPerTrigger="200").select(
        "key", "value", f.when(number % 2 == 0, f.lit(even)).otherwise(f.lit(odd)).alias("topic")
    )
    start(rows, servers=bootstrap, checkpoint=tmp_path, trigger="available_now").awaitTermination()
    assert values_in(bootstrap, even) == sorted(value for value in values if int(value) % 2 == 0)
    assert values_in(bootstrap, odd) == sorted(value for value in values if int(value) % 2)


def test_a_source_that_is_no_topic_is_remembered_too(
    spark: SparkSession, bootstrap: str, make_topic: MakeTopic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = make_topic(2)
    files = tmp_path / "files"
    files.mkdir()
    for number in range(3):
        (files / f"{number}.txt").write_text("".join(f"{number}{digit}\n" for digit in range(10)))
    rows = spark.readStream.format("text").option("maxFilesPerTrigger", "1").load(str(files))

    def run() -> None:
        start(
            rows, servers=bootstrap, topic=target, checkpoint=tmp_path / "checkpoint", trigger="available_now"
        ).awaitTermination()

    with monkeypatch.context() as patched:
        patched.setattr(exactly_once_sink, "end_transaction", failing_after(exactly_once_sink.end_transaction, 2))
        with pytest.raises(PySparkException, match="the driver dies"):
            run()
    assert len(values_in(bootstrap, target)) == 20
    run()
    assert values_in(bootstrap, target) == sorted(f"{number:02}".encode() for number in range(30))


class DriverDies(RuntimeError):
    """Not a failure that passes: the sink gives up."""


def failing_after(call: Callable[..., Any], times: int) -> Callable[..., Any]:
    """Works so often, and then raises after the work is done."""
    left = [times]

    async def called(*args: Any, **kwargs: Any) -> Any:
        result = await call(*args, **kwargs)
        left[0] -= 1
        if left[0] == 0:
            raise DriverDies("the driver dies")
        return result

    return called


@pytest.mark.parametrize("step", ["begin", "commit_offsets_in", "end_transaction"])
def test_a_query_that_failed_goes_on_without_a_gap_and_without_a_double(
    step: str, bootstrap: str, make_topic: MakeTopic, load_stream: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = make_topic(2), make_topic(2, "-copy")
    values = fill(bootstrap, source, 600)
    rows = load_stream(subscribe=source, maxOffsetsPerTrigger="200").select("key", "value")

    def run() -> None:
        start(rows, servers=bootstrap, topic=target, checkpoint=tmp_path, trigger="available_now").awaitTermination()

    with monkeypatch.context() as patched:
        times = 1 if step == "begin" else 2
        patched.setattr(exactly_once_sink, step, failing_after(getattr(exactly_once_sink, step), times))
        with pytest.raises(PySparkException, match="the driver dies"):
            run()
    seen = len(values_in(bootstrap, target, settled=step == "end_transaction"))
    # About 200 a batch: one was done, and the second was committed or not.
    assert seen == pytest.approx({"begin": 0, "commit_offsets_in": 200, "end_transaction": 400}[step], abs=5)
    run()
    assert values_in(bootstrap, target) == sorted(values)


def test_the_second_query_with_a_checkpoint_fences_the_first(
    bootstrap: str, make_topic: MakeTopic, load_stream: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = make_topic(1), make_topic(1, "-copy")
    values = fill(bootstrap, source, 100)
    rows = load_stream(subscribe=source).select("value")
    write = exactly_once_sink.commit_offsets_in

    async def overtaken(client: Any, transaction: Any, *args: Any) -> Any:
        await exactly_once_sink.begin(client, transaction.id, 60_000)
        return await write(client, transaction, *args)

    def run() -> None:
        start(rows, servers=bootstrap, topic=target, checkpoint=tmp_path, trigger="available_now").awaitTermination()

    with monkeypatch.context() as patched:
        patched.setattr(exactly_once_sink, "commit_offsets_in", overtaken)
        with pytest.raises(PySparkException, match="was fenced in batch 0: another query runs with the checkpoint"):
            run()
    assert values_in(bootstrap, target) == []
    run()
    assert values_in(bootstrap, target) == sorted(values)


def test_a_checkpoint_that_does_not_fit_is_refused(
    bootstrap: str, make_topic: MakeTopic, load_stream: Load, tmp_path: Path
) -> None:
    source, target = make_topic(1), make_topic(1, "-copy")
    rows = load_stream(subscribe=source, maxOffsetsPerTrigger="50").select("value")

    def run() -> None:
        start(rows, servers=bootstrap, topic=target, checkpoint=tmp_path, trigger="available_now").awaitTermination()

    fill(bootstrap, source, 100)
    run()
    # The last batches are lost, as after a power failure, and planned anew with more in them.
    for name in ("offsets", "commits"):
        for lost in ("1", ".1.crc"):
            (tmp_path / name / lost).unlink(missing_ok=True)
    rows = load_stream(subscribe=source, maxOffsetsPerTrigger="70").select("value")
    fill(bootstrap, source, 100, first=100)
    with pytest.raises(PySparkException, match="has another plan from batch 1 on"):
        run()


def test_what_cannot_be_written_is_said_before_the_query_starts(
    spark: SparkSession, load_stream: Load, bootstrap: str, make_topic: MakeTopic, tmp_path: Path
) -> None:
    rows = load_stream(subscribe=make_topic(1))
    common: dict[str, Any] = {"servers": bootstrap, "checkpoint": tmp_path}
    with pytest.raises(ValueError, match="are not a stream"):
        start(spark.range(3), topic="t", **common)
    with pytest.raises(ValueError, match="name a topic, or give each row one"):
        start(rows.select("value"), **common)
    with pytest.raises(TypeError, match=r"the value is a bigint, .*value_format='json'"):
        start(rows, topic="t", value="offset", **common)
    with pytest.raises(ValueError, match="no column 'missing' for the key"):
        start(rows, topic="t", key="missing", **common)
    with pytest.raises(ValueError, match="neither a key nor a value"):
        start(rows.select("offset"), topic="t", **common)
