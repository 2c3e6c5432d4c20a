"""DescribeConfigs and ListConfigResources: every setting of a resource, with where its value comes from.

`settings` are those of the broker that answers, dynamic values included: a topic shows what holds for it there, since
each broker applies its own defaults. A secret has no value in an answer, ever. A name that was set dynamically
and that nobody declares is shown as a secret, since it may be one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.metadata import image as kinds
from millstream.metadata.image import (
    BROKER_CONFIG,
    BROKER_LOGGER_CONFIG,
    CLIENT_METRICS_CONFIG,
    CLUSTER_DEFAULT,
    GROUP_CONFIG,
    TOPIC_CONFIG,
)
from millstream.metadata.names import check_topic_name
from millstream.protocol.errors import (
    BrokerError,
    ErrorCode,
    InvalidRequest,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from millstream.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from millstream.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from millstream.settings.catalog import BROKER, CLIENT_METRICS, GROUP, TOPIC, broker_setting
from millstream.settings.declare import Scope, Setting
from millstream.settings.effective import ConfigSource, Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from millstream.metadata.image import MetadataImage

UNKNOWN_CONFIG_TYPE = 0


def describe_configs(
    image: MetadataImage,
    request: DescribeConfigsRequest,
    *,
    settings: Settings,
    node_id: int,
    refusal: Callable[[int, str], ErrorCode | None] = lambda _type, _name: None,
) -> DescribeConfigsResponse:
    """Answer for each resource by itself; `refusal` tells the code for one that the principal may not see."""
    results: list[DescribeConfigsResult] = []
    for resource in request.resources:
        result = DescribeConfigsResult(
            resource_type=resource.resource_type, resource_name=resource.resource_name, configs=[]
        )
        denied = refusal(resource.resource_type, resource.resource_name)
        if denied is not None:
            result.error_code = denied
            result.error_message = "Describing the configs of this resource is not allowed."
        else:
            try:
                result.configs = _describe(image, resource, request, settings, node_id)
            except BrokerError as error:
                result.error_code, result.error_message = error.code, error.message
        results.append(result)
    return DescribeConfigsResponse(results=results)


def _describe(
    image: MetadataImage,
    resource: DescribeConfigsResource,
    request: DescribeConfigsRequest,
    settings: Settings,
    node_id: int,
) -> list[DescribeConfigsResourceResult]:
    name = resource.resource_name
    match resource.resource_type:
        case kinds.TOPIC_CONFIG:
            check_topic_name(name)
            if name not in image.topics.by_name:
                raise UnknownTopicOrPartition(f"There is no topic '{name}'.")
            found = _declared(TOPIC, settings.of(Scope.TOPIC, image.topic_config(name)), request)
        case kinds.BROKER_CONFIG:
            if name == CLUSTER_DEFAULT:
                found = _set_on_all_brokers(image.config(BROKER_CONFIG, CLUSTER_DEFAULT), request)
            else:
                check_broker_name(name, node_id)
                found = _declared(BROKER, settings, request) + _undeclared(settings, request)
        case kinds.BROKER_LOGGER_CONFIG:
            # This broker has no loggers whose levels could be told apart.
            check_broker_name(name, node_id)
            found = []
        case kinds.CLIENT_METRICS_CONFIG:
            _check_named(name, "A client-metrics subscription")
            overrides = image.config(CLIENT_METRICS_CONFIG, name)
            found = _declared(CLIENT_METRICS, settings.of(Scope.CLIENT_METRICS, overrides), request)
        case kinds.GROUP_CONFIG:
            _check_named(name, "A group")
            found = _declared(GROUP, settings.of(Scope.GROUP, image.config(GROUP_CONFIG, name)), request)
        case unknown:
            raise InvalidRequest(f"{unknown} is no kind of resource that has configs.")
    # An empty list of names means all of them, as it does in Kafka.
    wanted = resource.configuration_keys
    return [entry for entry in found if entry.name in wanted] if wanted else found


def check_broker_name(name: str, node_id: int) -> None:
    """A broker answers for itself alone: clients send each broker's configs to that broker."""
    try:
        asked = int(name)
    except ValueError:
        raise InvalidRequest(f"A broker is named by its id, and not '{name}'.") from None
    if asked != node_id:
        raise InvalidRequest(f"This is broker {node_id}; the configs of broker {name} are to be asked for there.")


def _check_named(name: str, what: str) -> None:
    if not name:
        raise InvalidRequest(f"{what} must be named.")


def _declared(
    declared: Mapping[str, Setting[Any]], settings: Settings, request: DescribeConfigsRequest
) -> list[DescribeConfigsResourceResult]:
    return [
        DescribeConfigsResourceResult(
            name=setting.name,
            value=settings.text_of(setting),
            read_only=setting.read_only,
            config_source=settings.source_of(setting),
            is_sensitive=setting.sensitive,
            synonyms=[
                DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
                for synonym in settings.synonyms_of(setting)
            ]
            if request.include_synonyms
            else [],
            config_type=setting.kind.code,
            documentation=setting.doc if request.include_documentation else None,
        )
        for setting in declared.values()
        if not setting.internal
    ]


def _undeclared(settings: Settings, request: DescribeConfigsRequest) -> list[DescribeConfigsResourceResult]:
    layers = (
        (settings.broker, ConfigSource.DYNAMIC_BROKER_CONFIG),
        (settings.cluster, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
    )
    found: dict[str, ConfigSource] = {}
    for layer, source in layers:
        for name in layer:
            if name not in BROKER:
                found.setdefault(name, source)
    return [_single(name, None, source, request) for name, source in found.items()]


def _set_on_all_brokers(
    values: Mapping[str, str], request: DescribeConfigsRequest
) -> list[DescribeConfigsResourceResult]:
    return [_single(name, value, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, request) for name, value in values.items()]


def _single(
    name: str, value: str | None, source: ConfigSource, request: DescribeConfigsRequest
) -> DescribeConfigsResourceResult:
    """A value that stands in one layer alone."""
    setting = broker_setting(name)
    sensitive = setting is None or setting.sensitive
    shown = None if sensitive else value
    return DescribeConfigsResourceResult(
        name=name,
        value=shown,
        read_only=setting is None or setting.read_only,
        config_source=source,
        is_sensitive=sensitive,
        synonyms=[DescribeConfigsSynonym(name=name, value=shown, source=source)] if request.include_synonyms else [],
        config_type=UNKNOWN_CONFIG_TYPE if setting is None else setting.kind.code,
        documentation=setting.doc if setting is not None and request.include_documentation else None,
    )


_LISTABLE = (TOPIC_CONFIG, BROKER_CONFIG, BROKER_LOGGER_CONFIG, CLIENT_METRICS_CONFIG, GROUP_CONFIG)


def list_config_resources(
    image: MetadataImage, request: ListConfigResourcesRequest, *, version: int
) -> ListConfigResourcesResponse:
    """The resources that can have configs. Version 0, then ListClientMetricsResources, knew client metrics alone."""
    wanted = [CLIENT_METRICS_CONFIG] if version == 0 else request.resource_types or list(_LISTABLE)
    if any(kind not in _LISTABLE for kind in wanted):
        return ListConfigResourcesResponse(error_code=UnsupportedVersion.code, config_resources=[])
    names: dict[int, list[str]] = {
        GROUP_CONFIG: [name for kind, name in image.configs if kind == GROUP_CONFIG],
        CLIENT_METRICS_CONFIG: [name for kind, name in image.configs if kind == CLIENT_METRICS_CONFIG],
        BROKER_LOGGER_CONFIG: [str(broker_id) for broker_id in image.brokers],
        BROKER_CONFIG: [str(broker_id) for broker_id in image.brokers],
        TOPIC_CONFIG: list(image.topics.by_name),
    }
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind, found in names.items()
            if kind in wanted
            for name in found
        ]
    )
