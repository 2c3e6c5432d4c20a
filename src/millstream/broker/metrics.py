"""Every metric, declared once. Counters are plain integers that hot paths add to; text is made when someone scrapes.

`METRICS` is the declaration (also the source of docs/reference/metrics.md); `Metrics` holds the counters, one slot for
each declared counter; gauges are read from the broker at scrape time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from prometheus_client.core import Metric as Family

    from millstream.broker.node import Node


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: a counter by its slot in `Metrics`, or a gauge by how it is read."""

    name: str
    kind: Literal["counter", "gauge"]
    doc: str
    slot: str = ""
    labels: tuple[str, ...] = ()
    read: Callable[[Node], Iterable[tuple[tuple[str, ...], float]]] | None = None


def _counter(slot: str, name: str, doc: str) -> Metric:
    return Metric(name=name, kind="counter", doc=doc, slot=slot)


def _gauge(name: str, doc: str, read: Callable[[Node], float]) -> Metric:
    return Metric(name=name, kind="gauge", doc=doc, read=lambda node: [((), read(node))])


def _per_partition(name: str, doc: str, read: Callable[..., float]) -> Metric:
    def rows(node: Node) -> Iterator[tuple[tuple[str, ...], float]]:
        for topic in node.partitions.by_name.values():
            for partition in topic.partitions.values():
                yield (topic.name, str(partition.index)), read(partition)

    return Metric(name=name, kind="gauge", doc=doc, labels=("topic", "partition"), read=rows)


def _lags(node: Node) -> Iterator[tuple[tuple[str, ...], float]]:
    for lag in node.groups.lags():
        yield (lag.group_id, lag.topic, str(lag.partition)), lag.records


METRICS: tuple[Metric, ...] = (
    _counter("requests", "millstream_requests_total", "Requests received."),
    _counter("produced_records", "millstream_produced_records_total", "Records appended by producers."),
    _counter("produced_bytes", "millstream_produced_bytes_total", "Bytes of record batches appended by producers."),
    _counter("failed_produces", "millstream_failed_produces_total", "Partitions of Produce requests refused."),
    _counter("fetched_bytes", "millstream_fetched_bytes_total", "Bytes of record batches sent to readers."),
    _counter("replicated_bytes", "millstream_replicated_bytes_total", "Bytes of record batches taken from leaders."),
    _counter("isr_expansions", "millstream_isr_expansions_total", "Followers proposed for the in-sync replicas."),
    _counter("isr_shrinkings", "millstream_isr_shrinkings_total", "Times that followers were found to lag."),
    _counter("failed_handlers", "millstream_failed_handlers_total", "Requests that failed by a bug of the broker."),
    _counter("connections_refused", "millstream_connections_refused_total", "Connections refused by a limit."),
    _counter("connections_cut_off", "millstream_connections_cut_off_total", "Connections closed for bad input."),
    _counter("deleted_segments", "millstream_deleted_segments_total", "Segments removed by retention."),
    _counter("compactions", "millstream_compactions_total", "Compaction runs that finished."),
    _counter("failed_compactions", "millstream_failed_compactions_total", "Compaction runs that failed."),
    _gauge("millstream_connections", "Open connections.", lambda node: node.connection_limits.total),
    _gauge("millstream_topics", "Topics hosted here.", lambda node: len(node.partitions.by_name)),
    _gauge("millstream_partitions", "Partitions hosted here.", lambda node: node.partitions.count),
    _gauge("millstream_offline_partitions", "Partitions on failed disks.", lambda node: node.partitions.offline_count),
    _gauge("millstream_leaders", "Partitions led here.", lambda node: node.partitions.led_count),
    _gauge("millstream_under_replicated_partitions", "Led here, with replicas that are not in sync.",
           lambda node: node.partitions.under_replicated_count),
    _gauge("millstream_under_min_isr_partitions", "Led here, with fewer in sync than min.insync.replicas.",
           lambda node: node.partitions.under_min_isr_count),
    _gauge("millstream_fetch_sessions", "Incremental fetch sessions.", lambda node: len(node.fetch_sessions)),
    _gauge("millstream_metadata_offset", "Offset of the newest metadata applied.", lambda node: node.image.offset),
    _gauge("millstream_groups", "Groups coordinated here.", lambda node: node.groups.group_count),
    _gauge("millstream_committed_offsets", "Offsets stored here.", lambda node: node.groups.offset_count),
    Metric(
        name="millstream_consumer_lag_records",
        kind="gauge",
        doc="Records between a group's committed offset and the high watermark.",
        labels=("group", "topic", "partition"),
        read=_lags,
    ),
    _per_partition("millstream_log_start_offset", "First offset of a partition.", lambda p: p.log.start_offset),
    _per_partition("millstream_log_end_offset", "Offset of the next record.", lambda p: p.log.end_offset),
    _per_partition("millstream_high_watermark", "End of what consumers may read.", lambda p: p.log.high_watermark),
    _per_partition("millstream_log_size_bytes", "Bytes of a partition's segments.", lambda p: p.log.size_bytes),
)  # fmt: skip


class Metrics:
    """The counters of one broker."""

    __slots__ = tuple(metric.slot for metric in METRICS if metric.slot)

    requests: int
    produced_records: int
    produced_bytes: int
    failed_produces: int
    fetched_bytes: int
    replicated_bytes: int
    isr_expansions: int
    isr_shrinkings: int
    failed_handlers: int
    connections_refused: int
    connections_cut_off: int
    deleted_segments: int
    compactions: int
    failed_compactions: int

    def __init__(self) -> None:
        for slot in self.__slots__:
            setattr(self, slot, 0)


def exposition(node: Node) -> bytes:
    """All metrics in Prometheus' text format."""
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(node))
    return generate_latest(registry)


class _Collector:
    def __init__(self, node: Node) -> None:
        self._node = node

    def collect(self) -> Iterator[Family]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        for metric in METRICS:
            if metric.kind == "counter":
                counter = CounterMetricFamily(metric.name, metric.doc)
                counter.add_metric([], getattr(self._node.metrics, metric.slot))
                yield counter
            else:
                gauge = GaugeMetricFamily(metric.name, metric.doc, labels=metric.labels)
                assert metric.read is not None
                for labels, value in metric.read(self._node):
                    gauge.add_metric(labels, value)
                yield gauge
