"""Every declared message, found by walking the package: what the tests of this folder run over."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import TYPE_CHECKING

from millstream.protocol import messages
from millstream.protocol.declare import ALL_VERSIONS, Message, declaration

if TYPE_CHECKING:
    from collections.abc import Iterator


def declared_messages() -> dict[str, type[Message]]:
    """Messages by name; the structures nested in them are not among them."""
    found: dict[str, type[Message]] = {}
    for module_info in pkgutil.walk_packages(messages.__path__, messages.__name__ + "."):
        module = import_module(module_info.name)
        for kind in vars(module).values():
            if not (isinstance(kind, type) and issubclass(kind, Message) and kind.__module__ == module.__name__):
                continue
            if declaration(kind).versions != ALL_VERSIONS:
                assert kind.__name__ not in found, f"{kind.__name__} is declared twice"
                found[kind.__name__] = kind
    return found


def versions_of(kind: type[Message]) -> range:
    versions = declaration(kind).versions
    return range(versions.first, versions.last + 1)


def every_version() -> Iterator[tuple[type[Message], int]]:
    for _, kind in sorted(declared_messages().items()):
        for version in versions_of(kind):
            yield kind, version
