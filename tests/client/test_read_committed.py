"""Only committed records, where that is asked for; the transactions are librdkafka's, on Apache Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from millstream.client.admin import raise_first
from millstream.client.admin.topics import NewTopic, create_topics
from millstream.client.fetch import fetch
from millstream.client.reading import batches_from
from millstream.client.sync import SyncClient
from tests.support.topics import until_settled

if TYPE_CHECKING:
    from tests.support.apache_kafka import ApacheKafka


@pytest.mark.java
def test_aborted_records_are_left_out_and_committed_ones_are_not(apache_kafka: ApacheKafka, fresh_name: str) -> None:
    with SyncClient({"bootstrap.servers": apache_kafka.bootstrap_servers}) as client:
        raise_first(client.run(create_topics, [NewTopic(fresh_name, 1, 1)]))
        producer = Producer({"bootstrap.servers": apache_kafka.bootstrap_servers, "transactional.id": fresh_name})
        producer.init_transactions(90)
        for value, commit in (("a", True), ("lost", False), ("b", True), ("gone", False), ("c", True)):
            producer.begin_transaction()
            producer.produce(fresh_name, value, partition=0)
            # An abort throws away what is still in the queue: to be left out, a record must have been written.
            producer.flush(90)
            producer.commit_transaction(90) if commit else producer.abort_transaction(90)
        until_settled(apache_kafka.bootstrap_servers, fresh_name)

        def read(*, read_committed: bool) -> list[bytes | None]:
            (fetched,) = client.run(fetch, {(fresh_name, 0): 0}, read_committed=read_committed)
            found = batches_from(fetched, 0, read_committed=read_committed)
            return [record.value for batch in found for record in batch.records]

        assert read(read_committed=True) == [b"a", b"b", b"c"]
        assert read(read_committed=False) == [b"a", b"lost", b"b", b"gone", b"c"]
