r"""How `millstream consume` shows records: kcat's `--format` letters, and JSON.

    %s value   %k key   %t topic   %p partition   %o offset   %T timestamp in ms   %h headers   %S %K their sizes   %% %
    \n \t \0 \xNN and the like mean what they mean in C

The text is compiled once into pieces; a null key or value prints as nothing, and its size is -1.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from millstream.cli.declare import UsageError
from millstream.cli.produce import unescape

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.client.reading import Batch
    from millstream.records.batch import Record

    Piece = bytes | Callable[[str, int, Record], bytes]
    Formatter = Callable[[str, int, Batch], bytes]


def _size(content: bytes | None) -> bytes:
    return b"-1" if content is None else b"%d" % len(content)


def _headers(record: Record) -> bytes:
    return b",".join(b"%s=%s" % (name.encode(), b"NULL" if value is None else value) for name, value in record.headers)


LETTERS: dict[str, Callable[[str, int, Record], bytes]] = {
    "s": lambda _topic, _partition, record: record.value or b"",
    "k": lambda _topic, _partition, record: record.key or b"",
    "S": lambda _topic, _partition, record: _size(record.value),
    "K": lambda _topic, _partition, record: _size(record.key),
    "t": lambda topic, _partition, _record: topic.encode(),
    "p": lambda _topic, partition, _record: b"%d" % partition,
    "o": lambda _topic, _partition, record: b"%d" % record.offset,
    "T": lambda _topic, _partition, record: b"%d" % record.timestamp,
    "h": lambda _topic, _partition, record: _headers(record),
}


def compile_format(text: str) -> Formatter:
    """A function from a batch to the bytes of all its records."""
    pieces: list[Piece] = []
    literal, rest = "", text
    while rest:
        before, percent, after = rest.partition("%")
        literal += before
        if not percent:
            break
        letter, rest = after[:1], after[1:]
        if letter == "%":
            literal += "%"
            continue
        if letter not in LETTERS:
            known = " ".join(f"%{each}" for each in LETTERS)
            raise UsageError(f"%{letter} is not known in a format; there are {known} and %%")
        if literal:
            pieces.append(unescape(literal))
            literal = ""
        pieces.append(LETTERS[letter])
    if literal:
        pieces.append(unescape(literal))

    def render(topic: str, partition: int, batch: Batch) -> bytes:
        return b"".join(
            piece if isinstance(piece, bytes) else piece(topic, partition, record)
            for record in batch.records
            for piece in pieces
        )

    return render


def json_lines(topic: str, partition: int, batch: Batch) -> bytes:
    """One object per record; what is not UTF-8 is shown as `{"base64": ...}`."""
    import json

    kind = "LogAppendTime" if batch.header.is_log_append_time else "CreateTime"
    return b"".join(
        json.dumps(
            {
                "topic": topic,
                "partition": partition,
                "offset": record.offset,
                "timestamp": record.timestamp,
                "timestamp_type": kind,
                "key": _text(record.key),
                "value": _text(record.value),
                "headers": [{"name": name, "value": _text(value)} for name, value in record.headers],
            },
            ensure_ascii=False,
        ).encode()
        + b"\n"
        for record in batch.records
    )


def _text(content: bytes | None) -> str | dict[str, str] | None:
    if content is None:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}
