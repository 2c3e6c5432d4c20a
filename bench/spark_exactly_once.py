"""What exactly once costs in Spark: `millstream.spark.start` against `format("millstream")`, which is at least once.

Both are ours, and run in one Spark session.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import contenders
from bench.columns import CHUNK, PARTITIONS, VALUE_BYTES, table_of
from bench.contenders import MILLSTREAM
from bench.rows import Bar, Figures, Row
from bench.spark import BATCH, WARM
from bench.spark_process import OURS, spark_process
from millstream import arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from bench.session import Session

SCRIPT = Path(__file__).with_name("spark_exactly_once_job.py")
GUARANTEES = ("at_least_once", "exactly_once")


def copy(session: Session, name: str) -> Figures:
    return _copy(session, name, ["value"], table_of)


def copy_with_keys(session: Session, name: str) -> Figures:
    return _copy(session, name, ["key", "value"], _keyed)


def _keyed(records: int) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    value = b"x" * VALUE_BYTES
    for first in range(0, records, CHUNK):
        keys = pa.array([str(number).encode() for number in range(first, first + CHUNK)], pa.binary())
        yield pa.record_batch({"key": keys, "value": pa.array([value] * CHUNK, pa.binary())})


def _copy(session: Session, name: str, columns: list[str], rows: Callable[[int], Any]) -> Figures:
    broker = session.broker(name)
    records = session.amount(4_000_000, 200_000)
    rates: dict[str, float] = {}
    with (
        contenders.topic(broker, PARTITIONS) as source,
        contenders.topic(broker, PARTITIONS) as warm,
        spark_process(session, broker, OURS, SCRIPT) as ask,
    ):
        arrow.write(broker.bootstrap_servers, source, rows(records))
        arrow.write(broker.bootstrap_servers, warm, rows(WARM))
        for guarantee in GUARANTEES:
            with contenders.topic(broker, PARTITIONS) as target, contenders.topic(broker, PARTITIONS) as other:
                common = {"batch": BATCH, "guarantee": guarantee, "columns": columns}
                ask("copy", source=warm, target=other, checkpoint=f"warm-{guarantee}", **common)
                seconds = ask("copy", source=source, target=target, checkpoint=guarantee, **common)
                rates[guarantee] = records / seconds
                copied = sum(batch.num_rows for batch in arrow.stream(broker.bootstrap_servers, target, end="latest"))
                assert copied == records, f"{guarantee} copied {copied} of {records} records"
    return {
        "exactly once records/s": rates["exactly_once"],
        "at least once records/s": rates["at_least_once"],
        "ratio": rates["exactly_once"] / rates["at_least_once"],
    }


ROWS = (
    Row(
        "spark-exactly-once",
        "Spark streaming copy, exactly once against at least once, no keys",
        copy,
        (Bar("ratio", "x", at_least=0.8),),
        contenders=(MILLSTREAM,),
    ),
    Row(
        "spark-exactly-once-keys",
        "Spark streaming copy, exactly once against at least once, with keys (a shuffle to one writer per partition)",
        copy_with_keys,
        (Bar("ratio", "x"),),
        contenders=(MILLSTREAM,),
    ),
)
