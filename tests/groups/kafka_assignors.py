"""Apache Kafka's assignors and its hash of topics, asked through the program beside this file."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tests.support.apache_kafka import java_command

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.groups.assignors.spec import GroupSpec, Partitions
    from millstream.protocol.uuid import Uuid


class KafkaAssignors:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            java_command(str(Path(__file__).parent / "Assignors.java")),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(120)
        self._process.stdout.close()

    def _ask(self, *fields: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join(fields) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the Java program has ended"
        return answer.rstrip("\n")

    def assign(self, assignor: str, spec: GroupSpec) -> str:
        members = [
            field
            for name, member in spec.members.items()
            for field in (
                name,
                member.instance_id or "",
                ",".join(str(topic) for topic in sorted(member.topics)),
                ",".join(
                    f"{topic}:{'.'.join(str(index) for index in sorted(partitions))}"
                    for topic, partitions in member.assigned.items()
                ),
            )
        ]
        counts = ",".join(f"{topic}={count}" for topic, count in spec.partition_counts.items())
        return self._ask(assignor, str(spec.homogeneous).lower(), counts, *members)

    def hash(self, topics: Sequence[tuple[str, Uuid, Sequence[Sequence[str]]]]) -> int:
        fields = [
            field
            for name, topic_id, racks in topics
            for field in (name, str(topic_id), ";".join(",".join(partition) for partition in racks))
        ]
        count, answer = self._ask("hash", *fields).split()
        assert int(count) == len(topics)
        return int(answer)


def as_kafka_prints(assigned: Mapping[str, Partitions]) -> str:
    members = []
    for name in sorted(assigned, key=_utf16):
        topics = sorted((f"{topic}:{sorted(partitions)}" for topic, partitions in assigned[name].items()), key=_utf16)
        members.append(f"{name}=[{', '.join(topics)}]")
    return "{" + ", ".join(members) + "}"


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-be")
