"""`implemented` tells the truth: a setting counts as acted on exactly where code outside of the declarations reads it.

Whoever makes the broker act on a setting, or stop acting on it, changes the declaration in the same commit. So the
warnings at the start, the refusals and the reference say what this release really does.
"""

from __future__ import annotations

import ast
from pathlib import Path

import millstream
import millstream.settings as all_of_them
from millstream.settings import BY_SCOPE, Setting, Times

SOURCES = Path(millstream.__file__).parent
# Inside of `settings` only listeners.py turns values into something that the broker uses.
DECLARATIONS = {path for path in (SOURCES / "settings").glob("*.py") if path.name != "listeners.py"}
# The one setting whose value is taken over into another one, when settings are loaded.
TAKEN_OVER = {"BROKER_ID"}


def constants() -> dict[str, Setting[object]]:
    return {name: value for name, value in vars(all_of_them).items() if isinstance(value, Setting)}


def read_names() -> set[str]:
    """What code outside of the declarations imports from `millstream.settings`."""
    names: set[str] = set(TAKEN_OVER)
    for path in SOURCES.rglob("*.py"):
        if path not in DECLARATIONS:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("millstream.settings"):
                    names |= {alias.name for alias in node.names}
    return names


def acted_on() -> set[str]:
    """Names of settings that are read, or that give a default to one that is."""
    read = read_names()
    found = set()
    for name, setting in constants().items():
        if name in read:
            found.add(name)
            for synonym in setting.synonyms:
                broker_wide = synonym.setting if isinstance(synonym, Times) else synonym
                found |= {other for other, value in constants().items() if value is broker_wide}
    return found


def test_what_counts_as_acted_on_is_read_somewhere() -> None:
    implemented = {name for name, setting in constants().items() if setting.implemented}
    assert sorted(implemented - acted_on()) == []


def test_what_is_read_somewhere_counts_as_acted_on() -> None:
    ignored = {name for name, setting in constants().items() if not setting.implemented}
    assert sorted(ignored & acted_on()) == []


def test_every_setting_has_its_constant() -> None:
    assert len(constants()) == sum(len(settings) for settings in BY_SCOPE.values())
