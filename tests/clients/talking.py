"""What every conversation with a broker about a group has: connections by speaker, and a transcript."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from tests.support.raw import RawClient

if TYPE_CHECKING:
    from tests.support.running import RunningBroker


class Conversation:
    """One broker, one group; every speaker has a connection of its own."""

    def __init__(self, broker: RunningBroker, group: str) -> None:
        self.broker = broker
        self.group = group
        self.lines: list[str] = []
        self._clients: dict[str, RawClient] = {}
        self._open = ExitStack()

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def client(self, who: str) -> RawClient:
        if who not in self._clients:
            self._clients[who] = self._open.enter_context(RawClient.of(self.broker))
        return self._clients[who]
