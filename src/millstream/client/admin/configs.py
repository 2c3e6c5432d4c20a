"""Settings of topics, brokers and the rest: describe and change."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from millstream.client.client import ANY, CONTROLLER
from millstream.client.errors import Refusal, refuse
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from millstream.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from millstream.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from millstream.client.client import Client, Node


class ResourceKind(IntEnum):
    """What has settings."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(IntEnum):
    """Where a value comes from; Kafka's tools print these names."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class ConfigType(IntEnum):
    """The type of a setting."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Operation(IntEnum):
    """What IncrementalAlterConfigs does with one setting."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class Resource:
    """One topic, broker or group whose settings are meant; the name of the brokers' default is empty."""

    kind: ResourceKind
    name: str

    def __str__(self) -> str:
        kind = self.kind.name.lower().replace("_", "-")
        return f"{kind} {self.name!r}" if self.name else f"the default of every {kind}"


@dataclass(frozen=True, slots=True)
class Synonym:
    """One of the places that a value was looked for in."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class Config:
    """One setting as a broker describes it."""

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    sensitive: bool
    synonyms: tuple[Synonym, ...] = ()
    type: ConfigType = ConfigType.UNKNOWN
    documentation: str | None = None

    @property
    def is_default(self) -> bool:
        return self.source is ConfigSource.DEFAULT_CONFIG


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one setting."""

    name: str
    value: str | None
    operation: Operation = Operation.SET


async def describe_configs(
    client: Client,
    resources: Sequence[Resource],
    *,
    names: Sequence[str] | None = None,
    synonyms: bool = False,
    documentation: bool = False,
) -> dict[Resource, list[Config] | Refusal]:
    """The settings of each resource; only those of `names` if given."""
    outcomes: dict[Resource, list[Config] | Refusal] = {}
    for node, group in _by_node(resources, ANY).items():
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=resource.kind,
                    resource_name=resource.name,
                    configuration_keys=None if names is None else list(names),
                )
                for resource in group
            ],
            include_synonyms=synonyms,
            include_documentation=documentation,
        )

        async def attempt(request: object = request, node: Node = node) -> DescribeConfigsResponse:
            response: DescribeConfigsResponse = await client.call(request, node=node)
            return response

        for result in (await client.retrying(attempt)).results:
            resource = Resource(ResourceKind(result.resource_type), result.resource_name)
            if result.error_code:
                outcomes[resource] = Refusal(result.error_code, result.error_message, subject=str(resource))
                continue
            outcomes[resource] = [
                Config(
                    name=config.name,
                    value=config.value,
                    source=_source(config.config_source),
                    read_only=config.read_only,
                    sensitive=config.is_sensitive,
                    synonyms=tuple(Synonym(s.name, s.value, _source(s.source)) for s in config.synonyms),
                    type=ConfigType(config.config_type) if config.config_type <= ConfigType.PASSWORD else ConfigType(0),
                    documentation=config.documentation,
                )
                for config in result.configs
            ]
    return {resource: outcomes[resource] for resource in resources if resource in outcomes}


async def alter_configs(
    client: Client, changes: Mapping[Resource, Iterable[Change]], *, validate_only: bool = False
) -> dict[Resource, Refusal | None]:
    """Change single settings and leave the others as they are (IncrementalAlterConfigs)."""
    outcomes: dict[Resource, Refusal | None] = {}
    for node, group in _by_node(list(changes), CONTROLLER).items():
        request = IncrementalAlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=resource.kind,
                    resource_name=resource.name,
                    configs=[
                        AlterableConfig(name=change.name, config_operation=change.operation, value=change.value)
                        for change in changes[resource]
                    ],
                )
                for resource in group
            ],
            validate_only=validate_only,
        )

        async def attempt(request: object = request, node: Node = node) -> IncrementalAlterConfigsResponse:
            response: IncrementalAlterConfigsResponse = await client.call(request, node=node)
            for result in response.responses:
                refuse(result.error_code if result.error_code == ErrorCode.NOT_CONTROLLER else 0)
            return response

        for result in (await client.retrying(attempt)).responses:
            resource = Resource(ResourceKind(result.resource_type), result.resource_name)
            outcomes[resource] = (
                Refusal(result.error_code, result.error_message, subject=str(resource)) if result.error_code else None
            )
    return outcomes


async def list_config_resources(client: Client, kinds: Sequence[ResourceKind] = ()) -> list[Resource]:
    """Every resource that has settings of its own, of these kinds or of all."""

    async def attempt() -> list[Resource]:
        response: ListConfigResourcesResponse = await client.call(
            ListConfigResourcesRequest(resource_types=list(kinds)), at_least=1 if kinds else 0
        )
        refuse(response.error_code)
        return [Resource(ResourceKind(found.resource_type), found.resource_name) for found in response.config_resources]

    return await client.retrying(attempt)


def _by_node(resources: Sequence[Resource], otherwise: Node) -> dict[Node, list[Resource]]:
    """A broker's own settings are known, and checked, only by that broker."""
    groups: dict[Node, list[Resource]] = {}
    for resource in resources:
        own = resource.kind in (ResourceKind.BROKER, ResourceKind.BROKER_LOGGER) and resource.name.isdecimal()
        groups.setdefault(int(resource.name) if own else otherwise, []).append(resource)
    return groups


def _source(number: int) -> ConfigSource:
    return ConfigSource(number) if 0 <= number <= ConfigSource.DYNAMIC_GROUP_CONFIG else ConfigSource.UNKNOWN
