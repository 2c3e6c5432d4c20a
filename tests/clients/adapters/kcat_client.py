"""kcat: librdkafka of the distribution from the command line; an old one, which is the point."""

from __future__ import annotations

import json
import os
import re
import subprocess
from typing import TYPE_CHECKING, Any

from tests.clients.adapters.contract import Ability, Acks, Client, Codec, Read, Refused
from tests.support import toolchains

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.support.batches import Record

ERRORS = {
    "Message size too large": "MESSAGE_TOO_LARGE",
    "Unknown topic or partition": "UNKNOWN_TOPIC_OR_PARTITION",
    "Offset out of range": "OFFSET_OUT_OF_RANGE",
    "Broker failed to validate record": "INVALID_RECORD",
}


class Kcat(Client):
    name = "kcat"
    can = frozenset(
        {
            Ability.CONSUME,
            Ability.BY_TIME,
            Ability.HEADERS,
            Ability.ACKS_0,
            Ability.IDEMPOTENCE,
            Ability.PRODUCE_ERRORS,
            Ability.YOUNGER_ERRORS,
            Ability.JAVA_PARTITIONER,
        }
    )

    def _run(self, *arguments: str, stdin: bytes = b"") -> str:
        program, environment = toolchains.kcat()
        done = subprocess.run(
            [program, "-b", self.bootstrap_servers, "-m", "10", *arguments],
            input=stdin,
            capture_output=True,
            timeout=60,
            check=False,
            env=os.environ | environment,
        )
        complaint = done.stderr.decode()
        failed = done.returncode != 0 or "Delivery failed" in complaint
        if failed:
            code = next((name for text, name in ERRORS.items() if text in complaint), "UNKNOWN")
            raise Refused(code, complaint)
        return done.stdout.decode()

    def partitions(self, topic: str) -> int:
        found: Any = json.loads(self._run("-L", "-J", "-t", topic))["topics"][0]
        if "error" in found:
            raise Refused(next((name for text, name in ERRORS.items() if text in found["error"]), found["error"]))
        return len(found["partitions"])

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
        settings = {
            "acks": acks,
            "compression.codec": codec,
            "enable.idempotence": str(idempotent).lower(),
            "topic.partitioner": "murmur2_random",
            "message.max.bytes": "50000000",
            "message.timeout.ms": "15000",
        }
        options = ["-P", "-t", topic, "-K", "\t", "-D", "\n", "-Z"]
        options += [part for name, value in settings.items() for part in ("-X", f"{name}={value}")]
        if partition is not None:
            options += ["-p", str(partition)]
        for headers, lines in _runs_of_equal_headers(records):
            flags = [part for name, value in headers for part in ("-H", f"{name}={(value or b'').decode()}")]
            self._run(*options, *flags, stdin=b"".join(lines))

    def consume(self, topic: str, partition: int, offset: int, count: int) -> list[Read]:
        place = ("-t", topic, "-p", str(partition), "-o", str(offset), "-c", str(count))
        return [_read(json.loads(line)) for line in self._run("-C", "-J", "-q", "-e", *place).splitlines()]

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int:
        answer = self._run("-Q", "-t", f"{topic}:{partition}:{timestamp_ms}")
        found = re.search(r"offset (-?\d+)", answer)
        assert found is not None, answer
        return int(found[1])


def _runs_of_equal_headers(records: Sequence[Record]) -> list[tuple[tuple[tuple[str, bytes | None], ...], list[bytes]]]:
    runs: list[tuple[tuple[tuple[str, bytes | None], ...], list[bytes]]] = []
    for record in records:
        line = (record.key or b"") + b"\t" + (record.value or b"") + b"\n"
        headers = tuple(record.headers)
        if runs and runs[-1][0] == headers:
            runs[-1][1].append(line)
        else:
            runs.append((headers, [line]))
    return runs


def _read(seen: dict[str, Any]) -> Read:
    pairs = seen.get("headers", [])
    headers = tuple(
        (name, None if value is None else value.encode()) for name, value in zip(pairs[::2], pairs[1::2], strict=True)
    )
    key, value = seen["key"], seen["payload"]
    return Read(
        seen["partition"],
        seen["offset"],
        None if key is None else key.encode(),
        None if value is None else value.encode(),
        headers,
        seen["ts"],
    )
