"""`millstream produce`: lines, files or one record from the command line into a topic."""

from __future__ import annotations

import base64
import os
import sys
from typing import TYPE_CHECKING, Any

from millstream.cli.connect import key_value
from millstream.cli.declare import Group, UsageError, argument, flag, option
from millstream.cli.lines import PAUSE, Pause, read_lines
from millstream.cli.output import Rows
from millstream.cli.times import parse_time_ms
from millstream.cli.writing import ACKS, CODECS, RecordWriter, parse_acks, parse_codec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.client.sync import SyncClient

GROUP = Group("produce", "Write records.")
GROUPS = {"produce": GROUP}

Headers = list[tuple[str, bytes | None]]


@GROUP.command(
    "",
    argument("topic", "the topic to write to"),
    argument("files", "read these instead of standard input", nargs="*"),
    option("--key", "-k", help="the key of every record"),
    option("--value", "-m", help="write one record with this value"),
    option("--header", "-H", repeat=True, metavar="NAME=VALUE", help="a header of every record"),
    option("--partition", "-p", type=int, help="write here, whatever the key"),
    option("--timestamp", "-T", help="of every record: milliseconds, 2026-01-31T12:00:00Z, or 10m for ten minutes ago"),
    option("--key-separator", "-K", metavar="TEXT", help="a line is a key, this, and a value"),
    option("--delimiter", "-D", default="\\n", help=r"what ends a record (default: \n)"),
    option("--compression", "-z", default="none", choices=CODECS, help="codec of the batches"),
    option("--acks", default="all", choices=sorted(ACKS), help="who must have it before it counts as written"),
    option("--null", metavar="TEXT", help="a key or value of this text is null"),
    flag("--tombstone", help="write one record with the key and without a value"),
    flag("--whole", help="each file is one record"),
    flag("--from-json", help="each line is an object as `millstream consume --json` prints it"),
    example="echo 'user-1:hello' | millstream produce greetings --key-separator :",
)
def produce(
    client: SyncClient,
    *,
    topic: str,
    files: list[str],
    key: str | None,
    value: str | None,
    header: list[str],
    partition: int | None,
    timestamp: str | None,
    key_separator: str | None,
    delimiter: str,
    compression: str,
    acks: str,
    null: str | None,
    tombstone: bool,
    whole: bool,
    from_json: bool,
) -> Rows:
    """Write records: the lines of standard input or files, whole files, or one value."""
    writer = RecordWriter(client, topic, acks=parse_acks(acks), codec=parse_codec(compression), partition=partition)
    fixed_key = None if key is None else key.encode()
    headers: Headers = [(name, text.encode()) for name, text in map(key_value, header)]
    at_ms = None if timestamp is None else parse_time_ms(timestamp, client.client.ports.clock.wall_ms())
    null_bytes = None if null is None else null.encode()
    separator = None if key_separator is None else unescape(key_separator)

    def or_null(content: bytes | None) -> bytes | None:
        return None if content == null_bytes else content

    if tombstone or value is not None:
        writer.add(or_null(fixed_key), None if tombstone or value is None else or_null(value.encode()), headers, at_ms)
    else:
        for content in _contents(files, unescape(delimiter), whole=whole):
            if isinstance(content, Pause):
                writer.send()
            elif from_json:
                _add_json(writer, content)
            elif separator is None:
                writer.add(or_null(fixed_key), or_null(content), headers, at_ms)
            else:
                line_key, found, line_value = content.partition(separator)
                if not found:
                    raise UsageError(
                        f"no key separator {key_separator!r} in the line {content.decode(errors='replace')!r}"
                    )
                writer.add(or_null(line_key), or_null(line_value), headers, at_ms)
    writer.flush()
    rows = [
        (index, written.records, *((written.first_offset, written.last_offset) if acks != "0" else (None, None)))
        for index, written in sorted(writer.written.items())
    ]
    return Rows(("partition", "records", "first_offset", "last_offset"), rows)


def _contents(files: list[str], delimiter: bytes, *, whole: bool) -> Iterator[bytes | Pause]:
    if not files:
        if whole:
            yield sys.stdin.buffer.read()
        else:
            yield from read_lines(sys.stdin.fileno(), delimiter)
    for path in files:
        try:
            with open(path, "rb") as file:
                if whole:
                    yield file.read()
                else:
                    yield from read_lines(file.fileno(), delimiter)
        except OSError as error:
            raise UsageError(f"{path} could not be read: {os.strerror(error.errno or 0).lower()}") from error
        yield PAUSE


def unescape(text: str) -> bytes:
    r"""`\n`, `\t`, `\0` and `\x1f` as the bytes they mean."""
    if "\\" not in text:
        return text.encode()
    return text.replace(r"\0", r"\x00").encode().decode("unicode_escape").encode("latin-1")


def _add_json(writer: RecordWriter, line: bytes) -> None:
    import json

    if not line.strip():
        return
    try:
        given: dict[str, Any] = json.loads(line)
        headers = [(str(each["name"]), _json_bytes(each.get("value"))) for each in given.get("headers") or []]
        key, value = _json_bytes(given.get("key")), _json_bytes(given.get("value"))
        timestamp_ms = given.get("timestamp")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(f"not a record in JSON: {line.decode(errors='replace')!r} ({error})") from error
    writer.add(key, value, headers, timestamp_ms)


def _json_bytes(value: Any) -> bytes | None:
    """Text is text, `{"base64": ...}` is bytes, anything else is its JSON."""
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and value.keys() == {"base64"}:
        return base64.b64decode(value["base64"])
    import json

    return json.dumps(value).encode()
