"""A Spark in a process of its own: requests go in as lines of JSON, answers come out so."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.support.spark import connector_jars, spark_python

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.running import RunningBroker

    from bench.session import Session

# Spark's own connector in a session with the settings that ours has, and in one that nothing was set for.
OURS, THEIRS, THEIRS_BY_DEFAULT = "millstream", "kafka", "kafka-by-default"


@contextmanager
def spark_process(
    session: Session, broker: RunningBroker, connector: str, script: Path
) -> Iterator[Callable[..., Any]]:
    """A Spark session in a process of its own, with one connector; calls are those of the script."""
    python, jars = (sys.executable, "") if connector == OURS else (str(spark_python()), ",".join(connector_jars()))
    folder = session.folder("spark-")
    log_path = folder / "spark.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            [python, str(script), connector, broker.bootstrap_servers, jars, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    requests, answers = process.stdin, process.stdout

    def ask(call: str, **arguments: Any) -> Any:
        requests.write(json.dumps({"call": call, **arguments}) + "\n")
        requests.flush()
        line = answers.readline()
        assert line, f"Spark ended during {call}: {log_path.read_text(errors='replace')[-2000:]}"
        answer = json.loads(line)
        assert "ok" in answer, f"{call} with {connector}: {answer['failed']}"
        return answer["ok"]

    try:
        yield ask
    finally:
        requests.close()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(30)
        answers.close()
