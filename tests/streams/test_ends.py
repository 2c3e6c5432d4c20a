"""State is read back up to what was there, also where somebody who was killed left a transaction open below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from millstream.client.offsets import LATEST, list_offsets
from millstream.client.sync import SyncClient
from millstream.streams.errors import StateLost
from millstream.streams.lower.ends import patience_ms, settled_ends

if TYPE_CHECKING:
    from tests.support.millstream_process import MillstreamProcess


def writes(servers: str, name: str, topic: str) -> Producer:
    """A producer with a record in an open transaction."""
    producer = Producer({"bootstrap.servers": servers, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"state", partition=0)
    producer.flush(30)
    return producer


def test_what_lies_behind_an_open_transaction_is_waited_for(millstream: MillstreamProcess, fresh_name: str) -> None:
    servers, place = millstream.bootstrap_servers, (fresh_name, 0)
    killed = writes(servers, f"{fresh_name}-killed", fresh_name)
    writes(servers, f"{fresh_name}-lives", fresh_name).commit_transaction(30)
    with SyncClient({"bootstrap.servers": servers}) as client:
        asked = {place: LATEST}
        end = client.run(list_offsets, asked)[place].offset
        assert client.run(list_offsets, asked, read_committed=True)[place].offset == 0
        found = client.start(settled_ends, [place], 60_000)
        client.run(list_offsets, asked)  # behind the first look of the other
        assert not found.done()
        killed.abort_transaction(30)
        assert found.result(timeout=60)[place] >= end


def test_one_that_never_ends_is_said_instead_of_read_around(millstream: MillstreamProcess, fresh_name: str) -> None:
    servers = millstream.bootstrap_servers
    killed = writes(servers, f"{fresh_name}-killed", fresh_name)
    with SyncClient({"bootstrap.servers": servers}) as client:
        with pytest.raises(StateLost, match=r"behind a transaction \(producer id \d+, from offset 0 on\)"):
            client.run(settled_ends, [(fresh_name, 0)], 200)
        killed.abort_transaction(30)


def test_whoever_was_killed_has_the_time_that_his_transaction_has() -> None:
    assert patience_ms(300_000) > 300_000
