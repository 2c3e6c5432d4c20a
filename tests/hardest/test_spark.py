"""Spark's own Kafka connector: batch reads and writes, streams with checkpoints, over a restart of the broker.

It plans by offsets (ListOffsets through an admin client), reads ranges on executors with consumers that belong to
groups without joining them, and writes with plain producers. Its Kafka client is an older one, 3.9.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest
from confluent_kafka import Producer

from tests.support.spark import connector_jars, spark_python
from tests.support.topics import create_topics, read_committed

if TYPE_CHECKING:
    from tests.support.running import RunningBroker

pytestmark = [pytest.mark.clients, pytest.mark.java, pytest.mark.slow]


class Spark:
    """A Spark session in a process of its own."""

    def __init__(self, broker: RunningBroker, scratch: Path) -> None:
        script = Path(__file__).with_name("spark_calls.py")
        self._log_path = scratch / "spark.log"
        with self._log_path.open("wb") as log:
            self._process = subprocess.Popen(
                [str(spark_python()), str(script), broker.bootstrap_servers, ",".join(connector_jars()), str(scratch)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def __call__(self, name: str, **arguments: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"call": name, **arguments}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"Spark ended during {name}: {self._log_path.read_text(errors='replace')[-4000:]}"
        answer = json.loads(line)
        assert "ok" in answer, f"{name}: {answer['failed']}\n{self._log_path.read_text(errors='replace')[-2000:]}"
        return answer["ok"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(30)
        self._process.stdout.close()


def numbers_in(rows: list[list[Any]]) -> list[int]:
    return sorted(int(key) for _partition, _offset, key, _value, _headers in rows)


def transaction(broker: RunningBroker, topic: str, values: list[str], *, commit: bool) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "beside-spark"})
    producer.init_transactions(90)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value=value)
    producer.flush(90)
    producer.commit_transaction(90) if commit else producer.abort_transaction(90)


def test_spark_reads_writes_and_streams(own_broker: RunningBroker, tmp_path: Path) -> None:
    create_topics(own_broker, "squares", "copies", partitions=3)
    with Spark(own_broker, tmp_path) as spark:
        spark("write", topic="squares", first=0, count=500)
        rows = spark("read", options={"subscribe": "squares"})
        assert numbers_in(rows) == list(range(500))
        assert all(int(value) == int(key) ** 2 and headers == ["from"] for _, _, key, value, headers in rows)
        middle = {"squares": {"0": 10, "1": 20, "2": 0}}
        ends = {"squares": {"0": 30, "1": 25, "2": -1}}
        part = spark(
            "read",
            options={
                "assign": json.dumps({"squares": [0, 1, 2]}),
                "startingOffsets": json.dumps(middle),
                "endingOffsets": json.dumps(ends),
            },
        )
        third = sum(1 for partition, *_ in rows if partition == 2)
        assert Counter(partition for partition, *_ in part) == {0: 20, 1: 5, 2: third}
        assert spark("read", options={"subscribe": "squares", "startingTimestamp": "1"}) == rows

        batches = spark("stream", source="squares", target="copies", checkpoint="copying", options={})
        assert sum(batches) == 500
        assert len([batch for batch in batches if batch]) >= 3

        spark("write", topic="squares", first=500, count=100)
        own_broker.kill()
        own_broker.start()
        again = spark("stream", source="squares", target="copies", checkpoint="copying", options={"minPartitions": "6"})
        assert sum(again) == 100, "the checkpoint says where to go on"
        copies = sorted(int((seen.key or b"").decode()) for seen in read_committed(own_broker, "copies", 3))
        assert copies == list(range(600))

        transaction(own_broker, "squares", ["x1", "x1", "x2"], commit=True)
        transaction(own_broker, "squares", ["y3"] * 50, commit=False)
        expected = Counter(str(number**2)[-1] for number in range(600)) + Counter("112")
        assert spark("digits", source="squares", checkpoint="counting") == expected
