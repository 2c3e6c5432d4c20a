"""The command line: which rows, how much, against whom."""

from __future__ import annotations

import argparse
import json
import resource
import sys
from pathlib import Path

from _pytest.outcomes import OutcomeException

from bench import (
    cited,
    cluster,
    cluster_busy,
    cluster_faults,
    columns,
    compressed,
    exactly_once,
    fan_out,
    feature_costs,
    footprint,
    groups,
    latency,
    loading,
    many_partitions,
    report,
    spark,
    spark_exactly_once,
    spark_latency,
    streams,
    streams_kafka_streams,
    streams_nexmark,
    streams_rivals,
    streams_spark,
    throughput,
)
from bench.contenders import APACHE_KAFKA, CLIENT_LIMIT, MILLSTREAM, STORE_LIMIT
from bench.rows import Figures, Verdict, judge
from bench.session import Session

CONTENDERS = (APACHE_KAFKA, MILLSTREAM, CLIENT_LIMIT, STORE_LIMIT)
# Each is a table of docs/performance.md.
TABLES = {
    "brokers": (
        *throughput.ROWS,
        *compressed.ROWS,
        *fan_out.ROWS,
        *many_partitions.ROWS,
        *latency.ROWS,
        *exactly_once.ROWS,
        *groups.ROWS,
        *loading.ROWS,
    ),
    "arrow": columns.ROWS,
    "streams": streams.ROWS,
    "spark": (*spark.ROWS, *spark_exactly_once.ROWS, *spark_latency.ROWS),
    "streams-on-spark": streams_spark.ROWS,
    "kafka-streams": streams_kafka_streams.ROWS,
    "rivals": (*streams_rivals.ROWS, *streams_nexmark.ROWS),
    # Its last row looks at what all others before left behind; three nodes are measured without them.
    "footprint": footprint.ROWS,
    "cluster": (*cluster.ROWS, *cluster_faults.ROWS, *cluster_busy.ROWS),
}
ROWS = tuple(row for rows in TABLES.values() for row in rows)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Ratios to Apache Kafka on this machine.")
    parser.add_argument("--only", action="append", choices=[row.name for row in ROWS], help="this row (repeatable)")
    parser.add_argument("--quick", action="store_true", help="small amounts, one round: does it run at all?")
    parser.add_argument("--scale", type=float, default=1.0, help="this part of the usual amounts, e.g. 0.1")
    parser.add_argument("--rounds", type=int, help="so many rounds of each row instead of its own number")
    parser.add_argument("--feature-costs", action="store_true", help="what features cost, Millstream alone")
    parser.add_argument("--contender", action="append", choices=CONTENDERS, help="default: all")
    parser.add_argument("--check-docs", action="store_true", help="whether docs/performance.md says what was measured")
    parser.add_argument("--write-docs", action="store_true", help="write the tables of docs/performance.md")
    parser.add_argument("--cite", type=Path, metavar="RESULTS", help="let the docs cite this run, a file of results")
    arguments = parser.parse_args()
    if arguments.cite or arguments.write_docs or arguments.check_docs:
        return _documents(arguments)
    # Two thousand connections need as many descriptors, here and in the brokers, which inherit the limit.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    session = Session(
        tuple(arguments.contender or CONTENDERS),
        quick=arguments.quick,
        scale=arguments.scale,
        rounds=arguments.rounds,
    )
    try:
        if arguments.feature_costs:
            return _feature_costs(session)
        return _compare(session, arguments.only)
    except OutcomeException as missing:
        # What the tests' support says where a toolchain is missing.
        print(f"cannot run here: {missing}", file=sys.stderr)
        return 2
    finally:
        session.close()


def _documents(arguments: argparse.Namespace) -> int:
    results = cited.load()
    if arguments.cite:
        try:
            names = cited.cite(results, json.loads(arguments.cite.read_text()))
        except cited.Uncitable as reason:
            print(f"not cited: {reason}", file=sys.stderr)
            return 2
        cited.save(results)
        print("cited:", ", ".join(names))
    if arguments.cite or arguments.write_docs:
        cited.DOCUMENT.write_text(cited.rewritten(cited.DOCUMENT.read_text(), TABLES, results))
    off = cited.off(cited.DOCUMENT.read_text(), TABLES, results)
    for each in off:
        print(f"docs/performance.md, {each}; `python -m bench --write-docs` writes it", file=sys.stderr)
    return 1 if off else 0


def _compare(session: Session, only: list[str] | None) -> int:
    circumstances = report.circumstances()
    verdicts: list[Verdict] = []
    rounds: dict[str, dict[str, list[Figures]]] = {}
    for row in ROWS:
        if only is not None and row.name not in only:
            continue
        rounds[row.name] = session.measure(row)
        verdicts += judge(row, rounds[row.name])
    report.print_verdicts(verdicts)
    name = "quick" if session.quick else "bench"
    print(f"written to {report.write_json(name, circumstances | report.as_json(verdicts, rounds, session.scale))}")
    return 1 if any(verdict.holds is False for verdict in verdicts) and not session.quick else 0


def _feature_costs(session: Session) -> int:
    circumstances = report.circumstances()
    costs = feature_costs.measure(session)
    report.print_costs(costs)
    print(f"written to {report.write_json('feature-costs', circumstances | {'costs': costs})}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
