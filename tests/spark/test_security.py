"""TLS and logins, as `kafka.` options under Java's names and librdkafka's, against Apache Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as f

from tests.support.secured_kafka import secured_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from tests.support.secured_kafka import SecuredKafka


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    with secured_kafka(tmp_path_factory.mktemp("secured-kafka")) as kafka:
        yield kafka


def test_a_job_runs_behind_tls_and_a_login(spark: SparkSession, secured: SecuredKafka, fresh_name: str) -> None:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    options = {
        "kafka.bootstrap.servers": secured.sasl_tls,
        "kafka.security.protocol": "SASL_SSL",
        "kafka.ssl.ca.location": str(secured.certificate),
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": f'{module} required username="ada" password="lovelace";',
    }
    rows = spark.range(10).select(f.col("id").cast("string").alias("value"))
    rows.write.format("millstream").mode("append").options(**options, topic=fresh_name).save()
    assert spark.read.format("millstream").options(**options, subscribe=fresh_name).load().count() == 10
