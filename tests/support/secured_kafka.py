"""Apache Kafka with every way in that a client should know: TLS, SASL, and both."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.support.apache_kafka import ApacheKafka
from tests.support.ports import free_ports
from tests.support.requirements import require

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
PLAIN_MODULE = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_ada="lovelace";'


class SecuredKafka:
    """Addresses of the listeners and the certificate to trust."""

    def __init__(self, tls: str, sasl: str, sasl_tls: str, certificate: Path) -> None:
        self.tls, self.sasl, self.sasl_tls, self.certificate = tls, sasl, sasl_tls, certificate


def self_signed(folder: Path) -> tuple[Path, Path]:
    """(certificate, key and certificate in one file) for 127.0.0.1, signed by itself."""
    openssl = require("openssl", "a certificate is made for the test")
    certificate, key, both = folder / "certificate.pem", folder / "key.pem", folder / "both.pem"
    subject = ("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run([*command, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    both.write_text(key.read_text() + certificate.read_text())
    return certificate, both


@contextmanager
def secured_kafka(folder: Path) -> Iterator[SecuredKafka]:
    """Running, with the user ada, whose password is lovelace."""
    certificate, keystore = self_signed(folder)
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
