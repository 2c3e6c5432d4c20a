"""TLS and logins under librdkafka's option names, against Apache Kafka, which knows how they are meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from millstream import arrow
from millstream.client.errors import AuthenticationFailed, TlsFailed
from tests.support.secured_kafka import secured_kafka
from tests.support.topics import until_settled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.secured_kafka import SecuredKafka

pytestmark = [pytest.mark.java, pytest.mark.slow]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    with secured_kafka(tmp_path_factory.mktemp("secured-kafka")) as kafka:
        yield kafka


def login(mechanism: str, password: str = "lovelace") -> dict[str, str]:
    return {"sasl.mechanisms": mechanism, "sasl.username": "ada", "sasl.password": password}


def round_trip(topic: str, options: dict[str, str]) -> None:
    arrow.write(options, topic, pa.table({"value": [b"a", b"b"]}), transactional_id=topic)
    until_settled(options, topic)
    assert arrow.read(options, topic).column("value").to_pylist() == [b"a", b"b"]
    with arrow.stream(options, topic, end=1) as stream:
        assert sum(batch.num_rows for batch in stream) == 1
    arrow.commit(options, topic, stream.offsets)
    assert arrow.committed(options, topic) == {(topic, 0): 1}


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_everything_works_behind_a_login(secured: SecuredKafka, fresh_name: str, mechanism: str) -> None:
    options = {"bootstrap.servers": secured.sasl, "security.protocol": "sasl_plaintext"}
    round_trip(fresh_name, options | login(mechanism))
    with pytest.raises(AuthenticationFailed):
        arrow.read(options | login(mechanism, "wrong"), fresh_name)


def test_everything_works_through_tls(secured: SecuredKafka, fresh_name: str) -> None:
    options = {"bootstrap.servers": secured.tls, "security.protocol": "ssl"}
    round_trip(fresh_name, options | {"ssl.ca.location": str(secured.certificate)})
    with pytest.raises(TlsFailed):
        arrow.read(options, fresh_name)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_everything_works_through_both(secured: SecuredKafka, fresh_name: str, mechanism: str) -> None:
    trusted = {"security.protocol": "sasl_ssl", "ssl.ca.location": str(secured.certificate)}
    round_trip(fresh_name, {"bootstrap.servers": secured.sasl_tls} | trusted | login(mechanism))
