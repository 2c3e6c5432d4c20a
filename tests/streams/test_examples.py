"""The examples of `examples/streams_*.py` run in the driver, and say what they are meant to say."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SAID = {
    "word_count": ["mill      2", "not       1", "or        1", "to        2"],
    "page_views": ["[ada@0/60000] 2", "[bob@60000/120000] 1"],
    "clickstream": [
        "u1 {'url': '/mill', 'name': 'Ada', 'city': 'London'}",
        "u2 {'url': '/stream', 'name': None, 'city': None}",
    ],
    "fraud": ["4711: 4 attempts in the five seconds from 0", "4711: 5 attempts in the five seconds from 0"],
    "sports": ["Kim {'shots': 1, 'assists': 0}", "Lee {'shots': 0, 'assists': 1}"],
    "shopping_cart": ["cart-1 {'salt': 1, 'flour': 1}"],
    "sessions": ["ada: 3 clicks in 35 minutes", "bob: 1 clicks in 0 minutes"],
    "transactions": ["a1 {'cents': 1250, 'currency': 'EUR', 'name': 'Ada'}"],
}


def test_the_first_lines_of_the_documentation_hold() -> None:
    text = (EXAMPLES.parent / "docs" / "streams.md").read_text()
    exec(text.split("```python\n")[1].split("```")[0], {})


def test_every_example_is_here() -> None:
    assert {path.stem.removeprefix("streams_") for path in EXAMPLES.glob("streams_*.py")} == set(SAID)


@pytest.mark.parametrize("name", SAID)
def test_an_example_says_what_it_should(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.setattr("sys.argv", [name])
    runpy.run_path(str(EXAMPLES / f"streams_{name}.py"), run_name="__main__")
    assert capsys.readouterr().out.splitlines()[-len(SAID[name]) :] == SAID[name]
