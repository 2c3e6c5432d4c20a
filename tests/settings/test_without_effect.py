"""What is set and does nothing, by the declarations alone."""

from __future__ import annotations

import pytest

from millstream.settings import BY_SCOPE, Scope, configs_without_effect, load


@pytest.mark.parametrize(
    ("scope", "values", "expected"),
    [
        (Scope.TOPIC, {"preallocate": "true", "retention.ms": "1"}, ["preallocate"]),
        (Scope.TOPIC, {"preallocate": "false"}, []),
        (Scope.TOPIC, {"remote.storage.enable": "true"}, ["remote.storage.enable"]),
        (Scope.TOPIC, {"local.retention.ms": " 1000 ", "local.retention.bytes": "-2"}, ["local.retention.ms"]),
        (Scope.GROUP, {"share.session.timeout.ms": "50000"}, ["share.session.timeout.ms"]),
        (Scope.GROUP, {"consumer.session.timeout.ms": "50000"}, []),
        (Scope.CLIENT_METRICS, {"interval.ms": "1000", "metrics": "*"}, ["interval.ms", "metrics"]),
        (Scope.BROKER, {"num.io.threads": "3", "log.retention.ms": "5"}, ["num.io.threads"]),
        (Scope.BROKER, {"num.io.threads": "8"}, []),
        (
            Scope.BROKER,
            {"listener.name.internal.ssl.keystore.type": "PEM"},
            ["listener.name.internal.ssl.keystore.type"],
        ),
    ],
)
def test_what_is_not_acted_on_is_found_wherever_it_is_set(scope, values, expected) -> None:
    assert configs_without_effect(scope, values) == {
        name: f"{name} is ignored: this broker does not act on it." for name in expected
    }


def test_what_apache_kafka_or_another_release_stored_is_found_too() -> None:
    stored = {"retention.mss": "1", "retention.ms": "soon"}
    found = configs_without_effect(Scope.TOPIC, stored)
    assert list(found) == ["retention.mss", "retention.ms"]
    assert found["retention.mss"] == "There is no topic setting retention.mss. Did you mean retention.ms?"
    assert found["retention.ms"].startswith("A stored value is ignored: retention.ms must be")


def test_no_sentence_has_a_secret_in_it() -> None:
    secret = "hunter2"
    for name, setting in BY_SCOPE[Scope.BROKER].items():
        if setting.sensitive:
            for sentence in configs_without_effect(Scope.BROKER, {name: secret}).values():
                assert secret not in sentence


def test_a_file_is_judged_by_the_same_rule() -> None:
    stored = {"num.io.threads": "3", "background.threads": "10", "log.preallocate": "true"}
    loaded = load(stored)
    assert loaded.warnings == tuple(configs_without_effect(Scope.BROKER, stored).values())
