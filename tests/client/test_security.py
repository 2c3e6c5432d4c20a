"""TLS and the logins against Apache Kafka, which knows how they are meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.client.admin.topics import list_topics
from millstream.client.errors import AuthenticationFailed, ClientError, TlsFailed
from millstream.client.sync import SyncClient
from tests.support.secured_kafka import secured_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.secured_kafka import SecuredKafka

pytestmark = [pytest.mark.java, pytest.mark.slow]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    with secured_kafka(tmp_path_factory.mktemp("secured-kafka")) as kafka:
        yield kafka


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
