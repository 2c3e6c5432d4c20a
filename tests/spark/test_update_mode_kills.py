"""Exactly once in update mode under kill -9 of the driver: counts by key, whose state Spark keeps."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from millstream import arrow
from tests.spark.test_exactly_once_kills import AT_ONCE, Copy, kill_the_driver, run_driver

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.apache_kafka import ApacheKafka
    from tests.support.millstream_process import MillstreamProcess

KEYS = 10
pytestmark = [pytest.mark.java, pytest.mark.slow]


class Counts(Copy):
    """How often each of ten keys has come, told again with every batch that it comes in."""

    output_mode = "update"

    def feed(self, count: int) -> None:
        keys = [str(number % KEYS).encode() for number in range(self.fed, self.fed + count)]
        arrow.write(self.broker.bootstrap_servers, self.source, pa.table({"key": keys, "value": keys}))
        self.fed += count

    def check_values(self) -> None:
        told = defaultdict(list)
        found = arrow.read(self.broker.bootstrap_servers, self.target, columns=["key", "value"])
        for key, value in zip(found["key"].to_pylist(), found["value"].to_pylist(), strict=True):
            told[key].append(int(value))
        for counts in told.values():
            assert counts == sorted(set(counts)), "a count was told twice, or fell"
            assert counts[-1] == self.fed // KEYS, "a record was lost or doubled"
        assert len(told) == KEYS


def test_counts_survive_a_driver_that_is_killed(
    millstream: MillstreamProcess, apache_kafka: ApacheKafka, fresh_name: str, tmp_path: Path
) -> None:
    copies = [Counts(broker, tmp_path, fresh_name) for broker in (millstream, apache_kafka)]
    log = tmp_path / "drivers.log"
    kill_the_driver(copies, ("written", "ended"), log)
    for copy in copies:
        copy.feed(AT_ONCE)
    done = run_driver({"copies": [copy.as_plan() for copy in copies]}, log)
    assert done.code == 0, log.read_text(errors="replace")[-4000:]
    for copy in copies:
        copy.check()
