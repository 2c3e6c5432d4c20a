"""Which clients a claim is run for: those that can do what it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.clients.adapters import ALL
from tests.clients.adapters.contract import ALL_CODECS

if TYPE_CHECKING:
    from tests.clients.adapters.contract import Ability, Client

# A JVM for every call: these take a few seconds a claim.
SLOW = ("java-tools",)


def _marks(kind: type[Client]) -> list[pytest.MarkDecorator]:
    return [pytest.mark.slow, pytest.mark.java] if kind.name in SLOW else []


def every_client(*needs: Ability) -> pytest.MarkDecorator:
    """Run the test once for each client that can do all of this."""
    able = [kind for kind in ALL if kind.can.issuperset(needs)]
    params = [pytest.param(kind.name, id=kind.name, marks=_marks(kind)) for kind in able]
    return pytest.mark.parametrize("client", params, indirect=True)


def every_client_and_codec(*needs: Ability) -> pytest.MarkDecorator:
    """Run the test for each client that can do all of this, with each codec that it has."""
    params = [
        pytest.param(kind.name, codec, id=f"{kind.name}-{codec}", marks=_marks(kind))
        for kind in ALL
        if kind.can.issuperset(needs)
        for codec in ALL_CODECS
        if codec in kind.codecs
    ]
    return pytest.mark.parametrize(("client", "codec"), params, indirect=["client"])
