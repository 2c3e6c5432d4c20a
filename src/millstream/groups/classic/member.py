"""One member of a classic group: what it said of itself, what it was given, and which of its requests wait."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from millstream.protocol.messages.join_group import JoinGroupRequestProtocol
    from millstream.replicated import Token

# A member's protocols in the order of its preference, each with the metadata that the leader will see.
Protocols = dict[str, bytes]


def protocols_of(listed: Iterable[JoinGroupRequestProtocol]) -> Protocols:
    """The protocols of a JoinGroup; of a name that comes twice, the first counts."""
    protocols: Protocols = {}
    for protocol in listed:
        protocols.setdefault(protocol.name, bytes(protocol.metadata))
    return protocols


class Waiting(NamedTuple):
    """A request that will be answered later, in its version."""

    token: Token
    version: int


class Client(NamedTuple):
    """Who sent a request, as far as the group remembers it."""

    id: str
    host: str


@dataclass(slots=True)
class ClassicMember:
    """A member. `join` and `sync` are its waiting requests, at most one of each."""

    id: str
    instance_id: str | None
    client: Client
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    # It has not been through a whole join phase yet: it may not even know its id, so it cannot send heartbeats.
    is_new: bool = False
    join: Waiting | None = None
    sync: Waiting | None = None

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def is_excused(self) -> bool:
        """Whether it need not send heartbeats now. A member that waits for an answer cannot; but one that never got
        any answer may have gone for good, and waiting for it has an end."""
        return not self.is_new and (self.join is not None or self.sync is not None)

    def vote(self, candidates: Container[str]) -> str:
        """The candidate that the member likes best."""
        return next(name for name in self.protocols if name in candidates)

    def matches(self, protocols: Protocols) -> bool:
        """Whether these are the member's protocols, with the same metadata in the same order."""
        return list(self.protocols.items()) == list(protocols.items())
