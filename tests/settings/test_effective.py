"""Which layer wins, and what DescribeConfigs is told of it."""

from __future__ import annotations

import pytest

from millstream.settings import (
    CLEANUP_POLICY,
    COMPRESSION_TYPE,
    CONSUMER_SESSION_TIMEOUT_MS,
    FLUSH_MS,
    LOG_RETENTION_HOURS,
    LOG_RETENTION_MS,
    MIN_INSYNC_REPLICAS,
    RETENTION_MS,
    SEGMENT_MS,
    SSL_KEY_PASSWORD,
    ConfigSource,
    Scope,
    Settings,
    SettingsError,
    Synonym,
    check_group,
    check_overrides,
    check_topic,
    connections_per_address,
    group_settings,
    topic_settings,
)
from millstream.settings.kinds import DAY_MS, HOUR_MS, LONG_MAX, MINUTE_MS


def test_without_layers_a_setting_has_its_default() -> None:
    settings = Settings()
    assert settings[RETENTION_MS] == 7 * DAY_MS
    assert settings[FLUSH_MS] == LONG_MAX
    assert not settings.is_set(RETENTION_MS)
    assert settings.source_of(RETENTION_MS) is ConfigSource.DEFAULT_CONFIG


@pytest.mark.parametrize(
    ("static", "retention_ms"),
    [
        ({"log.retention.hours": "2"}, 2 * HOUR_MS),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 3 * MINUTE_MS),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.minutes": "-7"}, -1),
    ],
)
def test_the_smaller_unit_wins(static: dict[str, str], retention_ms: int) -> None:
    assert Settings(static)[RETENTION_MS] == retention_ms


def test_rolling_and_flushing_fall_back_to_their_other_names() -> None:
    assert Settings({"log.roll.hours": "1"})[SEGMENT_MS] == HOUR_MS
    assert Settings({"log.roll.hours": "1", "log.roll.ms": "5"})[SEGMENT_MS] == 5
    assert Settings({"log.flush.scheduler.interval.ms": "9"})[FLUSH_MS] == 9


def test_topic_over_broker_over_cluster_over_static_over_default() -> None:
    static = Settings({"log.retention.ms": "1"})
    cluster = static.with_dynamic(cluster={"log.retention.ms": "2"})
    broker = cluster.with_dynamic(broker={"log.retention.ms": "3"})
    topic = topic_settings(broker, {"retention.ms": "4"})
    assert [each[RETENTION_MS] for each in (static, cluster, broker, topic)] == [1, 2, 3, 4]
    assert topic.source_of(RETENTION_MS) is ConfigSource.TOPIC_CONFIG
    assert topic.synonyms_of(RETENTION_MS) == (
        Synonym("retention.ms", "4", ConfigSource.TOPIC_CONFIG),
        Synonym("log.retention.ms", "3", ConfigSource.DYNAMIC_BROKER_CONFIG),
        Synonym("log.retention.ms", "2", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        Synonym("log.retention.ms", "1", ConfigSource.STATIC_BROKER_CONFIG),
        Synonym("log.retention.hours", "168", ConfigSource.DEFAULT_CONFIG),
    )
    assert topic.text_of(RETENTION_MS) == "4"


def test_a_chain_starts_at_its_main_name_as_in_kafka() -> None:
    settings = Settings({"log.retention.hours": "2"})
    assert settings.synonyms_of(RETENTION_MS) == ()
    assert settings.synonyms_of(LOG_RETENTION_MS) == ()
    assert settings.synonyms_of(LOG_RETENTION_HOURS) == (
        Synonym("log.retention.hours", "2", ConfigSource.STATIC_BROKER_CONFIG),
        Synonym("log.retention.hours", "168", ConfigSource.DEFAULT_CONFIG),
    )
    assert settings.is_set(RETENTION_MS)


def test_a_name_of_both_is_the_topic_s_under_its_plain_constant() -> None:
    settings = Settings({"compression.type": "zstd", "min.insync.replicas": "2"})
    assert settings[COMPRESSION_TYPE] == "zstd"
    topic = topic_settings(settings, {"compression.type": "lz4"})
    assert (topic[COMPRESSION_TYPE], topic[MIN_INSYNC_REPLICAS]) == ("lz4", 2)
    assert settings[COMPRESSION_TYPE] == "zstd"


def test_a_group_falls_back_to_its_broker_wide_default() -> None:
    settings = Settings({"group.consumer.session.timeout.ms": "50000"})
    assert group_settings(settings, {})[CONSUMER_SESSION_TIMEOUT_MS] == 50_000
    assert group_settings(settings, {"consumer.session.timeout.ms": "51000"})[CONSUMER_SESSION_TIMEOUT_MS] == 51_000


def test_secrets_are_not_told() -> None:
    settings = Settings({"ssl.key.password": "hunter2"})
    assert settings.text_of(SSL_KEY_PASSWORD) is None
    assert settings.synonyms_of(SSL_KEY_PASSWORD) == (
        Synonym("ssl.key.password", None, ConfigSource.STATIC_BROKER_CONFIG),
    )


def test_what_a_metadata_log_holds_and_nobody_can_read_is_the_default() -> None:
    topic = topic_settings(Settings(), {"retention.ms": "soon", "cleanup.policy": "compact", "from.the.future": "1"})
    assert topic[RETENTION_MS] == 7 * DAY_MS
    assert topic[CLEANUP_POLICY] == ("compact",)
    assert Settings().with_dynamic(cluster={"log.retention.ms": "soon"})[RETENTION_MS] == 7 * DAY_MS


def test_a_topic_s_mistakes_are_all_named() -> None:
    with pytest.raises(SettingsError) as refused:
        check_overrides(
            Scope.TOPIC, {"retention.mss": "1", "retention.ms": "x", "log.segment.bytes": "1", "flush.ms": None}
        )
    assert refused.value.sentences == (
        "flush.ms needs a value.",
        "There is no topic setting retention.mss. Did you mean retention.ms?",
        "retention.ms must be a whole number, not 'x': it is not a whole number.",
        "There is no topic setting log.segment.bytes. Did you mean segment.bytes?",
    )


def test_a_topic_s_values_must_agree() -> None:
    check_topic(Settings(), {"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "5"})
    with pytest.raises(SettingsError, match=r"must not be more than max\.compaction\.lag\.ms = 5"):
        check_topic(Settings({"log.cleaner.max.compaction.lag.ms": "5"}), {"min.compaction.lag.ms": "6"})


def test_remote_storage_is_refused_on_a_topic() -> None:
    check_topic(Settings(), {"remote.storage.enable": "false"})
    with pytest.raises(SettingsError, match=r"remote\.storage\.enable is not supported here yet"):
        check_topic(Settings(), {"remote.storage.enable": "true"})


def test_exceptions_for_single_addresses_are_typed() -> None:
    settings = Settings({"max.connections.per.ip.overrides": "localhost:5, [::1]:6"})
    assert connections_per_address(settings) == {"localhost": 5, "::1": 6}


def test_a_group_stays_between_the_broker_s_limits() -> None:
    check_group(Settings(), {"consumer.session.timeout.ms": "46000"})
    with pytest.raises(SettingsError, match=r"must be at most group\.consumer\.max\.session\.timeout\.ms = 60000"):
        check_group(Settings(), {"consumer.session.timeout.ms": "60001"})
