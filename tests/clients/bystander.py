"""Who asks, after somebody sent something wrong, whether all is still well; and the few calls that he needs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from millstream.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from millstream.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.batches import Record, batch_of
from tests.support.raw import RawClient
from tests.support.running import memory_kb
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from tests.support.running import RunningBroker

MEGABYTE_KB = 1024
NOW_MS = int(time.time() * 1000)
GOOD = batch_of(Record(b"value", b"key", (), NOW_MS))
CUT_OFF = "cut off"


def produce_request(topic: str, records: bytes | None, acks: int = -1) -> ProduceRequest:
    partition = PartitionProduceData(index=0, records=records)
    return ProduceRequest(
        acks=acks, timeout_ms=10_000, topic_data=[TopicProduceData(name=topic, partition_data=[partition])]
    )


def produce(client: RawClient, topic: str, records: bytes | None, acks: int = -1) -> str:
    """What the broker said to one batch: the name of an error code, or that it hung up."""
    try:
        answer = client.call(produce_request(topic, records, acks), 8)
    except ConnectionError:
        return CUT_OFF
    return ErrorCode(answer.responses[0].partition_responses[0].error_code).name


def next_offset(client: RawClient, topic: str) -> int:
    partition = ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[partition])])
    return int(client.call(request, 4).topics[0].partitions[0].offset)


def created(client: RawClient, *names: str) -> list[str]:
    wanted = [
        CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[]) for name in names
    ]
    answer = client.call(CreateTopicsRequest(topics=wanted, timeout_ms=10_000), 7)
    for each in answer.topics:
        if each.error_code == ErrorCode.NONE:
            # Apache Kafka answers before its broker half has heard of the topic.
            wait_until(lambda name=each.name: next_offset(client, name) == 0, "the new topic's leader")
    return [ErrorCode(each.error_code).name for each in answer.topics]


class Bystander:
    """Somebody who was connected before and only wants to go on working."""

    def __init__(self, broker: RunningBroker, topic: str) -> None:
        self._broker = broker
        self.topic = topic
        self.client = RawClient.of(broker)
        self._offset = next_offset(self.client, topic)
        self._memory_kb = memory_kb(broker.pid)

    def goes_on(self, *, memory_mb_max: int = 48) -> None:
        """Nothing landed, a good batch is taken, and the process has not grown by more than a little."""
        assert next_offset(self.client, self.topic) == self._offset, "something landed in the log"
        assert produce(self.client, self.topic, GOOD) == "NONE"
        self._offset += 1
        if self._broker.name == "millstream":
            grown_kb = memory_kb(self._broker.pid) - self._memory_kb
            assert grown_kb < memory_mb_max * MEGABYTE_KB, f"grew by {grown_kb} KB"
