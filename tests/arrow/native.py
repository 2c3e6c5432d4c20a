"""The native modules of Arrow in both of their forms: as installed, and their sources as plain Python."""

from __future__ import annotations

import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.records import _columns, _scatter

if TYPE_CHECKING:
    from types import ModuleType


def _load_plain(installed: ModuleType) -> ModuleType:
    folder, name = Path(installed.__file__ or "").parent, installed.__name__.rpartition(".")[2]
    loader = SourceFileLoader(f"plain{name}", str(folder / f"{name}.py"))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


INSTALLED = (_columns, _scatter)
PLAIN = (_load_plain(_columns), _load_plain(_scatter))
