"""Conversations with one broker about one group of the new consumer protocol, written down so that two can be compared.

Members make up their ids, so a transcript has the same names everywhere; topic ids, hashes and times are replaced by
words. The group is told to assign at once (`consumer.assignment.interval.ms`), so no conversation has to wait.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Self

import msgspec

from millstream.broker.coordinator import java_hash
from millstream.protocol.coordinator_frame import decode_coordinator_key, decode_coordinator_value
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from millstream.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from millstream.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from millstream.protocol.messages.delete_groups import DeleteGroupsRequest
from millstream.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from millstream.protocol.messages.find_coordinator import FindCoordinatorRequest
from millstream.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from millstream.protocol.messages.list_groups import ListGroupsRequest
from millstream.protocol.messages.metadata_api import MetadataRequest, MetadataRequestTopic
from millstream.protocol.uuid import ZERO_UUID, Uuid
from millstream.records.reading import decode_records, each_batch
from tests.clients.talking import Conversation
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tests.support.raw import RawClient
    from tests.support.running import RunningBroker

OFFSETS_TOPIC = "__consumer_offsets"
# Of Apache Kafka's offsets topic in these tests.
PARTITIONS = 4
GROUP_RESOURCE = 32
NOT_COMPARED = ("throttle_time_ms", "current_state_timestamp", "commit_timestamp")
TIMES = ("assignment_timestamp", "timestamp", "version")


class Talk(Conversation):
    """A conversation about a group of the new protocol."""

    def __init__(self, broker: RunningBroker, group: str) -> None:
        super().__init__(broker, group)
        self.topic_ids: dict[str, Uuid] = {}

    def __enter__(self) -> Self:
        def ready() -> bool:
            asked = FindCoordinatorRequest(key_type=0, coordinator_keys=[self.group])
            (found,) = self.client("setup").call(asked, 4).coordinators
            if found.error_code:
                return False
            described = ConsumerGroupDescribeRequest(group_ids=[self.group], include_authorized_operations=False)
            (answer,) = self.client("setup").call(described, 1).groups
            return bool(answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND)

        wait_until(ready, "a coordinator")
        self.configure({"consumer.assignment.interval.ms": "0"})
        return self

    def configure(self, configs: Mapping[str, str]) -> None:
        resource = AlterConfigsResource(
            resource_type=GROUP_RESOURCE,
            resource_name=self.group,
            configs=[AlterableConfig(name=name, config_operation=0, value=value) for name, value in configs.items()],
        )
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
        (answer,) = self.client("setup").call(request, 1).responses
        assert answer.error_code == 0, answer

    def create_topic(self, name: str, partitions: int) -> None:
        """`name` is a word of the conversation; the broker knows the topic by a longer name."""
        full = f"{self.group}.{name}"
        topic = CreatableTopic(name=full, num_partitions=partitions, replication_factor=1, assignments=[], configs=[])
        (answer,) = self.client("setup").call(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7).topics
        assert answer.error_code == 0, answer
        self.topic_ids[name] = answer.topic_id
        self._await_topic(full)

    def _await_topic(self, topic: str) -> None:
        """Kafka's coordinators hear of topics one by one, later than its clients: ask the one of this group."""
        same = (f"{self.group}-probe-{number}" for number in count())
        probe = next(name for name in same if java_hash(name) % PARTITIONS == java_hash(self.group) % PARTITIONS)
        request = ConsumerGroupHeartbeatRequest(
            group_id=probe,
            member_id="probe",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=[topic],
            topic_partitions=[],
        )
        leaving = ConsumerGroupHeartbeatRequest(group_id=probe, member_id="probe", member_epoch=-1)

        def assigned() -> bool:
            answer = self.client("setup").call(request, 1)
            assert answer.error_code == 0, answer
            assert self.client("setup").call(leaving, 1).error_code == 0
            assert self.client("setup").call(DeleteGroupsRequest(groups_names=[probe]), 2).results[0].error_code == 0
            return bool(answer.assignment.topic_partitions)

        wait_until(assigned, "the coordinator to see the topic")

    # --- saying

    def ask(self, who: str, request: Any, version: int) -> Any:
        self.lines.append(f"{who} asks {self.plain(request)} in v{version}")
        answer = self.client(who).call(request, version)
        self.lines.append(f"{who} hears {self.plain(answer)}")
        return answer

    def beat(self, who: str, epoch: int = 0, *, version: int = 1, **bent: Any) -> Any:
        """A heartbeat of the member with the speaker's name; `owned` is what it says it owns."""
        owned = bent.pop("owned", None)
        fields: dict[str, Any] = {"group_id": self.group, "member_id": who, "member_epoch": epoch}
        if owned is not None:
            fields["topic_partitions"] = self.listed(owned)
        for field in ("subscribed_topic_names",):
            if bent.get(field) is not None:
                bent[field] = [f"{self.group}.{name}" for name in bent[field]]
        if bent.get("subscribed_topic_regex"):
            bent["subscribed_topic_regex"] = bent["subscribed_topic_regex"].replace("GROUP", self.group)
        return self.ask(who, ConsumerGroupHeartbeatRequest(**fields | bent), version)

    def listed(self, owned: Mapping[str, list[int]]) -> list[TopicPartitions]:
        return [
            TopicPartitions(topic_id=self.topic_ids.get(name, ZERO_UUID), partitions=partitions)
            for name, partitions in owned.items()
        ]

    def join(self, who: str, *topics: str, **bent: Any) -> Any:
        fields = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": list(topics), "owned": {}}
        return self.beat(who, 0, **fields | bent)

    def owned(self, answer: Any) -> dict[str, list[int]]:
        """What an answer says the member owns, by the words of the conversation."""
        words = {topic_id: name for name, topic_id in self.topic_ids.items()}
        assert answer.assignment is not None, answer
        return {words[topic.topic_id]: sorted(topic.partitions) for topic in answer.assignment.topic_partitions}

    def describe(self, version: int = 1) -> Any:
        request = ConsumerGroupDescribeRequest(group_ids=[self.group], include_authorized_operations=False)
        return self.ask("admin", request, version).groups[0]

    def describe_types(self, *, targets: bool = True) -> None:
        """The group without the ids that a broker makes up: its kind, its epochs, who owns what.

        With several such ids the targets differ too: who gets which partition follows from the ids.
        """
        listed = self.client("admin").call(ListGroupsRequest(), 5).groups
        self.lines += [
            f"listed as {group.group_type} {group.group_state} {group.protocol_type}"
            for group in listed
            if group.group_id == self.group
        ]
        request = ConsumerGroupDescribeRequest(group_ids=[self.group], include_authorized_operations=False)
        (group,) = self.client("admin").call(request, 1).groups
        self.lines.append(
            f"{ErrorCode(group.error_code).name} {group.group_state} {group.group_epoch} {group.assignment_epoch}"
        )
        self.lines += sorted(
            f"  type {member.member_type} in {member.member_epoch} has {self.plain(member.assignment)}, shall have "
            f"{self.plain(member.target_assignment) if targets else 'its share'}"
            for member in group.members
        )

    # --- writing down

    def plain(self, value: Any) -> Any:
        if isinstance(value, msgspec.Struct):
            fields = {
                name: self._word(name) if name in TIMES else self.plain(getattr(value, name))
                for name in value.__struct_fields__
                if name not in NOT_COMPARED
            }
            if "error_code" in fields:
                fields["error_code"] = ErrorCode(getattr(value, "error_code")).name  # noqa: B009
                if fields["error_code"] == "INVALID_REGULAR_EXPRESSION":
                    fields["error_message"] = "<what the two RE2s say>"
            if fields.get("metadata_hash"):
                fields["metadata_hash"] = "<hash>"
            if "assignment_epochs" in fields:
                # Sorted together with what they belong to.
                pairs = zip(getattr(value, "partitions"), getattr(value, "assignment_epochs"), strict=True)  # noqa: B009
                fields["assignment_epochs"] = [epoch for _, epoch in sorted(pairs)]
            return {type(value).__name__: fields}
        if isinstance(value, Uuid):
            words = {topic_id: f"<{name}>" for name, topic_id in self.topic_ids.items()}
            return words.get(value, f"<{value}>")
        if isinstance(value, list | tuple):
            # Kafka's members and topics are in the order of a hash table.
            return sorted((self.plain(each) for each in value), key=str)
        if isinstance(value, bytes | memoryview):
            return bytes(value).decode("latin-1").replace(self.group, "GROUP")
        if isinstance(value, str):
            return value.replace(self.group, "GROUP")
        return value

    def _word(self, name: str) -> str:
        return f"<{name}>"

    def stored(self) -> None:
        """What the log says of the group: each key with its values in order; keys come as Kafka's maps have them."""
        history: dict[str, list[str]] = {}
        for key, value in stored_records(self.client("reader"), self.group):
            history.setdefault(str(self.plain(key)), []).append(str(self.plain(value)))
        for key in sorted(history):
            self.lines += [f"stored: {key}", *(f"  {value}" for value in history[key])]


def both_transcripts(
    conversation: Callable[[Talk], None], brokers: Iterable[RunningBroker], group: str, kind: type[Talk] = Talk
) -> list[list[str]]:
    """What was said when the same conversation was held with each of the brokers."""
    transcripts = []
    for broker in brokers:
        with kind(broker, group) as talk:
            conversation(talk)
            transcripts.append(talk.lines)
    return transcripts


def stored_records(client: RawClient, group: str) -> list[tuple[Any, Any]]:
    """The records of a group: (key, value)."""
    topics = client.call(MetadataRequest(topics=[MetadataRequestTopic(name=OFFSETS_TOPIC)]), 12).topics
    found = []
    for partition in topics[0].partitions:
        wanted = FetchPartition(partition=partition.partition_index, fetch_offset=0, partition_max_bytes=1 << 24)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1 << 24,
            topics=[FetchTopic(topic=OFFSETS_TOPIC, partitions=[wanted])],
        )
        data = bytes(client.call(request, 12).responses[0].partitions[0].records or b"")
        for position, header in each_batch(data):
            if header.is_control:
                continue
            for record in decode_records(data, position):
                key = decode_coordinator_key("groups", record.key)
                if group in (getattr(key, "group", None), getattr(key, "group_id", None)):
                    value = None
                    if record.value is not None:
                        value = decode_coordinator_value("groups", key, record.value)[0]
                    found.append((key, value))
    return found
