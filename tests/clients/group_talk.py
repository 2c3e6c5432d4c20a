"""Conversations about groups over raw connections, written down so that two brokers' answers can be compared.

Member ids, times and the group's name are replaced by names, in the order in which they are heard; what has no order
in Kafka (members come from a hash table) is sorted.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Self

import msgspec

from millstream.protocol.codec import encode
from millstream.protocol.coordinator_frame import decode_coordinator_key, decode_coordinator_value
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.data.consumer_protocol_subscription import ConsumerProtocolSubscription
from millstream.protocol.messages.describe_groups import DescribeGroupsRequest
from millstream.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from millstream.protocol.messages.find_coordinator import FindCoordinatorRequest
from millstream.protocol.messages.heartbeat import HeartbeatRequest
from millstream.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from millstream.protocol.messages.metadata_api import MetadataRequest, MetadataRequestTopic
from millstream.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from millstream.records.reading import decode_records, each_batch
from tests.clients.talking import Conversation
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from tests.support.raw import RawClient
    from tests.support.running import RunningBroker

# Apache Kafka reads what consumers say of themselves, and stumbles over what it cannot read: the join never ends.
SUBSCRIPTION = b"\0\0" + encode(ConsumerProtocolSubscription(topics=["t"]), 0)
OTHER = b"\0\0" + encode(ConsumerProtocolSubscription(topics=["t", "u"]), 0)
OFFSETS_TOPIC = "__consumer_offsets"
MEMBER_ID = re.compile(r"[\w.]*-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class Talk(Conversation):
    """A conversation about a classic group."""

    def __init__(self, broker: RunningBroker, group: str) -> None:
        super().__init__(broker, group)
        self._ids: dict[str, str] = {}

    def __enter__(self) -> Self:
        def ready() -> bool:
            asked = FindCoordinatorRequest(key_type=0, coordinator_keys=[self.group])
            (found,) = self.client("setup").call(asked, 4).coordinators
            if found.error_code:
                return False
            # Right after the topic was made its coordinator may still be coming up.
            answer = self.client("setup").call(DescribeGroupsRequest(groups=[self.group]), 5)
            return bool(answer.groups[0].error_code == 0)

        wait_until(ready, "a coordinator")
        return self

    def until_known(self) -> None:
        """Until an administrator hears of the group; no part of the transcript."""
        asked = DescribeGroupsRequest(groups=[self.group])
        wait_until(lambda: self.client("setup").call(asked, 5).groups[0].group_state != "Dead", "the group")

    # --- saying

    def ask(self, who: str, request: Any, version: int) -> Any:
        self.begin(who, request, version)
        return self.end(who)

    def begin(self, who: str, request: Any, version: int) -> None:
        self.lines.append(f"{who} asks {type(request).__name__} v{version}")
        self.client(who).send(request, version)

    def end(self, who: str) -> Any:
        answer = self.client(who).receive()
        self.lines.append(f"{who} hears {self.plain(answer)}")
        return answer

    def plain(self, value: Any) -> Any:
        if isinstance(value, msgspec.Struct):
            fields = {
                name: self.plain(getattr(value, name))
                for name in value.__struct_fields__
                if name not in ("throttle_time_ms", "error_message", "current_state_timestamp")
            }
            if "error_code" in fields:
                fields["error_code"] = ErrorCode(getattr(value, "error_code")).name  # noqa: B009
            return fields
        if isinstance(value, tuple):
            return tuple(self.plain(each) for each in value)
        if isinstance(value, list):
            # Kafka's members are in the order of a hash table.
            return sorted((self.plain(each) for each in value), key=str)
        if isinstance(value, bytes | memoryview):
            return bytes(value).decode("latin-1")
        if isinstance(value, str):
            return MEMBER_ID.sub(lambda found: self._name(found[0]), value.replace(self.group, "GROUP"))
        return value

    def _name(self, member_id: str) -> str:
        return self._ids.setdefault(member_id, f"<{member_id[:-37]} {len(self._ids)}>")

    # --- requests

    def join(self, member_id: str = "", *, instance_id: str | None = None, **bent: Any) -> JoinGroupRequest:
        protocols = bent.pop("protocols", {"range": SUBSCRIPTION})
        fields = {
            "group_id": self.group,
            "session_timeout_ms": 30_000,
            "rebalance_timeout_ms": 60_000,
            "member_id": member_id,
            "group_instance_id": instance_id,
            "protocol_type": "consumer",
            "protocols": [JoinGroupRequestProtocol(name=name, metadata=each) for name, each in protocols.items()],
        }
        return JoinGroupRequest(**fields | bent)

    def sync(self, member_id: str, generation: int, assignments: dict[str, bytes], **bent: Any) -> SyncGroupRequest:
        fields = {
            "group_id": self.group,
            "generation_id": generation,
            "member_id": member_id,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": [
                SyncGroupRequestAssignment(member_id=each, assignment=data) for each, data in assignments.items()
            ],
        }
        return SyncGroupRequest(**fields | bent)

    def heartbeat(self, member_id: str, generation: int, **bent: Any) -> HeartbeatRequest:
        return HeartbeatRequest(**{"group_id": self.group, "generation_id": generation, "member_id": member_id} | bent)

    def joined(self, who: str, version: int = 9, **bent: Any) -> Any:
        """Come into an empty group, in two steps where the version asks for it."""
        answer = self.ask(who, self.join(**bent), version)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            answer = self.ask(who, self.join(answer.member_id, **bent), version)
        return answer

    def stable(self, who: str = "a", version: int = 9, **bent: Any) -> Any:
        joined = self.joined(who, version, **bent)
        instance = {"group_instance_id": bent.get("instance_id")}
        self.ask(who, self.sync(joined.member_id, joined.generation_id, {joined.member_id: b"all"}, **instance), 5)
        return joined

    def describe(self, version: int = 6) -> None:
        self.ask("admin", DescribeGroupsRequest(groups=[self.group]), version)

    def stored(self) -> None:
        """What the log says of the group."""
        for record in stored_records(self.client("reader"), self.group.encode()):
            self.lines.append(f"stored: {self.plain(record)}")


def stored_records(client: RawClient, group: bytes) -> list[tuple[Any, Any]]:
    """The records of a group: each one's key, and its value with the version that it was written in."""
    topics = client.call(MetadataRequest(topics=[MetadataRequestTopic(name=OFFSETS_TOPIC)]), 12).topics
    found = []
    for partition in topics[0].partitions:
        wanted = FetchPartition(partition=partition.partition_index, fetch_offset=0, partition_max_bytes=1 << 24)
        answer = client.call(
            FetchRequest(
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=1 << 24,
                topics=[FetchTopic(topic=OFFSETS_TOPIC, partitions=[wanted])],
            ),
            12,
        )
        data = bytes(answer.responses[0].partitions[0].records or b"")
        for position, header in each_batch(data):
            if header.is_control:
                continue
            for record in decode_records(data, position):
                key = decode_coordinator_key("groups", record.key)
                if getattr(key, "group", "").encode() != group:
                    continue
                if record.value is None:
                    found.append((key, None))
                else:
                    found.append((key, decode_coordinator_value("groups", key, record.value)))
    return found
