"""The client's half of the SASL mechanisms, without any I/O: `first()` starts, `next(challenge)` goes on.

PLAIN is RFC 4616; SCRAM is RFC 5802 and 7677 with Kafka's parameters. SCRAM also proves the broker to us: a server
signature that does not fit ends the connection, and so does a nonce that does not begin with ours.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import TYPE_CHECKING, Protocol

from millstream.client.errors import AuthenticationFailed

if TYPE_CHECKING:
    from millstream.client.options import SaslOptions

# What RFC 7677 asks for at least, and a bound so that a broker cannot keep the client hashing for minutes.
ITERATIONS_MIN = 4096
ITERATIONS_MAX = 1_000_000


class Mechanism(Protocol):
    """One login; None from `next` means that we have nothing left to say."""

    def first(self) -> bytes: ...
    def next(self, challenge: bytes) -> bytes | None: ...


class Plain:
    """User name and password in the clear; for encrypted connections."""

    def __init__(self, username: str, password: str) -> None:
        self._message = b"\0" + username.encode() + b"\0" + password.encode()

    def first(self) -> bytes:
        return self._message

    def next(self, challenge: bytes) -> bytes | None:
        return None


class Scram:
    """Proof of knowing the password without sending it."""

    def __init__(self, username: str, password: str, *, digest: str, nonce: str) -> None:
        escaped = username.replace("=", "=3D").replace(",", "=2C")
        self._digest = digest
        self._password = password.encode()
        self._nonce = nonce
        self._first_bare = f"n={escaped},r={nonce}"
        self._server_signature: bytes | None = None
        self._finished = False

    def first(self) -> bytes:
        return f"n,,{self._first_bare}".encode()

    def next(self, challenge: bytes) -> bytes | None:
        fields = _fields(challenge)
        if "e" in fields:
            raise AuthenticationFailed(f"the broker refused the login: {fields['e']}")
        if self._server_signature is None:
            return self._prove(challenge, fields)
        if not self._finished:
            self._verify_server(fields)
            self._finished = True
        return None

    @property
    def finished(self) -> bool:
        """Whether the broker has proved that it knows the password too."""
        return self._finished

    def _prove(self, challenge: bytes, fields: dict[str, str]) -> bytes:
        nonce, salt, iterations = _server_first(fields)
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise AuthenticationFailed("the broker's SCRAM nonce does not continue ours")
        if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
            raise AuthenticationFailed(f"the broker asks for {iterations} SCRAM iterations, which is not acceptable")
        salted = hashlib.pbkdf2_hmac(self._digest, self._password, salt, iterations)
        client_key = self._hmac(salted, b"Client Key")
        without_proof = f"c=biws,r={nonce}"
        signed = f"{self._first_bare},{challenge.decode()},{without_proof}".encode()
        signature = self._hmac(hashlib.new(self._digest, client_key).digest(), signed)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._server_signature = self._hmac(self._hmac(salted, b"Server Key"), signed)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def _verify_server(self, fields: dict[str, str]) -> None:
        assert self._server_signature is not None
        try:
            signature = base64.b64decode(fields.get("v", ""), validate=True)
        except ValueError:
            signature = b""
        if not hmac.compare_digest(signature, self._server_signature):
            raise AuthenticationFailed("the broker could not prove that it knows the password")

    def _hmac(self, key: bytes, data: bytes) -> bytes:
        return hmac.digest(key, data, self._digest)


def mechanism(options: SaslOptions, nonce: str) -> Mechanism:
    if options.mechanism == "PLAIN":
        return Plain(options.username, options.password)
    digest = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}[options.mechanism]
    return Scram(options.username, options.password, digest=digest, nonce=nonce)


def _fields(message: bytes) -> dict[str, str]:
    try:
        parts = [part.partition("=") for part in message.decode().split(",")]
    except UnicodeDecodeError:
        raise AuthenticationFailed("the broker's SCRAM message is not text") from None
    return {name: value for name, _, value in parts}


def _server_first(fields: dict[str, str]) -> tuple[str, bytes, int]:
    try:
        return fields["r"], base64.b64decode(fields["s"], validate=True), int(fields["i"])
    except (KeyError, ValueError):
        raise AuthenticationFailed("the broker's SCRAM message is incomplete") from None
