"""Log directories: partitions spread over several, the metadata knows where each lives, and one may fail."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

from tests.support.batches import Record, batch_of
from tests.support.raw import RawClient
from tests.support.waiting import wait_until

from millstream import Broker
from millstream.client.admin.topics import delete_topics
from millstream.client.sync import SyncClient
from millstream.log.directory import LogDirectory
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from millstream.log.log import Log


def test_partitions_spread_and_stay_where_they_are(tmp_path: Path) -> None:
    directories = ",".join(str(tmp_path / name) for name in ("one", "two"))
    with Broker(settings={"log.dirs": directories}) as broker:
        broker.create_topic("spread", partitions=6)
        node = broker._node
        assert node is not None
        counts = [len(directory.logs) for directory in node.log_directories]
        assert counts == [3, 3]
        ids = {directory.id for directory in node.log_directories}

        def all_assigned() -> bool:
            topic = node.image.topics.by_name["spread"]
            return all(set(partition.directories) <= ids for partition in topic.partitions.values())

        wait_until(all_assigned, "the controller knows where every replica lives")
        before = {(d.path, key) for d in node.log_directories for key in d.logs}
    with Broker(settings={"log.dirs": directories}) as broker:
        node = broker._node
        assert node is not None
        assert {(d.path, key) for d in node.log_directories for key in d.logs} == before


def test_a_partition_that_cannot_be_made_is_offline_and_the_others_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    real = LogDirectory.open_or_create

    def failing(directory: LogDirectory, topic: str, partition: int, *rest: Any) -> Log:
        if partition == 1:
            raise OSError(errno.EMFILE, "Too many open files")
        return real(directory, topic, partition, *rest)

    with Broker() as broker, SyncClient({"bootstrap.servers": broker.bootstrap_servers}) as client:
        with monkeypatch.context() as patch:
            patch.setattr(LogDirectory, "open_or_create", failing)
            broker.create_topic("orders", partitions=3)
        for partition, code in ((0, ErrorCode.NONE), (1, ErrorCode.KAFKA_STORAGE_ERROR), (2, ErrorCode.NONE)):
            data = PartitionProduceData(index=partition, records=batch_of(Record(b"value")))
            topic = TopicProduceData(name="orders", partition_data=[data])
            request = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=1000, topic_data=[topic])
            with RawClient("127.0.0.1", broker.port) as raw:
                (answer,) = raw.call(request, 9).responses[0].partition_responses
            assert answer.error_code == code
        assert client.run(delete_topics, ["orders"]) == {"orders": None}
        broker.create_topic("orders", partitions=3)
        assert broker._node is not None
        assert broker._node.partitions.offline_count == 0
