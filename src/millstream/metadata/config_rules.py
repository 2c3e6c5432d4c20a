"""What may be set on a topic, group, subscription or broker: the settings' own rules, as refusals a client hears."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from millstream.protocol.errors import BrokerError, InvalidConfig, InvalidRequest
from millstream.settings.checks import check_group, check_topic
from millstream.settings.declare import Scope, SettingsError
from millstream.settings.dynamic import check_dynamic, dynamic_values
from millstream.settings.effective import Settings, check_overrides

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# A value goes into a metadata record; Kafka's own bound, and beyond anything sensible.
VALUE_BYTES_MAX = 32_767
CLIENT_METRICS_INTERVAL_MS = (100, 3_600_000)


def check_topic_configs(settings: Settings, overrides: Mapping[str, str | None]) -> None:
    """Raise InvalidConfig, with a sentence per mistake, unless a topic may have these values."""
    with _mistakes_as(InvalidConfig):
        check_topic(settings, overrides)
    check_sizes(overrides)


def check_group_configs(settings: Settings, overrides: Mapping[str, str | None]) -> None:
    """Raise InvalidConfig unless a group may have these values."""
    with _mistakes_as(InvalidConfig):
        check_group(settings, overrides)
    check_sizes(overrides)


def check_client_metrics(overrides: Mapping[str, str | None]) -> None:
    """Raise InvalidRequest unless a subscription may have these values."""
    with _mistakes_as(InvalidRequest):
        check_overrides(Scope.CLIENT_METRICS, overrides)
    check_sizes(overrides)
    lowest, highest = CLIENT_METRICS_INTERVAL_MS
    interval = overrides.get("interval.ms")
    if interval is not None and not lowest <= int(interval) <= highest:
        raise InvalidRequest(f"interval.ms must be between {lowest} and {highest}, and not {interval}.")


def check_broker_configs(
    settings: Settings, before: Mapping[str, str], new: Mapping[str, str], *, cluster_wide: bool
) -> None:
    """Raise InvalidRequest unless these may change while brokers run; what stood before is not held against it."""
    for name in new:
        if name.startswith("ssl."):
            # Kafka's rule: a key store that changes live is one listener's, or all listeners would change at once.
            raise InvalidRequest(f"{name} changes live for one listener only: set listener.name.NAME.{name}.")
    known, _ = dynamic_values(before)
    with _mistakes_as(InvalidRequest):
        check_dynamic(settings, {**known, **new}, cluster_wide=cluster_wide)
    check_sizes(new)


def check_sizes(overrides: Mapping[str, str | None]) -> None:
    for name, value in overrides.items():
        if value is not None and len(value.encode()) > VALUE_BYTES_MAX:
            raise InvalidConfig(f"The value of {name} is longer than {VALUE_BYTES_MAX} bytes.")


@contextmanager
def _mistakes_as(refusal: type[BrokerError]) -> Iterator[None]:
    try:
        yield
    except SettingsError as error:
        raise refusal(" ".join(error.sentences)) from None
