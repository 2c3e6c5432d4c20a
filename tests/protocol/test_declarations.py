"""What every declaration keeps to, whatever Kafka says."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from importlib import import_module

import pytest

from millstream.protocol import apis, messages
from millstream.protocol.declare import ALL_VERSIONS, NO_VERSIONS, Versions
from millstream.protocol.errors import MalformedMessage, UnknownRecordType
from millstream.protocol.messages.fetch import PartitionData
from millstream.protocol.messages.groups.consumer_group_member_metadata import ConsumerGroupMemberMetadataValue
from tests.protocol.catalog import declared_messages
from tests.wire.values import default_of


def test_versions_are_written_as_in_kafka() -> None:
    assert Versions.parse("3-13") == (3, 13)
    assert Versions.parse("2") == (2, 2)
    assert Versions.parse("4+") == (4, ALL_VERSIONS.last)
    assert Versions.parse("none") == NO_VERSIONS
    assert 0 not in NO_VERSIONS


def test_every_message_says_what_it_is_for() -> None:
    assert [name for name, kind in declared_messages().items() if not kind.__doc__] == []


def test_every_package_says_what_it_holds() -> None:
    found = [info.name for info in pkgutil.walk_packages(messages.__path__, messages.__name__ + ".") if info.ispkg]
    assert [name for name in [messages.__name__, *found] if not import_module(name).__doc__] == []


def test_structures_as_defaults_are_not_shared() -> None:
    def partition() -> PartitionData:
        return PartitionData(partition_index=0, high_watermark=0, aborted_transactions=None, records=None)

    one, other = partition(), partition()
    one.current_leader.leader_id = 7
    assert other.current_leader.leader_id == -1


def test_lists_inside_of_defaults_are_not_shared() -> None:
    one, other = default_of(ConsumerGroupMemberMetadataValue), default_of(ConsumerGroupMemberMetadataValue)
    one.classic_member_metadata.supported_protocols.append("changed")
    assert other.classic_member_metadata.supported_protocols == []


def test_an_api_is_found_by_its_key() -> None:
    produce = apis.api(0)
    assert (produce.name, produce.versions, produce.listeners) == ("Produce", (3, 13), ("broker",))
    assert produce.request is declared_messages()["ProduceRequest"]
    assert apis.api(22).unstable == (6, 6)


@pytest.mark.parametrize("key", sorted(apis.API_NAMES))
def test_request_and_response_agree(key: int) -> None:
    api = apis.api(key)
    request, response = api.request.__declaration__, api.response.__declaration__
    assert (request.api_key, request.versions, request.flexible) == (key, response.versions, response.flexible)


def test_unknown_numbers_are_refused() -> None:
    with pytest.raises(MalformedMessage, match="no API with key 4"):
        apis.api(4)
    with pytest.raises(UnknownRecordType):
        apis.metadata_record_class(6)
    with pytest.raises(UnknownRecordType):
        apis.coordinator_record_classes("transactions", 1)


def test_looking_up_one_api_loads_one_declaration() -> None:
    program = (
        "import sys; from millstream.protocol.apis import api; api(18);"
        "print(*sorted(name for name in sys.modules if name.startswith('millstream.protocol.messages.')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["millstream.protocol.messages.api_versions"]
