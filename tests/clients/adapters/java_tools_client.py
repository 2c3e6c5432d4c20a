"""Apache Kafka's own command line tools, a JVM per call."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.clients.adapters.contract import Ability, Acks, Client, Codec, Read, Refused
from tests.support.apache_kafka import run_tool

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.support.batches import Record

# Java's exceptions have other names than the codes that they stand for.
CODES = {
    "TopicExists": "TOPIC_ALREADY_EXISTS",
    "RecordTooLarge": "MESSAGE_TOO_LARGE",
    "InvalidConfiguration": "INVALID_CONFIG",
    "InvalidTopic": "INVALID_TOPIC_EXCEPTION",
    "UnknownTopicOrPartition": "UNKNOWN_TOPIC_OR_PARTITION",
    "InvalidReplicationFactor": "INVALID_REPLICATION_FACTOR",
    "InvalidPartitions": "INVALID_PARTITIONS",
    "OffsetOutOfRange": "OFFSET_OUT_OF_RANGE",
    "InvalidRecord": "INVALID_RECORD",
}
# No byte of a test's own records: what separates key, headers and value on the console.
KEY_END, HEADERS_END, HEADER_END, NAME_END, NULL = "\x01", "\x02", "\x03", "\x04", "\x05"
SHOW = (
    "print.partition",
    "print.offset",
    "print.timestamp",
    "print.headers",
    "print.key",
    "print.value",
)


class JavaTools(Client):
    name = "java-tools"
    can = frozenset(Ability) - {Ability.SET_TIME, Ability.BINARY}

    def _run(self, tool: str, *arguments: str, stdin: str | None = None) -> str:
        done = run_tool(tool, "--bootstrap-server", self.bootstrap_servers, *arguments, input=stdin)
        said = done.stdout + done.stderr
        found = re.search(r"org\.apache\.kafka\.common\.(?:errors\.)?(\w+)Exception", said)
        if found is not None:
            raise Refused(CODES.get(found[1], found[1]), said)
        if done.returncode != 0 and "does not exist" in said:
            raise Refused("UNKNOWN_TOPIC_OR_PARTITION", said)
        assert done.returncode == 0, said
        return done.stdout

    def partitions(self, topic: str) -> int:
        found = re.search(r"PartitionCount: (\d+)", self._run("TopicCommand", "--describe", "--topic", topic))
        assert found is not None
        return int(found[1])

    def create_topic(
        self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None, replicas: int = 1
    ) -> None:
        settings = [part for name, value in (configs or {}).items() for part in ("--config", f"{name}={value}")]
        size = ("--partitions", str(partitions), "--replication-factor", str(replicas))
        self._run("TopicCommand", "--create", "--topic", topic, *size, *settings)

    def grow(self, topic: str, partitions: int) -> None:
        self._run("TopicCommand", "--alter", "--topic", topic, "--partitions", str(partitions))

    def delete_topic(self, topic: str) -> None:
        self._run("TopicCommand", "--delete", "--topic", topic)

    def configs(self, topic: str) -> dict[str, str | None]:
        said = self._run(
            "kafka.admin.ConfigCommand", "--describe", "--all", "--entity-type", "topics", "--entity-name", topic
        )
        return dict(re.findall(r"^  ([\w.]+)=(.*?) sensitive=", said, re.MULTILINE))

    def set_config(self, topic: str, name: str, value: str) -> None:
        place = ("--entity-type", "topics", "--entity-name", topic)
        self._run("kafka.admin.ConfigCommand", "--alter", *place, "--add-config", f"{name}=[{value}]")

    def delete_records(self, topic: str, partition: int, before_offset: int) -> None:
        wanted = {"partitions": [{"topic": topic, "partition": partition, "offset": before_offset}], "version": 1}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "offsets.json"
            path.write_text(json.dumps(wanted))
            self._run("DeleteRecordsCommand", "--offset-json-file", str(path))

    def produce(
        self,
        topic: str,
        records: Sequence[Record],
        *,
        partition: int | None = None,
        acks: Acks = "all",
        codec: Codec = "none",
        idempotent: bool = False,
    ) -> None:
        assert partition in (None, 0), "the console producer cannot choose"
        reader = {
            "parse.key": "true",
            "parse.headers": "true",
            "key.separator": KEY_END,
            "headers.delimiter": HEADERS_END,
            "headers.separator": HEADER_END,
            "headers.key.separator": NAME_END,
            "null.marker": NULL,
        }
        producer = {
            "enable.idempotence": str(idempotent).lower(),
            "compression.type": codec,
            "acks": acks,
            "max.request.size": "50000000",
            "buffer.memory": "60000000",
        }
        self._run(
            "ConsoleProducer",
            "--topic",
            topic,
            *("--timeout", "5"),
            *(part for name, value in reader.items() for part in ("--reader-property", f"{name}={value}")),
            *(part for name, value in producer.items() for part in ("--command-property", f"{name}={value}")),
            stdin="".join(_line(record) for record in records),
        )

    def consume(self, topic: str, partition: int, offset: int, count: int) -> list[Read]:
        formatter = dict.fromkeys(SHOW, "true") | {
            "key.separator": KEY_END,
            "headers.separator": HEADER_END,
            "null.literal": NULL,
        }
        said = self._run(
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            *("--topic", topic, "--partition", str(partition), "--offset", str(offset)),
            *("--max-messages", str(count), "--timeout-ms", "60000"),
            *("--command-property", "auto.offset.reset=none"),
            *(part for name, value in formatter.items() for part in ("--formatter-property", f"{name}={value}")),
        )
        return [_read(line) for line in said.split("\n") if line]

    def first_and_next_offset(self, topic: str, partition: int) -> tuple[int, int]:
        return self._offset(topic, partition, "earliest"), self._offset(topic, partition, "latest")

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int:
        return self._offset(topic, partition, str(timestamp_ms))

    def _offset(self, topic: str, partition: int, time: str) -> int:
        said = self._run("GetOffsetShell", "--topic-partitions", f"{topic}:{partition}", "--time", time)
        return int(said.strip().split(":")[2])


def _line(record: Record) -> str:
    headers = HEADER_END.join(
        name + NAME_END + (NULL if value is None else value.decode()) for name, value in record.headers
    )
    key = NULL if record.key is None else record.key.decode()
    value = NULL if record.value is None else record.value.decode()
    return f"{headers or NULL}{HEADERS_END}{key}{KEY_END}{value}\n"


def _bytes(text: str) -> bytes | None:
    return None if text == NULL else text.encode()


def _read(line: str) -> Read:
    stamp, partition, offset, headers, key, value = line.split(KEY_END)
    pairs = [] if headers == "NO_HEADERS" else [pair.split(":", 1) for pair in headers.split(HEADER_END)]
    return Read(
        int(partition.removeprefix("Partition:")),
        int(offset.removeprefix("Offset:")),
        _bytes(key),
        _bytes(value),
        tuple((name, _bytes(content)) for name, content in pairs),
        int(stamp.rpartition(":")[2]),
    )
