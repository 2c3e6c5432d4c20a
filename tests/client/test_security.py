"""TLS and the logins against Apache Kafka, which knows how they are meant."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from millstream.client.admin.topics import list_topics
from millstream.client.errors import AuthenticationFailed, ClientError, TlsFailed
from millstream.client.sync import SyncClient
from tests.support.apache_kafka import ApacheKafka
from tests.support.ports import free_ports
from tests.support.requirements import require

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.java, pytest.mark.slow]

SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
PLAIN_MODULE = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_ada="lovelace";'


class SecuredKafka:
    """Addresses of the listeners and the certificate to trust."""

    def __init__(self, tls: str, sasl: str, sasl_tls: str, certificate: Path) -> None:
        self.tls, self.sasl, self.sasl_tls, self.certificate = tls, sasl, sasl_tls, certificate


def _certificate(folder: Path) -> tuple[Path, Path]:
    """(certificate, key and certificate in one file) for 127.0.0.1, signed by itself."""
    openssl = require("openssl", "a certificate is made for the test")
    certificate, key, both = folder / "certificate.pem", folder / "key.pem", folder / "both.pem"
    subject = ("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run([*command, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    both.write_text(key.read_text() + certificate.read_text())
    return certificate, both


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    folder = tmp_path_factory.mktemp("secured-kafka")
    certificate, keystore = _certificate(folder)
    plain, tls, sasl, sasl_tls, controller = free_ports(5)
    addresses = {"BROKER": plain, "TLS": tls, "SASL": sasl, "SASLTLS": sasl_tls, "CONTROLLER": controller}
    logins = {
        f"listener.name.{name}.{mechanism}.sasl.jaas.config": module
        for name in ("sasl", "sasltls")
        for mechanism, module in (
            ("plain", PLAIN_MODULE),
            ("scram-sha-256", SCRAM_MODULE),
            ("scram-sha-512", SCRAM_MODULE),
        )
    }
    properties = {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in addresses.items()),
        "listener.security.protocol.map": (
            "BROKER:PLAINTEXT,TLS:SSL,SASL:SASL_PLAINTEXT,SASLTLS:SASL_SSL,CONTROLLER:PLAINTEXT"
        ),
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keystore),
        **logins,
    }
    with ApacheKafka(folder / "kafka", properties=properties) as kafka:
        users = [
            part
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
            for part in ("--add-scram", f"{mechanism}=[name=ada,password=lovelace]")
        ]
        kafka.format(*users)
        kafka.start()
        yield SecuredKafka(*(f"127.0.0.1:{port}" for port in (tls, sasl, sasl_tls)), certificate)


def topics(**options: str) -> list[str]:
    with SyncClient({name.replace("_", "."): value for name, value in options.items()}) as client:
        return [topic.name for topic in client.run(list_topics)]


def login(mechanism: str, password: str = "lovelace") -> dict[str, str]:
    return {"sasl.mechanisms": mechanism, "sasl.username": "ada", "sasl.password": password}


MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_right_password_opens(secured: SecuredKafka, mechanism: str) -> None:
    assert topics(bootstrap_servers=secured.sasl, security_protocol="sasl_plaintext", **login(mechanism)) == []


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_told_and_not_tried_again(secured: SecuredKafka, mechanism: str) -> None:
    with pytest.raises(AuthenticationFailed, match="'ada'"):
        topics(bootstrap_servers=secured.sasl, security_protocol="sasl_plaintext", **login(mechanism, "wrong"))


def test_a_login_goes_through_an_encrypted_connection(secured: SecuredKafka) -> None:
    trusted = {"ssl.ca.location": str(secured.certificate)}
    options = login("SCRAM-SHA-512") | trusted
    assert topics(bootstrap_servers=secured.sasl_tls, security_protocol="sasl_ssl", **options) == []


def test_a_trusted_certificate_opens(secured: SecuredKafka) -> None:
    trusted = {"ssl.ca.location": str(secured.certificate)}
    assert topics(bootstrap_servers=secured.tls, security_protocol="ssl", **trusted) == []


def test_a_certificate_that_nobody_vouches_for_is_refused(secured: SecuredKafka) -> None:
    with pytest.raises(TlsFailed, match="not trusted"):
        topics(bootstrap_servers=secured.tls, security_protocol="ssl")


def test_a_certificate_for_another_host_is_refused_unless_told_otherwise(secured: SecuredKafka) -> None:
    elsewhere = secured.tls.replace("127.0.0.1", "localhost")
    trusted = {"ssl.ca.location": str(secured.certificate)}
    with pytest.raises(TlsFailed, match="not trusted"):
        topics(bootstrap_servers=elsewhere, security_protocol="ssl", **trusted)
    unchecked = trusted | {"ssl.endpoint.identification.algorithm": "none"}
    assert topics(bootstrap_servers=elsewhere, security_protocol="ssl", **unchecked) == []


def test_speaking_plainly_to_an_encrypted_port_is_explained(secured: SecuredKafka) -> None:
    with pytest.raises(ClientError, match=r"TLS|security\.protocol"):
        topics(bootstrap_servers=secured.tls)
