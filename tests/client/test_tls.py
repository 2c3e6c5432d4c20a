"""Certificates come in files or as texts, and what cannot be read is said plainly."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING

import pytest

from millstream.client.client import Client
from millstream.client.errors import BadOption, ClientError, TlsFailed
from millstream.client.options import Options
from millstream.client.tls import client_context
from tests.client.test_connection import on_a_loop
from tests.support.secured_kafka import self_signed

if TYPE_CHECKING:
    from pathlib import Path

TLS = {"bootstrap.servers": "x:1", "security.protocol": "SSL"}


def context(**options: str) -> ssl.SSLContext:
    parsed = Options.parse(TLS | {f"ssl.{name}".replace("_", "."): value for name, value in options.items()})
    assert parsed.tls is not None
    return client_context(parsed.tls)


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext) -> None:
    """A whole handshake in memory; each side trusts the other, or this raises."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(back, there, server_hostname="127.0.0.1"),
        server.wrap_bio(there, back, server_side=True),
    ]
    for _ in range(4):
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert all(side.version() for side in sides)
    # With TLS 1.3 the client is done before the server has seen its certificate.
    assert sides[1].getpeercert() is not None


@pytest.fixture
def pem(tmp_path: Path) -> tuple[str, str]:
    """A certificate and its key, as texts."""
    certificate, both = self_signed(tmp_path)
    return certificate.read_text(), both.read_text().partition("-----BEGIN CERTIFICATE-----")[0]


@pytest.mark.parametrize("names", ["librdkafka", "java"])
def test_certificates_may_be_texts_even_on_one_line(tmp_path: Path, pem: tuple[str, str], names: str) -> None:
    certificate, key = pem
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=certificate)
    server.verify_mode = ssl.CERT_REQUIRED
    server.load_cert_chain(tmp_path / "both.pem")
    if names == "librdkafka":
        client = context(ca_pem=certificate, certificate_pem=certificate, key_pem=key)
    else:
        one_line = certificate.replace("\n", " ")
        client = context(
            truststore_type="PEM",
            truststore_certificates=one_line,
            keystore_type="PEM",
            keystore_certificate_chain=one_line,
            keystore_key=key.replace("\n", "\\n"),
        )
    shake_hands(client, server)


@pytest.mark.parametrize(
    "options",
    [
        {"truststore_location": "trust.jks"},
        {"truststore_location": "trust.jks", "truststore_password": "x"},
        {"truststore_location": "trust.store", "truststore_type": "PKCS12"},
        {"keystore_location": "keys.p12", "keystore_password": "x", "key_password": "x"},
    ],
)
def test_a_java_keystore_is_called_one(options: dict[str, str]) -> None:
    with pytest.raises(BadOption, match="is a Java keystore: this client reads PEM"):
        context(**options)


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(TlsFailed, match=r"missing\.pem could not be read: .*No such file"):
        context(ca_location=str(tmp_path / "missing.pem"))
    with pytest.raises(TlsFailed, match=r"missing\.pem could not be read"):
        context(certificate_location=str(tmp_path / "missing.pem"))
    with pytest.raises(BadOption, match=r"ssl\.ca\.pem is no PEM"):
        context(ca_pem="MIIC")


@pytest.mark.parametrize("answer", [b"", b"what?"])
@on_a_loop
async def test_a_port_that_does_not_speak_tls_is_said_to(answer: bytes) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(5)
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, Client(TLS | {"bootstrap.servers": f"127.0.0.1:{port}"}) as client:
        with pytest.raises(ClientError, match=f"127.0.0.1:{port}: .*is it a port for TLS"):
            await client.metadata.all_topics()
