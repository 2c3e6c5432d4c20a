"""A producer without a client library: batches built beforehand, eight requests in flight on one socket.

What it measures is the broker's own limit; the sender does no more than `sendall` and counts answers.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, NamedTuple

from tests.support.batches import Record, batch_of
from tests.support.raw import RawClient, frame

from millstream.protocol.codec import decode
from millstream.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

if TYPE_CHECKING:
    from tests.support.running import RunningBroker

IN_FLIGHT = 8
VERSION = 9


class Rate(NamedTuple):
    """What one run of it moved, per second."""

    requests: float
    records: float
    megabytes: float


def prebuilt_batch(size: int, value_bytes: int = 100) -> tuple[bytes, int]:
    """A batch of about this size, and how many records it holds."""
    now_ms = int(time.time() * 1000)
    record_bytes = len(batch_of(Record(b"x" * value_bytes, None, (), now_ms))) - 61
    count = max(1, (size - 61) // (record_bytes + 2))
    return batch_of(*(Record(b"x" * value_bytes, None, (), now_ms) for _ in range(count))), count


def request_frames(topic: str, batch: bytes, partitions: int) -> list[bytes]:
    """One request for each partition, to be sent over and over."""
    return [
        frame(
            ProduceRequest(
                acks=-1,
                timeout_ms=30_000,
                topic_data=[
                    TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=index, records=batch)])
                ],
            ),
            VERSION,
            correlation_id=1,
        )
        for index in range(partitions)
    ]


def run(
    broker: RunningBroker,
    topic: str,
    batch: bytes,
    records: int,
    seconds: float = math.inf,
    *,
    total_bytes: float = math.inf,
    partitions: int = 6,
) -> Rate:
    """Send for so long, or so much; a sample of the responses is checked at the end of the run."""
    count = math.ceil(total_bytes / len(batch)) if math.isfinite(total_bytes) else None
    sent, took = _send(broker, request_frames(topic, batch, partitions), count, seconds)
    return Rate(sent / took, sent * records / took, sent * len(batch) / took / 1e6)


def send_over_and_over(broker: RunningBroker, frames: list[bytes], count: int) -> float:
    """Seconds for so many requests, these ones in turn; a sample of the responses is checked at the end."""
    return _send(broker, frames, count, math.inf)[1]


def _send(broker: RunningBroker, frames: list[bytes], count: int | None, seconds: float) -> tuple[int, float]:
    """How many requests went in how many seconds."""
    responses: list[bytes] = []
    with RawClient.of(broker, timeout_s=300) as client:
        start = time.perf_counter()
        sent = 0
        deadline = start + seconds
        while (count is None or sent < count) and time.perf_counter() < deadline:
            if sent - len(responses) >= IN_FLIGHT:
                responses.append(_response(client))
            client.send_bytes(frames[sent % len(frames)])
            sent += 1
        while len(responses) < sent:
            responses.append(_response(client))
        took = time.perf_counter() - start
    for each in responses[:: max(1, sent // 1000)]:
        for topic in decode(ProduceResponse, VERSION, each, 5).responses:
            refused = {partition.error_code for partition in topic.partition_responses} - {0}
            assert not refused, f"batches were refused with {refused}"
    return sent, took


def _response(client: RawClient) -> bytes:
    response = client.receive_frame()
    assert response is not None, "the broker hung up"
    return response
