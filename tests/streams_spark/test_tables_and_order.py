"""On Spark: a table that becomes a stream and a table again is the same table, and a key's records stay in order."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from millstream.streams import Application, StreamsBuilder, concat, value
from millstream.streams.queries import KeyValueView
from tests.streams_spark.cutting import Cuts, as_table
from tests.streams_spark.test_application import WAYS, Cluster, cluster, settings, with_prefix
from tests.streams_spark.test_native import texts
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.streams.memory_topics import Stored

__all__ = ["cluster"]


def by_key(records: list[Stored]) -> dict[bytes, list[bytes | None]]:
    """What was said of each key, one after the other."""
    found = defaultdict(list)
    for key, content, _ in records:
        if key is not None:
            found[key].append(content)
    return dict(found)


def test_tables_come_back_and_keys_keep_their_order(
    spark: SparkSession, cluster: Cluster, fresh_name: str, tmp_path: Path
) -> None:
    name = fresh_name
    builder = StreamsBuilder(key=str, value=str)
    stream = builder.stream(f"{name}-left")
    stream.map_values(concat(value(), "!")).to(f"{name}-said")
    first = stream.to_table(store="first")
    first.to_stream().to_table(store="again").to_stream().to(f"{name}-again")
    topology = builder.build()
    cuts = Cuts("there and back", with_prefix(name, texts), 4, ways=WAYS)
    cluster.make(f"{name}-left", f"{name}-said", f"{name}-again")
    app = Application(topology, name, bootstrap_servers=cluster.servers, settings=settings(tmp_path))
    assert app.engines() == ["0: spark"]
    with app.start(spark):
        for number in range(cuts.batches):
            cluster.feed(cuts.batch(number))
            app.process_all_available()
    said = by_key(cluster.read(f"{name}-said"))
    assert said == by_key(cuts.expected(topology, f"{name}-said"))
    assert max(map(len, said.values())) > 1
    table = as_table(cluster.read(f"{name}-again"))
    assert table == as_table(cuts.expected(topology, f"{name}-again"))
    assert (
        table == as_table(cluster.read(f"{name}-first-changelog")) == as_table(cluster.read(f"{name}-again-changelog"))
    )


def test_a_table_may_be_there_to_be_asked_only(
    spark: SparkSession, cluster: Cluster, fresh_name: str, tmp_path: Path
) -> None:
    builder = StreamsBuilder(key=str, value=str)
    builder.table(f"{fresh_name}-users", store="users")
    cluster.make(f"{fresh_name}-users")
    app = Application(builder.build(), fresh_name, bootstrap_servers=cluster.servers, settings=settings(tmp_path))
    with app.start(spark):
        cluster.feed([(0, (f"{fresh_name}-users", b"anna", b"Bern", 0))])
        app.process_all_available()
        users = app.store("users")
        assert isinstance(users, KeyValueView)
        wait_until(lambda: users.get("anna") == "Bern", "the table to be read", within_s=60)
