"""What becomes of records when nobody knows whether they were written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.client import produce as produce_module
from millstream.client.admin import raise_first
from millstream.client.admin.topics import NewTopic, create_topics
from millstream.client.errors import ConnectionLost, Refusal
from millstream.client.fetch import fetch
from millstream.client.produce import Produced, Producer
from millstream.client.reading import batches_from
from millstream.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from millstream.client.client import Client
    from millstream.client.sync import SyncClient


@pytest.fixture
def topic(client: SyncClient, fresh_name: str) -> str:
    raise_first(client.run(create_topics, [NewTopic(fresh_name, partitions=1, replicas=1)]))
    return fresh_name


def send(client: SyncClient, producer: Producer, topic: str, value: bytes) -> Produced:
    async def run(_: Client) -> Produced:
        return await producer.send(topic, 0, [(None, value, [], 1_790_000_000_000)])

    return client.run(run)


def stored(client: SyncClient, topic: str) -> list[bytes | None]:
    (fetched,) = client.run(fetch, {(topic, 0): 0})
    return [record.value for batch in batches_from(fetched, 0) for record in batch.records]


def test_a_record_after_an_unknown_outcome_is_not_taken_for_its_predecessor(
    client: SyncClient, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the sequence of the lost batch, the broker would answer "I have that" and drop the new record."""
    producer = Producer(client.client)
    original = produce_module.produce

    async def written_but_unheard(*args: object, **options: object) -> None:
        await original(*args, **options)  # type: ignore[arg-type]
        raise ConnectionLost("the answer never came")

    with monkeypatch.context() as patched:
        patched.setattr(produce_module, "produce", written_but_unheard)
        with pytest.raises(ConnectionLost):
            send(client, producer, topic, b"first")
    assert send(client, producer, topic, b"second").base_offset == 1
    assert stored(client, topic) == [b"first", b"second"]


def test_a_producer_recovers_from_a_refused_producer_id(
    client: SyncClient, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = Producer(client.client)

    async def refused(_: Client) -> None:
        raise Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    with monkeypatch.context() as patched:
        patched.setattr(produce_module, "init_producer_id", refused)
        with pytest.raises(Refusal):
            send(client, producer, topic, b"x")
    assert send(client, producer, topic, b"x").base_offset == 0
