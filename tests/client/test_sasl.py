"""SCRAM against the example of RFC 7677, and against brokers that cheat."""

from __future__ import annotations

import base64
import hmac

import pytest

from millstream.client.errors import AuthenticationFailed
from millstream.client.sasl import Plain, Scram

NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = f"{NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SERVER_FIRST = f"r={SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def started() -> Scram:
    return Scram("user", "pencil", digest="sha256", nonce=NONCE)


def test_the_example_of_the_rfc_is_reproduced() -> None:
    login = started()
    assert login.first() == f"n,,n=user,r={NONCE}".encode()
    assert login.next(SERVER_FIRST) == (
        f"c=biws,r={SERVER_NONCE},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
    )
    assert login.next(SERVER_FINAL) is None
    assert login.finished


def test_a_broker_without_the_password_is_found_out() -> None:
    login = started()
    login.next(SERVER_FIRST)
    with pytest.raises(AuthenticationFailed, match="prove"):
        login.next(b"v=" + base64.b64encode(bytes(32)))
    assert not login.finished


def test_a_proof_is_compared_in_the_same_time_whatever_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bug 57, CVE-2021-38153: how long it takes must not tell how much of it was right."""
    compared: list[tuple[bytes, bytes]] = []
    monkeypatch.setattr(hmac, "compare_digest", lambda one, other: compared.append((one, other)) or True)
    login = started()
    login.next(SERVER_FIRST)
    login.next(b"v=" + base64.b64encode(bytes(32)))
    assert [one for one, _ in compared] == [bytes(32)]
    assert login.finished, "nothing else looks at it"


@pytest.mark.parametrize(
    "message",
    [
        SERVER_FIRST.replace(NONCE.encode(), b"somebody-elses-nonce"),
        f"r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode(),
        SERVER_FIRST.replace(b"i=4096", b"i=1"),
        SERVER_FIRST.replace(b"i=4096", b"i=2000000000"),
        SERVER_FIRST.replace(b"i=4096", b"i=many"),
        SERVER_FIRST.replace(b"s=W22", b"x=W22"),
        b"e=other-error",
        b"\xff\xfe",
    ],
)
def test_a_first_message_that_is_not_acceptable_ends_the_login(message: bytes) -> None:
    """Bug 57, CVE-2024-56128: the first two have a nonce that does not continue ours."""
    with pytest.raises(AuthenticationFailed):
        started().next(message)


def test_names_are_escaped_and_plain_is_plain() -> None:
    assert Scram("a,b=c", "x", digest="sha512", nonce="n").first() == b"n,,n=a=2Cb=3Dc,r=n"
    assert Plain("ada", "s3cret").first() == b"\0ada\0s3cret"
