"""State is read back whole or not at all: what is missing ends the application, with a sentence that says where."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.client.admin import raise_first
from millstream.client.admin.topics import NewTopic, create_topics, delete_records
from millstream.client.offsets import LATEST, list_offsets
from millstream.client.produce import Producer
from millstream.client.sync import SyncClient
from millstream.spark.options import Selection, parse_read
from millstream.spark.planning import find_present
from millstream.streams.errors import StateLost
from millstream.streams.lower.tasks.restoring import read_back, reading_options
from tests.streams.test_ends import writes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.millstream_process import MillstreamProcess

SHORT_MS = 1_000
LONG_MS = 60_000


class Changelog:
    """A topic of one partition, with three records."""

    def __init__(self, servers: str, topic: str) -> None:
        self.topic = topic
        self.connection = {"bootstrap.servers": servers}
        self._client = SyncClient(self.connection)
        raise_first(self._client.run(create_topics, [NewTopic(topic, 1)]))
        producer = Producer(self._client.client)
        for value in (b"1", b"2", b"3"):
            self._client.run(lambda _, value=value: producer.send(topic, 0, [(b"k", value, (), 5)]))
        self.ids = self._client.run(find_present, Selection(names=(topic,))).ids

    def end(self) -> int:
        place = (self.topic, 0)
        return self._client.run(list_offsets, {place: LATEST})[place].offset

    def delete_before(self, offset: int) -> None:
        raise_first(self._client.run(delete_records, {(self.topic, 0): offset}))

    def read(self, end: int, patience_ms: int) -> list[bytes | None]:
        rows = read_back(self.ids, self.connection, patience_ms, self.topic, 0, 0, end)
        return [value for _, value, _ in rows]

    def close(self) -> None:
        self._client.close()


@pytest.fixture
def changelog(millstream: MillstreamProcess, fresh_name: str) -> Iterator[Changelog]:
    made = Changelog(millstream.bootstrap_servers, fresh_name)
    yield made
    made.close()


def test_what_has_expired_is_no_part_of_it(changelog: Changelog) -> None:
    changelog.delete_before(2)
    assert changelog.read(3, LONG_MS) == [b"3"]
    changelog.delete_before(3)
    assert changelog.read(3, LONG_MS) == []


def test_records_that_do_not_come_are_not_left_out(changelog: Changelog) -> None:
    """They lie behind a transaction: as long as it may end they are waited for."""
    servers = changelog.connection["bootstrap.servers"]
    killed = writes(servers, f"{changelog.topic}-killed", changelog.topic)
    with pytest.raises(StateLost, match=f"'{changelog.topic}' partition 0 was planned to be read up to offset 4, but"):
        changelog.read(changelog.end(), SHORT_MS)
    killed.commit_transaction(30)
    assert changelog.read(4, LONG_MS) == [b"1", b"2", b"3", b"state"]


def test_a_log_that_has_become_shorter_is_noticed(changelog: Changelog) -> None:
    changelog.delete_before(3)
    with pytest.raises(StateLost, match="planned to be read up to offset 9"):
        changelog.read(9, SHORT_MS)


def test_another_topic_of_the_same_name_is_noticed(changelog: Changelog) -> None:
    changelog.ids = {changelog.topic: "AAAAAAAAAAAAAAAAAAAAAA"}
    with pytest.raises(StateLost, match="was deleted and created again"):
        changelog.read(3, LONG_MS)


def test_sparks_operators_read_it_in_the_same_way() -> None:
    options = parse_read(reading_options({"bootstrap.servers": "nowhere:1"}, "changelog", 5), streaming=False)
    assert options.fail_on_data_loss
    assert not options.fail_if_expired
    assert options.read_committed
    assert options.poll_timeout_ms == 5
