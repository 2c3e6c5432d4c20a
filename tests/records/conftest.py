"""The walker in both of its forms: as it was installed, and its source as plain Python beside it."""

from __future__ import annotations

import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.records import _walker

if TYPE_CHECKING:
    from types import ModuleType


def load_plain() -> ModuleType:
    """_walker.py as Python runs it where there was no compiler."""
    source = Path(_walker.__file__ or "").parent / "_walker.py"
    loader = SourceFileLoader("plain_walker", str(source))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


PLAIN = load_plain()


@pytest.fixture(params=["installed", "plain"])
def walker(request: pytest.FixtureRequest) -> ModuleType:
    return _walker if request.param == "installed" else PLAIN
