"""Configs that do nothing here are logged wherever they are set: once for each change, and once at a start."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.support.raw import RawClient

from millstream.broker.ignored_configs import IgnoredConfigs
from millstream.embedded import Broker, Cluster
from millstream.metadata.delta import apply
from millstream.metadata.image import (
    BROKER_CONFIG,
    CLIENT_METRICS_CONFIG,
    GROUP_CONFIG,
    TOPIC_CONFIG,
    MetadataImage,
)
from millstream.protocol.messages import alter_configs, incremental_alter_configs
from millstream.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from millstream.protocol.messages.delete_topics import DeleteTopicsRequest
from millstream.protocol.messages.metadata.config import ConfigRecord
from millstream.testing.logs import logs_go_to

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

SET, DELETE = 0, 1


@contextmanager
def logged() -> Iterator[list[str]]:
    """The warnings about ignored configs that are written in the block."""
    lines: list[str] = []
    with logs_go_to(lines.append):
        yield lines
    lines[:] = [line.partition("[warning] ")[2] for line in lines if " is ignored: " in line or "There is no" in line]


def line(name: str, where: str) -> str:
    return f"{name} is ignored: this broker does not act on it. set_on={where!r}"


# --- alone


class Watched:
    """An image that grows by config records, and what looks at it."""

    def __init__(self, *, is_broker: bool = True) -> None:
        self.image = MetadataImage()
        self.configs = IgnoredConfigs(1, is_broker=is_broker)

    def set(self, *configs: tuple[int, str, str, str | None]) -> list[str]:
        """The warnings that these changes bring."""
        records = [
            ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value)
            for kind, resource, name, value in configs
        ]
        self.image, changes = apply(self.image, records)
        with logged() as lines:
            self.configs.metadata_changed(self.image, changes)
        return lines


def test_a_change_is_warned_about_once() -> None:
    watched = Watched()
    assert watched.set((TOPIC_CONFIG, "a", "preallocate", "true")) == [line("preallocate", "topic a")]
    assert watched.set((TOPIC_CONFIG, "a", "retention.ms", "1")) == [], "another config of the topic has changed"
    assert watched.set((TOPIC_CONFIG, "b", "preallocate", "false")) == [], "this is the default"
    assert watched.set((TOPIC_CONFIG, "a", "preallocate", None)) == []
    assert watched.set((TOPIC_CONFIG, "a", "preallocate", "true")) == [line("preallocate", "topic a")]
    assert watched.set((TOPIC_CONFIG, "a", "local.retention.ms", "5")) == [line("local.retention.ms", "topic a")]
    assert watched.set((TOPIC_CONFIG, "a", "local.retention.ms", "6")) == [line("local.retention.ms", "topic a")]


def test_a_broker_speaks_for_itself_and_for_what_all_share() -> None:
    watched = Watched()
    assert watched.set(
        (BROKER_CONFIG, "", "num.io.threads", "3"),
        (BROKER_CONFIG, "1", "num.network.threads", "5"),
        (BROKER_CONFIG, "2", "background.threads", "5"),
        (GROUP_CONFIG, "g", "share.isolation.level", "read_committed"),
        (CLIENT_METRICS_CONFIG, "m", "interval.ms", "1000"),
    ) == [
        line("num.io.threads", "all brokers"),
        line("num.network.threads", "broker 1"),
        line("share.isolation.level", "group g"),
        line("interval.ms", "client-metrics m"),
    ]


def test_a_controller_alone_speaks_for_itself() -> None:
    watched = Watched(is_broker=False)
    shared = (
        (TOPIC_CONFIG, "a", "preallocate", "true"),
        (GROUP_CONFIG, "g", "share.isolation.level", "read_committed"),
    )
    assert watched.set(*shared, (BROKER_CONFIG, "", "num.io.threads", "3")) == [line("num.io.threads", "all brokers")]


def test_many_resources_with_the_same_config_are_one_line() -> None:
    watched = Watched()
    for number in range(1000):
        watched.image, _ = apply(
            watched.image,
            [ConfigRecord(resource_type=TOPIC_CONFIG, resource_name=f"t{number}", name="preallocate", value="true")],
        )
    with logged() as lines:
        watched.configs.start(watched.image)
    (only,) = lines
    assert only.count("topic t") == 5
    assert only.endswith(" and 995 more'")
    assert watched.set((TOPIC_CONFIG, "t7", "retention.ms", "1")) == [], "the start was the warning"


# --- on a broker


def alter(client: RawClient, kind: int, resource: str, name: str, value: str | None) -> None:
    config = incremental_alter_configs.AlterableConfig(
        name=name, config_operation=SET if value is not None else DELETE, value=value
    )
    asked = incremental_alter_configs.AlterConfigsResource(resource_type=kind, resource_name=resource, configs=[config])
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[asked], validate_only=False)
    _check(client.call(request, 1).responses)


def replace(client: RawClient, kind: int, resource: str, *, validate_only: bool, **values: str) -> None:
    configs = [alter_configs.AlterableConfig(name=name, value=value) for name, value in values.items()]
    asked = alter_configs.AlterConfigsResource(resource_type=kind, resource_name=resource, configs=configs)
    _check(client.call(alter_configs.AlterConfigsRequest(resources=[asked], validate_only=validate_only), 2).responses)


def create(client: RawClient, name: str, **configs: str) -> None:
    topic = CreatableTopic(
        name=name,
        num_partitions=1,
        replication_factor=1,
        assignments=[],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )
    _check(client.call(CreateTopicsRequest(topics=[topic]), 7).topics)


def _check(entries: list[Any]) -> None:
    """Nothing else has changed: it is accepted, without a word to the client."""
    assert [(entry.error_code, entry.error_message) for entry in entries] == [(0, None)]


def test_every_way_to_set_a_config_is_warned_about_and_so_is_the_next_start(tmp_path: Path) -> None:
    with logged() as said, Broker(tmp_path) as broker, RawClient("127.0.0.1", broker.port) as client:
        create(client, "made", preallocate="true")
        create(client, "plain", preallocate="false")
        alter(client, TOPIC_CONFIG, "plain", "local.retention.ms", "5")
        replace(client, TOPIC_CONFIG, "plain", preallocate="true", validate_only=True)
        replace(client, TOPIC_CONFIG, "plain", preallocate="true", validate_only=False)
        alter(client, GROUP_CONFIG, "g", "share.delivery.count.limit", "7")
        alter(client, CLIENT_METRICS_CONFIG, "m", "interval.ms", "1000")
        alter(client, BROKER_CONFIG, "", "background.threads", "11")
        alter(client, BROKER_CONFIG, "1", "num.network.threads", "5")
        alter(client, GROUP_CONFIG, "g", "share.delivery.count.limit", None)
        client.call(DeleteTopicsRequest(topic_names=["made"], timeout_ms=5000), 5)
    assert said == [
        line("preallocate", "topic made"),
        line("local.retention.ms", "topic plain"),
        line("preallocate", "topic plain"),
        line("share.delivery.count.limit", "group g"),
        line("interval.ms", "client-metrics m"),
        line("background.threads", "all brokers"),
        line("num.network.threads", "broker 1"),
    ]
    with logged() as again, Broker(tmp_path):
        pass
    assert sorted(again) == [
        line("background.threads", "all brokers"),
        line("interval.ms", "client-metrics m"),
        line("num.network.threads", "broker 1"),
        line("preallocate", "topic plain"),
    ]


def test_what_an_embedded_broker_or_cluster_is_given_in_vain_is_logged_once() -> None:
    for made in (Broker(settings={"num.io.threads": 3}), Cluster(brokers=2, settings={"num.io.threads": 3})):
        with logged() as said, made:
            pass
        assert [each.strip() for each in said] == ["num.io.threads is ignored: this broker does not act on it."]
