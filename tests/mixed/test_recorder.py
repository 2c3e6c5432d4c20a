"""The wire tap changes nothing and misses nothing: answers are matched with their questions, whoever asks."""

from __future__ import annotations

import os

from millstream import Broker
from millstream.protocol.messages.api_versions import ApiVersionsRequest
from millstream.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.mixed.recorder import Recorder
from tests.mixed.telling import errors_of, table
from tests.support.raw import RawClient
from tests.support.waiting import wait_until

HELLO = ApiVersionsRequest(client_software_name="test", client_software_version="1")


def test_what_is_said_through_it_is_kept() -> None:
    with Broker() as broker, Recorder() as recorder:
        recorder.pids["tester 1"] = os.getpid
        told = recorder.tap("millstream 1 broker", broker.bootstrap_servers)
        with RawClient("127.0.0.1", int(told.rpartition(":")[2])) as client:
            client.send(HELLO, 3)
            client.send(FindCoordinatorRequest(key_type=5, coordinator_keys=["x"]), 4)
            assert client.receive().api_keys
            client.receive()
        wait_until(lambda: len(recorder.of("FindCoordinator")) == 1, "the last answer", within_s=30)
        first, second = recorder.exchanges
    assert [each.api for each in (first, second)] == ["ApiVersions", "FindCoordinator"]
    assert first.question() == HELLO
    assert first.answer().api_keys
    assert (first.asker, first.asked) == ("tester 1", "millstream 1 broker")
    assert errors_of(second.answer()) == ["INVALID_REQUEST"]
    assert recorder.of("ApiVersions", asker="tester 1", asked="broker") == [first]
    assert table([first, second, second])[-1].startswith("| tester 1 | millstream 1 broker | FindCoordinator | 4 | 2 |")


def test_a_node_that_does_not_listen_is_no_harm() -> None:
    with Recorder() as recorder:
        told = recorder.tap("nobody 1 broker", "127.0.0.1:1")
        with RawClient("127.0.0.1", int(told.rpartition(":")[2])) as client:
            assert client.hung_up()
    assert recorder.exchanges == []
