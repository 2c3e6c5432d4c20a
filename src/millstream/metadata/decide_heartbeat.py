"""BrokerHeartbeat: a broker lives, has come so far, and wishes to serve, to be fenced, or to stop.

What becomes of it is Kafka's state machine (KIP-631):

    fenced         -> unfenced, when it wants to serve and has replayed its own registration
    unfenced       -> fenced, when it asks for it
                   -> shutting down, when it wants to stop: others take over what it leads
    shutting down  -> may stop (fenced), when it leads nothing and all active brokers know it

A broker that is alone need not wait for anybody: it may stop in the step in which it asks. Failed log directories
(KIP-858) are reported here as well: what the broker has in them is led by others from then on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.metadata import metadata_version as levels
from millstream.metadata.broker_lifecycle import (
    decide_controlled_shutdown,
    decide_fence_broker,
    decide_unfence_broker,
    registered,
)
from millstream.metadata.broker_sessions import may_be_kafkas
from millstream.metadata.decision import Decision
from millstream.metadata.delta import apply
from millstream.metadata.leadership import changes_when_directories_fail, leads_any
from millstream.metadata.record_types import BrokerRegistrationChangeRecord
from millstream.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse

if TYPE_CHECKING:
    from millstream.metadata.broker_sessions import BrokerSessions
    from millstream.metadata.image import Broker, MetadataImage
    from millstream.metadata.record_types import MetadataRecord


def decide_heartbeat(
    image: MetadataImage, request: BrokerHeartbeatRequest, sessions: BrokerSessions, now_ms: int
) -> Decision[BrokerHeartbeatResponse]:
    """Renew the session and take the next step. `now_ms` is that of a clock that only goes forward."""
    broker = registered(image, request.broker_id, request.broker_epoch)
    pace_unknown = broker.fenced and may_be_kafkas(broker)
    sessions.heard(broker.id, broker.epoch, request.current_metadata_offset, now_ms, pace_unknown=pace_unknown)
    records = _directories(image, broker, request)
    state, _ = apply(image, records, offset=image.offset + len(records))
    response = BrokerHeartbeatResponse(
        # The epoch is the offset at which the registration begins.
        is_caught_up=request.current_metadata_offset >= broker.epoch,
        is_fenced=broker.fenced,
        should_shut_down=False,
    )
    if broker.fenced:
        records += _of_fenced(state, request, response)
    elif broker.in_controlled_shutdown:
        records += _of_shutting_down(state, broker, sessions, response)
    else:
        records += _of_unfenced(state, request, sessions, response)
    return Decision(tuple(records), response)


def _of_fenced(
    image: MetadataImage, request: BrokerHeartbeatRequest, response: BrokerHeartbeatResponse
) -> tuple[MetadataRecord, ...]:
    if request.want_shut_down:
        response.should_shut_down = True
        return ()
    if request.want_fence or not response.is_caught_up:
        return ()
    response.is_fenced = False
    return decide_unfence_broker(image, request.broker_id, request.broker_epoch).records


def _of_unfenced(
    image: MetadataImage,
    request: BrokerHeartbeatRequest,
    sessions: BrokerSessions,
    response: BrokerHeartbeatResponse,
) -> tuple[MetadataRecord, ...]:
    if request.want_fence:
        response.is_fenced, response.should_shut_down = True, request.want_shut_down
        return decide_fence_broker(image, request.broker_id, request.broker_epoch).records
    if not request.want_shut_down:
        return ()
    left = decide_controlled_shutdown(image, request.broker_id, request.broker_epoch).records
    after, _ = apply(image, left, offset=image.offset + len(left))
    sessions.shutting_down(request.broker_id, after.offset)
    return (*left, *_of_shutting_down(after, after.brokers[request.broker_id], sessions, response))


def _of_shutting_down(
    image: MetadataImage, broker: Broker, sessions: BrokerSessions, response: BrokerHeartbeatResponse
) -> tuple[MetadataRecord, ...]:
    if leads_any(image, broker.id):
        return ()
    sessions.shutting_down(broker.id, image.offset)
    if not sessions.may_stop(image, broker.id):
        return ()
    sessions.forget(broker.id)
    response.is_fenced = response.should_shut_down = True
    return decide_fence_broker(image, broker.id, broker.epoch).records


def _directories(image: MetadataImage, broker: Broker, request: BrokerHeartbeatRequest) -> list[MetadataRecord]:
    records: list[MetadataRecord] = []
    change = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    failed = [directory for directory in request.offline_log_dirs if directory in broker.log_dirs]
    if failed and image.metadata_version >= levels.DIRECTORY_ASSIGNMENT:
        change.log_dirs = [directory for directory in broker.log_dirs if directory not in failed]
        records += changes_when_directories_fail(image, broker.id, tuple(failed))
    cordoned = request.cordoned_log_dirs
    if (
        cordoned is not None
        and image.metadata_version >= levels.CORDONED_LOG_DIRS
        and sorted(cordoned) != sorted(broker.cordoned_log_dirs or ())
    ):
        change.cordoned_log_dirs = sorted(cordoned)
    if change != BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch):
        records.append(change)
    return records
