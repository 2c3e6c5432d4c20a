"""Our declarations say what Apache Kafka's own ConfigDef says: names, kinds, defaults, bounds, live or not."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from millstream.settings import BY_SCOPE, Scope, Setting, SettingsError, from_environment
from millstream.settings.effective import _chain_names, _value_names
from tests.support.apache_kafka import jar_directory
from tests.support.requirements import require

pytestmark = pytest.mark.java


def samples(*lines: str) -> list[str]:
    return [sample for line in lines for sample in line.split("|")]


NUMBERS = samples(
    "-2147483649|-131073|-131072|-3|-2|-1|0|1|2|3|4|5|9|10|17|18|22|23|99|100|999|1000|1023|1024|2000|9999|10000|32767",
    "32768|86400|86401|524287|524288|1048575|1048576|8388608|2147483647|2147483648|9223372036854775807",
    "9223372036854775808|+7|1.5|x|1_0|| 5 ",
)
LISTS = samples(
    "| |a|a,a|a,,b|a , b|compact|compact,delete|delete,compact|compact,x|broker|broker,controller|*|1:2|1:2,3:4|1:x",
    "1@a:9|1@a:9,2@b:10|a:9|a:9,b:10|1@[::1]:9|@a:9|1@a|a:|[::1]:9",
    "classic|consumer,classic|share|uniform|range,uniform|CONTROLLER",
)
TEXTS = samples(
    "|a|producer|zstd|ZSTD|uncompressed|none|CreateTime|createtime|LogAppendTime|required|Required|PLAINTEXT|plaintext",
    "SASL_SSL|bidirectional|DISABLED|Upgrade|rs256|latest|earliest|Latest|read_committed|READ_COMMITTED",
    "by_duration:P1D|by_duration:PT1H30M|by_duration:P|by_duration:1d|by_duration:PT0.5S|by_duration:-PT1S",
    "by_duration:P1DT",
)
SAMPLES = {
    "boolean": ["true", "FALSE", "yes", "1", "", " true "],
    "int": NUMBERS,
    "short": NUMBERS,
    "long": NUMBERS,
    "double": ["0", "1", "0.5", "-0.1", "1.0001", "1e3", "x", "", "0.51", "1_0", "5f"],
    "list": LISTS,
    "string": TEXTS,
    "password": ["", "x"],
    "class": [],  # Java would look for the class
}
VARIABLES = {
    "KAFKA_LOG_DIRS": "/data",
    "KAFKA_NODE_ID": "1",
    "KAFKA_LISTENER_NAME_A__B_SSL_KEY": "x=y",
    "KAFKA_SOME___THING": "1",
    "KAFKA_A____B": "2",
    "KAFKA_HEAP_OPTS": "-Xmx1g",
    "KAFKA_LOG4J_LOGGERS": "a=INFO",
    "KAFKA_JMX_HOSTNAME": "h",
    "HOME": "/root",
    "kafka_lower": "1",
}
SCOPES = {
    Scope.BROKER: ("dynamic", "broker"),
    Scope.TOPIC: ("topic",),
    Scope.GROUP: ("group",),
    Scope.CLIENT_METRICS: ("client-metrics",),
}


def ours(scope: Scope) -> dict[str, Setting[Any]]:
    return {name: setting for name, setting in BY_SCOPE[scope].items() if not setting.own}


@pytest.fixture(scope="module")
def kafka() -> dict[str, Any]:
    """What Apache Kafka says of all its settings, with its verdict on each sample."""
    asked: dict[str, Any] = {
        theirs: {name: SAMPLES[setting.kind.name] for name, setting in ours(scope).items()}
        for scope, names in SCOPES.items()
        for theirs in names
    }
    asked["environment"] = VARIABLES
    program = Path(__file__).with_name("KafkaSettings.java")
    done = subprocess.run(
        [require("java", "Apache Kafka needs Java 17"), "-cp", f"{jar_directory()}/*", str(program)],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def declared(kafka: dict[str, Any], scope: Scope) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for theirs in SCOPES[scope] for row in kafka[theirs]}


@pytest.mark.parametrize("scope", SCOPES)
def test_every_setting_of_kafka_is_declared_and_nothing_else(kafka: dict[str, Any], scope: Scope) -> None:
    theirs = declared(kafka, scope)
    assert {
        "missing": sorted(theirs.keys() - ours(scope).keys()),
        "extra": sorted(ours(scope).keys() - theirs.keys()),
    } == {
        "missing": [],
        "extra": [],
    }


@pytest.mark.parametrize("scope", SCOPES)
def test_kind_importance_and_visibility_are_kafka_s(kafka: dict[str, Any], scope: Scope) -> None:
    for name, row in declared(kafka, scope).items():
        setting = ours(scope)[name]
        assert (setting.kind.name, setting.importance.value, setting.internal) == (
            row["type"].lower(),
            row["importance"].lower(),
            row["internal"],
        ), name


@pytest.mark.parametrize("scope", SCOPES)
def test_a_default_is_kafka_s_or_says_why_not(kafka: dict[str, Any], scope: Scope) -> None:
    for name, row in declared(kafka, scope).items():
        setting = ours(scope)[name]
        same = row["has_default"] and setting.render(setting.default) == row["default"]
        assert same != bool(setting.differs), name


@pytest.mark.parametrize("scope", SCOPES)
def test_the_same_values_are_allowed(kafka: dict[str, Any], scope: Scope) -> None:
    differences = []
    for name, row in declared(kafka, scope).items():
        for sample, allowed in row["verdicts"].items():
            if allows(ours(scope)[name], sample) != allowed:
                differences.append(f"{name} = {sample!r}: Kafka {'takes' if allowed else 'refuses'} it")
    assert differences == []


def allows(setting: Setting[Any], text: str) -> bool:
    try:
        setting.parse(text)
    except SettingsError:
        return False
    return True


def test_the_same_settings_change_live(kafka: dict[str, Any]) -> None:
    modes = {name: setting.live.value for name, setting in ours(Scope.BROKER).items() if not setting.read_only}
    assert modes == kafka["update_modes"]


def test_what_only_a_running_broker_knows_is_marked(kafka: dict[str, Any]) -> None:
    static = {row["name"] for row in kafka["broker"]}
    assert {name for name, setting in ours(Scope.BROKER).items() if setting.dynamic_only} == {
        row["name"] for row in kafka["dynamic"] if row["name"] not in static
    }


def test_synonyms_are_kafka_s_in_its_order(kafka: dict[str, Any]) -> None:
    topics = {name: [each for each, _ in _value_names(setting)] for name, setting in ours(Scope.TOPIC).items()}
    assert {name: names for name, names in topics.items() if names} == kafka["topic_synonyms"]
    groups = {
        name: next((each for each, _ in _value_names(setting)), None) for name, setting in ours(Scope.GROUP).items()
    }
    assert groups == kafka["group_synonyms"]
    for name, names in kafka["broker_synonyms"].items():
        assert list(_chain_names(ours(Scope.BROKER)[name])) == names


def test_variables_mean_what_they_mean_to_apache_kafka_s_image(kafka: dict[str, Any]) -> None:
    ours = [f"{name}={value}" for name, value in from_environment(VARIABLES).items()]
    assert sorted(ours) == sorted(line for line in kafka["environment"] if line)
