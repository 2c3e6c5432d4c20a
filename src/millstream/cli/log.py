"""`millstream log dump`: what stands in the files of a log directory, Kafka's or ours."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from millstream.cli.declare import Group, UsageError, argument, flag
from millstream.cli.log_files import files_in, reader_of
from millstream.cli.output import Lines
from millstream.client.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Iterator

GROUP = Group("log", "Look into log directories.")
GROUPS = {"log": GROUP}

# Entries that say what they are.
KINDS = ("batch", "record", "control")


@GROUP.command(
    "dump",
    argument("paths", "segments, indexes, snapshots, checkpoints, or directories of them", nargs="+"),
    flag("--batches", help="only the headers of batches, not their records"),
    flag("--json", help="one JSON object per line", dest="as_json"),
    offline=True,
    example="millstream log dump data/orders-0/00000000000000000000.log",
)
def dump(*, paths: list[str], batches: bool, as_json: bool) -> Lines:
    """Print files of a log directory: batches and records, metadata, groups, indexes, snapshots, checkpoints."""
    files = []
    for path in paths:
        if not os.path.exists(path):
            raise UsageError(f"{path} does not exist")
        if not os.path.isdir(path) and reader_of(path) is None:
            raise UsageError(f"{path} is not a file of a log directory, by its name")
        files += files_in(path)
    return Lines(_dump(files, batches=batches, as_json=as_json))


def _dump(files: list[str], *, batches: bool, as_json: bool) -> Iterator[bytes]:
    broken: dict[str, bool] = {}
    for path in files:
        reader = reader_of(path)
        assert reader is not None
        if not as_json:
            yield f"{path}\n".encode()
        try:
            for entry in reader(path):
                if "error" in entry or entry.get("valid") is False:
                    broken[path] = True
                if not batches or not entry.get("record"):
                    yield _json(path, entry) if as_json else _line(entry)
        except OSError as error:
            raise UsageError(f"{path} could not be read: {(error.strerror or '').lower()}") from error
    if broken:
        raise ClientError(f"damaged: {', '.join(broken)}")


def _json(path: str, entry: dict[str, Any]) -> bytes:
    return json.dumps({"file": path, **entry}, ensure_ascii=False).encode() + b"\n"


def _line(entry: dict[str, Any]) -> bytes:
    """`name=value` pairs; a record stands below its batch."""
    if entry.keys() == {"line"}:
        return f"  {entry['line']}\n".encode()
    indent = "    " if entry.get("record") else "  "
    words = [name for name in KINDS if entry.get(name)]
    words += [f"{name}={_value(value)}" for name, value in entry.items() if name not in KINDS and value is not None]
    return f"{indent}{' '.join(words)}\n".encode()


def _value(value: Any) -> str:
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False) if not value.isprintable() or " " in value or not value else value
    return str(value).lower() if isinstance(value, bool) else str(value)
