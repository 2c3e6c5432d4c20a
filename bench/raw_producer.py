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
    """Send for so long, or so much; a sample of the answers is checked at the end of the run."""
    frames = request_frames(topic, batch, partitions)
    answers: list[bytes] = []
    with RawClient.of(broker, timeout_s=60) as client:
        start = time.perf_counter()
        sent = 0
        deadline = start + seconds
        while sent * len(batch) < total_bytes and time.perf_counter() < deadline:
            if sent - len(answers) >= IN_FLIGHT:
                answers.append(_answer(client))
            client.send_bytes(frames[sent % partitions])
            sent += 1
        while len(answers) < sent:
            answers.append(_answer(client))
        took = time.perf_counter() - start
    for answer in answers[:: max(1, sent // 1000)]:
        response = decode(ProduceResponse, VERSION, answer, 5)
        error_code = response.responses[0].partition_responses[0].error_code
        assert error_code == 0, f"a batch was refused with {error_code}"
    return Rate(sent / took, sent * records / took, sent * len(batch) / took / 1e6)


def _answer(client: RawClient) -> bytes:
    answer = client.receive_frame()
    assert answer is not None, "the broker hung up"
    return answer
