"""Topics that change under an application: one comes that its pattern matches, one loses records before they are read.

It ends then, and what it says can be done is right.
"""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

from millstream.client.admin import raise_first
from millstream.client.admin.topics import delete_records
from millstream.client.sync import SyncClient
from millstream.streams import Application, InputLost, StreamsBuilder
from tests.streams_spark.brokers import until_done
from tests.streams_spark.test_application import Cluster, cluster

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

__all__ = ["cluster"]


def test_a_topic_comes_and_another_one_loses_records(
    spark: SparkSession, cluster: Cluster, fresh_name: str, tmp_path: Path
) -> None:
    name, out = fresh_name, f"out-{fresh_name}"
    builder = StreamsBuilder(key=str, value=str)
    # The application's changelogs would match too, and are not meant.
    stream = builder.stream(re.compile(rf"{name}-\w+(-changelog)?"))
    stream.group_by_key().count(store="counts").to_stream().to(out)
    app = Application(builder.build(), name, bootstrap_servers=cluster.servers, settings={"state.dir": tmp_path})
    cluster.make(f"{name}-one", out, partitions=2)

    def feed(topic: str, count: int) -> None:
        """A key for each topic and partition."""
        keys = {partition: f"{topic}{partition}".encode() for partition in (0, 1)}
        cluster.feed([(partition, (f"{name}-{topic}", key, b"v", 5)) for partition, key in keys.items()] * count)

    def counts() -> dict[bytes | None, int]:
        app.run(spark, trigger="available_now")
        return {key: int.from_bytes(value or b"") for key, value, _ in cluster.read(out)}

    feed("one", 3)
    assert counts() == {b"one0": 3, b"one1": 3}
    cluster.make(f"{name}-two", partitions=2)
    feed("one", 1)
    feed("two", 2)
    assert counts() == {b"one0": 4, b"one1": 4, b"two0": 2, b"two1": 2}
    feed("one", 3)
    with SyncClient({"bootstrap.servers": cluster.servers}) as client:
        raise_first(client.run(delete_records, {(f"{name}-one", 1): 6}))
    with pytest.raises(InputLost, match=r"partition 1 .*begins at 6") as lost:
        counts()
    carry_out(str(lost.value), cluster, tmp_path / name / "0")
    assert counts() == {b"one0": 7, b"one1": 5, b"two0": 2, b"two1": 2}, "two are gone, none is counted twice"


def carry_out(said: str, cluster: Cluster, checkpoint: Path) -> None:
    """Do what an application says so that it can go on."""
    assert "failOnDataLoss" not in said
    assert f"delete the checkpoint {checkpoint}." in said
    command = re.findall(r"`millstream (group [^`]+)`", said)[0]
    until_done(*command.split(), servers=cluster.servers)
    shutil.rmtree(checkpoint)
