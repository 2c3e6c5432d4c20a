"""Warns about stored configs that do nothing on this node, once for each change and once at the start.

What a file says is judged when it is loaded (settings/loading.py). The configs of topics, groups, client metrics and
brokers come through the metadata log, whichever request or node has put them there; so they are looked at where every
change of the metadata passes. Each node speaks for itself: brokers about what all of them share, every node about the
configs of brokers that are meant for it.

One line names all resources with the same config: a thousand topics with it are one line at a start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.metadata.image import BROKER_CONFIG, CLIENT_METRICS_CONFIG, CLUSTER_DEFAULT, GROUP_CONFIG, TOPIC_CONFIG
from millstream.runtime.logs import Logger
from millstream.settings import Scope, configs_without_effect

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.metadata.delta import Changes
    from millstream.metadata.image import ConfigKey, MetadataImage

_log = Logger("millstream.node")
_SHARED = {TOPIC_CONFIG: Scope.TOPIC, GROUP_CONFIG: Scope.GROUP, CLIENT_METRICS_CONFIG: Scope.CLIENT_METRICS}
RESOURCES_NAMED_MAX = 5


class IgnoredConfigs:
    """See the module's docstring."""

    def __init__(self, node_id: int, *, is_broker: bool) -> None:
        self._of_this_node = ((BROKER_CONFIG, CLUSTER_DEFAULT), (BROKER_CONFIG, str(node_id)))
        self._is_broker = is_broker
        self._warned: dict[ConfigKey, dict[str, str]] = {}
        """The names and values that a warning has been written about, as long as they are set."""

    def start(self, image: MetadataImage) -> None:
        """Warn about what is stored already."""
        self._look(image, image.configs)

    def metadata_changed(self, image: MetadataImage, changes: Changes) -> None:
        if changes.configs:
            self._look(image, changes.configs)

    def _look(self, image: MetadataImage, keys: Iterable[ConfigKey]) -> None:
        new: dict[str, list[str]] = {}
        for key in keys:
            scope = self._scope_of(key)
            if scope is None:
                continue
            values = image.config(*key)
            found = configs_without_effect(scope, values)
            before = self._warned.pop(key, {})
            if found:
                self._warned[key] = {name: values[name] for name in found}
            for name, sentence in found.items():
                if before.get(name) != values[name]:
                    new.setdefault(sentence, []).append(_label(key, scope))
        for sentence, resources in new.items():
            _log.warning(sentence, set_on=_named(resources))

    def _scope_of(self, key: ConfigKey) -> Scope | None:
        """None where the configs of this resource are none of this node's business."""
        if key in self._of_this_node:
            return Scope.BROKER
        return _SHARED.get(key[0]) if self._is_broker else None


def _label(key: ConfigKey, scope: Scope) -> str:
    _, name = key
    return "all brokers" if scope is Scope.BROKER and name == CLUSTER_DEFAULT else f"{scope.value} {name}"


def _named(resources: list[str]) -> str:
    more = len(resources) - RESOURCES_NAMED_MAX
    return ", ".join(resources[:RESOURCES_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
