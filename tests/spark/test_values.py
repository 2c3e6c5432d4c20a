"""Typed values: JSON becomes columns, and what is none is treated as the user said."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

import millstream.spark
from millstream import arrow
from millstream.spark.exactly_once import shape, start
from millstream.spark.progress import Snapshot, followed_by
from millstream.spark.values import read_typed, typed
from tests.support.requirements import PROJECT_ROOT
from tests.support.topics import until_settled

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    MakeTopic = Callable[..., str]
    Load = Callable[..., DataFrame]

SCHEMA = "order bigint, city string, euros double"
GOOD = [json.dumps({"order": number, "city": "Cork", "euros": number / 2}).encode() for number in range(20)]
BAD = {
    b"{not json": "the value is not JSON",
    b'{"order": "seven", "city": "Cork"}': "the value does not fit the schema",
    b'[{"order": 1}': "the value is not JSON",
    b"": "the value is not JSON",
    b"\xff\xfe": "the value is not JSON",
    b"12": "the value does not fit the schema",
    b"null": "the value does not fit the schema",
}
# One record each, for all that Spark's parser says.
MORE_THAN_ONE = [
    b'{"order": 1}' + more
    for more in (
        *(b'{"order": 2}', b" garbage", b'\n{"order": 2}', b"]", b"}", b",", b":1", b"][", b"}{", b"\x00", b"//"),
        *(b',{"order": 2}', b'],[{"order": 2}', b',"order": 2', b',"all": {"order": 2}', b'} {"order": 2}'),
    )
]
ONLY_ONE = [
    *(
        b' {"order": 1} ',
        b'{"order": 1}\r\n\t',
        b'{"order": 1, "city": "}"}',
        b'{"order": 1, "other": {"a": [{}, NaN]}}',
    ),
    *(b'{"city": "}{", "order": 1}\n', b"{'order': 1, 'other': {}}"),
]


def fill(bootstrap: str, topic: str, values: list[bytes | None]) -> None:
    arrow.write(bootstrap, topic, pa.table({"value": pa.array(values, pa.binary())}))


def test_json_becomes_columns(bootstrap: str, make_topic: MakeTopic, load: Load) -> None:
    topic = make_topic(2)
    keys = [json.dumps({"shop": number % 3}) for number in range(len(GOOD))]
    arrow.write(bootstrap, topic, pa.table({"key": keys, "value": GOOD}))
    rows = typed(load(subscribe=topic), SCHEMA, key="shop int").rows
    assert rows.columns == ["order", "city", "euros", "shop", "topic", "partition", "offset", "timestamp"]
    found = sorted(rows.select("order", "city", "euros", "shop").collect())
    assert [tuple(row) for row in found] == [(number, "Cork", number / 2, number % 3) for number in range(20)]


def test_missing_fields_extra_fields_and_tombstones_are_no_errors(
    bootstrap: str, make_topic: MakeTopic, load: Load
) -> None:
    topic = make_topic()
    fill(bootstrap, topic, [b'{"order": 1}', b'{"order": 2, "other": [1]}', None])
    rows = typed(load(subscribe=topic), SCHEMA).rows.select("order", "city").collect()
    assert sorted(map(tuple, rows), key=str) == [(1, None), (2, None), (None, None)]


@pytest.mark.parametrize("value", list(BAD), ids=["broken", "type", "open", "empty", "bytes", "number", "null"])
def test_a_record_that_does_not_parse_fails_with_its_place(
    value: bytes, bootstrap: str, make_topic: MakeTopic, load: Load
) -> None:
    topic = make_topic()
    fill(bootstrap, topic, [*GOOD[:7], value])
    with pytest.raises(PySparkException, match=f"topic '{topic}' partition 0 offset 7: {BAD[value]}"):
        typed(load(subscribe=topic), SCHEMA).rows.collect()


def test_what_comes_after_a_value_is_not_lost_in_silence(spark: SparkSession) -> None:
    values = [*MORE_THAN_ONE, *ONLY_ONE, b'{"order": "x"}]']
    rows = [(None, value, "orders", 0, offset, None) for offset, value in enumerate(values)]
    columns = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp"
    orders = typed(spark.createDataFrame(rows, columns), SCHEMA, on_error="dead_letter")
    assert [(row.order, values[row.offset]) for row in orders.rows.collect()] == [(1, value) for value in ONLY_ONE]
    assert orders.dead_letters is not None
    letters = {bytes(row.value): row.headers[0].value.decode() for row in orders.dead_letters.collect()}
    assert letters == dict.fromkeys([*MORE_THAN_ONE, values[-1]], "the value is not JSON")


def test_the_source_itself_makes_columns_of_json(
    spark: SparkSession, bootstrap: str, make_topic: MakeTopic, load: Load
) -> None:
    topic = make_topic()
    fill(bootstrap, topic, [*GOOD, b'{"order": "x"}'])
    reader = spark.read.format("millstream").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    asked = reader.option("value.format", "json").schema(f"{SCHEMA}, offset bigint")
    rows = asked.option("endingOffsets", json.dumps({topic: {"0": 20}})).load().where("order < 3").collect()
    assert [tuple(row) for row in rows] == [(number, "Cork", number / 2, number) for number in range(3)]
    with pytest.raises(PySparkException, match=f"topic '{topic}' partition 0 offset 20: the value does not fit"):
        asked.option("endingOffsets", "latest").load().collect()
    named = load(subscribe=topic, value_format="json", value_schema=SCHEMA, on_error="drop")
    assert named.columns == [
        "key",
        "order",
        "city",
        "euros",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestampType",
    ]
    assert named.count() == 20


def test_a_dropped_record_is_counted(bootstrap: str, make_topic: MakeTopic, load_stream: Load, tmp_path: Path) -> None:
    source, target = make_topic(), make_topic(suffix="-copy")
    fill(bootstrap, source, [*GOOD, *BAD])
    rows = typed(load_stream(subscribe=source), SCHEMA, on_error="drop", keep=()).rows
    query = start(
        rows, servers=bootstrap, topic=target, checkpoint=tmp_path, value_format="json", trigger="available_now"
    )
    query.awaitTermination()
    snapshot = Snapshot(str(query.id), "copy")
    for progress in query.recentProgress:
        snapshot = followed_by(snapshot, json.loads(progress.json))
    assert snapshot.dropped_in_all == len(BAD)
    assert snapshot.rows_in_all == len(GOOD) + len(BAD)
    until_settled(bootstrap, target)
    written = [json.loads(value) for value in arrow.read(bootstrap, target)["value"].to_pylist()]
    assert sorted(each["order"] for each in written) == list(range(20))


def test_dead_letters_have_the_reason_in_their_headers(
    spark: SparkSession, bootstrap: str, make_topic: MakeTopic, tmp_path: Path
) -> None:
    source, dead = make_topic(), make_topic(suffix="-dead")
    fill(bootstrap, source, [*GOOD, *BAD])
    options = {
        "kafka.bootstrap.servers": bootstrap,
        "subscribe": source,
        "startingOffsets": "earliest",
        "Value.Format": "json",
        "VALUE.SCHEMA": SCHEMA,
        "on.error": "dead-letter",
    }
    orders = read_typed(spark, options)
    assert orders.dead_letters is not None
    start(
        orders.dead_letters, servers=bootstrap, topic=dead, checkpoint=tmp_path, trigger="available_now"
    ).awaitTermination()
    until_settled(bootstrap, dead)
    letters = arrow.read(bootstrap, dead).to_pylist()
    assert {letter["value"] for letter in letters} == set(BAD)
    for letter in letters:
        headers = {each["key"]: each["value"].decode() for each in letter["headers"]}
        assert headers["millstream.error.reason"].startswith(BAD[letter["value"]])
        assert headers["millstream.error.topic"] == source
        assert headers["millstream.error.partition"] == "0"
        assert int(headers["millstream.error.offset"]) == len(GOOD) + list(BAD).index(letter["value"])


def test_the_page_s_dead_letters_go_to_topics_with_fewer_partitions(
    bootstrap: str, make_topic: MakeTopic, load_stream: Load, tmp_path: Path
) -> None:
    source, target, dead = make_topic(3), make_topic(suffix="-euros"), make_topic(suffix="-dead")
    arrow.write(bootstrap, source, pa.table({"value": [*GOOD, b"{not json"]}), partition_by="round_robin")
    page = (PROJECT_ROOT / "docs" / "spark-exactly-once.md").read_text()
    (lines,) = [
        each for each in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if 'on_error="dead_letter"' in each
    ]
    lines = lines.replace('"euros"', repr(target)).replace('"orders-dead"', repr(dead))
    # One after the other, and each to its end.
    lines = re.sub(r"(?m)^millstream.spark.start\((.*)\)$", r"start(\1).awaitTermination()", lines)

    def start_here(rows: DataFrame, **given: Any) -> StreamingQuery:
        return start(rows, **{**given, "checkpoint": tmp_path / given["topic"], "trigger": "available_now"})

    names = {"records": load_stream(subscribe=source), "schema": SCHEMA, "servers": bootstrap}
    exec(compile(lines, "spark-exactly-once.md", "exec"), names | {"millstream": millstream, "start": start_here})
    until_settled(bootstrap, target)
    written = [json.loads(value) for value in arrow.read(bootstrap, target)["value"].to_pylist()]
    assert sorted(written, key=lambda each: each["order"]) == [json.loads(value) for value in GOOD]
    until_settled(bootstrap, dead)
    assert arrow.read(bootstrap, dead)["value"].to_pylist() == [b"{not json"]


def test_columns_with_dots_in_their_names_are_written_too(spark: SparkSession) -> None:
    rows = spark.createDataFrame([("a", 1.5, 2)], "`the.key` string, `sum(order.euros)` double, `a``b.c` int")
    parts = {"key": "the.key", "value": "value"}
    (row,) = shape(rows, parts, topic="totals", value_format="json").collect()
    assert (row.key, json.loads(row.value)) == ("a", {"sum(order.euros)": 1.5, "a`b.c": 2})


def test_names_that_clash_and_options_that_do_not_fit_are_refused(
    spark: SparkSession, bootstrap: str, make_topic: MakeTopic, load: Load
) -> None:
    records = load(subscribe=make_topic())
    with pytest.raises(ValueError, match="'timestamp' is a column of the value and of the record"):
        typed(records, "timestamp string")
    with pytest.raises(ValueError, match="'a' is a column of the key and of the value"):
        typed(records, "a int", key="a int")
    with pytest.raises(ValueError, match="on_error is"):
        typed(records, "a int", on_error="ignore")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"value\.format and value\.schema go together"):
        read_typed(spark, {"value.format": "json"})
    with pytest.raises(ValueError, match=r"value\.format is json"):
        read_typed(spark, {"value.format": "avro", "value.schema": "a int"})
