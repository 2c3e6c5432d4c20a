"""The captured bytes: what was said between the two kinds is what our messages say, byte for byte.

And docs/mixed-clusters.md shows only bytes that were captured.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from millstream.protocol.apis import api
from millstream.protocol.codec import encode
from millstream.protocol.frames import decode_request_header, response_header_length
from tests.mixed.recorder import Exchange
from tests.mixed.telling import TELLING, errors_of
from tests.support.requirements import PROJECT_ROOT

CAPTURED = Path(__file__).with_name("captured.txt")
REPORT = PROJECT_ROOT / "docs" / "mixed-clusters.md"
BLOCK = re.compile(r"^(\w+) -> (\w+ \w+): (\w+) v(\d+)\n> ([0-9a-f]+)\n< ([0-9a-f]+)$", re.MULTILINE)


def captured() -> list[Exchange]:
    found = BLOCK.findall(CAPTURED.read_text(encoding="utf-8"))
    return [
        Exchange(asker, asked, bytes.fromhex(asks), bytes.fromhex(answers))
        for asker, asked, _, _, asks, answers in found
    ]


def label(exchange: Exchange) -> str:
    return f"{exchange.asker} asks {exchange.asked} {exchange.api} v{exchange.version}"


@pytest.mark.parametrize("exchange", captured(), ids=label)
def test_both_sides_of_an_exchange_are_encoded_as_they_were_said(exchange: Exchange) -> None:
    assert exchange.response is not None
    *_, position = decode_request_header(exchange.request)
    assert encode(exchange.question(), exchange.version) == exchange.request[position:]
    position = response_header_length(exchange.api_key, exchange.version, exchange.response)
    assert encode(exchange.answer(), exchange.version) == exchange.response[position:]
    assert isinstance(exchange.answer(), api(exchange.api_key).response)
    assert errors_of(exchange.answer()) in ([], ["NEW_LEADER_ELECTED"])


def test_every_api_between_nodes_was_captured_in_both_directions() -> None:
    said = {(exchange.api, exchange.asker) for exchange in captured()}
    assert said == {(name, kind) for name in TELLING for kind in ("kafka", "millstream")}


def test_the_report_shows_captured_bytes() -> None:
    everything = CAPTURED.read_text(encoding="utf-8")
    shown = re.findall(r"^    [<>] ([0-9a-f …]+)$", REPORT.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(shown) >= 20
    for line in shown:
        for part in line.replace(" ", "").split("…"):
            assert part in everything, line
