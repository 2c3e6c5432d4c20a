"""One member of a consumer group as a process, and what it says.

Programs print one JSON line whenever something happened: {"owned": [[topic, partition], …]} after each change of what
they own, {"read": [topic, partition, offset, text]} for each record. Tools that talk in another way are translated by
their `Program`. A member leaves in good order when its stdin is closed, or by SIGTERM where the program knows no stdin.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.clients.members.programs import Program

Place = tuple[str, int]


class Seen(NamedTuple):
    """A record as a member read it."""

    topic: str
    partition: int
    offset: int
    value: str


class Member:
    """A running member. `owned` is None until it says what it owns for the first time."""

    def __init__(
        self,
        program: Program,
        bootstrap_servers: str,
        group: str,
        topics: Iterable[str],
        *,
        strategy: str = "range",
        instance_id: str | None = None,
    ) -> None:
        self.program = program
        self.owned: frozenset[Place] | None = None
        self.reads: list[Seen] = []
        self.noise: list[str] = []
        command, environment = program.command(bootstrap_servers, group, tuple(topics), strategy, instance_id)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=os.environ | environment,
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            event = self.program.parse(line, self.owned)
            if event is None:
                self.noise.append(line)
            elif "owned" in event:
                self.owned = frozenset((topic, partition) for topic, partition in event["owned"])
            else:
                self.reads += (Seen(*each) for each in event["reads"])

    @property
    def partitions(self) -> frozenset[Place]:
        return self.owned or frozenset()

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def stall(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def crash(self) -> None:
        """End it by kill -9: it cannot say goodbye."""
        self._process.kill()
        self._end()

    def leave(self) -> None:
        """A stop in good order."""
        assert self._process.stdin is not None
        if self.program.leaves_by_signal:
            self._process.send_signal(signal.SIGTERM)
        else:
            self._process.stdin.close()
        self._process.wait(90)
        self._end()

    def _end(self) -> None:
        self._process.wait(90)
        self._listener.join(90)
        self.owned = None
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_alive:
            self._process.send_signal(signal.SIGCONT)
            self.crash()
        else:
            self._end()

    def __repr__(self) -> str:
        return f"<{self.program.name}: owns {sorted(self.partitions)}, read {len(self.reads)}>"


def share(members: Iterable[Member], everything: Iterable[Place], *, within_s: float = 90, **how: Any) -> None:
    """Wait until these members own all of that between them, each partition once."""
    members = list(members)
    wanted = sorted(everything)
    even = how.get("even", True)

    def shared() -> bool:
        owned = [member.owned for member in members]
        if any(each is None for each in owned):
            return False
        sizes = [len(each) for each in owned if each is not None]
        return sorted(place for each in owned if each is not None for place in each) == wanted and (
            not even or max(sizes) - min(sizes) <= 1
        )

    try:
        wait_until(shared, "the members to share the partitions", within_s=within_s)
    except TimeoutError as late:
        said = "\n".join(f"{member}: {''.join(member.noise[-20:])}" for member in members)
        raise AssertionError(f"{late}: {members}\n{said}") from late


def read_by(members: Iterable[Member]) -> list[Seen]:
    return [seen for member in members for seen in member.reads]
