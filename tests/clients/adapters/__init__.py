"""One adapter per client: the shared claims of `test_claims.py` in each client's own words."""

from __future__ import annotations

from tests.clients.adapters.aiokafka_client import AioKafka
from tests.clients.adapters.confluent_client import Confluent
from tests.clients.adapters.franz_go_client import FranzGo
from tests.clients.adapters.java_tools_client import JavaTools
from tests.clients.adapters.kafka_python_client import KafkaPython
from tests.clients.adapters.kafkajs_client import KafkaJs
from tests.clients.adapters.kcat_client import Kcat

ALL = (Confluent, KafkaPython, AioKafka, Kcat, JavaTools, KafkaJs, FranzGo)
