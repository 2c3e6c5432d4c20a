"""Mixed clusters, step by step, with all that the two kinds say to each other: what docs/mixed-clusters.md is made of.

Every layout and every step by default; `--layout kafka --steps registration,replication --bytes` for a part.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.client.sync import SyncClient
from tests.mixed import steps, voters
from tests.mixed.nodes import KAFKA, MILLSTREAM, two_kinds
from tests.mixed.recorder import Recorder
from tests.mixed.steps import Scene
from tests.mixed.telling import as_captured, between_kinds, dump, table, telling

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.mixed.nodes import MixedCluster
    from tests.mixed.recorder import Exchange


CAPTURED = """\
# Requests and answers between nodes of Apache Kafka 4.3.1 and of Millstream, one of each kind and direction, without
# their lengths. Made by: python -m tests.mixed --capture tests/mixed/captured.txt
"""
VOTERS = "voters"
LAYOUTS: dict[str, tuple[Callable[[Path, Recorder], MixedCluster], Sequence[Callable[[Scene], None]]]] = {
    MILLSTREAM: (partial(two_kinds, MILLSTREAM), steps.ALL),
    KAFKA: (partial(two_kinds, KAFKA), steps.ALL),
    VOTERS: (voters.three_voters, voters.ALL),
}


def run(layout: str, names: list[str], directory: Path, said: list[Exchange], *, with_bytes: bool) -> bool:
    """Whether all steps hold; `said` gets what the two kinds said to each other."""
    make, to_do = LAYOUTS[layout]
    print(f"== {layout}", flush=True)
    with Recorder() as recorder:
        cluster = make(directory, recorder)
        try:
            cluster.start_in_turn()
            with SyncClient({"bootstrap.servers": cluster.bootstrap_servers}) as client:
                scene = Scene(cluster, client)
                chosen = [step for step in to_do if not names or step.__name__ in names]
                held = _carry_out(scene, chosen, with_bytes=with_bytes)
            cluster.stop()
        finally:
            cluster.kill()
    said += between_kinds(recorder.exchanges)
    return held


def _carry_out(scene: Scene, chosen: Sequence[Callable[[Scene], None]], *, with_bytes: bool) -> bool:
    recorder = scene.cluster.recorder
    seen = 0
    held = True
    for step in chosen:
        began = time.monotonic()
        try:
            step(scene)
            outcome = "holds"
        except (AssertionError, TimeoutError) as problem:
            outcome, held = f"DOES NOT HOLD: {problem}", False
        said = between_kinds(recorder.exchanges[seen:])
        seen = len(recorder.exchanges)
        print(f"\n-- {step.__name__}: {step.__doc__}\n   {outcome}, {time.monotonic() - began:.1f} s\n", flush=True)
        print("\n".join(table(said)))
        if with_bytes:
            for each in telling(said):
                print("\n" + "\n".join(dump(each)))
    return held


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mixed", description="Clusters of two kinds of nodes.")
    parser.add_argument("--layout", choices=LAYOUTS, help="who is the controller, or voters of both kinds")
    parser.add_argument("--steps", default="", help="some of them, by their names, with commas between")
    parser.add_argument("--bytes", action="store_true", help="the first exchange of each kind, in hexadecimal digits")
    parser.add_argument("--capture", type=Path, help="write one exchange of each kind to this file (captured.txt)")
    chosen = parser.parse_args()
    said: list[Exchange] = []
    names = [name for name in chosen.steps.split(",") if name]
    with tempfile.TemporaryDirectory(prefix="mixed-") as place:
        held = [
            run(layout, names, Path(place) / layout, said, with_bytes=chosen.bytes)
            for layout in ([chosen.layout] if chosen.layout else LAYOUTS)
        ]
    if chosen.capture:
        chosen.capture.write_text(CAPTURED + "".join(f"\n{as_captured(each)}" for each in telling(said)))
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
