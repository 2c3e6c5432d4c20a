"""`python -m tests.cluster_chaos.fresh_groups`: new groups under load, and how long each waits for its first record.

    python -m tests.cluster_chaos.fresh_groups --groups 100                              ten at a time, three nodes
    python -m tests.cluster_chaos.fresh_groups --groups 100 --against apache-kafka       the same there
    python -m tests.cluster_chaos.fresh_groups --groups 100 --together 100 --cold        all before there is any group

Groups are of the `consumer` protocol (KIP-848) and librdkafka's, each with one member that reads what is committed from
the start. The load goes on meanwhile and is judged in the end (load.py). What librdkafka says of a group whose first
record takes longer than `--slow` seconds is kept in the directory, one file for each such group.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import Consumer

from tests.chaos.workload import INPUT
from tests.cluster_chaos.links import Loopback
from tests.cluster_chaos.load import PROTOCOLS, Load, load_judged
from tests.cluster_chaos.processes import APACHE_KAFKA, FIRST_VOTERS, MILLSTREAM, ChaosCluster
from tests.cluster_chaos.scenario import PATIENCE, create_topics
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

DEBUG = "cgrp,consumer,fetch,topic,protocol"
WARM_COPIES = 500
GIVE_UP_S = 120.0


@dataclass
class Beginning:
    """How a group began: seconds until its first partitions and its first record, and what went wrong on the way."""

    group: str
    assigned_s: float | None = None
    first_s: float | None = None
    errors: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        assigned = "never" if self.assigned_s is None else f"after {self.assigned_s:.2f} s"
        first = "nothing" if self.first_s is None else f"its first record after {self.first_s:.2f} s"
        return f"{self.group}: partitions {assigned}, read {first}; errors: {self.errors or 'none'}"


def begin(bootstrap: str, group: str, protocol: str) -> Beginning:
    """Start a group and read its first record."""
    seen, began_s = Beginning(group), time.monotonic()

    def failed(error: KafkaError) -> None:
        seen.errors.append(f"{time.monotonic() - began_s:.2f} s {error}")

    def assigned(*_: object) -> None:
        seen.assigned_s = time.monotonic() - began_s

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": group,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "debug": DEBUG,
            "error_cb": failed,
            **PROTOCOLS[protocol],
        }
    )
    try:
        consumer.subscribe([INPUT], on_assign=assigned)
        while seen.first_s is None and time.monotonic() - began_s < GIVE_UP_S:
            message = consumer.poll(0.05)
            if message is not None and message.error() is not None:
                failed(message.error())
            elif message is not None:
                seen.first_s = time.monotonic() - began_s
    finally:
        consumer.close()
    return seen


def run(options: argparse.Namespace, directory: Path) -> bool:
    """Whether each group read something in time."""
    settings = dict(each.split("=", 1) for each in options.set)
    cluster = ChaosCluster(
        directory, Loopback(FIRST_VOTERS), options.seed, FIRST_VOTERS, settings, software=options.against
    )
    said = directory / "librdkafka.log"
    _redirect_errors(said)
    load: Load | None = None
    try:
        cluster.start()
        load = Load(cluster.bootstrap_servers, options=PATIENCE)
        if not options.early:
            create_topics(cluster, load.topics)
        if not options.cold:
            _warm(load)
        print(f"{options.groups} groups, {options.together} at a time, on {options.against}", flush=True)
        with ThreadPoolExecutor(options.together) as pool:
            names = [f"fresh-{number:03}" for number in range(options.groups)]
            work = [pool.submit(begin, cluster.bootstrap_servers, name, options.protocol) for name in names]
            if options.early:
                create_topics(cluster, load.topics)
            if options.cold:
                _warm(load)
            beginnings = [each.result() for each in work]
        history = load_judged(load)
        codes = cluster.stop()
        assert set(codes.values()) <= cluster.good_codes, f"nodes ended with {codes}"
    except BaseException:
        if load is not None:
            load.give_up()
        print(cluster.last_words(), flush=True)
        raise
    finally:
        cluster.kill()
    print(f"the load: {len(history.sent)} records and {len(history.transactions)} transactions, no anomaly")
    return _tell(beginnings, options.slow, said)


def _warm(load: Load) -> None:
    load.start()
    wait_until(lambda: load.copied >= WARM_COPIES, "the load to get going", within_s=GIVE_UP_S)


def _redirect_errors(path: Path) -> None:
    """What librdkafka debugs goes to standard error, past Python: keep it in a file."""
    with path.open("wb") as file:
        os.dup2(file.fileno(), sys.stderr.fileno())


def _tell(beginnings: list[Beginning], slow_s: float, said: Path) -> bool:
    firsts = sorted(each.first_s for each in beginnings if each.first_s is not None)
    slow = [each for each in beginnings if each.first_s is None or each.first_s > slow_s]
    for each in slow:
        log = said.with_name(f"{each.group}.log")
        with said.open(errors="replace") as lines:
            log.write_text("".join(line for line in lines if f"|{each.group}#" in line))
        print(f"{each}\n    {log}")
    for each in beginnings:
        if each.errors and each not in slow:
            print(each)
    if firsts:
        print(
            f"first record after {firsts[0]:.2f} s at best, {statistics.median(firsts):.2f} s in the middle, "
            f"{firsts[-1]:.2f} s at worst"
        )
    print(f"{len(firsts)} of {len(beginnings)} groups read something; {len(slow)} took longer than {slow_s:g} s")
    return len(firsts) == len(beginnings)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster_chaos.fresh_groups", description=__doc__)
    parser.add_argument("--groups", type=int, default=100)
    parser.add_argument("--together", type=int, default=10, help="so many begin at a time")
    parser.add_argument("--cold", action="store_true", help="before the load, and before there are internal topics")
    parser.add_argument("--early", action="store_true", help="and even before the topic that they read")
    parser.add_argument("--set", action="append", default=[], help="a config of the brokers, name=value")
    parser.add_argument("--protocol", choices=tuple(PROTOCOLS), default="consumer")
    parser.add_argument("--against", choices=(MILLSTREAM, APACHE_KAFKA), default=MILLSTREAM)
    parser.add_argument("--slow", type=float, default=15, help="seconds to a first record that are worth a look")
    parser.add_argument("--seed", type=int, default=1, help="of the cluster's ids")
    parser.add_argument("--directory", type=Path, default=None, help="kept afterwards; a temporary one if not given")
    options = parser.parse_args()
    options.cold |= options.early
    with tempfile.TemporaryDirectory(prefix="millstream-groups-") as folder:
        return 0 if run(options, options.directory or Path(folder)) else 1


if __name__ == "__main__":
    sys.exit(main())
