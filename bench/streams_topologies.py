"""The topologies that are measured; columns only, so that Spark runs them without Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.streams import StreamsBuilder, col, concat, left, right, session, tumbling, value, within

if TYPE_CHECKING:
    from millstream.streams import Topology


@dataclass
class Click:
    user: str
    page: str
    cents: int


def windowed_count(source: str, target: str) -> Topology:
    builder = StreamsBuilder()
    windows = tumbling(10_000, grace_ms=10_000)
    builder.stream(source, key=str, value=bytes).group_by_key().windowed_by(windows).count().to_stream().to(target)
    return builder.build()


def filtered_count(source: str, target: str) -> Topology:
    """What the rivals do: see rival_faust.py."""
    builder = StreamsBuilder()
    clicks = builder.stream(source, key=str, value=Click).filter(col("cents") > 100)
    clicks.group_by_key().windowed_by(tumbling(60_000, grace_ms=60_000)).count().to_stream().to(target)
    return builder.build()


def table_join(source: str, table: str, target: str) -> Topology:
    builder = StreamsBuilder()
    known = builder.table(table, key=str, value=str)
    builder.stream(source, key=str, value=str).join(known, concat(left(), "|", right())).to(target)
    return builder.build()


def mapped(source: str, target: str) -> Topology:
    builder = StreamsBuilder()
    builder.stream(source, key=str, value=str).map_values(concat(value(), "|mapped")).to(target)
    return builder.build()


def sessions(source: str, target: str) -> Topology:
    builder = StreamsBuilder()
    windows = session(5_000, grace_ms=10_000)
    builder.stream(source, key=str, value=bytes).group_by_key().windowed_by(windows).count().to_stream().to(target)
    return builder.build()


def stream_join(source: str, other: str, target: str) -> Topology:
    builder = StreamsBuilder()
    right_stream = builder.stream(other, key=str, value=str)
    left_stream = builder.stream(source, key=str, value=str)
    left_stream.join(right_stream, concat(left(), "|", right()), within(1_000, grace_ms=10_000)).to(target)
    return builder.build()
