"""A transactional producer that says exactly what it is told to, and writes down what it hears.

What is heard is a transcript: one line for each request, in its order. Producer ids are numbered as they turn up.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tests.support.batches import Record, batch_of

from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from millstream.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from millstream.protocol.messages.describe_transactions import DescribeTransactionsRequest
from millstream.protocol.messages.end_txn import EndTxnRequest
from millstream.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from millstream.protocol.messages.find_coordinator import FindCoordinatorRequest
from millstream.protocol.messages.init_producer_id import InitProducerIdRequest
from millstream.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from millstream.protocol.messages.list_transactions import ListTransactionsRequest
from millstream.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from millstream.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from millstream.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from millstream.protocol.uuid import ZERO_UUID
from millstream.records.reading import each_batch

if TYPE_CHECKING:
    from tests.broker.handlers.conversations import Talk

COMMIT, ABORT = True, False
TRANSACTION_KEY, GROUP_KEY = 1, 0
PASSING = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}

Producer = tuple[int, int]
NOBODY: Producer = (-1, -1)


class Transcript:
    """A producer that says exactly what it is told to, about one topic of three partitions."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._numbers: dict[int, int] = {}
        self._topic = talk.name("t")
        talk.topic("t", partitions=3)
        self.find(TRANSACTION_KEY, "anybody")

    def find(self, kind: int, short: str) -> None:
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[self._talk.name(short)])
        self._talk.until(
            lambda: self._talk.client.call(request, 4).coordinators[0].error_code == ErrorCode.NONE, "a coordinator"
        )

    def _say(self, what: str, outcome: object) -> None:
        self._talk.heard[f"{len(self._talk.heard):03} {what}"] = outcome

    def _number(self, producer_id: int) -> int:
        return -1 if producer_id < 0 else self._numbers.setdefault(producer_id, len(self._numbers))

    def _told(self, producer: Producer) -> str:
        return f"{self._number(producer[0])}/{producer[1]}"

    def _id(self, short: str | None) -> str | None:
        return self._talk.name(short) if short else short

    def _short(self, name: str) -> str:
        return name.removeprefix(self._talk.prefix)

    def init(self, name: str, had: Producer = NOBODY, *, timeout_ms: int = 60_000, version: int = 5) -> Producer:
        request = InitProducerIdRequest(
            transactional_id=self._id(name),
            transaction_timeout_ms=timeout_ms,
            producer_id=had[0],
            producer_epoch=had[1],
        )

        def answer():  # the controller may not have given a block of ids yet
            found = self._talk.client.call(request, version)
            return None if found.error_code in PASSING else found

        heard = self._talk.until(answer, "producer ids")
        given = (heard.producer_id, heard.producer_epoch)
        self._say(
            f"init {name!r} had {self._told(had)}, {timeout_ms} ms, v{version}",
            [ErrorCode(heard.error_code).name, self._told(given)],
        )
        return given

    def end(self, name: str, producer: Producer, commit: bool, version: int = 5) -> Producer:
        heard = self._talk.client.call(
            EndTxnRequest(
                transactional_id=self._id(name),
                producer_id=producer[0],
                producer_epoch=producer[1],
                committed=commit,
            ),
            version,
        )
        after = (heard.producer_id, heard.producer_epoch)
        self._say(
            f"{'commit' if commit else 'abort'} {name!r} by {self._told(producer)}, v{version}",
            [ErrorCode(heard.error_code).name, self._told(after)],
        )
        return after

    def state(self, name: str) -> None:
        """How the transaction stands, once its markers are written."""
        request = DescribeTransactionsRequest(transactional_ids=[self._id(name)])

        def settled():
            (found,) = self._talk.client.call(request, 0).transaction_states
            return None if found.transaction_state.startswith("Prepare") else found

        found = self._talk.until(settled, "the markers")
        self._say(
            f"state of {name!r}",
            [
                ErrorCode(found.error_code).name,
                found.transaction_state,
                self._told((found.producer_id, found.producer_epoch)) if found.transaction_state else "",
                found.transaction_timeout_ms,
                found.transaction_start_time_ms > 0,
                sorted(
                    (topic.topic.replace(self._talk.prefix, ""), sorted(topic.partitions)) for topic in found.topics
                ),
            ],
        )

    def add(self, name: str, producer: Producer, *partitions: int, topic: str = "t", version: int = 3) -> None:
        heard = self._talk.client.call(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self._id(name),
                v3_and_below_producer_id=producer[0],
                v3_and_below_producer_epoch=producer[1],
                v3_and_below_topics=[AddPartitionsToTxnTopic(name=self._talk.name(topic), partitions=[*partitions])],
            ),
            version,
        )
        self._say(
            f"add {topic}-{partitions} to {name!r} by {self._told(producer)}, v{version}",
            self._codes(heard.results_by_topic_v3_and_below),
        )

    def add_internal(self, name: str, producer: Producer, version: int) -> None:
        heard = self._talk.client.call(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self._id(name),
                v3_and_below_producer_id=producer[0],
                v3_and_below_producer_epoch=producer[1],
                v3_and_below_topics=[
                    AddPartitionsToTxnTopic(name="__consumer_offsets", partitions=[0]),
                    AddPartitionsToTxnTopic(name=self._topic, partitions=[0]),
                ],
            ),
            version,
        )
        self._say(f"add offsets by hand, v{version}", self._codes(heard.results_by_topic_v3_and_below))

    def add_as_broker(
        self, name: str, producer: Producer, *partitions: int, verify: bool = False, version: int = 5
    ) -> None:
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=self._id(name),
            producer_id=producer[0],
            producer_epoch=producer[1],
            verify_only=verify,
            topics=[AddPartitionsToTxnTopic(name=self._topic, partitions=[*partitions])],
        )
        heard = self._talk.client.call(AddPartitionsToTxnRequest(transactions=[transaction]), version)
        (result,) = heard.results_by_transaction
        what = "verify" if verify else "add"
        self._say(
            f"{what} as a broker {partitions} in {name!r} by {self._told(producer)}, v{version}",
            self._codes(result.topic_results),
        )

    def _codes(self, topics: list) -> list:
        return sorted(
            [partition.partition_index, ErrorCode(partition.partition_error_code).name]
            for topic in topics
            for partition in topic.results_by_partition
        )

    def add_offsets(self, name: str, producer: Producer, group: str, version: int = 4) -> None:
        heard = self._talk.client.call(
            AddOffsetsToTxnRequest(
                transactional_id=self._id(name),
                producer_id=producer[0],
                producer_epoch=producer[1],
                group_id=self._talk.name(group),
            ),
            version,
        )
        self._say(f"add offsets to {name!r} by {self._told(producer)}, v{version}", ErrorCode(heard.error_code).name)

    def commit_offsets(
        self,
        name: str,
        producer: Producer,
        group: str,
        offset: int,
        version: int,
        generation: int = -1,
        topic: str = "t",
    ) -> None:
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
        request = TxnOffsetCommitRequest(
            transactional_id=self._id(name),
            group_id=self._talk.name(group),
            producer_id=producer[0],
            producer_epoch=producer[1],
            generation_id=generation,
            topics=[TxnOffsetCommitRequestTopic(name=self._talk.name(topic), partitions=[partition])],
        )

        def answer():  # FindCoordinator may name a coordinator that still loads its groups
            (found,) = self._talk.client.call(request, version).topics[0].partitions
            return None if found.error_code in PASSING else found

        heard = self._talk.until(answer, "the group's coordinator")
        self._say(
            f"offsets of {group} at {offset} in {name!r} by {self._told(producer)}, v{version}",
            ErrorCode(heard.error_code).name,
        )

    def produce(
        self,
        name: str | None,
        producer: Producer,
        sequence: int,
        partition: int = 0,
        *,
        version: int = 12,
        transactional: bool = True,
    ) -> None:
        records = batch_of(
            Record(b"value", timestamp_ms=int(time.time() * 1000)),
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=sequence,
            attributes=0x10 if transactional else 0,
        )
        data = TopicProduceData(
            name=self._topic,
            topic_id=ZERO_UUID,
            partition_data=[PartitionProduceData(index=partition, records=records)],
        )
        request = ProduceRequest(transactional_id=self._id(name), acks=-1, timeout_ms=5000, topic_data=[data])

        def answer():  # the topic was made a moment ago
            (found,) = self._talk.client.call(request, version).responses[0].partition_responses
            return None if found.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER else found

        heard = self._talk.until(answer, "a leader")
        kind = "" if transactional else " outside of it"
        self._say(
            f"produce {sequence} to {partition} in {name!r}{kind} by {self._told(producer)}, v{version}",
            [ErrorCode(heard.error_code).name, heard.base_offset],
        )

    def write_markers(
        self,
        producer: Producer,
        commit: bool,
        partition: int,
        coordinator_epoch: int = 0,
        transaction_version: int = 0,
    ) -> None:
        marker = WritableTxnMarker(
            producer_id=producer[0],
            producer_epoch=producer[1],
            transaction_result=commit,
            topics=[WritableTxnMarkerTopic(name=self._topic, partition_indexes=[partition])],
            coordinator_epoch=coordinator_epoch,
            transaction_version=transaction_version,
        )
        heard = self._talk.client.call(WriteTxnMarkersRequest(markers=[marker]), 2)
        (answer,) = heard.markers[0].topics[0].partitions
        self._say(
            f"marker of {self._told(producer)} to {partition} by coordinator {coordinator_epoch}, "
            f"transaction.version {transaction_version}",
            ErrorCode(answer.error_code).name,
        )

    def list(
        self,
        states: tuple[str, ...] = (),
        producers: tuple[Producer, ...] = (),
        pattern: str = "",
        *,
        longer_than_ms: int = -1,
    ) -> None:
        request = ListTransactionsRequest(
            state_filters=list(states),
            producer_id_filters=[producer[0] for producer in producers],
            duration_filter=longer_than_ms,
            # Others talk to this broker, too.
            transactional_id_pattern=pattern.replace("%", self._talk.prefix),
        )
        heard = self._talk.client.call(request, 2)
        found = sorted(
            [row.transactional_id.replace(self._talk.prefix, ""), row.transaction_state, self._number(row.producer_id)]
            for row in heard.transaction_states
        )
        self._say(
            f"list {states} of {[self._number(producer[0]) for producer in producers]} like {pattern!r}"
            f"{'' if longer_than_ms == -1 else f', longer than {longer_than_ms} ms'}",
            [ErrorCode(heard.error_code).name, heard.unknown_state_filters, found],
        )

    def read(self, offset: int, partition: int = 0) -> None:
        """What Fetch and ListOffsets tell of a partition, to readers of everything and of what is committed."""
        for isolation in (0, 1):
            asked = FetchPartition(
                partition=partition, current_leader_epoch=-1, fetch_offset=offset, partition_max_bytes=1 << 20
            )
            fetch = FetchRequest(
                max_wait_ms=0,
                min_bytes=0,
                isolation_level=isolation,
                topics=[FetchTopic(topic=self._topic, partitions=[asked])],
                forgotten_topics_data=[],
            )
            (found,) = self._talk.client.call(fetch, 12).responses[0].partitions
            listing = ListOffsetsPartition(partition_index=partition, current_leader_epoch=-1, timestamp=-1)
            offsets = ListOffsetsRequest(
                replica_id=-1,
                isolation_level=isolation,
                topics=[ListOffsetsTopic(name=self._topic, partitions=[listing])],
            )
            (latest,) = self._talk.client.call(offsets, 7).topics[0].partitions
            aborted = found.aborted_transactions
            headers = [header for _, header in each_batch(found.records or b"")]
            self._say(
                f"read {partition} from {offset} with isolation {isolation}",
                [
                    ErrorCode(found.error_code).name,
                    {"latest": latest.offset, "stable": found.last_stable_offset, "high": found.high_watermark},
                    aborted and [[self._number(each.producer_id), each.first_offset] for each in aborted],
                    [[each.base_offset, each.is_control, self._number(each.producer_id)] for each in headers],
                ],
            )
