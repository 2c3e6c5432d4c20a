"""IncrementalAlterConfigs and AlterConfigs: settings of topics, brokers, groups and client metrics change live.

The incremental request changes what it names: set, delete, append to or subtract from a list. The older one replaces
all that was set on a resource, and so forgets what the sender did not know of; it is turned into the incremental
form here. Each resource is one change: all of it or, with the reason, nothing, and its neighbours go on.

Error codes are Kafka's and differ by kind: INVALID_CONFIG for a topic or group, INVALID_REQUEST for a broker or client
metrics.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from millstream.metadata.config_rules import (
    check_broker_configs,
    check_client_metrics,
    check_group_configs,
    check_topic_configs,
)
from millstream.metadata.decision import Decision
from millstream.metadata.describe_configs import check_broker_name
from millstream.metadata.image import (
    BROKER_CONFIG,
    BROKER_LOGGER_CONFIG,
    CLIENT_METRICS_CONFIG,
    CLUSTER_DEFAULT,
    GROUP_CONFIG,
    TOPIC_CONFIG,
)
from millstream.metadata.leadership import eligible_leaders_enabled
from millstream.metadata.names import check_topic_name
from millstream.metadata.partition_change import MIN_INSYNC_REPLICAS
from millstream.protocol.errors import (
    BrokerError,
    ErrorCode,
    InvalidConfig,
    InvalidRequest,
    UnknownTopicOrPartition,
)
from millstream.protocol.messages import alter_configs, incremental_alter_configs
from millstream.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from millstream.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from millstream.protocol.messages.metadata.clear_elr import ClearElrRecord
from millstream.protocol.messages.metadata.config import ConfigRecord
from millstream.settings.catalog import BROKER, CLIENT_METRICS, GROUP, TOPIC
from millstream.settings.declare import Scope
from millstream.settings.effective import usable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from millstream.metadata.image import ConfigKey, MetadataImage
    from millstream.metadata.record_types import MetadataRecord
    from millstream.settings.declare import Setting
    from millstream.settings.effective import Settings


class Operation(IntEnum):
    """What an incremental change does to one value."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    """One value to change."""

    name: str
    operation: int
    value: str | None


class Outcome(NamedTuple):
    """How a resource's change ended."""

    code: ErrorCode
    message: str | None


DONE = Outcome(ErrorCode.NONE, None)
# What a principal hears who may not; `refusal` of the decisions below tells the code, or None where it may.
_REFUSED = "Altering the configs of this resource is not allowed."


@dataclass(frozen=True, slots=True)
class ConfigAuthority:
    """What the deciding node knows: its settings, itself, and who may do what."""

    settings: Settings
    node_id: int
    refusal: Callable[[int, str], ErrorCode | None] = lambda _type, _name: None


def decide_incremental_alter_configs(
    image: MetadataImage, request: IncrementalAlterConfigsRequest, authority: ConfigAuthority
) -> Decision[IncrementalAlterConfigsResponse]:
    """Change what the request names."""
    asked = [
        (
            (resource.resource_type, resource.resource_name),
            [Change(config.name, config.config_operation, config.value) for config in resource.configs],
        )
        for resource in request.resources
    ]
    records, outcomes = _decide(image, asked, authority)
    response = IncrementalAlterConfigsResponse(
        responses=[
            incremental_alter_configs.AlterConfigsResourceResponse(
                error_code=outcome.code, error_message=outcome.message, resource_type=kind, resource_name=name
            )
            for ((kind, name), _), outcome in zip(asked, outcomes, strict=True)
        ]
    )
    return Decision(() if request.validate_only else records, response)


def decide_alter_configs(
    image: MetadataImage, request: AlterConfigsRequest, authority: ConfigAuthority
) -> Decision[AlterConfigsResponse]:
    """Make what the request names all that is set on each resource."""
    asked = []
    for resource in request.resources:
        key = (resource.resource_type, resource.resource_name)
        named = {config.name for config in resource.configs}
        changes = [Change(config.name, Operation.SET, config.value) for config in resource.configs]
        changes += [Change(name, Operation.DELETE, None) for name in image.config(*key) if name not in named]
        asked.append((key, changes))
    # Loggers came with the incremental request; this one never had them.
    records, outcomes = _decide(image, asked, authority, unknown_kinds=(BROKER_LOGGER_CONFIG,))
    response = AlterConfigsResponse(
        responses=[
            alter_configs.AlterConfigsResourceResponse(
                error_code=outcome.code, error_message=outcome.message, resource_type=kind, resource_name=name
            )
            for ((kind, name), _), outcome in zip(asked, outcomes, strict=True)
        ]
    )
    return Decision(() if request.validate_only else records, response)


def _decide(
    image: MetadataImage,
    asked: list[tuple[ConfigKey, list[Change]]],
    authority: ConfigAuthority,
    unknown_kinds: tuple[int, ...] = (),
) -> tuple[tuple[MetadataRecord, ...], list[Outcome]]:
    mentions = Counter(key for key, _ in asked)
    records: list[MetadataRecord] = []
    outcomes: list[Outcome] = []
    for key, changes in asked:
        denied = authority.refusal(*key)
        try:
            if mentions[key] > 1:
                raise InvalidRequest("The request names this resource more than once.")
            if key[0] in unknown_kinds:
                raise InvalidRequest(f"{key[0]} is no kind of resource that this request can change.")
            if denied is None:
                records += _change_resource(image, key, changes, authority)
        except BrokerError as error:
            outcomes.append(Outcome(error.code, error.message))
        else:
            outcomes.append(DONE if denied is None else Outcome(denied, _REFUSED))
    return tuple(records), outcomes


def _change_resource(
    image: MetadataImage, key: ConfigKey, changes: list[Change], authority: ConfigAuthority
) -> list[MetadataRecord]:
    kind, name = key
    _check_resource(image, kind, name, authority)
    if len({change.name for change in changes}) != len(changes):
        raise InvalidRequest("The request names a config of this resource more than once.")
    before = image.config(kind, name)
    after = dict(before)
    for change in changes:
        value = _new_value(kind, change, before, authority.settings)
        if value is None:
            after.pop(change.name, None)
        else:
            after[change.name] = value
    changed = [each for each in dict.fromkeys((*before, *after)) if before.get(each) != after.get(each)]
    # What stays as it was is not held against the request: an older version, or Apache Kafka, may have allowed it.
    kept = {each: text for each, text in after.items() if each not in changed}
    _check_values(key, kept, {each: after[each] for each in changed if each in after}, authority.settings)
    if kind == BROKER_CONFIG and MIN_INSYNC_REPLICAS in changed and eligible_leaders_enabled(image):
        _check_common_min_isr(name, after)
    records: list[MetadataRecord] = [
        ConfigRecord(resource_type=kind, resource_name=name, name=each, value=after.get(each)) for each in changed
    ]
    if MIN_INSYNC_REPLICAS in changed and kind in {TOPIC_CONFIG, BROKER_CONFIG} and eligible_leaders_enabled(image):
        # Who is eligible was worked out with the old minimum: start over (KIP-966). No name means all topics.
        records.append(ClearElrRecord(topic_name=name if kind == TOPIC_CONFIG else ""))
    return records


def _check_resource(image: MetadataImage, kind: int, name: str, authority: ConfigAuthority) -> None:
    if kind == TOPIC_CONFIG:
        if not name:
            raise InvalidRequest("There are no defaults for all topics; set the broker's configs instead.")
        check_topic_name(name)
        if name not in image.topics.by_name:
            raise UnknownTopicOrPartition(f"There is no topic '{name}'.")
    elif kind == BROKER_CONFIG:
        # Clients send a broker's configs to that broker; it may have sent them on to this one, which decides.
        if name != CLUSTER_DEFAULT and not (name.isdecimal() and int(name) in image.brokers):
            check_broker_name(name, authority.node_id)
    elif kind == BROKER_LOGGER_CONFIG:
        check_broker_name(name, authority.node_id)
        raise InvalidConfig("The loggers of this broker have no levels of their own.")
    elif kind not in {CLIENT_METRICS_CONFIG, GROUP_CONFIG}:
        raise InvalidRequest(f"{kind} is no kind of resource that has configs.")
    elif not name:
        raise InvalidRequest("The resource must be named.")


_DECLARED: dict[int, Mapping[str, Setting[Any]]] = {
    TOPIC_CONFIG: TOPIC,
    BROKER_CONFIG: BROKER,
    CLIENT_METRICS_CONFIG: CLIENT_METRICS,
    GROUP_CONFIG: GROUP,
}


def _new_value(kind: int, change: Change, before: Mapping[str, str], settings: Settings) -> str | None:
    """The value after a change; None deletes it."""
    if change.operation == Operation.DELETE:
        return None
    if change.operation not in set(Operation):
        raise InvalidRequest(f"{change.operation} is no change of a config: 0 sets, 1 deletes, 2 appends, 3 subtracts.")
    if change.value is None:
        raise InvalidRequest(f"{change.name} needs a value.")
    if change.operation == Operation.SET:
        return change.value
    setting = _DECLARED[kind].get(change.name)
    if setting is None or setting.kind.name != "list":
        raise InvalidConfig(f"{change.name} is not a list: nothing can be appended to or subtracted from it.")
    present = before.get(change.name)
    if present is None:
        present = settings.text_of(setting) or ""
    entries = [entry for entry in present.split(",") if entry]
    named = [entry for entry in change.value.split(",") if entry]
    if change.operation == Operation.APPEND:
        return ",".join(dict.fromkeys((*entries, *named)))
    return ",".join(entry for entry in entries if entry not in named)


def _check_values(key: ConfigKey, kept: dict[str, str], new: dict[str, str], settings: Settings) -> None:
    if not new:
        return
    kind, name = key
    if kind == TOPIC_CONFIG:
        known, _ = usable(Scope.TOPIC, kept)
        check_topic_configs(settings, {**known, **new})
    elif kind == GROUP_CONFIG:
        check_group_configs(settings, new)
    elif kind == CLIENT_METRICS_CONFIG:
        check_client_metrics(new)
    else:
        check_broker_configs(settings, kept, new, cluster_wide=name == CLUSTER_DEFAULT)


def _check_common_min_isr(name: str, after: Mapping[str, str]) -> None:
    if name != CLUSTER_DEFAULT:
        raise InvalidConfig(f"With eligible leader replicas, {MIN_INSYNC_REPLICAS} is the same on all brokers.")
    if MIN_INSYNC_REPLICAS not in after:
        raise InvalidConfig(f"With eligible leader replicas, {MIN_INSYNC_REPLICAS} cannot be unset.")
