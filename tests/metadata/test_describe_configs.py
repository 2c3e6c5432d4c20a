"""DescribeConfigs and ListConfigResources: every setting and where its value comes from."""

from __future__ import annotations

import pytest
from tests.metadata.clusters import cluster, topic, with_records, with_topics

from millstream.metadata.describe_configs import describe_configs, list_config_resources
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from millstream.protocol.messages.list_config_resources import ListConfigResourcesRequest
from millstream.protocol.messages.metadata.config import ConfigRecord
from millstream.settings import TOPIC
from millstream.settings.effective import ConfigSource, Settings

TOPIC_TYPE, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


def config(kind, name, key, value):
    return ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)


IMAGE = with_records(
    with_topics(cluster([1, 2]), topic("orders", configs={"retention.ms": "5"})),
    config(BROKER, "", "log.retention.ms", "7"),
    config(BROKER, "", "secret.of.a.plugin", "hush"),
    config(GROUP, "g", "consumer.session.timeout.ms", "50000"),
    config(CLIENT_METRICS, "m", "interval.ms", "5000"),
)
SETTINGS = Settings(
    {"node.id": "1", "ssl.keystore.password": "hunter2"},
    cluster=dict(IMAGE.config(BROKER, "")),
    broker=dict(IMAGE.config(BROKER, "1")),
)


def describe(kind, name, keys=None, **options):
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)],
        include_synonyms=options.pop("synonyms", False),
        include_documentation=options.pop("documentation", False),
    )
    (result,) = describe_configs(IMAGE, request, settings=SETTINGS, node_id=1, **options).results
    return result


def entries(result):
    assert result.error_code == ErrorCode.NONE, result
    return {entry.name: entry for entry in result.configs}


def test_a_topic_shows_all_its_settings():
    assert set(entries(describe(TOPIC_TYPE, "orders"))) == {name for name in TOPIC if not TOPIC[name].internal}


def test_a_value_says_where_it_comes_from():
    found = entries(describe(TOPIC_TYPE, "orders", synonyms=True))
    retention = found["retention.ms"]
    assert (retention.value, retention.config_source) == ("5", ConfigSource.TOPIC_CONFIG)
    assert [(link.name, link.value, link.source) for link in retention.synonyms][:2] == [
        ("retention.ms", "5", ConfigSource.TOPIC_CONFIG),
        ("log.retention.ms", "7", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
    ]
    assert found["cleanup.policy"].config_source == ConfigSource.DEFAULT_CONFIG


def test_names_narrow_the_answer_and_no_names_mean_all():
    assert list(entries(describe(TOPIC_TYPE, "orders", ["retention.ms", "nope"]))) == ["retention.ms"]
    assert len(entries(describe(TOPIC_TYPE, "orders", []))) == len(entries(describe(TOPIC_TYPE, "orders")))


def test_documentation_and_synonyms_come_only_if_asked_for():
    plain = entries(describe(TOPIC_TYPE, "orders"))["retention.ms"]
    assert (plain.documentation, plain.synonyms) == (None, [])
    assert entries(describe(TOPIC_TYPE, "orders", documentation=True))["retention.ms"].documentation


@pytest.mark.parametrize("name", ["ssl.keystore.password", "secret.of.a.plugin"])
def test_a_secret_is_never_shown(name):
    entry = entries(describe(BROKER, "1", synonyms=True))[name]
    assert entry.is_sensitive
    assert entry.value is None
    assert all(link.value is None for link in entry.synonyms)


def test_the_default_of_all_brokers_shows_what_was_set():
    found = entries(describe(BROKER, ""))
    assert set(found) == {"log.retention.ms", "secret.of.a.plugin"}
    assert found["log.retention.ms"].config_source == ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    assert found["secret.of.a.plugin"].value is None


def test_what_cannot_change_live_is_read_only():
    found = entries(describe(BROKER, "1"))
    assert found["node.id"].read_only
    assert not found["log.retention.ms"].read_only
    assert not any(entry.read_only for entry in entries(describe(TOPIC_TYPE, "orders")).values())


def test_groups_and_client_metrics_have_configs_too():
    assert entries(describe(GROUP, "g"))["consumer.session.timeout.ms"].config_source == ConfigSource.GROUP_CONFIG
    interval = entries(describe(CLIENT_METRICS, "m"))["interval.ms"]
    assert (interval.value, interval.config_source) == ("5000", ConfigSource.CLIENT_METRICS_CONFIG)


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC_TYPE, "nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC_TYPE, "bad name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "2", ErrorCode.INVALID_REQUEST),
        (BROKER, "x", ErrorCode.INVALID_REQUEST),
        (LOGGER, "", ErrorCode.INVALID_REQUEST),
        (CLIENT_METRICS, "", ErrorCode.INVALID_REQUEST),
        (GROUP, "", ErrorCode.INVALID_REQUEST),
        (99, "z", ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_has_no_configs_is_refused(kind, name, code):
    result = describe(kind, name)
    assert (result.error_code, result.configs) == (code, [])
    assert result.error_message


def test_who_may_not_see_hears_so():
    result = describe(TOPIC_TYPE, "orders", refusal=lambda kind, name: ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert (result.error_code, result.configs) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, [])


def listed(kinds, version=1):
    answer = list_config_resources(IMAGE, ListConfigResourcesRequest(resource_types=kinds), version=version)
    return answer.error_code, {(entry.resource_type, entry.resource_name) for entry in answer.config_resources}


def test_resources_are_listed_by_kind():
    assert listed([GROUP, TOPIC_TYPE]) == (ErrorCode.NONE, {(GROUP, "g"), (TOPIC_TYPE, "orders")})
    code, everything = listed([])
    assert code == ErrorCode.NONE
    assert {(BROKER, "1"), (BROKER, "2"), (CLIENT_METRICS, "m")} < everything


def test_version_0_knows_client_metrics_alone():
    assert listed([], version=0) == (ErrorCode.NONE, {(CLIENT_METRICS, "m")})


def test_an_unknown_kind_is_an_unsupported_version():
    assert listed([99]) == (ErrorCode.UNSUPPORTED_VERSION, set())
