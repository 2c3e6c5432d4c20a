"""Our declarations are Apache Kafka's definitions: field by field, read from its jars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from millstream.protocol import apis
from tests.protocol.catalog import declared_messages
from tests.protocol.kafka_definitions import Comparison, read_definitions
from tests.support.apache_kafka import jar_directory

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def definitions() -> dict[str, dict[str, Any]]:
    return read_definitions(jar_directory())


def test_every_message_of_kafka_is_declared(definitions: Mapping[str, Any]) -> None:
    assert sorted(definitions.keys() - declared_messages().keys()) == []


def test_nothing_is_declared_that_kafka_does_not_have(definitions: Mapping[str, Any]) -> None:
    assert sorted(declared_messages().keys() - definitions.keys()) == []


def test_every_declaration_says_what_kafka_says(definitions: dict[str, dict[str, Any]]) -> None:
    declared = declared_messages()
    differences = [
        difference
        for name in sorted(definitions.keys() & declared.keys())
        for difference in Comparison(definitions[name], declared[name])
    ]
    assert differences == []


def test_the_registry_numbers_messages_as_kafka_does(definitions: dict[str, dict[str, Any]]) -> None:
    numbered: dict[str, dict[int, set[str]]] = {}
    for name, definition in definitions.items():
        if "apiKey" in definition:
            numbered.setdefault(definition["type"], {}).setdefault(definition["apiKey"], set()).add(name)

    assert {key: {f"{name}Request"} for key, name in apis.API_NAMES.items()} == numbered["request"]
    assert {key: {f"{name}Response"} for key, name in apis.API_NAMES.items()} == numbered["response"]
    assert {number: {f"{name}Record"} for number, name in apis.METADATA_RECORD_NAMES.items()} == numbered["metadata"]
    for suffix, kind in (("Key", "coordinator-key"), ("Value", "coordinator-value")):
        ours: dict[int, set[str]] = {}
        for names in apis.COORDINATOR_RECORD_NAMES.values():
            for number, name in names.items():
                ours.setdefault(number, set()).add(name + suffix)
        assert ours == numbered[kind]
