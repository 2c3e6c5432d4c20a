"""A task that starts in a new process while the broker is away, as after an executor's loss, waits for it.

A first contact that fails is otherwise taken for a wrong address and said at once. But whoever planned the task has
reached the cluster.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from millstream import arrow
from millstream.arrow.schema import schema_of
from millstream.client.errors import NeverReached
from millstream.spark.clients import client_for, let_go
from millstream.spark.exactly_once_routing import choose_by_topic, partitions_of
from millstream.spark.exactly_once_sink import is_passing
from millstream.spark.options import Selection, parse_read
from millstream.spark.planning import find_present
from millstream.spark.ranges import Range
from millstream.spark.reading import read_range
from tests.support.ports import free_ports

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.millstream_process import MillstreamProcess

VALUES = [b"one", b"two"]


def test_tasks_wait_for_a_broker_that_is_away(fresh_millstream: Callable[..., MillstreamProcess]) -> None:
    broker = fresh_millstream()
    broker.start()
    arrow.write(broker.bootstrap_servers, "topic", pa.table({"value": pa.array(VALUES, pa.binary())}))
    connection = {"bootstrap.servers": broker.bootstrap_servers}
    ids = client_for(connection).run(find_present, Selection(names=("topic",))).ids
    options = parse_read({"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": "topic"}, streaming=False)
    let_go(connection)
    broker.kill()
    returning = threading.Timer(0.5, broker.start)
    returning.start()
    found = read_range(Range("topic", ids["topic"], 0, 0, 2), schema_of(["value"]), options)
    assert [value for batch in found for value in batch.column("value").to_pylist()] == VALUES
    returning.join()
    let_go(connection)
    broker.kill()
    returning = threading.Timer(0.5, broker.start)
    returning.start()
    chosen = choose_by_topic(pa.array(["topic"]), pa.array([b"key"]), connection, 0)
    assert chosen.to_pylist() == [0]
    returning.join()
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
