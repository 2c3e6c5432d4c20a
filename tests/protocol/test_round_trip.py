"""Whatever a message holds survives the wire, in every version."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millstream.protocol.codec import decode, encode
from millstream.protocol.shape import layout
from tests.protocol.catalog import declared_messages, versions_of
from tests.protocol.strategies import kept, messages

if TYPE_CHECKING:
    from millstream.protocol.declare import Message

KINDS = [kind for _, kind in sorted(declared_messages().items())]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@given(data=st.data())
@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_a_message_survives_the_wire(kind: type[Message], data: st.DataObject) -> None:
    """One message is drawn with all fields of all versions; each version keeps its own share of it."""
    message = data.draw(messages(kind))
    for version in versions_of(kind):
        expected = kept(message, layout(kind, version))
        encoded = encode(expected, version)
        assert decode(kind, version, encoded) == expected
        assert decode(kind, version, memoryview(bytearray(encoded))) == expected
