"""A client in another language: a program that reads one JSON call a line and answers each with one JSON line.

The call is {"call": name, ...arguments}; the answer {"ok": result} or {"refused": code, "detail": text}. Bytes travel
as base64 under keys of their own, null as null. One program serves a whole session of claims.
"""

from __future__ import annotations

import json
import os
import subprocess
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any

from tests.clients.adapters.contract import Acks, Client, Codec, Read, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.support.batches import Record


def _packed(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode()


def _unpacked(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)


class JsonLinesClient(Client):
    """The calls of the contract, sent to the program that `command` names."""

    def command(self) -> tuple[list[str], Mapping[str, str]]:
        """The program with its arguments, and what to add to its environment."""
        raise NotImplementedError

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(bootstrap_servers)
        command, environment = self.command()
        self._process = subprocess.Popen(
            [*command, bootstrap_servers],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | dict(environment),
        )

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()

    def _call(self, name: str, /, **arguments: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"call": name, **arguments}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"{self.name} ended during {name}"
        answer = json.loads(line)
        if "refused" in answer:
            raise Refused(answer["refused"], answer.get("detail", ""))
        return answer["ok"]

    def partitions(self, topic: str) -> int:
        return int(self._call("partitions", topic=topic))

    def create_topic(
        self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None, replicas: int = 1
    ) -> None:
        self._call("create_topic", topic=topic, partitions=partitions, replicas=replicas, configs=dict(configs or {}))

    def grow(self, topic: str, partitions: int) -> None:
        self._call("grow", topic=topic, partitions=partitions)

    def delete_topic(self, topic: str) -> None:
        self._call("delete_topic", topic=topic)

    def configs(self, topic: str) -> dict[str, str | None]:
        return dict(self._call("configs", topic=topic))

    def set_config(self, topic: str, name: str, value: str) -> None:
        self._call("set_config", topic=topic, name=name, value=value)

    def delete_records(self, topic: str, partition: int, before_offset: int) -> None:
        self._call("delete_records", topic=topic, partition=partition, offset=before_offset)

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
        packed = [
            {
                "key": _packed(record.key),
                "value": _packed(record.value),
                "headers": [[name, _packed(value)] for name, value in record.headers],
                "timestamp": record.timestamp_ms,
            }
            for record in records
        ]
        self._call(
            "produce",
            topic=topic,
            records=packed,
            partition=-1 if partition is None else partition,
            acks=acks,
            codec=codec,
            idempotent=idempotent,
        )

    def consume(self, topic: str, partition: int, offset: int, count: int) -> list[Read]:
        found = self._call("consume", topic=topic, partition=partition, offset=offset, count=count)
        return [
            Read(
                partition,
                int(each["offset"]),
                _unpacked(each["key"]),
                _unpacked(each["value"]),
                tuple((name, _unpacked(value)) for name, value in each["headers"]),
                int(each["timestamp"]),
            )
            for each in found
        ]

    def first_and_next_offset(self, topic: str, partition: int) -> tuple[int, int]:
        first, following = self._call("offsets", topic=topic, partition=partition)
        return int(first), int(following)

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int:
        return int(self._call("offset_at", topic=topic, partition=partition, timestamp=timestamp_ms))
