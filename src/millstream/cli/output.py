"""The one place that prints what a command returned.

Rows become a table with aligned columns, or with `--json` a list of objects with the same names. Lines are a stream
that is printed as it comes. Everything goes out as bytes: records need not be text.
"""

from __future__ import annotations

import select
import sys
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@dataclass(frozen=True, slots=True)
class Rows:
    """A table. `note` is said on stderr when a person reads it, and left out of JSON."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    note: str = ""
    # One row with many columns reads better as a list of names and values.
    upright: bool = False

    def as_objects(self) -> list[dict[str, Any]]:
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


@dataclass(frozen=True, slots=True)
class Lines:
    """Bytes that are printed as they come, line ends included. A generator is closed when printing ends, however it
    ends: what it holds on to (a client, a file) must be let go before that is closed itself."""

    chunks: Iterator[bytes]


@dataclass(frozen=True, slots=True)
class Exit:
    """Nothing to print; the command has spoken for itself."""

    code: int = 0


Result = Rows | Lines | Exit


def emit(result: Result, *, as_json: bool = False) -> int:
    """Print it; returns the exit code."""
    match result:
        case Exit(code):
            return code
        case Lines(chunks):
            _write_stream(chunks)
        case Rows():
            _write((_json(result) if as_json else table(result)).encode())
            if result.note and not as_json:
                say(result.note)
    return 0


def _write(content: bytes) -> None:
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def _write_stream(chunks: Iterable[bytes]) -> None:
    """Flush with every chunk: a chunk is as much as has arrived, and a reader behind a pipe waits for it."""
    try:
        for chunk in chunks:
            _write(chunk)
    finally:
        if isinstance(chunks, Generator):
            chunks.close()


def reader_is_gone() -> bool:
    """Whether nobody reads our standard output any more, which a program that waits would not notice."""
    if not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))


def say(sentence: str) -> None:
    """A sentence to the person, beside the data."""
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()


def _json(result: Rows) -> str:
    import json

    return json.dumps(result.as_objects(), indent=2, default=str, ensure_ascii=False) + "\n"


def table(result: Rows) -> str:
    """Aligned columns: numbers to the right, text to the left, names above."""
    if result.upright and len(result.rows) == 1:
        width = max(len(name) for name in result.columns)
        pairs = zip(result.columns, result.rows[0], strict=True)
        return "".join(f"{_heading(name):<{width}}  {_cell(value)}\n" for name, value in pairs)
    cells = [[_cell(value) for value in row] for row in result.rows]
    widths = [max([len(name), *(len(row[i]) for row in cells)]) for i, name in enumerate(result.columns)]
    right = [
        bool(result.rows)
        and all(isinstance(row[i], int | float) and not isinstance(row[i], bool) for row in result.rows)
        for i in range(len(result.columns))
    ]

    def line(words: Iterable[str]) -> str:
        aligned = (
            word.rjust(width) if to_right else word.ljust(width)
            for word, width, to_right in zip(words, widths, right, strict=True)
        )
        return "  ".join(aligned).rstrip() + "\n"

    return line(_heading(name) for name in result.columns) + "".join(line(row) for row in cells)


def _heading(name: str) -> str:
    return name.replace("_", " ").upper()


def _cell(value: object) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            return ",".join(_cell(each) for each in value)
        case _:
            return str(value)
