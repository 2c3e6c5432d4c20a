"""Options are librdkafka's, and what cannot be honoured is refused."""

from __future__ import annotations

import pytest

from millstream.client.errors import BadOption
from millstream.client.options import NO_END_MS, Address, Options, SaslOptions, options_from, parse_addresses


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("localhost:9092", [Address("localhost", 9092)]),
        ("a:1, b:2 ,", [Address("a", 1), Address("b", 2)]),
        ("broker", [Address("broker", 9092)]),
        ("[::1]:19092", [Address("::1", 19092)]),
        ("[fe80::1]", [Address("fe80::1", 9092)]),
        ("::1", [Address("::1", 9092)]),
        ("PLAINTEXT://kafka:9093", [Address("kafka", 9093)]),
    ],
)
def test_addresses_are_read_as_people_write_them(text: str, addresses: list[Address]) -> None:
    assert list(parse_addresses(text)) == addresses


@pytest.mark.parametrize("text", ["", " , ", "host:", "host:port", "host:70000", ":9092"])
def test_an_address_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(BadOption):
        parse_addresses(text)


def test_a_login_is_read_by_librdkafkas_and_by_javas_names() -> None:
    base = {"bootstrap.servers": "x:1", "security.protocol": "SASL_PLAINTEXT"}
    expected = SaslOptions("SCRAM-SHA-512", "ada", "lovelace")
    by_librdkafka = {"sasl.mechanisms": "SCRAM-SHA-512", "sasl.username": "ada", "sasl.password": "lovelace"}
    by_java = {
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": 'org.apache.kafka…ScramLoginModule required username="ada" password="lovelace";',
    }
    assert Options.parse(base | by_librdkafka).sasl == expected
    assert Options.parse(base | by_java).sasl == expected
    single = {**by_java, "sasl.jaas.config": r"""X required username='ada' password='love\'"lace' serviceName="x";"""}
    assert Options.parse(base | single).sasl == SaslOptions("SCRAM-SHA-512", "ada", "love'\"lace")


def test_values_come_as_people_write_them() -> None:
    options = options_from(
        {"bootstrap.servers": ["a:1", "b:2"], "socket.timeout.ms": 5, "security.protocol": "ssl", "client.id": None}
    )
    assert options["bootstrap.servers"] == "a:1,b:2"
    parsed = Options.parse({**options, "enable.ssl.certificate.verification": False})
    assert (parsed.request_timeout_ms, parsed.client_id) == (5, "millstream")
    assert parsed.tls is not None
    assert not parsed.tls.verify_certificate
    assert options_from(["a:1", "b:2"]) == options_from(("a:1", "b:2")) == {"bootstrap.servers": "a:1,b:2"}
    assert options_from("a:1") == {"bootstrap.servers": "a:1"}


@pytest.mark.parametrize(
    ("options", "request_ms", "delivery_ms"),
    [
        ({}, 30_000, 120_000),
        ({"request.timeout.ms": 5_000, "delivery.timeout.ms": 90_000}, 5_000, 90_000),
        ({"socket.timeout.ms": 5_000, "message.timeout.ms": 90_000, "api.timeout.ms": 7_000}, 5_000, 90_000),
        ({"default.api.timeout.ms": 7_000}, 30_000, 7_000),
        ({"message.timeout.ms": 0}, 30_000, NO_END_MS),
    ],
    ids=str,
)
def test_how_long_a_write_may_take_is_read_by_both_names(
    options: dict[str, object], request_ms: int, delivery_ms: int
) -> None:
    parsed = Options.parse({"bootstrap.servers": "x:1", **options})
    assert (parsed.request_timeout_ms, parsed.delivery_timeout_ms) == (request_ms, delivery_ms)
    assert parsed.unknown == ()


@pytest.mark.parametrize(
    ("options", "about"),
    [
        ({"security.protocol": "tls"}, "security.protocol"),
        ({"ssl.ca.location": "/ca.pem"}, "security.protocol is missing"),
        ({"security.protocol": "sasl_ssl", "sasl.mechanisms": "GSSAPI"}, "sasl.mechanisms"),
        ({"security.protocol": "sasl_ssl", "sasl.username": "ada"}, "sasl.password"),
        ({"security.protocol": "ssl", "ssl.crl.location": "/crl"}, "ssl.crl.location"),
        ({"security.protocol": "ssl", "enable.ssl.certificate.verification": "no"}, "true or false"),
        ({"socket.timeout.ms": "soon"}, "whole number"),
        ({"socket.timeout.ms": "-1"}, "negative"),
        ({"default.api.timeout.ms": "soon"}, "whole number"),
    ],
)
def test_what_makes_no_sense_or_would_be_less_safe_is_refused(options: dict[str, str], about: str) -> None:
    with pytest.raises(BadOption, match=about):
        Options.parse({"bootstrap.servers": "x:1"} | options)


def test_an_unknown_option_that_is_harmless_is_only_listed() -> None:
    assert Options.parse({"bootstrap.servers": "x:1", "statistics.interval.ms": "5"}).unknown == (
        "statistics.interval.ms",
    )
