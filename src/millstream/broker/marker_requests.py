"""Markers for partitions that other brokers lead: WriteTxnMarkers, one request for each broker and round."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.peers import PeerUnreachable
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from millstream.runtime.logs import Logger

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.broker.node import Node
    from millstream.broker.transaction_markers import Marker

    Place = tuple[str, int]

TIMEOUT_MS = 30_000
_log = Logger("millstream.transactions")


def leader_of(node: Node, place: Place) -> int | None:
    """The broker that leads the partition; None if there is no such partition any more."""
    topic = node.image.topics.by_name.get(place[0])
    partition = None if topic is None else topic.partitions.get(place[1])
    return None if partition is None else partition.leader


async def write_elsewhere(
    node: Node, broker_id: int, marker: Marker, places: Iterable[Place]
) -> dict[Place, ErrorCode]:
    """What the broker says for each partition; NOT_LEADER_OR_FOLLOWER, which is tried again, where it says nothing."""
    results = dict.fromkeys(places, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    address = node.endpoint_of(broker_id)
    if address is None:
        return results
    try:
        answer = await node.peers.at(*address, "markers").ask(_request(marker, results), timeout_ms=TIMEOUT_MS)
    except PeerUnreachable as error:
        _log.warning("markers must wait", broker=broker_id, error=str(error))
        return results
    for written in answer.markers:
        for topic in written.topics:
            for partition in topic.partitions:
                results[topic.name, partition.partition_index] = ErrorCode(partition.error_code)
    return results


def _request(marker: Marker, places: Iterable[Place]) -> WriteTxnMarkersRequest:
    topics: dict[str, list[int]] = {}
    for name, index in places:
        topics.setdefault(name, []).append(index)
    return WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=marker.producer_id,
                producer_epoch=marker.epoch,
                transaction_result=marker.committed,
                topics=[WritableTxnMarkerTopic(name=name, partition_indexes=found) for name, found in topics.items()],
                coordinator_epoch=marker.coordinator_epoch,
                transaction_version=marker.transaction_version,
            )
        ]
    )
