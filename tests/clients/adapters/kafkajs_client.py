"""kafkajs, through `kafkajs_calls.js`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.clients.adapters.contract import Ability, Codec
from tests.clients.adapters.json_lines_client import JsonLinesClient
from tests.support import toolchains

if TYPE_CHECKING:
    from collections.abc import Mapping


class KafkaJs(JsonLinesClient):
    name = "kafkajs"
    codecs = frozenset[Codec]({"none", "gzip", "snappy"})
    # A null header is written as an empty one.
    can = frozenset(Ability)

    def command(self) -> tuple[list[str], Mapping[str, str]]:
        node, environment = toolchains.kafkajs()
        return [node, str(Path(__file__).with_name("kafkajs_calls.js"))], environment
