"""franz-go, through `franz_go_calls.go`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.clients.adapters.json_lines_client import JsonLinesClient
from tests.support import toolchains

if TYPE_CHECKING:
    from collections.abc import Mapping


class FranzGo(JsonLinesClient):
    name = "franz-go"

    def command(self) -> tuple[list[str], Mapping[str, str]]:
        return [str(toolchains.go_program(Path(__file__).with_name("franz_go_calls.go")))], {}
