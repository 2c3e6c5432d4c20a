"""ConsumerGroupHeartbeat: the one request of the new consumer protocol; see groups/consumer/heartbeat.py.

It is served where the cluster has finalized group.version 1; elsewhere UNSUPPORTED_VERSION tells clients to use the
classic protocol.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from millstream.broker.consumer_protocol import is_consumer_protocol_on
from millstream.broker.dispatch import Context, handles
from millstream.groups.classic.member import Client
from millstream.groups.consumer.heartbeat import decide_consumer_heartbeat
from millstream.protocol.errors import BrokerError, ErrorCode
from millstream.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from millstream.replicated import Decision
from millstream.security.operations import Operation, ResourceType, needs_of

if TYPE_CHECKING:
    from millstream.broker.dispatch import Deferred
    from millstream.groups.machine import GroupMachine
    from millstream.replicated import Token

(_READ, _DESCRIBE_TOPIC) = needs_of(ConsumerGroupHeartbeatRequest)


@handles(ConsumerGroupHeartbeatRequest, versions="0-1")
def consumer_group_heartbeat(
    request: ConsumerGroupHeartbeatRequest, ctx: Context
) -> ConsumerGroupHeartbeatResponse | Deferred:
    if not is_consumer_protocol_on(ctx.broker):
        return _refuse(ErrorCode.UNSUPPORTED_VERSION)
    if not _READ.granted(ctx.allows, request.group_id):
        return _refuse(_READ.refusal)
    for topic in request.subscribed_topic_names or ():
        if not _DESCRIBE_TOPIC.granted(ctx.allows, topic):
            return _refuse(_DESCRIBE_TOPIC.refusal)
    version = ctx.version
    # Java's way to write an address is what Kafka stores, and what its tools show.
    client = Client(ctx.client_id or "", f"/{ctx.connection.peer_host}")
    may_describe = partial(ctx.allows, Operation.DESCRIBE, ResourceType.TOPIC)

    def decide(machine: GroupMachine, token: Token, now_ms: int) -> Decision[ConsumerGroupHeartbeatResponse]:
        try:
            return decide_consumer_heartbeat(machine, request, version, client, may_describe, token, now_ms)
        except BrokerError as refusal:
            # Said here and not by the coordinator, because this answer has room for the sentence.
            return Decision(response=_refuse(refusal.code, refusal.message))

    return ctx.broker.groups.submit(request.group_id, decide, refuse=_refuse)


def _refuse(code: ErrorCode, message: str | None = None) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        error_code=code, error_message=message, member_epoch=0, heartbeat_interval_ms=0
    )
