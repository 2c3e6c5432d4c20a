"""What a broker takes: time to start, time to recover, memory after work and for idle connections."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from tests.support.raw import RawClient
from tests.support.running import memory_kb
from tests.support.waiting import wait_until

from bench import contenders, raw_producer
from bench.rows import Bar, Figures, Row
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.api_versions import ApiVersionsRequest
from millstream.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from millstream.protocol.messages.metadata_api import MetadataRequest

if TYPE_CHECKING:
    from bench.session import Session

IDLE_CONNECTIONS = 2_000


def _answers_metadata(port: int) -> bool:
    try:
        with RawClient("127.0.0.1", port, timeout_s=30) as client:
            return bool(client.call(MetadataRequest(topics=[]), 9).brokers)
    except OSError:
        return False


def start(session: Session, name: str) -> Figures:
    """From the start of the process to the first answer to Metadata, after a clean stop."""
    broker = session.fresh(name)
    broker.start()
    port = broker.port
    broker.stop()
    try:
        began = time.perf_counter()
        broker.launch()
        wait_until(lambda: _answers_metadata(port), "Metadata", within_s=60, every_s=0.002)
        return {"s": time.perf_counter() - began}
    finally:
        session.discard(broker)


def recovery(session: Session, name: str) -> Figures:
    """From the start after kill -9 until every partition answers for its end."""
    partitions = session.amount(1_000, 50)
    total_bytes = session.amount(2_000_000_000, 50_000_000)
    batch, records = raw_producer.prebuilt_batch(16_000)
    each = total_bytes // partitions // len(batch)
    broker = session.fresh(name)
    broker.start()
    port = broker.port
    try:
        with RawClient.of(broker, timeout_s=300) as client:
            wanted = CreatableTopic(
                name="recovered", num_partitions=partitions, replication_factor=1, assignments=[], configs=[]
            )
            (created,) = client.call(CreateTopicsRequest(topics=[wanted], timeout_ms=120_000), 5).topics
            assert created.error_code == ErrorCode.NONE
            contenders.wait_for_leaders(client, "recovered", partitions)
            frames = raw_producer.request_frames("recovered", batch, partitions)
            for number in range(each * partitions):
                client.send_bytes(frames[number % partitions])
                if number >= raw_producer.IN_FLIGHT:
                    client.receive_frame()
            for _ in range(min(raw_producer.IN_FLIGHT, each * partitions)):
                client.receive_frame()
        broker.kill()
        began = time.perf_counter()
        broker.launch()
        wait_until(lambda: _all_ends(port, partitions) == each * records, "all records", within_s=300, every_s=0.01)
        return {"s": time.perf_counter() - began}
    finally:
        session.discard(broker)


def _all_ends(port: int, partitions: int) -> int:
    """The one next offset that all partitions agree on, or -1 while some don't answer."""
    try:
        with RawClient("127.0.0.1", port, timeout_s=120) as client:
            client.call(MetadataRequest(topics=[]), 9)
            found = contenders.ends(client, "recovered", partitions)
    except OSError:
        return -1
    return found[0] if len(set(found)) == 1 else -1


def memory_after(session: Session, name: str) -> Figures:
    """Resident memory of the contender that did all other rows' work."""
    return {"MB": memory_kb(session.broker(name).pid) / 1024}


def idle_connections(session: Session, name: str) -> Figures:
    """Clients that connected, asked for the versions, and then have nothing to say."""
    count = session.amount(IDLE_CONNECTIONS, 200)
    broker = session.fresh(name)
    broker.start()
    try:
        with contextlib.ExitStack() as open_connections:
            for _ in range(20):
                with RawClient.of(broker) as client:
                    client.call(ApiVersionsRequest(), 0)
            before_kb = memory_kb(broker.pid)
            for _ in range(count):
                client = open_connections.enter_context(RawClient.of(broker))
                client.call(ApiVersionsRequest(), 0)
            return {"KB/connection": (memory_kb(broker.pid) - before_kb) / count}
    finally:
        session.discard(broker)


ROWS = (
    Row("start", "process start to first Metadata answer", start, (Bar("s", "s", ratio_at_most=1 / 6),), rounds=5),
    Row(
        "recovery",
        "start after kill -9, 1,000 partitions, 2 GB in 16 KB batches",
        recovery,
        (Bar("s", "s", ratio_at_most=1.0),),
        rounds=3,
    ),
    Row(
        "idle-connections",
        f"memory per idle connection, {IDLE_CONNECTIONS:,} of them",
        idle_connections,
        (Bar("KB/connection", "KB", at_most=64),),
        rounds=1,
    ),
    # Last: it looks at what the others left behind.
    Row("memory", "memory after the runs", memory_after, (Bar("MB", "MB", ratio_at_most=1 / 8),), rounds=1),
)
