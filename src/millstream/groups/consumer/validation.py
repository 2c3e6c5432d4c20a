"""What is wrong with a ConsumerGroupHeartbeat in itself, whatever the group says. The sentences are Kafka's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.groups.consumer.config import assignor_names
from millstream.groups.consumer.member import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from millstream.protocol.errors import InvalidRequest, UnsupportedAssignor

if TYPE_CHECKING:
    from millstream.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
    from millstream.settings.effective import Settings

# Java's trim: every character up to the space counts as blank.
_BLANK = "".join(map(chr, range(33)))
# Since then members make up their ids (KIP-1082); before, a new one is given its id.
OWN_IDS_SINCE = 1


def check_heartbeat(request: ConsumerGroupHeartbeatRequest, version: int, settings: Settings) -> None:
    epoch = request.member_epoch
    if version >= OWN_IDS_SINCE or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH:
        _check_not_blank(request.member_id, "MemberId can't be empty.")
    _check_not_blank(request.group_id, "GroupId can't be empty.")
    _check_not_blank(request.instance_id, "InstanceId can't be empty.")
    _check_not_blank(request.rack_id, "RackId can't be empty.")
    if epoch == JOIN_EPOCH:
        _check_join(request)
    elif epoch == STATIC_LEAVE_EPOCH:
        if request.instance_id is None:
            raise InvalidRequest("InstanceId can't be null.")
    elif epoch < STATIC_LEAVE_EPOCH:
        raise InvalidRequest("MemberEpoch is invalid.")
    known = assignor_names(settings)
    if request.server_assignor is not None and request.server_assignor not in known:
        raise UnsupportedAssignor(
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(known)}."
        )


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise InvalidRequest("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        raise InvalidRequest("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise InvalidRequest("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")


def _check_not_blank(text: str | None, sentence: str) -> None:
    if text is not None and not text.strip(_BLANK):
        raise InvalidRequest(sentence)
