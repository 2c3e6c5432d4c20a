"""Conversations about committed offsets, plain and in transactions, written down so that two can be compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.describe_groups import DescribeGroupsRequest
from millstream.protocol.messages.end_txn import EndTxnRequest
from millstream.protocol.messages.find_coordinator import FindCoordinatorRequest
from millstream.protocol.messages.init_producer_id import InitProducerIdRequest
from millstream.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from millstream.protocol.messages.list_groups import ListGroupsRequest
from millstream.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from millstream.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from millstream.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from millstream.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from millstream.protocol.uuid import Uuid
from tests.clients.classic_talk import classic_join, classic_sync, subscription
from tests.clients.consumer_talk import Talk
from tests.clients.group_talk import MEMBER_ID
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable

STRANGE = Uuid(b"nobody's topic's")


class OffsetTalk(Talk):
    """Classic members are given their ids: those are numbered as they turn up."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._ids: dict[str, str] = {}

    def plain(self, value: Any) -> Any:
        plain = super().plain(value)
        if isinstance(plain, str):
            return MEMBER_ID.sub(lambda found: self._ids.setdefault(found[0], f"<member {len(self._ids)}>"), plain)
        if isinstance(plain, dict):
            for fields in plain.values():
                if isinstance(fields, dict) and fields.get("expire_timestamp", -1) != -1:
                    fields["expire_timestamp"] = "<some day>"
        return plain


def by_word(places: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """Partitions by topic. Apache Kafka puts a topic that a request names twice together, if one partition is wrong."""
    found: dict[str, list[int]] = {}
    for word, partition in places:
        found.setdefault(word, []).append(partition)
    return found


def commit(talk: OffsetTalk, *places: tuple[str, int], version: int = 9, offset: int = 5, **bent: Any) -> Any:
    """Commit an offset for every place: a topic by its word, and a partition."""
    metadata = bent.pop("metadata", "note")
    epoch = bent.pop("leader_epoch", -1)
    topics = [
        OffsetCommitRequestTopic(
            name=f"{talk.group}.{word}",
            topic_id=talk.topic_ids.get(word, STRANGE),
            partitions=[
                OffsetCommitRequestPartition(
                    partition_index=partition,
                    committed_offset=offset,
                    committed_leader_epoch=epoch,
                    committed_metadata=metadata,
                )
                for partition in partitions
            ],
        )
        for word, partitions in by_word(places).items()
    ]
    fields = {"group_id": talk.group, "generation_id_or_member_epoch": -1, "member_id": "", "topics": topics}
    return talk.ask("committer", OffsetCommitRequest(**fields | bent), version)


def fetch(
    talk: OffsetTalk, words: Iterable[str] | None, version: int = 9, *, stable: bool = False, group: str | None = None
) -> Any:
    """Partitions 0 and 1 and one that is not there, of the topics with these words; None for everything."""
    group = talk.group if group is None else group
    indexes = [0, 1, 99]
    if version < 8:
        listed = None
        if words is not None:
            listed = [OffsetFetchRequestTopic(name=f"{talk.group}.{word}", partition_indexes=indexes) for word in words]
        return talk.ask("reader", OffsetFetchRequest(group_id=group, topics=listed, require_stable=stable), version)
    topics = None
    if words is not None:
        topics = [
            OffsetFetchRequestTopics(
                name=f"{talk.group}.{word}", topic_id=talk.topic_ids.get(word, STRANGE), partition_indexes=indexes
            )
            for word in words
        ]
    asked = OffsetFetchRequestGroup(group_id=group, topics=topics)
    return talk.ask("reader", OffsetFetchRequest(groups=[asked], require_stable=stable), version)


def delete(talk: OffsetTalk, *places: tuple[str, int], group: str | None = None) -> Any:
    topics = [
        OffsetDeleteRequestTopic(
            name=f"{talk.group}.{word}",
            partitions=[OffsetDeleteRequestPartition(partition_index=partition) for partition in partitions],
        )
        for word, partitions in by_word(places).items()
    ]
    return talk.ask("admin", OffsetDeleteRequest(group_id=talk.group if group is None else group, topics=topics), 0)


def seen(talk: OffsetTalk) -> None:
    """Whether there is such a group, to whoever asks."""
    talk.ask("admin", DescribeGroupsRequest(groups=[talk.group]), 5)
    talk.ask("admin", DescribeGroupsRequest(groups=[talk.group]), 6)
    rows = talk.client("admin").call(ListGroupsRequest(), 5).groups
    talk.lines.append(f"listed: {[talk.plain(row) for row in rows if row.group_id == talk.group]}")


def classic_member(talk: OffsetTalk, who: str = "m", topics: Iterable[str] = ("t",), **bent: Any) -> Any:
    """A member of a stable classic group."""
    metadata = subscription(talk, *topics)
    joined = classic_join(talk, who, "", metadata, **bent)
    if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        joined = classic_join(talk, who, joined.member_id, metadata, **bent)
    instance = {"group_instance_id": bent.get("group_instance_id")}
    if "protocol_type" not in bent:
        classic_sync(talk, who, joined, {joined.member_id: b"all"}, **instance)
    return joined


def leave(talk: OffsetTalk, member_id: str) -> None:
    request = LeaveGroupRequest(group_id=talk.group, members=[MemberIdentity(member_id=member_id)])
    assert talk.client("leaver").call(request, 5).members[0].error_code == 0


class Producer:
    """A transactional producer that says exactly what it is told to."""

    def __init__(self, talk: OffsetTalk, word: str) -> None:
        self.talk = talk
        self.transactional_id = f"{talk.group}.{word}"
        self.word = word
        client = talk.client(word)
        finding = FindCoordinatorRequest(key_type=1, coordinator_keys=[self.transactional_id])
        wait_until(lambda: client.call(finding, 4).coordinators[0].error_code == 0, "a coordinator")
        asking = InitProducerIdRequest(transactional_id=self.transactional_id, transaction_timeout_ms=60_000)

        def given() -> Any:
            answer = client.call(asking, 5)
            return answer if answer.error_code == 0 else None

        answer = wait_until(given, "a producer id")
        self.id, self.epoch = answer.producer_id, answer.producer_epoch

    def commit(self, *places: tuple[str, int], version: int = 5, offset: int = 7, **bent: Any) -> Any:
        metadata = bent.pop("metadata", "in a transaction")
        topics = [
            TxnOffsetCommitRequestTopic(
                name=f"{self.talk.group}.{word}",
                partitions=[
                    TxnOffsetCommitRequestPartition(
                        partition_index=partition, committed_offset=offset, committed_metadata=metadata
                    )
                    for partition in partitions
                ],
            )
            for word, partitions in by_word(places).items()
        ]
        fields = {
            "transactional_id": self.transactional_id,
            "group_id": self.talk.group,
            "producer_id": self.id,
            "producer_epoch": self.epoch,
            "topics": topics,
        }
        answer = self.talk.client(self.word).call(TxnOffsetCommitRequest(**fields | bent), version)
        self.talk.lines.append(f"{self.word} commits {places} in v{version}, {bent.keys()}: {self.talk.plain(answer)}")
        return answer

    def end(self, *, commit: bool) -> None:
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        answer = self.talk.client(self.word).call(request, 5)
        assert answer.error_code == 0, answer
        self.id, self.epoch = answer.producer_id, answer.producer_epoch

    def ended(self, *places: tuple[str, int]) -> None:
        """Wait until nothing is pending any more."""
        words = sorted({word for word, _ in places})

        def stable() -> bool:
            topics = [
                OffsetFetchRequestTopics(name=f"{self.talk.group}.{word}", partition_indexes=[0, 1]) for word in words
            ]
            asked = OffsetFetchRequestGroup(group_id=self.talk.group, topics=topics)
            found = self.talk.client("poll").call(OffsetFetchRequest(groups=[asked], require_stable=True), 9).groups[0]
            return all(each.error_code == 0 for topic in found.topics for each in topic.partitions)

        wait_until(stable, "the end of the transaction")
