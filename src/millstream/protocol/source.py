"""Python source under construction: lines, indentation, fresh names, and the objects that the code refers to."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class Source:
    """Collects the text of one function and executes it."""

    def __init__(self) -> None:
        self.globals: dict[str, Any] = {}
        self._lines: list[str] = []
        self._depth = 0
        self._names = 0

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, opening: str | None = None) -> Iterator[None]:
        if opening is not None:
            self.line(opening)
        before = len(self._lines)
        self._depth += 1
        yield
        if len(self._lines) == before:
            self.line("pass")
        self._depth -= 1

    def name(self, stem: str) -> str:
        """A local name that nothing else uses."""
        self._names += 1
        return f"{stem}_{self._names}"

    def constant(self, stem: str, value: Any) -> str:
        """A global name for an object; equal objects share one."""
        name = stem
        while name in self.globals and not _same(self.globals[name], value):
            name += "_"
        self.globals[name] = value
        return name

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"

    def execute(self, filename: str) -> dict[str, Any]:
        """Run the collected definitions; only declarations of our own reach this, never input."""
        exec(compile(self.text(), filename, "exec"), self.globals)  # noqa: S102
        return self.globals


def _same(one: Any, other: Any) -> bool:
    # Bound methods of equal structs are made anew each time; their names spell the format and tell them apart.
    return one is other or (type(one) is type(other) and callable(one) and not isinstance(one, type))
