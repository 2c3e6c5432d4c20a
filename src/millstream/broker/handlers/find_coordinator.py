"""FindCoordinator: who looks after a group, a transactional id or a share partition.

That is the leader of the partition of the coordinators' topic to which the name belongs. The topic is made when it is
asked for first (coordinator_topics.py); otherwise the answer needs no task. Share groups are not served, and the answer
says so: COORDINATOR_NOT_AVAILABLE, with a sentence. Clients take it for a passing state and ask again until their own
timeout, which is right: the next version of this broker may answer.

Up to version 3 a request asks for one key and the answer is flat; since version 4 it may ask for many (KIP-699).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from millstream.broker.addresses import address_for
from millstream.broker.coordinator import java_hash
from millstream.broker.coordinator_topics import create_coordinator_topic
from millstream.broker.dispatch import Context, handles
from millstream.metadata.names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from millstream.protocol.errors import BrokerError, ErrorCode
from millstream.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from millstream.security.operations import needs_of

if TYPE_CHECKING:
    from collections.abc import Awaitable

GROUP, TRANSACTION, SHARE = 0, 1, 2
MANY_KEYS_SINCE = 4
SHARE_SINCE = 6
NO_NODE = -1

_NEEDS = dict(zip((GROUP, TRANSACTION, SHARE), needs_of(FindCoordinatorRequest), strict=True))
_TOPICS = {GROUP: OFFSETS_TOPIC, TRANSACTION: TRANSACTIONS_TOPIC}


@handles(FindCoordinatorRequest, versions="0-6")
def find_coordinator(
    request: FindCoordinatorRequest, ctx: Context
) -> FindCoordinatorResponse | Awaitable[FindCoordinatorResponse]:
    keys = request.coordinator_keys if ctx.version >= MANY_KEYS_SINCE else [request.key]
    topic = _TOPICS.get(request.key_type)
    if topic is None or topic in ctx.broker.image.topics.by_name or not _may_find_any(keys, request.key_type, ctx):
        return _answer(keys, request.key_type, ctx)
    return _create_and_answer(topic, keys, request.key_type, ctx)


def _may_find_any(keys: list[str], key_type: int, ctx: Context) -> bool:
    return any(_NEEDS[key_type].granted(ctx.allows, key) for key in keys)


async def _create_and_answer(topic: str, keys: list[str], key_type: int, ctx: Context) -> FindCoordinatorResponse:
    # Where the metadata log takes nothing (a full disk), the topic is missing, and the answer says so.
    with suppress(BrokerError):
        await create_coordinator_topic(ctx.broker, topic)
    return _answer(keys, key_type, ctx)


def _answer(keys: list[str], key_type: int, ctx: Context) -> FindCoordinatorResponse:
    found = [_look_up(key, key_type, ctx) for key in keys]
    if ctx.version >= MANY_KEYS_SINCE:
        return FindCoordinatorResponse(coordinators=found)
    (only,) = found
    return FindCoordinatorResponse(
        error_code=only.error_code,
        # Before many keys could be asked for, Kafka told the name of its error code where nothing was wrong.
        error_message=only.error_message if only.error_code else ErrorCode.NONE.name,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


def _look_up(key: str, key_type: int, ctx: Context) -> Coordinator:
    need = _NEEDS.get(key_type)
    if need is None or (key_type == SHARE and ctx.version < SHARE_SINCE):
        return _refusal(
            key, ErrorCode.INVALID_REQUEST, f"{key_type} is no kind of coordinator in version {ctx.version}."
        )
    if not need.granted(ctx.allows, key):
        return _refusal(key, need.refusal, "Describing this is not allowed.")
    if key_type == SHARE:
        return _refusal(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, "Share groups are not served by this broker yet.")
    image = ctx.broker.image
    topic = image.topics.by_name.get(_TOPICS[key_type])
    if topic is None:
        return _refusal(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, f"Topic {_TOPICS[key_type]} could not be made.")
    leader = topic.partitions[java_hash(key) % len(topic.partitions)].leader
    broker = image.brokers.get(leader)
    address = None if broker is None or broker.fenced else address_for(ctx, broker)
    if address is None:
        return _refusal(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, "The coordinator's partition has no leader now.")
    return Coordinator(key=key, node_id=leader, host=address[0], port=address[1])


def _refusal(key: str, code: ErrorCode, message: str) -> Coordinator:
    return Coordinator(key=key, node_id=NO_NODE, host="", port=-1, error_code=code, error_message=message)
