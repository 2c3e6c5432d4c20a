"""What each feature on the hot path costs: Millstream against itself, the same load with the feature on and off."""

from __future__ import annotations

import statistics
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bench import contenders, java_clients, raw_producer
from bench.contenders import MILLSTREAM
from bench.throughput import BATCHED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.running import RunningBroker

    from bench.session import Session


@dataclass(frozen=True)
class Variant:
    """One way to run the broker and its load."""

    name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    client: Mapping[str, str] = field(default_factory=dict)


# The first is what the others are compared with. `raw` variants differ in the broker only.
BROKER_VARIANTS = (
    Variant("as it is"),
    Variant("record validation: header only", {"millstream.record.validation": "header"}),
    Variant("an index entry for every batch", {"log.index.interval.bytes": "0"}),
    Variant("LogAppendTime", {"log.message.timestamp.type": "LogAppendTime"}),
    Variant("acks=all after fsync", {"millstream.acks.fsync": "true"}),
    Variant("recompression to lz4", {"compression.type": "lz4"}),
)
CLIENT_VARIANTS = (
    Variant("as it is", client=BATCHED),
    Variant("idempotence off", client=BATCHED | {"enable.idempotence": "false"}),
    Variant("acks=1, idempotence off", client=BATCHED | {"acks": "1", "enable.idempotence": "false"}),
    Variant("compressed by the client, lz4", client=BATCHED | {"compression.type": "lz4"}),
    Variant("compressed by the client, zstd", client=BATCHED | {"compression.type": "zstd"}),
)
BATCH_BYTES = {"1 MB": 1_000_000, "10 KB": 10_000}


def _raw_rate(broker: RunningBroker, batch_bytes: int, seconds: float) -> float:
    batch, records = raw_producer.prebuilt_batch(batch_bytes)
    with contenders.topic(broker) as topic:
        raw_producer.run(broker, topic, batch, records, min(1, seconds))
        return raw_producer.run(broker, topic, batch, records, seconds).records


def measure(session: Session) -> list[dict[str, object]]:
    """Rows of (load, variant, records/s, share of the first variant's)."""
    rounds = 1 if session.quick else 3
    seconds = 1 if session.quick else 5
    rates: dict[tuple[str, str], list[float]] = {}
    brokers = {variant.name: session.fresh(MILLSTREAM, variant.settings) for variant in BROKER_VARIANTS}
    try:
        for broker in brokers.values():
            broker.start()
        for _ in range(rounds):
            for label, batch_bytes in BATCH_BYTES.items():
                for variant in BROKER_VARIANTS:
                    rate = _raw_rate(brokers[variant.name], batch_bytes, seconds)
                    rates.setdefault((f"raw socket, {label} batches", variant.name), []).append(rate)
                    print(f"  {label} {variant.name}: {rate:,.0f}", file=sys.stderr, flush=True)
            for variant in CLIENT_VARIANTS:
                broker = brokers[BROKER_VARIANTS[0].name]
                with contenders.topic(broker) as topic:
                    produced = java_clients.produce(
                        broker,
                        topic,
                        count=session.amount(3_000_000, 100_000),
                        size=100,
                        client_settings=dict(variant.client),
                    )
                rates.setdefault(("ProducerPerformance, 100 B", variant.name), []).append(produced.records_per_s)
                print(f"  {variant.name}: {produced.records_per_s:,.0f}", file=sys.stderr, flush=True)
    finally:
        for broker in brokers.values():
            session.discard(broker)
    medians = {place: statistics.median(values) for place, values in rates.items()}
    return [
        {"load": load, "variant": variant, "records/s": rate, "of the first": rate / medians[load, "as it is"]}
        for (load, variant), rate in medians.items()
    ]
