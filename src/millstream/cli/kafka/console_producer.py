"""`kafka-console-producer`: the lines of standard input as records.

parse.key key.separator (tab)   parse.headers headers.delimiter (tab) headers.separator (,) headers.key.separator (:)
null.marker   ignore.error
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.cli.connect import key_value, open_client, read_properties
from millstream.cli.declare import UsageError
from millstream.cli.kafka.arguments import ToolParser, client_options_of, properties_of, yes
from millstream.cli.lines import Pause, read_lines
from millstream.cli.writing import RecordWriter, parse_acks, parse_codec

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

# Options of Java's producer that have a meaning here, and those that others would refuse to hear.
PRODUCER_ONLY = ("acks", "compression.type")
TUNING = (
    "batch.size",
    "linger.ms",
    "buffer.memory",
    "max.block.ms",
    "enable.idempotence",
    "retries",
    "delivery.timeout.ms",
    "max.in.flight.requests.per.connection",
    "max.request.size",
    "send.buffer.bytes",
    "receive.buffer.bytes",
    "key.serializer",
    "value.serializer",
)


@dataclass(frozen=True, slots=True)
class LineReader:
    """Takes a line apart as Kafka's LineMessageReader does."""

    parse_key: bool
    parse_headers: bool
    key_separator: bytes
    headers_delimiter: bytes
    headers_separator: bytes
    header_key_separator: bytes
    null_marker: bytes | None
    ignore_error: bool

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> LineReader:
        known = {
            "parse.key",
            "parse.headers",
            "key.separator",
            "headers.delimiter",
            "headers.separator",
            "headers.key.separator",
            "null.marker",
            "ignore.error",
        }
        for name in properties:
            if name not in known:
                raise UsageError(f"--property {name} is not known; there are {', '.join(sorted(known))}")

        def separator(name: str, default: str) -> bytes:
            return properties.get(name, default).replace("\\t", "\t").encode()

        marker = properties.get("null.marker")
        return cls(
            parse_key=yes(properties.get("parse.key")),
            parse_headers=yes(properties.get("parse.headers")),
            key_separator=separator("key.separator", "\t"),
            headers_delimiter=separator("headers.delimiter", "\t"),
            headers_separator=separator("headers.separator", ","),
            header_key_separator=separator("headers.key.separator", ":"),
            null_marker=None if marker is None else marker.encode(),
            ignore_error=yes(properties.get("ignore.error")),
        )

    def read(self, line: bytes, number: int) -> tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]:
        """(key, value, headers) of a line."""
        rest = line
        headers: list[tuple[str, bytes | None]] = []
        if self.parse_headers:
            part, rest = self._cut(rest, self.headers_delimiter, "headers delimiter", number)
            if part is not None and part != self.null_marker:
                headers = [self._header(each, number) for each in part.split(self.headers_separator)]
        key: bytes | None = None
        if self.parse_key:
            key, rest = self._cut(rest, self.key_separator, "key separator", number)
        return self._or_null(key), self._or_null(rest), headers

    def _cut(self, text: bytes, separator: bytes, what: str, number: int) -> tuple[bytes | None, bytes]:
        before, found, after = text.partition(separator)
        if found:
            return before, after
        if self.ignore_error:
            return None, text
        raise UsageError(f"No {what} found on line number {number}: '{text.decode(errors='replace')}'")

    def _header(self, text: bytes, number: int) -> tuple[str, bytes | None]:
        name, found, value = text.partition(self.header_key_separator)
        if not found and not self.ignore_error:
            shown = text.decode(errors="replace")
            raise UsageError(f"No header key separator found in pair '{shown}' on line number {number}")
        return name.decode(), self._or_null(value) if found else None

    def _or_null(self, content: bytes | None) -> bytes | None:
        return None if content is None or content == self.null_marker else content


def run(words: Sequence[str]) -> int:
    parsed = _parser().read(words)
    producer = _producer_properties(parsed)
    reader_properties = {} if parsed.reader_config is None else read_properties(parsed.reader_config)
    reader = LineReader.of(reader_properties | properties_of([*parsed.property, *parsed.reader_property]))
    acks = parsed.request_required_acks or producer.pop("acks", "all")
    codec = parsed.compression_codec or producer.pop("compression.type", "none")
    for name in (*PRODUCER_ONLY, *TUNING):
        producer.pop(name, None)
    parsed.command_config = None
    options = client_options_of(parsed, [f"{name}={value}" for name, value in producer.items()])
    with open_client(options) as client:
        writer = RecordWriter(client, parsed.topic, acks=parse_acks(acks), codec=parse_codec(codec))
        _copy(writer, reader)
    return 0


def _copy(writer: RecordWriter, reader: LineReader) -> None:
    prompt = sys.stdin.isatty()
    number = 0
    _prompt(prompt=prompt)
    for line in read_lines(sys.stdin.fileno()):
        if isinstance(line, Pause):
            writer.flush() if prompt else writer.send()
            _prompt(prompt=prompt)
            continue
        number += 1
        writer.add(*reader.read(line, number))
    writer.flush()


def _prompt(*, prompt: bool) -> None:
    if prompt:
        sys.stdout.write(">")
        sys.stdout.flush()


def _producer_properties(parsed: argparse.Namespace) -> dict[str, str]:
    file = {} if parsed.command_config is None else read_properties(parsed.command_config)
    return file | dict(key_value(text) for text in (*parsed.producer_property, *parsed.command_property))


def _parser() -> ToolParser:
    parser = ToolParser("kafka-console-producer", "Write the lines of standard input to a topic.")
    parser.connection("--producer.config")
    parser.add_argument("--topic", required=True, help="the topic to write to")
    parser.multiple("--property", metavar="NAME=VALUE", help="how lines are read: parse.key=true, key.separator=:")
    parser.multiple("--reader-property", metavar="NAME=VALUE", help="today's name of --property")
    parser.multiple("--producer-property", metavar="NAME=VALUE", help="an option of the client")
    parser.multiple("--command-property", metavar="NAME=VALUE", help="today's name of --producer-property")
    parser.add_argument("--reader-config", metavar="FILE", help="a file of reader properties")
    parser.add_argument("--request-required-acks", help="0, 1 or all")
    parser.add_argument("--compression-codec", nargs="?", const="gzip", help="none, gzip, snappy, lz4 or zstd")
    parser.flag("--sync", help="accepted; lines typed by a person are always waited for")
    for tuning in (
        "--batch-size",
        "--timeout",
        "--request-timeout-ms",
        "--max-block-ms",
        "--max-memory-bytes",
        "--max-partition-memory-bytes",
        "--message-send-max-retries",
        "--metadata-expiry-ms",
        "--retry-backoff-ms",
        "--socket-buffer-size",
        "--line-reader",
    ):
        parser.add_argument(tuning, help="accepted, without effect here")
    return parser
