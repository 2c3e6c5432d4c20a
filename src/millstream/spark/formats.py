"""`value.format=json` and `key.format=json`: which columns of a read are fields of which part of the record.

    spark.read.format("millstream").option("value.format", "json").schema("order bigint, city string")

Without `.schema(...)` the options `value.schema` and `key.schema` name the columns, and the record's own are there too,
with the parts that are JSON replaced by their fields. In `.schema(...)` a column of the record's name and type is the
record's, and every other one a field; where both parts are JSON, `key.schema` says which are the key's. A field that
one of the two options names hides the record's column of the same name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from millstream.client.errors import BadOption

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql.types import StructType

    from millstream.spark.json_columns import JsonColumns

PARTS: Final = ("value", "key")
RECORD: Final = "record"
OPTIONS: Final = ("value.format", "key.format", "value.schema", "key.schema", "on.error")


@dataclass(frozen=True)
class Formats:
    """What the options say."""

    parts: tuple[str, ...]
    """Those that are JSON."""
    schemas: Mapping[str, str]
    """The text of their schemas, as far as it is given."""
    drop: bool
    """Whether a record that does not parse is left out; otherwise the query fails."""

    def ddl(self, *, include_headers: bool) -> str:
        """All columns, for a read without `.schema(...)`; Spark parses it."""
        from millstream.spark.schema import read_schema

        for part in self.parts:
            if part not in self.schemas:
                raise BadOption(
                    f"{part}.format=json needs columns: name them with .schema('order bigint, city string'), "
                    f"or with the option {part}.schema"
                )
        hidden = [name for names in self.names().values() for name in names]
        columns = []
        for field in read_schema(include_headers=include_headers).fields:
            if field.name in self.parts:
                columns.append(self.schemas[field.name])
            elif field.name not in hidden:
                columns.append(f"`{field.name}` {field.dataType.simpleString()}")
        return ", ".join(columns)

    def names(self) -> dict[str, list[str]]:
        """The fields of each part whose schema is given."""
        found = {part: list(names_in(text)) for part, text in self.schemas.items()}
        both = [name for name in found.get("key", ()) if name in found.get("value", ())]
        if both:
            raise BadOption(f"{both[0]!r} is a field of value.schema and of key.schema: a column has one name")
        return found

    def columns(self, schema: StructType) -> JsonColumns:
        """Where each column of a read comes from."""
        from millstream.spark.json_columns import JsonColumns, check_type

        named = self.names()
        origins = []
        for field in schema.fields:
            origin = self._origin(field.name, field.dataType.simpleString(), named)
            if origin != RECORD:
                check_type(field)
            origins.append(origin)
        return JsonColumns(schema, tuple(origins), drop=self.drop)

    def _origin(self, name: str, kind: str, named: Mapping[str, list[str]]) -> str:
        from millstream.spark.schema import read_schema

        for part in self.parts:
            if name in named.get(part, ()):
                return part
        record = {field.name: field.dataType.simpleString() for field in read_schema(include_headers=True).fields}
        if record.get(name) == kind:
            return RECORD
        if name in record:
            raise BadOption(
                f"column {name!r} is {record[name]}, not {kind}; "
                f"if it is a field of the {self.parts[0]}, name it in {self.parts[0]}.schema too"
            )
        without = [part for part in self.parts if part not in named]
        if len(without) == 1:
            return without[0]
        if without:
            raise BadOption("value and key are both JSON: key.schema must say which columns are the key's")
        options = " and ".join(f"{part}.schema" for part in self.parts)
        raise BadOption(f"there is no column {name!r} in the record or in {options}")


def parse_formats(options: Mapping[str, str]) -> Formats | None:
    """None if no part of the records has a format."""
    given = {name.lower(): str(value) for name, value in options.items() if name.lower() in OPTIONS}
    parts, schemas = [], {}
    for part in PARTS:
        form, schema = given.get(f"{part}.format"), given.get(f"{part}.schema")
        if form is not None and form.strip().lower() != "json":
            raise BadOption(f"{part}.format is json, or left out, not {form!r}")
        if schema is not None and form is None:
            raise BadOption(f"{part}.schema has no meaning without {part}.format=json")
        if form is not None:
            parts.append(part)
        if schema is not None:
            schemas[part] = schema
    on_error = given.get("on.error", "fail").strip().lower()
    if on_error in ("dead-letter", "dead_letter"):
        raise BadOption(
            "on.error=dead_letter makes two frames of one, which a source cannot: "
            "millstream.spark.read_typed(spark, options) has the rows and the dead letters"
        )
    if on_error not in ("fail", "drop"):
        raise BadOption(f"on.error is fail, drop or dead_letter, not {on_error!r}")
    if not parts and "on.error" in given:
        raise BadOption("on.error has no meaning without value.format=json or key.format=json")
    return Formats(tuple(parts), schemas, on_error == "drop") if parts else None


def names_in(ddl: str) -> Iterator[str]:
    """The names of the columns in `order bigint, lines array<struct<sku:string,n:int>>`."""
    for text in _split(ddl):
        column = text.strip()
        if column.startswith("`"):
            yield column[1:].replace("``", "\0").partition("`")[0].replace("\0", "`")
        elif column:
            yield column.replace(":", " ", 1).split()[0]


def _split(ddl: str) -> Iterator[str]:
    """At the commas outside of all brackets and quotes."""
    start, depth, quote = 0, 0, ""
    for at, char in enumerate(ddl):
        if quote:
            quote = "" if char == quote else quote
        elif char in "`'\"":
            quote = char
        elif char in "<(":
            depth += 1
        elif char in ">)":
            depth -= 1
        elif char == "," and depth == 0:
            yield ddl[start:at]
            start = at + 1
    yield ddl[start:]
