"""One run of the benchmark: the contenders that are up, and how much each row is to do."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from bench import contenders

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.support.running import RunningBroker

    from bench.rows import Figures, Row


_MEGABYTE = bytes(1 << 20)
PAGES_TO_WARM = 2_000_000_000
CHUNK = 100_000


class Stoppable(Protocol):
    """Anything that runs until the end of the benchmark."""

    def stop(self) -> object: ...


Kept = TypeVar("Kept", bound=Stoppable)


class Session:
    """Starts a contender when a row first needs it and keeps it warm until the end."""

    def __init__(self, names: tuple[str, ...], *, quick: bool, scale: float = 1.0, rounds: int | None = None) -> None:
        self.names = names
        self.quick = quick
        # Of the usual amounts; 0 for a run that only shows that it runs.
        self.scale = 0.0 if quick else scale
        self.rounds = rounds
        self._folder = Path(tempfile.mkdtemp(prefix="millstream-bench-"))
        self._running: dict[str, Stoppable] = {}
        self._prepared: dict[tuple[str, str], Path] = {}

    def amount(self, full: int, quick: int) -> int:
        """How much to do: all of it, a part of it, or just enough to see that it runs."""
        if self.quick:
            return quick
        scaled = max(quick, round(full * self.scale))
        # Records are made in batches of so many.
        return scaled if scaled <= CHUNK else scaled // CHUNK * CHUNK

    def broker(self, name: str) -> RunningBroker:
        """The contender that all rows share."""

        def started() -> RunningBroker:
            broker = self.fresh(name)
            broker.start()
            return broker

        return self.shared(name, started)

    def shared(self, key: str, start: Callable[[], Kept]) -> Kept:
        """Whatever rows share: started when it is first asked for, stopped at the end."""
        if key not in self._running:
            self._running[key] = start()
        return cast("Kept", self._running[key])

    def shared_already(self, kind: type[Kept]) -> list[Kept]:
        """What rows share of a kind, as far as it was asked for."""
        return [each for each in self._running.values() if isinstance(each, kind)]

    def fresh(self, name: str, settings: Mapping[str, str] | None = None) -> RunningBroker:
        """A contender of a row's own with an empty directory; the row starts and ends it."""
        return contenders.make(name, self.folder(f"{name}-"), settings)

    def folder(self, prefix: str) -> Path:
        """An empty folder that is gone after the run."""
        return Path(tempfile.mkdtemp(prefix=prefix, dir=self._folder))

    def prepared(self, maker: str, what: str, prepare: Callable[[RunningBroker], None]) -> Path:
        """A data directory that a contender wrote and closed cleanly, made when it is first asked for. Copy it."""
        if (maker, what) not in self._prepared:
            broker = self.fresh(maker)
            broker.start()
            try:
                prepare(broker)
                broker.stop()
            finally:
                broker.kill()
            self._prepared[maker, what] = broker.data_directory
        return self._prepared[maker, what]

    def discard(self, broker: RunningBroker) -> None:
        """End a contender of a row's own and give its disk space back."""
        broker.kill()
        shutil.rmtree(broker.data_directory, ignore_errors=True)

    def measure(self, row: Row) -> dict[str, list[Figures]]:
        """All rounds of a row; the order of the contenders changes from round to round."""
        rounds: dict[str, list[Figures]] = {name: [] for name in row.contenders if name in self.names}
        for number in range(1 if self.quick else self.rounds or row.rounds):
            order = list(rounds)
            for name in order if number % 2 == 0 else reversed(order):
                self._settle()
                figures = row.measure(self, name)
                rounds[name].append(figures)
                said = ", ".join(f"{figure} {value:,.4g}" for figure, value in figures.items())
                print(f"  {row.name} {name} round {number + 1}: {said}", file=sys.stderr, flush=True)
        return rounds

    def _settle(self) -> None:
        """Let no measurement pay for the one before, nor for a machine that hands out its memory lazily.

        What was written is written back now. Then a file is written and removed: on a virtual machine whose host takes
        free memory back, a page cache that grows into such memory is five times slower (1 GB: 1.2 s against 0.25 s).
        """
        os.sync()
        if self.quick:
            return
        scratch = self._folder / "scratch"
        with scratch.open("wb", buffering=0) as file:
            for _ in range(PAGES_TO_WARM // len(_MEGABYTE)):
                file.write(_MEGABYTE)
        scratch.unlink()

    def close(self) -> None:
        for each in self._running.values():
            each.stop()
        shutil.rmtree(self._folder, ignore_errors=True)
