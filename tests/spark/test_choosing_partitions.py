"""Which partition a row of an exactly-once query goes to, before it is shuffled there."""

from __future__ import annotations

import itertools

import pyarrow as pa

from millstream.records.partitioning import partition_for_key
from millstream.spark.exactly_once_routing import choose


def test_rows_without_a_key_take_turns_two_thousand_at_a_time() -> None:
    chosen = choose(pa.nulls(9_000, pa.binary()), 3, turn=1).to_pylist()
    assert [(partition, len(list(rows))) for partition, rows in itertools.groupby(chosen)] == [
        (1, 2_000),
        (2, 2_000),
        (0, 2_000),
        (1, 2_000),
        (2, 1_000),
    ]


def test_rows_with_a_key_go_where_it_says() -> None:
    keys = [b"a", b"b", None, b"c"]
    chosen = choose(pa.array(keys, pa.binary()), 5, turn=4).to_pylist()
    assert chosen == [4 if key is None else partition_for_key(key, 5) for key in keys]
