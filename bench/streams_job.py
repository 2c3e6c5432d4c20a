"""Runs inside a Spark environment: reads one JSON call a line and answers each with one JSON line.

    python streams_job.py millstream <bootstrap servers> "" <scratch folder>

Applications of streams_topologies.py, and Nexmark's queries of examples/nexmark.py.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streams_topologies

import millstream.spark
from millstream.streams import Application

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.streams import Topology

EXAMPLES = str(Path(__file__).resolve().parents[1] / "examples")
sys.path.insert(0, EXAMPLES)
# Workers look for the dataclasses of the examples too.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (EXAMPLES, os.environ.get("PYTHONPATH"))))
_, servers, _, scratch = sys.argv[1:]
spark = millstream.spark.session(
    "local[2]",
    settings={
        "spark.driver.memory": "2g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.warehouse.dir": f"{scratch}/warehouse",
        "spark.ui.enabled": "false",
    },
    log_level="ERROR",
)
running: list[Application] = []


def topology_of(name: str, arguments: dict[str, Any]) -> Topology:
    if name.startswith("nexmark."):
        import nexmark

        found: Topology = nexmark.QUERIES[name.removeprefix("nexmark.")]()
        return found
    made: Topology = getattr(streams_topologies, name)(**arguments)
    return made


def follow(
    topology: str, arguments: dict[str, Any], application_id: str, guarantee: str, batch: int | None
) -> list[str]:
    """Start an application that goes on; what runs its parts."""
    settings: dict[str, object] = {"state.dir": f"{scratch}/state"}
    if batch is not None:
        settings["max.offsets.per.trigger"] = batch
    made = topology_of(topology, arguments)
    application = Application(made, application_id, bootstrap_servers=servers, settings=settings)
    application.start(spark, guarantee=guarantee)
    running.append(application)
    return application.engines()


def settle() -> float:
    """Seconds until everything that is there now has gone through."""
    began = time.perf_counter()
    running[-1].process_all_available()
    return time.perf_counter() - began


def stop() -> list[dict[str, float]]:
    """Stop what runs; the median of each phase of the batches of each query, in ms."""
    application = running.pop()
    phases = [_phases(query.recentProgress) for query in application.queries]
    application.stop()
    return phases


def _phases(progresses: list[Any]) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for progress in progresses:
        # What the driver does by itself has no rows that Spark would have counted.
        if "addBatch" in progress["durationMs"]:
            for phase, took_ms in progress["durationMs"].items():
                found.setdefault(phase, []).append(took_ms)
    return {phase: sorted(took)[len(took) // 2] for phase, took in found.items()}


CALLS: dict[str, Callable[..., Any]] = {"follow": follow, "settle": settle, "stop": stop}

for line in sys.stdin:
    call = json.loads(line)
    try:
        answer = {"ok": CALLS[call.pop("call")](**call)}
    except Exception as failure:  # noqa: BLE001  # whatever Spark raises is the caller's to judge
        answer = {"failed": f"{type(failure).__name__}: {failure}"[:4000]}
    print(json.dumps(answer), flush=True)
