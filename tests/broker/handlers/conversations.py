"""Questions that are put to Apache Kafka and to Millstream alike, and how answers are made comparable.

A conversation asks through `Talk` under labels; what was heard is plain data without what two brokers cannot have in
common: sentences, ids, addresses, sizes of the disk, the order of lists that have none. Topics are named after a
prefix, so that a conversation can be held with a broker that others talk to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from tests.support.waiting import wait_until

from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from millstream.protocol.messages.metadata_api import MetadataRequest, MetadataRequestTopic
from millstream.protocol.uuid import ZERO_UUID, Uuid

if TYPE_CHECKING:
    from tests.support.raw import RawClient

# Left out: sentences are our own, and the rest is each broker's.
OWN_FIELDS = {
    "throttle_time_ms",
    "error_message",
    "host",
    "port",
    "cluster_id",
    "log_dir",
    "total_bytes",
    "usable_bytes",
    "last_fetch_timestamp",
    "last_caught_up_timestamp",
    "documentation",
}
ORDERED_BY = ("name", "topic", "topic_name", "resource_name", "feature", "key", "partition_index")


class Talk:
    """One conversation with one broker."""

    def __init__(self, client: RawClient, prefix: str) -> None:
        self.client = client
        self.prefix = prefix
        self.heard: dict[str, Any] = {}

    def name(self, short: str) -> str:
        return f"{self.prefix}{short}"

    def ask(self, label: str, request: Any, version: int) -> Any:
        """Put a question and remember the answer under its label."""
        assert label not in self.heard, label
        answer = self.client.call(request, version)
        self.heard[label] = self._plain(answer)
        return answer

    def topic(self, short: str, partitions: int = 1) -> Uuid:
        """Make a topic and wait until it is led, which with Apache Kafka takes a moment."""
        name = self.name(short)
        wanted = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=[])
        self.client.call(CreateTopicsRequest(topics=[wanted]), 7)

        def led() -> Any:
            request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
            (found,) = self.client.call(request, 12).topics
            ready = found.error_code == 0 and all(each.error_code == 0 for each in found.partitions)
            return found if ready else None

        return wait_until(led, f"topic {name} to be led").topic_id

    def until(self, condition: Any, what: str) -> Any:
        return wait_until(condition, what, every_s=0.05)

    def _plain(self, value: Any, field: str = "") -> Any:
        if isinstance(value, msgspec.Struct):
            return {
                name: self._plain(getattr(value, name), name)
                for name in value.__struct_fields__
                if name not in OWN_FIELDS
            }
        if isinstance(value, list):
            plain = [self._plain(each) for each in value]
            return sorted(plain, key=_order) if plain and isinstance(plain[0], dict) else plain
        if isinstance(value, Uuid):
            return None if value == ZERO_UUID else "an id"
        if field.endswith("error_code"):
            return ErrorCode(value).name
        if isinstance(value, str):
            return value.replace(self.prefix, "")
        return value


def _order(entry: dict[str, Any]) -> tuple[str, ...]:
    return tuple(f"{entry[name]}".rjust(12) for name in ORDERED_BY if name in entry)


def configs_of(answer: Any, *names: str) -> list[tuple[str, str | None, int, bool]]:
    """Some entries of a DescribeConfigs answer, sorted."""
    return sorted(
        (entry.name, entry.value, entry.config_source, entry.read_only)
        for result in answer.results
        for entry in result.configs
        if entry.name in names
    )
