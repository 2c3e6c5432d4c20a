"""Settings of an application: Kafka Streams' names, and a hint where one is wrong."""

from __future__ import annotations

import pytest

from millstream.settings.catalog import TOPIC
from millstream.streams.settings import OF_TOPICS, UnknownSetting, guarantee_of, settings_of


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"processing.guarante": "exactly_once_v2"}, "'processing.guarante': did you mean 'processing.guarantee'"),
        ({"processing.guarantee": "exactly_onse"}, "did you mean 'exactly_once_v2'"),
        ({"auto.offset.reset": "middle"}, "'earliest' or 'latest', not 'middle'"),
        ({"commit.interval.ms": "soon"}, "is a number, not 'soon'"),
        ({"max.offsets.per.trigger": 0}, "is 0: at least 1"),
        ({"default.key.serde": "x"}, "say it where the stream is made"),
        ({"application.id": "other"}, "the application is called 'shop'"),
        ({"state.dri": "/x"}, "did you mean 'state.dir'"),
        ({"compression.type": "gzap"}, "did you mean 'gzip'"),
        ({"replication.factor": 0}, "at least 1, or -1"),
        ({"consumer.auto.offset.reset": "latest"}, r"there is no consumer inside\. Say auto\.offset\.reset"),
    ],
)
def test_a_wrong_setting_is_refused_with_a_hint(given: dict[str, object], said: str) -> None:
    with pytest.raises(UnknownSetting, match=said):
        settings_of("shop", "localhost:9092", given)


def test_settings_are_understood() -> None:
    found = settings_of(
        "shop",
        {"kafka.bootstrap.servers": "broker:9092"},
        {
            "processing.guarantee": "exactly_once",
            "commit.interval.ms": 100,
            "topic.retention.ms": 5,
            "num.stream.threads": 4,
            "producer.linger.ms": 5,
            "security.protocol": "ssl",
        },
    )
    assert found.guarantee == "exactly_once_v2", "the old name of it"
    assert found.interval_ms == 100
    assert found.topic_settings == {"retention.ms": "5"}
    assert found.connection == {"bootstrap.servers": "broker:9092", "security.protocol": "ssl"}
    assert guarantee_of("at_least_once") == "at_least_once"


def test_internal_topics_take_all_settings_of_topics() -> None:
    assert list(OF_TOPICS) == sorted(TOPIC)
