"""`kafka-console-consumer`: the records of a topic on standard output.

Without --group it reads all partitions by itself, where Kafka's tool makes up a group: that prints the same. What is
printed before the value (print.timestamp, print.partition, print.offset, print.epoch, print.headers, print.key) comes
in Kafka's order. One thing differs on purpose: for print.epoch the tool of 4.3.1 printed NOT_PRESENT where we compared
the two; here it is the epoch of the batch.
"""

from __future__ import annotations

import struct
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.cli.connect import key_value, open_client, read_properties
from millstream.cli.declare import UsageError
from millstream.cli.following import follow, limited, partitions_of, starting_offsets
from millstream.cli.kafka.arguments import ToolParser, client_options_of, properties_of, yes
from millstream.cli.output import Lines, emit, say
from millstream.client.errors import ClientError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from millstream.cli.following import Part
    from millstream.client.sync import SyncClient
    from millstream.records.batch import Record

NOT_OF_A_CLIENT = ("group.id", "auto.offset.reset", "enable.auto.commit", "isolation.level", "key.deserializer")


def _unpack(layout: str) -> Callable[[bytes], bytes]:
    def shown(content: bytes) -> bytes:
        try:
            return str(struct.unpack(layout, content)[0]).encode()
        except struct.error:
            raise UsageError(f"a value of {len(content)} bytes does not fit the deserializer") from None

    return shown


DESERIALIZERS: dict[str, Callable[[bytes], bytes]] = {
    "StringDeserializer": lambda content: content,
    "ByteArrayDeserializer": lambda content: content,
    "ShortDeserializer": _unpack(">h"),
    "IntegerDeserializer": _unpack(">i"),
    "LongDeserializer": _unpack(">q"),
    "FloatDeserializer": _unpack(">f"),
    "DoubleDeserializer": _unpack(">d"),
    "BooleanDeserializer": lambda content: b"true" if content == b"\x01" else b"false",
}


@dataclass(slots=True)
class Printer:
    """Kafka's DefaultMessageFormatter."""

    properties: Mapping[str, str]
    key: Callable[[bytes], bytes]
    value: Callable[[bytes], bytes]
    count: int = 0

    def render(self, part: Part) -> bytes:
        self.count += len(part.batch.records)
        line_end = self._text("line.separator", "\n")
        return b"".join(self._record(part, record) + line_end for record in part.batch.records)

    def _record(self, part: Part, record: Record) -> bytes:
        null = self._text("null.literal", "null")
        columns: list[bytes] = []
        if self._on("print.timestamp"):
            kind = b"LogAppendTime" if part.batch.header.is_log_append_time else b"CreateTime"
            columns.append(b"%s:%d" % (kind, record.timestamp) if record.timestamp >= 0 else b"NO_TIMESTAMP")
        if self._on("print.partition"):
            columns.append(b"Partition:%d" % part.partition)
        if self._on("print.offset"):
            columns.append(b"Offset:%d" % record.offset)
        if self._on("print.epoch"):
            columns.append(b"Epoch:%d" % part.batch.header.leader_epoch)
        if self._on("print.headers"):
            between = self._text("headers.separator", ",")
            columns.append(
                between.join(
                    b"%s:%s" % (name.encode(), null if value is None else value) for name, value in record.headers
                )
                or b"NO_HEADERS"
            )
        if self._on("print.key"):
            columns.append(null if record.key is None else self.key(record.key))
        if self._on("print.value", default="true"):
            columns.append(null if record.value is None else self.value(record.value))
        return self._text("key.separator", "\t").join(columns)

    def _on(self, name: str, default: str = "false") -> bool:
        return yes(self.properties.get(name, default))

    def _text(self, name: str, default: str) -> bytes:
        return self.properties.get(name, default).replace("\\t", "\t").replace("\\n", "\n").encode()


def run(words: Sequence[str]) -> int:
    parsed = _parser().read(words)
    if parsed.topic is None:
        raise UsageError("--topic is missing")
    consumer = _consumer_properties(parsed)
    committed = parsed.isolation_level == "read_committed" or consumer.get("isolation.level") == "read_committed"
    properties = {} if parsed.formatter_config is None else read_properties(parsed.formatter_config)
    properties |= properties_of([*parsed.property, *parsed.formatter_property])
    printer = Printer(
        properties,
        key=_deserializer(parsed.key_deserializer or properties.get("key.deserializer")),
        value=_deserializer(parsed.value_deserializer or properties.get("value.deserializer")),
    )
    start = _start(parsed, consumer)
    parsed.group = parsed.group or consumer.get("group.id")
    parsed.command_config = None
    own = [f"{name}={value}" for name, value in consumer.items() if not _of_the_consumer(name)]
    with open_client(client_options_of(parsed, own)) as client:
        try:
            return emit(Lines(_lines(client, parsed, printer, start, read_committed=committed)))
        except ClientError as error:
            say(f"Error processing message, terminating consumer process: {error}")
            return 1
        finally:
            say(f"Processed a total of {printer.count} messages")


def _lines(
    client: SyncClient, parsed: argparse.Namespace, printer: Printer, start: str, *, read_committed: bool
) -> Iterator[bytes]:
    if parsed.group is not None:
        yield from _lines_of_group(client, parsed, printer, start, read_committed=read_committed)
        return
    wanted = [] if parsed.partition is None else [parsed.partition]
    # Kafka's tool goes on at the end when the offset does not exist (auto.offset.reset).
    offsets = starting_offsets(client, partitions_of(client, parsed.topic, wanted), start, outside="latest")
    parts = follow(client, offsets, read_committed=read_committed, idle_ms_max=parsed.timeout_ms)
    with closing(limited(parts, parsed.max_messages)) as shown:
        for part in shown:
            yield printer.render(part)


def _lines_of_group(
    client: SyncClient, parsed: argparse.Namespace, printer: Printer, start: str, *, read_committed: bool
) -> Iterator[bytes]:
    from millstream.cli.group_following import follow_in_group

    if parsed.partition is not None or parsed.offset is not None:
        raise UsageError("with --group, the group says which partitions and from where")
    parts = follow_in_group(
        client,
        parsed.group,
        parsed.topic,
        from_beginning=start == "earliest",
        read_committed=read_committed,
        idle_ms_max=parsed.timeout_ms,
        limit=parsed.max_messages,
    )
    with closing(parts):
        for part in parts:
            yield printer.render(part)


def _start(parsed: argparse.Namespace, consumer: Mapping[str, str]) -> str:
    if parsed.offset is not None:
        if parsed.partition is None and parsed.offset not in ("earliest", "latest"):
            raise UsageError("--offset needs --partition")
        if parsed.from_beginning:
            raise UsageError("--from-beginning and --offset exclude each other")
        offset: str = parsed.offset
        if offset.startswith("-"):
            raise UsageError(f"--offset must be earliest, latest or a number from 0 on, not {offset}")
        return offset
    if parsed.from_beginning:
        return "earliest"
    return "earliest" if consumer.get("auto.offset.reset") == "earliest" else "latest"


def _of_the_consumer(name: str) -> bool:
    return name in NOT_OF_A_CLIENT or name.startswith(
        ("fetch.", "max.poll.", "max.partition.", "session.", "heartbeat.", "group.", "value.deserializer")
    )


def _consumer_properties(parsed: argparse.Namespace) -> dict[str, str]:
    file = {} if parsed.command_config is None else read_properties(parsed.command_config)
    return file | dict(key_value(text) for text in (*parsed.consumer_property, *parsed.command_property))


def _deserializer(name: str | None) -> Callable[[bytes], bytes]:
    short = (name or "ByteArrayDeserializer").rpartition(".")[2]
    if short not in DESERIALIZERS:
        raise UsageError(f"the deserializer {name} is not known; there are {', '.join(DESERIALIZERS)}")
    return DESERIALIZERS[short]


def _parser() -> ToolParser:
    parser = ToolParser("kafka-console-consumer", "Print the records of a topic.")
    parser.connection("--consumer.config")
    parser.add_argument("--topic", help="the topic to read")
    parser.add_argument("--partition", type=int, help="only this partition")
    parser.add_argument("--offset", help="start here: a number, earliest or latest")
    parser.flag("--from-beginning", help="start with the oldest records")
    parser.add_argument("--max-messages", type=int, help="stop after so many")
    parser.add_argument("--timeout-ms", type=int, help="stop when nothing has come for so long")
    parser.add_argument("--isolation-level", choices=("read_committed", "read_uncommitted"), help="of transactions")
    parser.multiple("--property", metavar="NAME=VALUE", help="print.key=true, print.offset=true, key.separator=: ...")
    parser.multiple("--formatter-property", metavar="NAME=VALUE", help="today's name of --property")
    parser.add_argument("--formatter-config", metavar="FILE", help="a file of formatter properties")
    parser.multiple("--consumer-property", metavar="NAME=VALUE", help="an option of the client")
    parser.multiple("--command-property", metavar="NAME=VALUE", help="today's name of --consumer-property")
    parser.add_argument("--key-deserializer", help="e.g. org.apache.kafka.common.serialization.LongDeserializer")
    parser.add_argument("--value-deserializer", help="the same for values")
    parser.add_argument("--group", help="read as a member of this group")
    parser.add_argument("--formatter", help="accepted; there is the default one")
    parser.flag("--skip-message-on-error", help="accepted, without effect here")
    return parser
