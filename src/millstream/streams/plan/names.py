"""Names of nodes and stores, generated as Kafka Streams does: a prefix and one counter for all of them.

An operator takes its numbers in the same order as Kafka Streams, also those that it does not use, so a topology that is
written the same way gets the same names; internal topics made by a Java application can then be taken over.
"""

from __future__ import annotations

import difflib
import re

from millstream.streams.errors import NameCollision, TopologyError

_LEGAL = re.compile(r"[a-zA-Z0-9._-]{1,249}")
GENERATED_REPARTITION = re.compile(r"KSTREAM.*-[0-9]{10}")


LEGAL = "letters, digits, '.', '_' and '-', at most 249"


def is_legal(name: object) -> bool:
    """Whether Kafka would take it as the name of a topic, or of what topics are named after."""
    return isinstance(name, str) and _LEGAL.fullmatch(name) is not None and name not in (".", "..")


class Names:
    """The counter, and who has which name already."""

    def __init__(self) -> None:
        self._next = 0
        self._taken: set[tuple[str, str]] = set()

    def number(self) -> str:
        self._next += 1
        return f"{self._next - 1:010d}"

    def node(self, prefix: str) -> str:
        return prefix + self.number()

    def or_node(self, own: str | None, prefix: str) -> str:
        """An operator's own name, or one made up; the number is taken in either case."""
        made = self.node(prefix)
        return own or made

    def store(self, prefix: str) -> str:
        return f"{prefix}STATE-STORE-{self.number()}"

    def take(self, name: str, what: str) -> None:
        """Claim a name; NameCollision if somebody has it."""
        if not is_legal(name):
            raise TopologyError(f"a {what} cannot be called {name!r}: {LEGAL}")
        if (what, name) in self._taken:
            raise NameCollision(f"two {what}s are called {name!r}: a name stands for one thing")
        self._taken.add((what, name))


class Suffixed:
    """An operator's own name, from which its parts are named; without one they are generated."""

    def __init__(self, names: Names, own: str | None) -> None:
        self._names = names
        self.own = own

    def or_node(self, prefix: str) -> str:
        return self._names.or_node(self.own, prefix)

    def part(self, suffix: str, prefix: str) -> str:
        return self._names.or_node(self.own and self.own + suffix, prefix)


def nearest(name: str, known: list[str]) -> str:
    """A hint for a name that is not known."""
    near = difflib.get_close_matches(name, known, 1)
    return f": did you mean {near[0]!r}?" if near else ""
