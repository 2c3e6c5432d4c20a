"""Where queries begin to read. No Spark here."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, Self

from millstream.streams import StreamsBuilder
from millstream.streams.lower import running
from millstream.streams.settings import settings_of


class Reader:
    """Keeps the options of a read."""

    def __init__(self) -> None:
        self.given: dict[str, str] = {}

    def format(self, _: str) -> Self:
        return self

    def options(self, **given: str) -> Self:
        self.given |= given
        return self

    def option(self, name: str, value: str) -> Self:
        self.given[name] = value
        return self

    def schema(self, _: str) -> Self:
        return self

    def load(self) -> Self:
        return self


def test_only_what_waits_in_internal_topics_is_never_skipped() -> None:
    """A topic of somebody else's may begin with the application's name."""
    builder = StreamsBuilder(key=str, value=str)
    builder.stream("app-in").repartition(name="mine").to("out")
    settings = settings_of("app", "nowhere:1", {"auto.offset.reset": "latest"})
    made: Any = running.Running(builder.build(), settings, None, guarantee="exactly_once_v2", trigger=None)
    engine = SimpleNamespace(format="", schema="", offsets_max=1)
    starts = {}
    for part in made._parts:
        reader = Reader()
        counts = {"app-in": 2, "app-mine-repartition": 1}
        made._read(SimpleNamespace(readStream=reader), part, engine, counts, {("app-in", 1): 7})
        starts |= json.loads(reader.given["startingOffsets"])
    latest, earliest = -1, -2
    assert starts == {"app-in": {"0": latest, "1": 7}, "app-mine-repartition": {"0": earliest}}
