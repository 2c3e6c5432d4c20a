"""The message definitions inside Apache Kafka's jars, and how they differ from our declarations.

Kafka ships its definitions as JSON with // comments. What they leave out has a meaning: a field's default is the zero
of its type, a field is nullable or tagged only where it says so. Versions are compared as the set of valid versions
that they select, since "0+" and "3+" mean the same in a message whose versions start at 3.
"""

from __future__ import annotations

import json
import re
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.protocol.declare import NO_DEFAULT, Kind, Message, Versions, declaration
from millstream.protocol.shape import Array, Field, Structure, Type, fields
from millstream.protocol.uuid import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ZERO_OF = {
    "bool": False,
    "string": "",
    "bytes": b"",
    "records": None,
    "uuid": ZERO_UUID,
    "float64": 0.0,
}


def read_definitions(jars: Path) -> dict[str, dict[str, Any]]:
    """Every definition that has a valid version, by name."""
    found: dict[str, dict[str, Any]] = {}
    for jar in sorted(jars.glob("kafka-*.jar")):
        with zipfile.ZipFile(jar) as opened:
            for entry in opened.namelist():
                if entry.startswith("common/") and entry.endswith(".json"):
                    text = re.sub(r"^\s*//.*$", "", opened.read(entry).decode(), flags=re.MULTILINE)
                    definition = json.loads(text)
                    if definition["validVersions"] != "none":
                        assert definition["name"] not in found
                        found[definition["name"]] = definition
    return found


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def presence(field: dict[str, Any]) -> Versions:
    """The versions that have a field; a tagged one may leave saying so to its taggedVersions."""
    return Versions.parse(field.get("versions") or field["taggedVersions"])


@dataclass
class Comparison:
    """One definition beside one declaration; iterate for the differences."""

    definition: dict[str, Any]
    kind: type[Message]

    def __post_init__(self) -> None:
        self.valid = Versions.parse(self.definition["validVersions"])
        self.structures = {each["name"]: each["fields"] for each in self.definition.get("commonStructs", [])}

    def __iter__(self) -> Iterator[str]:
        declared = declaration(self.kind)
        name = self.definition["name"]
        purpose = self.definition["type"]
        is_api = purpose in ("request", "response")
        number = self.definition.get("apiKey")
        flexible = Versions.parse(self.definition.get("flexibleVersions", "none"))
        last = Versions(self.valid.last, self.valid.last)
        unstable = last if self.definition.get("latestVersionUnstable") else Versions.parse("none")
        for what, theirs, ours in (
            ("versions", self.valid, declared.versions),
            ("flexible versions", self.chosen(flexible), self.chosen(declared.flexible)),
            ("API key", number if is_api else None, declared.api_key),
            ("record type", number if purpose == "metadata" else None, declared.record_type),
            (
                "coordinator type",
                number if purpose.startswith("coordinator") else None,
                declared.coordinator_type,
            ),
            ("listeners", tuple(self.definition.get("listeners", ())), declared.listeners),
            ("unstable versions", self.chosen(unstable), self.chosen(declared.unstable)),
        ):
            if theirs != ours:
                yield f"{name}: {what}: Kafka has {theirs}, we have {ours}"
        yield from self.compare_fields(self.definition["fields"], self.kind, name)

    def chosen(self, versions: Versions, *within: Versions) -> list[int]:
        valid = range(self.valid.first, self.valid.last + 1)
        return [version for version in valid if all(version in each for each in (versions, *within))]

    def compare_fields(
        self, theirs: list[dict[str, Any]], kind: type[Message], path: str, *around: Versions
    ) -> Iterator[str]:
        """`around` has the versions of the fields that this structure sits in: only those matter inside."""
        # A field that no valid version has any more need not be declared.
        living = [field for field in theirs if self.chosen(presence(field), *around)]
        their_names = [snake(field["name"]) for field in living]
        our_names = [field.name for field in fields(kind)]
        if their_names != our_names:
            yield f"{path}: fields: Kafka has {their_names}, we have {our_names}"
            return
        for their_field, our_field in zip(living, fields(kind), strict=True):
            yield from self.compare_field(their_field, our_field, f"{path}.{our_field.name}", *around)

    def compare_field(self, theirs: dict[str, Any], ours: Field, path: str, *around: Versions) -> Iterator[str]:
        never = Versions.parse("none")
        present, spec = presence(theirs), ours.wire
        for what, their_versions, our_versions in (
            ("versions", present, spec.versions),
            ("tagged versions", Versions.parse(theirs.get("taggedVersions", "none")), spec.tagged),
            ("nullable versions", Versions.parse(theirs.get("nullableVersions", "none")), ours.nullable or never),
            ("flexible versions", Versions.parse(theirs.get("flexibleVersions", "0+")), spec.flexible),
        ):
            chosen = self.chosen(their_versions, present, *around), self.chosen(our_versions, spec.versions, *around)
            if chosen[0] != chosen[1]:
                yield f"{path}: {what}: Kafka has {chosen[0]}, we have {chosen[1]}"
        if theirs.get("tag") != spec.tag:
            yield f"{path}: tag: Kafka has {theirs.get('tag')}, we have {spec.tag}"
        yield from self.compare_type(theirs["type"], theirs.get("fields"), ours.type, path, present, *around)
        yield from self.compare_default(theirs, ours, path)

    def compare_type(
        self, theirs: str, nested: list[dict[str, Any]] | None, ours: Type, path: str, *around: Versions
    ) -> Iterator[str]:
        if theirs.startswith("[]") and isinstance(ours, Array):
            yield from self.compare_type(theirs[2:], nested, ours.element, path, *around)
        elif isinstance(ours, Structure) and theirs[0].isupper():
            # Where two structures of one module had the same name, ours is prefixed with its message's.
            if ours.kind.__name__ not in (theirs, self.definition["name"] + theirs):
                yield f"{path}: Kafka's structure is {theirs}, ours {ours.kind.__name__}"
            yield from self.compare_fields(nested or self.structures[theirs], ours.kind, f"{path}.{theirs}", *around)
        elif not (isinstance(ours, Kind) and ours.value == theirs):
            yield f"{path}: type: Kafka has {theirs}, we have {ours}"

    def compare_default(self, theirs: dict[str, Any], ours: Field, path: str) -> Iterator[str]:
        declared = ours.wire.default
        # A JSON null is no default at all to Kafka's generator; the string "null" is.
        is_explicit = theirs.get("default") is not None
        if declared is NO_DEFAULT:
            if is_explicit:
                yield f"{path}: default: Kafka has {theirs['default']!r}, we have none"
            return
        expected = self.default(theirs, ours.type)
        if type(declared) is not type(expected) or declared != expected:
            yield f"{path}: default: Kafka has {expected!r}, we have {declared!r}"

    def default(self, field: dict[str, Any], ours: Type) -> Any:
        text = field.get("default")
        if text == "null":
            return None
        match ours:
            case Array():
                return []
            case Structure(kind):
                nested = field.get("fields") or self.structures[field["type"]]
                values = {
                    ours_of.name: self.default(theirs_of, ours_of.type)
                    for theirs_of, ours_of in zip(nested, fields(kind), strict=True)
                }
                return kind(**values)
            case Kind.BOOL:
                return str(text).lower() == "true"
            case Kind.INT8 | Kind.INT16 | Kind.UINT16 | Kind.INT32 | Kind.UINT32 | Kind.INT64:
                return int(str(text or 0), 0)
            case _:
                return ZERO_OF[ours.value] if text is None else text
