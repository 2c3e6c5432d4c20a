"""A list of servers whose first is dead costs little, and a broker that comes back is found again."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from millstream.client.admin.topics import list_topics
from millstream.client.errors import NeverReached
from millstream.client.sync import SyncClient
from tests.support.ports import free_ports

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.millstream_process import MillstreamProcess


def test_a_server_that_refuses_is_passed_over(millstream: MillstreamProcess) -> None:
    (dead,) = free_ports(1)
    with SyncClient({"bootstrap.servers": f"127.0.0.1:{dead},{millstream.bootstrap_servers}"}) as client:
        client.run(list_topics)


def test_a_server_that_is_silent_is_passed_over_within_a_moment(millstream: MillstreamProcess) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        servers = f"127.0.0.1:{silent.getsockname()[1]},{millstream.bootstrap_servers}"
        # The silent one would be waited for longer than any test may take.
        with SyncClient({"bootstrap.servers": servers, "socket.connection.setup.timeout.ms": "3600000"}) as client:
            client.run(list_topics)


def test_when_nobody_answers_everybody_is_named_at_once() -> None:
    one, other = free_ports(2)
    with (
        SyncClient({"bootstrap.servers": f"127.0.0.1:{one},127.0.0.1:{other}"}) as client,
        pytest.raises(NeverReached, match=rf"{one}.*refused.*{other}.*refused"),
    ):
        client.run(list_topics)


def test_a_host_that_does_not_exist_is_said_so() -> None:
    with (
        SyncClient({"bootstrap.servers": "nowhere.invalid:9092"}) as client,
        pytest.raises(NeverReached, match=r"nowhere\.invalid"),
    ):
        client.run(list_topics)


def test_a_broker_that_restarts_is_found_again(fresh_millstream: Callable[..., MillstreamProcess]) -> None:
    broker = fresh_millstream()
    broker.start()
    with SyncClient({"bootstrap.servers": broker.bootstrap_servers, "api.timeout.ms": "20000"}) as client:
        client.run(list_topics)
        broker.restart()
        client.run(list_topics)
