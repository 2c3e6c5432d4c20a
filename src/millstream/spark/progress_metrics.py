"""The queries of a session as Prometheus metrics, made when somebody asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client import REGISTRY, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from millstream.spark.progress import ENDED, FAILED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric

    from millstream.spark.progress import Snapshot, Watch

PREFIX: Final = "millstream_spark_"


class QueryCollector(Collector):
    """Reads the last word of each query from a listener."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def collect(self) -> Iterator[Metric]:
        snapshots = self._watch.snapshots()
        yield _gauge("up", "1 while the query runs", snapshots, lambda each: float(each.state not in (ENDED, FAILED)))
        yield _gauge("batch_id", "The last batch", snapshots, lambda each: each.batch_id)
        yield _gauge("input_rows_per_second", "Rows that came in", snapshots, lambda each: each.input_per_s)
        yield _gauge(
            "processed_rows_per_second", "Rows per second of work", snapshots, lambda each: each.processed_per_s
        )
        yield _gauge("state_rows", "Rows kept as state", snapshots, lambda each: each.state_rows)
        yield _counter("rows", "Rows read since the query was first heard of", snapshots, lambda each: each.rows_in_all)
        yield _counter(
            "dropped", "Records left out because they did not parse", snapshots, lambda each: each.dropped_in_all
        )
        phases = GaugeMetricFamily(f"{PREFIX}batch_seconds", "What the last batch took", labels=["query", "phase"])
        lags = GaugeMetricFamily(
            f"{PREFIX}lag_records", "Records that were there and not yet read", labels=["query", "topic", "partition"]
        )
        watermarks = GaugeMetricFamily(f"{PREFIX}watermark_timestamp_seconds", "The watermark", labels=["query"])
        for each in snapshots:
            for phase, took_ms in each.phases_ms.items():
                phases.add_metric([each.name, phase], took_ms / 1000)
            for (topic, partition), lag in each.lag.items():
                lags.add_metric([each.name, topic, str(partition)], lag)
            if each.watermark is not None:
                watermarks.add_metric([each.name], each.watermark.timestamp())
        yield phases
        yield lags
        yield watermarks


def _gauge(name: str, text: str, snapshots: list[Snapshot], value: Callable[[Snapshot], float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(PREFIX + name, text, labels=["query"])
    for each in snapshots:
        family.add_metric([each.name], value(each))
    return family


def _counter(
    name: str, text: str, snapshots: list[Snapshot], value: Callable[[Snapshot], float]
) -> CounterMetricFamily:
    family = CounterMetricFamily(PREFIX + name, text, labels=["query"])
    for each in snapshots:
        family.add_metric([each.name], value(each))
    return family


def register(watch: Watch, *, port: int | None, registry: CollectorRegistry | None) -> None:
    """Into a registry, and with a port onto a page of its own."""
    into = REGISTRY if registry is None else registry
    into.register(QueryCollector(watch))
    if port is not None:
        start_http_server(port, registry=into)
