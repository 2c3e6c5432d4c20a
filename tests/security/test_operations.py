"""The table of what each API needs: complete, and used as Kafka does."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import pytest

from millstream.protocol import messages
from millstream.protocol.declare import Declaration
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.create_topics import CreateTopicsRequest
from millstream.protocol.messages.init_producer_id import InitProducerIdRequest
from millstream.security.operations import (
    ANY_NAME,
    API_NEEDS,
    CLUSTER_NAME,
    AllowAll,
    Operation,
    ResourceType,
    authorized_operations,
    needs_of,
)


def every_request_key():
    for module in pkgutil.iter_modules(messages.__path__):
        if module.ispkg:
            continue
        for kind in vars(import_module(f"{messages.__name__}.{module.name}")).values():
            declared = getattr(kind, "__dict__", {}).get("__declaration__")
            if isinstance(declared, Declaration) and declared.name.endswith("Request") and declared.api_key is not None:
                yield declared.api_key


def test_every_api_has_a_row():
    assert sorted(API_NEEDS) == sorted(set(every_request_key()))


def allowing(*granted):
    return lambda operation, resource, name: (operation, resource, name) in granted


@pytest.mark.parametrize(
    "granted",
    [(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME), (Operation.CREATE, ResourceType.TOPIC, "orders")],
)
def test_one_alternative_is_enough(granted):
    create, _ = needs_of(CreateTopicsRequest)
    assert create.granted(allowing(granted), "orders")
    assert not create.granted(allowing(), "orders")


def test_a_name_counts():
    create, _ = needs_of(CreateTopicsRequest)
    assert not create.granted(allowing((Operation.CREATE, ResourceType.TOPIC, "orders")), "orders2")


def test_a_refusal_names_the_most_specific_resource():
    create, _ = needs_of(CreateTopicsRequest)
    assert create.refusal is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    *_, idempotent = needs_of(InitProducerIdRequest)
    assert idempotent.refusal is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_writing_any_topic_is_enough_for_a_producer_id():
    *_, idempotent = needs_of(InitProducerIdRequest)
    assert idempotent.granted(allowing((Operation.WRITE, ResourceType.TOPIC, ANY_NAME)), ANY_NAME)


@pytest.mark.parametrize(
    ("resource", "bits"), [(ResourceType.TOPIC, 3576), (ResourceType.CLUSTER, 8096), (ResourceType.GROUP, 3400)]
)
def test_the_bit_field_is_kafkas(resource, bits):
    """The numbers were answered by Apache Kafka 4.3.1 without an authorizer."""

    def allows(operation, resource_type, name):
        return AllowAll().allows("User:ANONYMOUS", "127.0.0.1", operation, resource_type, name)

    assert authorized_operations(allows, resource, "any") == bits
    assert authorized_operations(allowing((Operation.READ, resource, "any")), resource, "other") == 0
