from __future__ import annotations

from millstream.protocol.declare import Bool, String, message


@message(versions="0", flexible="0+")
class DefaultPrincipalData:
    """A principal as it travels inside an Envelope."""

    type: String
    name: String
    token_authenticated: Bool
