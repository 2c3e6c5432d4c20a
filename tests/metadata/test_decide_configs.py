"""IncrementalAlterConfigs and AlterConfigs: what changes, what is refused, and with which of Kafka's codes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metadata.clusters import SETTINGS, after, cluster, topic, with_records, with_topics

from millstream.metadata.decide_configs import (
    ConfigAuthority,
    Operation,
    decide_alter_configs,
    decide_incremental_alter_configs,
)
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages import alter_configs, incremental_alter_configs
from millstream.protocol.messages.metadata.clear_elr import ClearElrRecord
from millstream.protocol.messages.metadata.config import ConfigRecord
from millstream.protocol.messages.metadata.feature_level import FeatureLevelRecord

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = Operation
IMAGE = with_topics(cluster(), topic("orders", configs={"retention.ms": "1000"}), topic("users"))
AUTHORITY = ConfigAuthority(SETTINGS, node_id=1)


def resource(kind, name, *changes):
    return incremental_alter_configs.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            incremental_alter_configs.AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ],
    )


def alter(*resources, image=IMAGE, validate_only=False, authority=AUTHORITY):
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=list(resources), validate_only=validate_only
    )
    return decide_incremental_alter_configs(image, request, authority)


def replace(kind, name, configs, image=IMAGE):
    request = alter_configs.AlterConfigsRequest(
        resources=[
            alter_configs.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[alter_configs.AlterableConfig(name=key, value=value) for key, value in configs.items()],
            )
        ],
        validate_only=False,
    )
    return decide_alter_configs(image, request, AUTHORITY)


def codes(decision):
    return [ErrorCode(response.error_code) for response in decision.response.responses]


def test_set_and_delete():
    now = after(IMAGE, alter(resource(TOPIC, "orders", ("retention.ms", DELETE, None), ("retention.bytes", SET, "5"))))
    assert now.topic_config("orders") == {"retention.bytes": "5"}


def test_a_list_grows_from_its_default_and_shrinks_to_nothing():
    image = after(IMAGE, alter(resource(TOPIC, "orders", ("cleanup.policy", APPEND, "compact"))))
    assert image.topic_config("orders")["cleanup.policy"] == "delete,compact"
    again = alter(resource(TOPIC, "orders", ("cleanup.policy", APPEND, "compact")), image=image)
    assert again.records == ()
    image = after(image, alter(resource(TOPIC, "orders", ("cleanup.policy", SUBTRACT, "delete,compact")), image=image))
    assert image.topic_config("orders")["cleanup.policy"] == ""


def test_what_does_not_change_is_not_written():
    decision = alter(resource(TOPIC, "orders", ("retention.ms", SET, "1000"), ("retention.bytes", DELETE, None)))
    assert decision.records == ()
    assert codes(decision) == [ErrorCode.NONE]


def test_the_older_request_forgets_what_it_does_not_name():
    now = after(IMAGE, replace(TOPIC, "orders", {"retention.bytes": "7"}))
    assert now.topic_config("orders") == {"retention.bytes": "7"}
    assert after(IMAGE, replace(TOPIC, "orders", {})).topic_config("orders") == {}


def test_validate_only_changes_nothing():
    decision = alter(resource(TOPIC, "orders", ("retention.ms", SET, "2")), validate_only=True)
    assert decision.records == ()
    assert codes(decision) == [ErrorCode.NONE]


@pytest.mark.parametrize(
    ("refused", "code"),
    [
        (resource(TOPIC, "nope", ("retention.ms", SET, "1")), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (resource(TOPIC, "bad name", ("retention.ms", SET, "1")), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (resource(TOPIC, "", ("retention.ms", SET, "1")), ErrorCode.INVALID_REQUEST),
        (resource(TOPIC, "orders", ("retention.ms", SET, "x")), ErrorCode.INVALID_CONFIG),
        (resource(TOPIC, "orders", ("retention.ms", SET, None)), ErrorCode.INVALID_REQUEST),
        (resource(TOPIC, "orders", ("no.such", SET, "1")), ErrorCode.INVALID_CONFIG),
        (resource(TOPIC, "orders", ("retention.ms", APPEND, "1")), ErrorCode.INVALID_CONFIG),
        (resource(TOPIC, "orders", ("retention.ms", 9, "1")), ErrorCode.INVALID_REQUEST),
        (
            resource(TOPIC, "orders", ("retention.ms", SET, "1"), ("retention.ms", DELETE, None)),
            ErrorCode.INVALID_REQUEST,
        ),
        (resource(BROKER, "2", ("log.retention.ms", SET, "1")), ErrorCode.INVALID_REQUEST),
        (resource(BROKER, "x", ("log.retention.ms", SET, "1")), ErrorCode.INVALID_REQUEST),
        (resource(BROKER, "1", ("node.id", SET, "3")), ErrorCode.INVALID_REQUEST),
        (resource(BROKER, "1", ("log.retention.ms", SET, "soon")), ErrorCode.INVALID_REQUEST),
        (resource(BROKER, "", ("num.partitions", SET, "3")), ErrorCode.INVALID_REQUEST),
        (resource(LOGGER, "1", ("root", SET, "INFO")), ErrorCode.INVALID_CONFIG),
        (resource(CLIENT_METRICS, "m", ("interval.ms", SET, "5")), ErrorCode.INVALID_REQUEST),
        (resource(CLIENT_METRICS, "m", ("nope", SET, "5")), ErrorCode.INVALID_REQUEST),
        (resource(CLIENT_METRICS, "", ("interval.ms", SET, "5000")), ErrorCode.INVALID_REQUEST),
        (resource(GROUP, "g", ("nope", SET, "5")), ErrorCode.INVALID_CONFIG),
        (resource(GROUP, "", ("consumer.session.timeout.ms", SET, "50000")), ErrorCode.INVALID_REQUEST),
        (resource(99, "g", ("nope", SET, "5")), ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_refused_resource_changes_nothing_and_its_neighbour_does(refused, code):
    decision = alter(refused, resource(TOPIC, "users", ("retention.ms", SET, "3")))
    assert codes(decision) == [code, ErrorCode.NONE]
    assert decision.response.responses[0].error_message
    (record,) = decision.records
    assert record.resource_name == "users"


def test_one_bad_value_keeps_the_good_ones_of_its_resource_out():
    decision = alter(resource(TOPIC, "orders", ("retention.bytes", SET, "5"), ("retention.ms", SET, "x")))
    assert decision.records == ()


def test_a_resource_named_twice_is_refused_both_times():
    twice = resource(TOPIC, "orders", ("retention.ms", SET, "2"))
    assert codes(alter(twice, twice)) == [ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST]


def test_brokers_groups_and_client_metrics_keep_their_configs():
    now = after(
        IMAGE,
        alter(
            resource(BROKER, "", ("log.retention.ms", SET, "7")),
            resource(BROKER, "1", ("log.retention.ms", SET, "8")),
            resource(GROUP, "g", ("consumer.session.timeout.ms", SET, "50000")),
            resource(CLIENT_METRICS, "m", ("interval.ms", SET, "5000")),
        ),
    )
    assert [now.config(BROKER, name)["log.retention.ms"] for name in ("", "1")] == ["7", "8"]
    assert now.config(GROUP, "g") == {"consumer.session.timeout.ms": "50000"}
    assert now.config(CLIENT_METRICS, "m") == {"interval.ms": "5000"}


def test_what_another_version_allowed_does_not_stand_in_the_way():
    odd = ConfigRecord(resource_type=TOPIC, resource_name="orders", name="from.the.future", value="?")
    image = with_records(IMAGE, odd)
    now = after(image, alter(resource(TOPIC, "orders", ("retention.ms", SET, "2")), image=image))
    assert now.topic_config("orders") == {"retention.ms": "2", "from.the.future": "?"}


def test_who_may_not_alter_hears_it_per_resource():
    def refusal(kind, name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED if name == "orders" else None

    authority = ConfigAuthority(SETTINGS, 1, refusal)
    decision = alter(
        resource(TOPIC, "orders", ("retention.ms", SET, "2")),
        resource(TOPIC, "users", ("retention.ms", SET, "2")),
        authority=authority,
    )
    assert codes(decision) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.NONE]
    assert len(decision.records) == 1


class TestWithEligibleLeaderReplicas:
    """KIP-966 makes min.insync.replicas the cluster's own."""

    image = with_records(
        IMAGE,
        FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1),
        ConfigRecord(resource_type=BROKER, resource_name="", name="min.insync.replicas", value="1"),
    )

    def test_a_new_minimum_of_a_topic_starts_its_eligible_leaders_over(self):
        decision = alter(resource(TOPIC, "orders", ("min.insync.replicas", SET, "2")), image=self.image)
        assert decision.records[-1] == ClearElrRecord(topic_name="orders")

    def test_a_new_default_starts_all_of_them_over(self):
        decision = alter(resource(BROKER, "", ("min.insync.replicas", SET, "2")), image=self.image)
        assert decision.records[-1] == ClearElrRecord(topic_name="")

    @pytest.mark.parametrize(
        "refused",
        [
            resource(BROKER, "", ("min.insync.replicas", DELETE, None)),
            resource(BROKER, "1", ("min.insync.replicas", SET, "2")),
        ],
    )
    def test_the_default_stays_common_and_set(self, refused):
        decision = alter(refused, image=self.image)
        assert codes(decision) == [ErrorCode.INVALID_CONFIG]
        assert decision.records == ()


CONFIGS = st.dictionaries(
    st.sampled_from(["retention.ms", "retention.bytes", "segment.ms"]), st.integers(1, 9).map(str), max_size=3
)


@given(before=CONFIGS, wanted=CONFIGS)
def test_replacing_leaves_exactly_what_was_sent(before, wanted):
    image = after(IMAGE, replace(TOPIC, "users", before))
    assert dict(after(image, replace(TOPIC, "users", wanted, image)).topic_config("users")) == wanted
