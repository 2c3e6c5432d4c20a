"""Classic members in a conversation that is otherwise held in the new consumer protocol's words."""

from __future__ import annotations

from struct import pack
from typing import TYPE_CHECKING, Any

from millstream.protocol.codec import encode
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.data.consumer_protocol_assignment import ConsumerProtocolAssignment
from millstream.protocol.messages.data.consumer_protocol_assignment import TopicPartition as AssignedTopic
from millstream.protocol.messages.data.consumer_protocol_subscription import ConsumerProtocolSubscription
from millstream.protocol.messages.data.consumer_protocol_subscription import TopicPartition as OwnedTopic
from millstream.protocol.messages.heartbeat import HeartbeatRequest
from millstream.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from millstream.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from tests.clients.consumer_talk import Talk


def subscription(talk: Talk, *topics: str, owned: dict[str, list[int]] | None = None) -> bytes:
    told = ConsumerProtocolSubscription(
        topics=[f"{talk.group}.{name}" for name in topics],
        owned_partitions=[
            OwnedTopic(topic=f"{talk.group}.{name}", partitions=partitions)
            for name, partitions in (owned or {}).items()
        ],
    )
    return pack(">h", 1) + encode(told, 1)


def assignment(talk: Talk, owned: dict[str, list[int]]) -> bytes:
    told = ConsumerProtocolAssignment(
        assigned_partitions=[
            AssignedTopic(topic=f"{talk.group}.{name}", partitions=partitions) for name, partitions in owned.items()
        ]
    )
    return pack(">h", 1) + encode(told, 1)


def joining(talk: Talk, member_id: str, metadata: bytes, **bent: Any) -> JoinGroupRequest:
    fields = {
        "group_id": talk.group,
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 60_000,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": [JoinGroupRequestProtocol(name="range", metadata=metadata)],
    }
    return JoinGroupRequest(**fields | bent)


def heartbeat_of(talk: Talk, member_id: str, generation: int) -> HeartbeatRequest:
    return HeartbeatRequest(group_id=talk.group, generation_id=generation, member_id=member_id)


def await_rebalance(talk: Talk, member_id: str, generation: int) -> None:
    """Until the group tells this member to join again."""
    beat = heartbeat_of(talk, member_id, generation)
    wait_until(lambda: talk.client("poll").call(beat, 4).error_code, "the rebalance")


def classic_join(talk: Talk, who: str, member_id: str, metadata: bytes, **bent: Any) -> Any:
    talk.lines.append(f"{who} asks to join as {'somebody new' if not member_id else 'itself'}")
    answer = talk.client(who).call(joining(talk, member_id, metadata, **bent), 9)
    talk.lines.append(
        f"{who} hears {ErrorCode(answer.error_code).name}, generation {answer.generation_id}, protocol "
        f"{answer.protocol_type} {answer.protocol_name}, leads: {answer.leader == answer.member_id}, "
        f"members: {len(answer.members)}"
    )
    return answer


def classic_sync(talk: Talk, who: str, joined: Any, shares: dict[str, bytes] | None = None, **bent: Any) -> Any:
    request = SyncGroupRequest(
        group_id=talk.group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[
            SyncGroupRequestAssignment(member_id=name, assignment=data) for name, data in (shares or {}).items()
        ],
        **bent,
    )
    answer = talk.client(who).call(request, 5)
    talk.lines.append(f"{who} syncs and hears {talk.plain(answer)}")
    return answer


def classic_beat(talk: Talk, who: str, joined: Any, generation: int | None = None) -> Any:
    beat = heartbeat_of(talk, joined.member_id, joined.generation_id if generation is None else generation)
    answer = talk.client(who).call(beat, 4)
    talk.lines.append(f"{who} beats and hears {ErrorCode(answer.error_code).name}")
    return answer
