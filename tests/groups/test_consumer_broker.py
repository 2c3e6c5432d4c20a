"""Consumer groups through a broker's socket: where they are served, what is refused, what a restart keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from millstream.embedded import Broker
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from millstream.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from millstream.protocol.messages.find_coordinator import FindCoordinatorRequest
from millstream.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from millstream.security.operations import Operation, ResourceType
from tests.support.raw import RawClient
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SAFE_DOWNGRADE = 2


def started(broker: Broker) -> RawClient:
    """A client of a broker whose coordinator is there."""
    client = RawClient("127.0.0.1", broker.port)
    asked = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    not_yet = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
    try:
        wait_until(lambda: client.call(asked, 4).coordinators[0].error_code == 0, "a coordinator")
        wait_until(lambda: code(describe(client)) not in not_yet, "the log")
    except BaseException:
        client.close()
        raise
    return client


@pytest.fixture
def running() -> Iterator[Broker]:
    with Broker() as broker:
        broker.create_topic("t", partitions=2)
        yield broker


@pytest.fixture
def client(running: Broker) -> Iterator[RawClient]:
    with started(running) as connected:
        yield connected


def code(answer: Any) -> ErrorCode:
    return ErrorCode(answer.error_code)


def join(client: RawClient, member_id: str = "a", *topics: str, **bent: Any) -> Any:
    fields: dict[str, Any] = {
        "group_id": "g",
        "member_id": member_id,
        "member_epoch": 0,
        "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": list(topics or ("t",)),
        "topic_partitions": [],
    }
    return client.call(ConsumerGroupHeartbeatRequest(**fields | bent), 1)


def beat(client: RawClient, epoch: int) -> Any:
    return client.call(ConsumerGroupHeartbeatRequest(group_id="g", member_id="a", member_epoch=epoch), 1)


def describe(client: RawClient, group: str = "g") -> Any:
    request = ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=True)
    return client.call(request, 1).groups[0]


def test_a_new_broker_serves_consumer_groups(client: RawClient) -> None:
    answer = join(client)
    assert (code(answer), answer.member_epoch) == (ErrorCode.NONE, 2)
    described = describe(client)
    assert (described.group_state, described.assignor_name) == ("Stable", "uniform")
    assert described.authorized_operations > 0


def test_a_cluster_below_group_version_1_says_that_it_does_not_know_the_protocol(client: RawClient) -> None:
    join(client)
    lower = FeatureUpdateKey(feature="group.version", max_version_level=0, upgrade_type=SAFE_DOWNGRADE)
    assert code(client.call(UpdateFeaturesRequest(feature_updates=[lower]), 2)) is ErrorCode.NONE
    assert code(join(client)) is ErrorCode.UNSUPPORTED_VERSION
    assert code(describe(client)) is ErrorCode.UNSUPPORTED_VERSION


def test_a_broker_may_leave_the_protocol_out() -> None:
    with Broker(settings={"group.coordinator.rebalance.protocols": "classic"}) as broker, started(broker) as client:
        assert code(join(client)) is ErrorCode.UNSUPPORTED_VERSION


def test_what_is_wrong_is_said_in_a_sentence(client: RawClient) -> None:
    answer = join(client, rebalance_timeout_ms=-1)
    assert (code(answer), answer.error_message) == (
        ErrorCode.INVALID_REQUEST,
        "RebalanceTimeoutMs must be provided in first request.",
    )


def test_there_is_no_group_without_a_name(client: RawClient) -> None:
    assert code(join(client, group_id="")) is ErrorCode.INVALID_REQUEST
    assert code(describe(client, "")) is ErrorCode.INVALID_GROUP_ID


class Deny:
    """Refuses what is listed, by operation, kind and name."""

    def __init__(self, *denied: tuple[Operation, ResourceType, str]) -> None:
        self.denied = denied

    def allows(self, principal: str, host: str, operation: Operation, kind: ResourceType, name: str | None) -> bool:
        return (operation, kind, name) not in self.denied


def test_members_need_to_read_the_group_and_to_describe_its_topics(running: Broker, client: RawClient) -> None:
    running._running.authorizer = Deny((Operation.READ, ResourceType.GROUP, "g"))
    assert code(join(client)) is ErrorCode.GROUP_AUTHORIZATION_FAILED
    running._running.authorizer = Deny((Operation.DESCRIBE, ResourceType.TOPIC, "t"))
    assert code(join(client)) is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert code(join(client, "a", "other")) is ErrorCode.NONE


def test_a_pattern_does_not_find_topics_that_its_member_may_not_describe(running: Broker, client: RawClient) -> None:
    running.create_topic("secret", partitions=1)
    running._running.authorizer = Deny((Operation.DESCRIBE, ResourceType.TOPIC, "secret"))
    epoch = join(client, subscribed_topic_names=None, subscribed_topic_regex="t|secret").member_epoch
    wait_until(lambda: (answer := beat(client, epoch)).assignment or answer.member_epoch > epoch, "the look-up")
    (topic,) = describe(client).members[0].target_assignment.topic_partitions
    assert topic.topic_name == "t"


def test_a_group_is_not_described_to_whom_its_topics_are_none_of_their_business(
    running: Broker, client: RawClient
) -> None:
    join(client)
    running._running.authorizer = Deny((Operation.DESCRIBE, ResourceType.TOPIC, "t"))
    described = describe(client)
    assert (code(described), described.members) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, [])
    running._running.authorizer = Deny((Operation.DESCRIBE, ResourceType.GROUP, "g"))
    assert code(describe(client)) is ErrorCode.GROUP_AUTHORIZATION_FAILED


def test_members_go_on_after_a_restart_as_if_nothing_had_happened(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        broker.create_topic("t", partitions=2)
        with started(broker) as client:
            epoch = join(client).member_epoch
    with Broker(tmp_path) as broker, started(broker) as client:
        answer = beat(client, epoch)
        assert (code(answer), answer.member_epoch, answer.assignment) == (ErrorCode.NONE, epoch, None)
        assert describe(client).group_state == "Stable"
