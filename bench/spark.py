"""Topics in Spark against Spark's own connector: the same queries, each in a Spark of its own, on the same broker.

The connector is 4.0.0 in an environment with PySpark 4.0.0, the newest that resolves whole everywhere; ours is the
PySpark that is installed with us. Its session gets the settings that ours has, and once more those of Spark itself
(spark_calls.py). Each is asked once to be warm before the runs that count.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.requirements import PROJECT_ROOT

from bench import contenders
from bench.columns import PARTITIONS, table_of
from bench.contenders import MILLSTREAM
from bench.rows import Bar, Figures, Row
from bench.spark_process import OURS, THEIRS, THEIRS_BY_DEFAULT, spark_process
from millstream import arrow

if TYPE_CHECKING:
    from bench.session import Session

SCRIPT = Path(__file__).with_name("spark_job.py")
BATCH = 2_000_000
WARM = 200_000


def scan(session: Session, name: str) -> Figures:
    broker = session.broker(name)
    records = session.amount(6_000_000, 200_000)
    rates: dict[str, float] = {}
    with contenders.topic(broker, PARTITIONS) as topic:
        arrow.write(broker.bootstrap_servers, topic, table_of(records))
        for connector in (OURS, THEIRS, THEIRS_BY_DEFAULT):
            with spark_process(session, broker, connector, SCRIPT) as ask:
                ask("scan", topic=topic)
                scans = [ask("scan", topic=topic) for _ in range(3)]
            seen = {scan["records"] for scan in scans}
            assert seen == {records}, f"{connector} saw {seen} of {records} records"
            rates[connector] = records / statistics.median(scan["seconds"] for scan in scans)
    return _compared(rates)


def copy(session: Session, name: str) -> Figures:
    broker = session.broker(name)
    records = session.amount(8_000_000, 200_000)
    rates: dict[str, float] = {}
    with contenders.topic(broker, PARTITIONS) as source, contenders.topic(broker, PARTITIONS) as warm:
        arrow.write(broker.bootstrap_servers, source, table_of(records))
        arrow.write(broker.bootstrap_servers, warm, table_of(WARM))
        for connector in (OURS, THEIRS, THEIRS_BY_DEFAULT):
            with contenders.topic(broker, PARTITIONS) as target, contenders.topic(broker, PARTITIONS) as other:
                with spark_process(session, broker, connector, SCRIPT) as ask:
                    ask("copy", source=warm, target=other, checkpoint="warm", batch=BATCH)
                    found = ask("copy", source=source, target=target, checkpoint="copy", batch=BATCH)
                rates[connector] = records / found["seconds"]
                copied = sum(batch.num_rows for batch in arrow.stream(broker.bootstrap_servers, target, end="latest"))
                assert copied == records, f"{connector} copied {copied} of {records} records"
    return _compared(rates)


def first_decode(session: Session, name: str) -> Figures:
    """From nothing of ours being imported to the first decoded batch, the median of five new interpreters."""
    broker = session.broker(name)
    script = PROJECT_ROOT / "tests" / "spark" / "worker_start.py"
    with contenders.topic(broker, PARTITIONS) as topic:
        arrow.write(broker.bootstrap_servers, topic, table_of(WARM))
        command = [sys.executable, str(script), broker.bootstrap_servers, topic]
        took = [json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["ms"] for _ in range(5)]
    return {"first decode": statistics.median(took)}


def _compared(rates: dict[str, float]) -> Figures:
    return {
        "records/s": rates[OURS],
        "connector records/s": rates[THEIRS],
        "connector by default records/s": rates[THEIRS_BY_DEFAULT],
        "ratio": rates[OURS] / rates[THEIRS],
        "ratio to its defaults": rates[OURS] / rates[THEIRS_BY_DEFAULT],
    }


ROWS = (
    Row(
        "spark-scan",
        "Spark batch scan, 6M records of 100 B, 6 partitions, against Spark's own connector",
        scan,
        (Bar("ratio", "x", at_least=1.8), Bar("ratio to its defaults", "x")),
        contenders=(MILLSTREAM,),
    ),
    Row(
        "spark-copy",
        "Spark streaming copy from topic to topic, at least once, against Spark's own connector",
        copy,
        (Bar("ratio", "x", at_least=1.5), Bar("ratio to its defaults", "x")),
        contenders=(MILLSTREAM,),
    ),
    Row(
        "spark-first-decode",
        "first decode in a new Python worker, imports included, median of five",
        first_decode,
        (Bar("first decode", "ms", at_most=300),),
        contenders=(MILLSTREAM,),
    ),
)
