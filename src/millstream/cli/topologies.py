"""Finding a topology by what a person says: `app.py`, `app.py:build`, `shop.streams`, `shop.streams:app`.

What is found may be a topology, something that holds one (an application), or something that makes one (a builder, a
function without arguments). It is known by what it can do: importing the streams package here would make every command
depend on what it brings along.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from typing import TYPE_CHECKING, Any

from millstream.cli.declare import UsageError

if TYPE_CHECKING:
    from types import ModuleType

    from millstream.streams.topology import Topology

DEFAULT_NAME = "topology"


def load_topology(words: str) -> Topology:
    """The topology that `file.py[:name]` or `module[:name]` stands for."""
    where, colon, name = words.rpartition(":")
    if not colon or os.sep in name:
        where, name = words, ""
    module = _from_file(where) if where.endswith(".py") else _from_module(where)
    found = getattr(module, name or DEFAULT_NAME, None)
    if found is None:
        raise UsageError(_nothing(where, name or DEFAULT_NAME, module))
    return _topology_of(found, words)


def _topology_of(found: Any, words: str) -> Topology:
    for _ in range(3):
        if all(hasattr(found, verb) for verb in ("describe", "mermaid", "plan")):
            topology: Topology = found
            return topology
        if hasattr(found, "topology"):
            found = found.topology
        elif hasattr(found, "build"):
            found = found.build()
        elif callable(found):
            try:
                found = found()
            except TypeError as error:
                raise UsageError(f"{words} cannot be called without arguments: {error}") from error
        else:
            break
    raise UsageError(f"{words} is a {type(found).__name__}, which is no topology and makes none")


def _nothing(where: str, name: str, module: ModuleType) -> str:
    held = [
        each
        for each, found in vars(module).items()
        if not each.startswith("_") and not isinstance(found, type) and hasattr(found, "mermaid")
    ]
    hint = f"; there is {', '.join(held)}" if held else f": say {where}:name"
    return f"{where} has no {name!r}{hint}"


def _from_file(path: str) -> ModuleType:
    if not os.path.isfile(path):
        raise UsageError(f"there is no file {path}")
    name = os.path.splitext(os.path.basename(path))[0]
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    # Dataclasses look their module up; and what lies beside the file can be imported by it, as if it was run.
    sys.modules[name] = module
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec.loader.exec_module(module)
    return module


def _from_module(name: str) -> ModuleType:
    sys.path.insert(0, os.getcwd())
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise UsageError(f"there is no module {name!r} here; a file is named with its .py") from error
        raise
