"""A task that starts in a new process while the broker is away, as after an executor's loss, waits for it.

A first contact that fails is otherwise taken for a wrong address and said at once. But whoever planned the task has
reached the cluster.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from millstream import arrow
from millstream.arrow.schema import schema_of
from millstream.client.errors import NeverReached
from millstream.client.sync import SyncClient
from millstream.spark.clients import client_for, let_go
from millstream.spark.exactly_once_routing import choose_by_topic, partitions_of
from millstream.spark.exactly_once_sink import is_passing
from millstream.spark.options import Selection, parse_read
from millstream.spark.planning import find_present
from millstream.spark.ranges import Range
from millstream.spark.reading import read_range
from tests.support.own_broker import own_broker_of
from tests.support.ports import free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.apache_kafka import ApacheKafka
    from tests.support.millstream_process import MillstreamProcess

VALUES = [b"one", b"two"]
SCHEMA = schema_of(["value"])
PATIENCE_S = 120


@pytest.fixture(params=["millstream", pytest.param("apache-kafka", marks=[pytest.mark.java, pytest.mark.slow])])
def returning(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ApacheKafka | MillstreamProcess]:
    with own_broker_of(request.param, tmp_path) as made:
        yield made


def test_tasks_wait_for_a_broker_that_is_away(returning: ApacheKafka | MillstreamProcess) -> None:
    servers = returning.bootstrap_servers
    arrow.write(servers, "topic", pa.table({"value": pa.array(VALUES, pa.binary())}))
    with SyncClient({"bootstrap.servers": servers}) as client:
        ids = client.run(find_present, Selection(names=("topic",))).ids
    # Each with a client of its own, which has never reached anybody.
    reading, choosing = ({"bootstrap.servers": servers, "client.id": name} for name in ("reading", "choosing"))
    options = parse_read(
        {**{f"kafka.{name}": value for name, value in reading.items()}, "subscribe": "topic"}, streaming=False
    )
    returning.kill()
    with ThreadPoolExecutor() as tasks:
        chosen = tasks.submit(choose_by_topic, pa.array(["topic"]), pa.array([b"key"]), choosing, 0)
        found = tasks.submit(lambda: list(read_range(Range("topic", ids["topic"], 0, 0, 2), SCHEMA, options)))
        # Whoever does not wait fails now.
        assert not wait([chosen, found], timeout=0.5).done
        returning.start()
        assert chosen.result(PATIENCE_S).to_pylist() == [0]
        assert [value for batch in found.result(PATIENCE_S) for value in batch.column("value").to_pylist()] == VALUES
    for connection in (options.connection, choosing):
        let_go(connection)


def test_a_wrong_address_is_said_at_once() -> None:
    connection = {"bootstrap.servers": f"127.0.0.1:{free_ports(1)[0]}"}
    with pytest.raises(NeverReached):
        client_for(connection).run(partitions_of, "topic")
    let_go(connection)


@pytest.mark.parametrize(
    "said",
    [
        "millstream.client.errors.TimedOut: Produce was not answered within 60 s",
        "millstream.client.errors.Unreachable: 127.0.0.1:9092",
        "ValueError: row 0 is for partition 3, but there are 3",
    ],
)
def test_what_a_task_met_by_bad_luck_is_tried_again(said: str) -> None:
    """It comes to the driver as the text of a stack trace."""
    assert is_passing(RuntimeError(f"Traceback (most recent call last):\n  File ...\n{said}"))
    assert not is_passing(RuntimeError("Traceback (most recent call last):\n  File ...\nKeyError: 'key'"))
