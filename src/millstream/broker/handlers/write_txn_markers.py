"""WriteTxnMarkers: a transaction coordinator on another broker, or an administrator, ends transactions in partitions.

It takes CLUSTER_ACTION or ALTER on the cluster: a marker decides over other people's records. A group's pending offsets
are decided with the marker in its offsets partition, in the same step.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from millstream.broker.dispatch import Context, Deferred, handles
from millstream.broker.transaction_markers import Marker, Written, write_marker
from millstream.protocol.errors import (
    BrokerError,
    CoordinatorLoading,
    CoordinatorNotAvailable,
    ErrorCode,
    NotCoordinator,
)
from millstream.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from millstream.security.operations import needs_of

if TYPE_CHECKING:
    from millstream.protocol.messages.write_txn_markers import WritableTxnMarker

(_END_FOR_OTHERS,) = needs_of(WriteTxnMarkersRequest)


@handles(WriteTxnMarkersRequest, versions="1-2")
def write_txn_markers(request: WriteTxnMarkersRequest, ctx: Context) -> WriteTxnMarkersResponse | Deferred:
    allowed = _END_FOR_OTHERS.granted(ctx.allows)
    waiting: list[tuple[Written, WritableTxnMarkerPartitionResult]] = []
    response = WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            _write(marker, topic.name, index, ctx, waiting)
                            if allowed
                            else WritableTxnMarkerPartitionResult(
                                partition_index=index, error_code=_END_FOR_OTHERS.refusal
                            )
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )
    return _when_all_committed(response, waiting) if waiting else response


def _write(
    marker: WritableTxnMarker,
    topic: str,
    index: int,
    ctx: Context,
    waiting: list[tuple[Written, WritableTxnMarkerPartitionResult]],
) -> WritableTxnMarkerPartitionResult:
    result = WritableTxnMarkerPartitionResult(partition_index=index)
    try:
        written = write_marker(
            ctx.broker,
            topic,
            index,
            Marker(
                marker.producer_id,
                marker.producer_epoch,
                marker.coordinator_epoch,
                marker.transaction_result,
                marker.transaction_version,
            ),
        )
    except (CoordinatorLoading, CoordinatorNotAvailable, NotCoordinator):
        # The coordinator that asks knows the leader's errors only, and tries again after this one.
        result.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    except BrokerError as refusal:
        result.error_code = refusal.code
    else:
        if not written.is_committed:
            waiting.append((written, result))
    return result


def _when_all_committed(
    response: WriteTxnMarkersResponse, waiting: list[tuple[Written, WritableTxnMarkerPartitionResult]]
) -> Deferred:
    deferred = Deferred()
    left = len(waiting)

    def one_done(written: Written, result: WritableTxnMarkerPartitionResult) -> None:
        nonlocal left
        # Now, and not when all are done: by then another leader may have written at the same offset.
        if not written.is_committed:
            result.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        left -= 1
        if left == 0:
            deferred.finish(response)

    for written, result in waiting:
        written.partition.when_committed(written.offset, partial(one_done, written, result))
    return deferred
