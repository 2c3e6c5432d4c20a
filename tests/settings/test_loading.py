"""A start with what people have: files, variables, options."""

from __future__ import annotations

import pytest

from millstream.settings import (
    BROKER_ID,
    LOG_DIRS,
    LOG_RETENTION_HOURS,
    MILLSTREAM_ACKS_FSYNC,
    NODE_ID,
    NUM_PARTITIONS,
    Endpoints,
    SettingsError,
    check_dynamic,
    dynamic_values,
    from_environment,
    load,
    parse_properties,
)

OLD_FILE = """
# The properties of a broker from before KRaft
broker.id=7
port=9092
num.network.threads=3
num.io.threads=16
log.dirs=/var/lib/kafka
num.partitions=1
log.retention.hours=168
log.retention.check.interval.ms=300000
inter.broker.protocol.version=2.8
zookeeper.connect=zk1:2181,zk2:2181/kafka
zookeeper.connection.timeout.ms=18000
group.initial.rebalance.delay.ms=0
"""

KRAFT_FILE = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
log.dirs=/tmp/kraft-combined-logs
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
"""


def test_nothing_at_all_is_enough() -> None:
    loaded = load()
    assert loaded.warnings == ()
    assert loaded.settings[NODE_ID] == 1


def test_later_layers_win() -> None:
    loaded = load(
        {"num.partitions": "1", "log.retention.hours": "1", "node.id": "4"},
        environment={"KAFKA_NUM_PARTITIONS": "2", "KAFKA_LOG_RETENTION_HOURS": "2"},
        options={"num.partitions": "3"},
    )
    found = (loaded.settings[NUM_PARTITIONS], loaded.settings[LOG_RETENTION_HOURS], loaded.settings[NODE_ID])
    assert found == (3, 2, 4)


def test_an_old_file_works_and_says_what_is_not_needed() -> None:
    settings, warnings = load(parse_properties(OLD_FILE))
    assert (settings[NODE_ID], settings[BROKER_ID], settings[LOG_DIRS]) == (7, 7, ("/var/lib/kafka",))
    assert warnings == (
        "zookeeper.connect is ignored: no ZooKeeper is needed, the cluster keeps its metadata itself.",
        "port is ignored: listeners has taken its place.",
        "inter.broker.protocol.version is ignored: the cluster's metadata.version has taken its place.",
        "num.io.threads is ignored: this broker does not act on it.",
    )


def test_the_file_that_comes_with_apache_kafka_works() -> None:
    settings, _ = load(parse_properties(KRAFT_FILE))
    found = Endpoints.of(settings)
    assert [str(each) for each in (*found.broker, *found.controller, *found.advertised)] == [
        "PLAINTEXT://:9092",
        "CONTROLLER://:9093",
        "PLAINTEXT://localhost:9092",
    ]


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        (
            {"authorizer.class.name": "org.example.Authorizer"},
            "authorizer.class.name is set, but this broker does not act",
        ),
        ({"listeners": "SSL://:9092"}, "The listener SSL://:9092 needs SSL, which this broker does not serve yet."),
        ({"listeners": "A://:1", "listener.security.protocol.map": "A:SASL_SSL"}, "needs SASL_SSL"),
        ({"create.topic.policy.class.name": "x"}, "ignoring it would not be safe"),
        ({"remote.log.storage.system.enable": "true"}, "ignoring it would not be safe"),
        ({"client.quota.callback.class": "x"}, "ignoring it would not be safe"),
        ({"config.providers": "file"}, "ignoring it would not be safe"),
    ],
)
def test_what_would_be_less_safe_than_its_owner_believes_stops_the_start(
    properties: dict[str, str], sentence: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        load(properties)
    assert sentence in str(refused.value)


def test_a_value_that_changes_nothing_is_not_worth_a_word() -> None:
    assert load({"authorizer.class.name": "", "num.io.threads": "8", "ssl.client.auth": "none"}).warnings == ()


@pytest.mark.parametrize(("interval_ms", "is_warned"), [("300", False), ("750", False), ("751", True), ("2000", True)])
def test_heartbeats_that_leave_no_room_for_a_lost_one_are_worth_a_warning(interval_ms: str, is_warned: bool) -> None:
    warnings = load({"broker.heartbeat.interval.ms": interval_ms, "broker.session.timeout.ms": "1500"}).warnings
    assert ["more than half of broker.session.timeout.ms" in each for each in warnings] == [True] * is_warned


def test_only_controllers_join_the_quorum_by_themselves() -> None:
    asked = {"controller.quorum.auto.join.enable": "true", "controller.quorum.bootstrap.servers": "localhost:9093"}
    with pytest.raises(SettingsError, match=r"auto\.join\.enable is for controllers"):
        load({**asked, "process.roles": "broker", "node.id": "1"})
    load({**asked, "process.roles": "controller", "node.id": "1", "listeners": "CONTROLLER://:9093"})


def test_every_mistake_is_named_at_once() -> None:
    with pytest.raises(SettingsError) as refused:
        load({"num.partitions": "0", "log.dirs": "", "node.id": "one"}, options={"log.dir.": "x"})
    assert refused.value.sentences == (
        "num.partitions must be at least 1, not '0'.",
        "log.dirs must not be empty.",
        "node.id must be a whole number, not 'one': it is not a whole number.",
        "There is no broker setting log.dir.. Did you mean log.dir?",
    )


def test_an_unknown_name_in_a_file_is_a_warning_with_the_nearest_name() -> None:
    assert load({"log.retention.hour": "1", "confluent.metrics.topic": "x"}).warnings == (
        "There is no broker setting log.retention.hour. Did you mean log.retention.hours?",
        "confluent.metrics.topic is ignored: it is not a setting of the broker.",
    )


def test_listener_prefixes_are_understood() -> None:
    assert load({"listener.name.internal.ssl.client.auth": "required"}).warnings == (
        "listener.name.internal.ssl.client.auth is ignored: this broker does not act on it.",
    )
    with pytest.raises(
        SettingsError, match=r"In listener\.name\.internal\.ssl\.client\.auth: ssl\.client\.auth must be one of"
    ):
        load({"listener.name.internal.ssl.client.auth": "maybe"})


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        ({"log.retention.ms": "0"}, "must be -1, for ever, or at least 1"),
        ({"log.roll.ms": "0"}, "log.roll.ms must be at least 1"),
        ({"queued.max.request.bytes": "1000"}, "must not be less than socket.request.max.bytes"),
        ({"max.connections.per.ip": "0"}, "max.connections.per.ip can be 0 only with exceptions"),
        ({"max.connections.per.ip.overrides": "localhost"}, "it takes host:count"),
        ({"log.cleaner.dedupe.buffer.size": "1000"}, "more than 1 MiB for each"),
        ({"replica.fetch.wait.max.ms": "40000"}, "must not be less than replica.fetch.wait.max.ms = 40000"),
        ({"node.id": "1", "broker.id": "2"}, "broker.id = 2 and node.id = 1 differ"),
        ({"controller.quorum.voters": "2@a:1"}, "controller.quorum.voters does not name node 1"),
        ({"process.roles": "broker"}, "needs controller.quorum.bootstrap.servers"),
        ({"process.roles": "broker", "controller.quorum.voters": "1@a:1"}, "names node 1"),
        ({"group.consumer.session.timeout.ms": "1"}, "must lie between group.consumer.min.session.timeout.ms and"),
        ({"group.share.min.session.timeout.ms": "70000"}, "must not be more than group.share.max.session.timeout.ms"),
        ({"log.cleaner.min.compaction.lag.ms": "2", "log.cleaner.max.compaction.lag.ms": "1"}, "must not be more than"),
        ({"cordoned.log.dirs": "*,/a"}, "cordoned.log.dirs is either * or"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(properties: dict[str, str], sentence: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load(properties)
    assert sentence in str(refused.value)


def test_variables_are_named_as_in_apache_kafka_s_image() -> None:
    assert from_environment(
        {
            "KAFKA_LOG_DIRS": "/data",
            "KAFKA_LISTENER_NAME_A__B_SSL_KEY": "1",
            "KAFKA_X___Y": "2",
            "KAFKA_MILLSTREAM_ACKS_FSYNC": "true",
            "KAFKA_HEAP_OPTS": "-Xmx1g",
            "HOME": "/root",
        }
    ) == {"log.dirs": "/data", "listener.name.a_b.ssl.key": "1", "x-y": "2", "millstream.acks.fsync": "true"}


def test_variables_of_other_software_are_left_alone() -> None:
    assert (
        load(environment={"KAFKA_BOOTSTRAP_SERVERS": "a:1", "KAFKA_HOME": "/opt", "KAFKA_UI_PORT": "1"}).warnings == ()
    )
    assert load(environment={"KAFKA_MILLSTREAM_ACKS_FSYNC": "true"}).settings[MILLSTREAM_ACKS_FSYNC] is True


def test_a_live_setting_changes_live() -> None:
    settings = load().settings
    changed = check_dynamic(settings, {"log.retention.ms": "1000", "max.connections": "5"}, cluster_wide=True)
    assert changed.cluster == {"log.retention.ms": "1000", "max.connections": "5"}
    assert settings.cluster == {}


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("num.partitions", "3", "num.partitions cannot change while the broker runs"),
        ("listeners", "PLAINTEXT://:1", "a listener opens with the process"),
        ("ssl.keystore.location", "/k", "ssl.keystore.location is each broker's own"),
        ("principal.builder.class", "x", "principal.builder.class is each broker's own"),
        ("log.retention.mss", "3", "Did you mean log.retention.ms?"),
        ("log.retention.ms", "0", "must be -1, for ever, or at least 1"),
        ("message.max.bytes", "-3", "message.max.bytes must be at least 0"),
        ("config.providers", "file", "config.providers is not enforced here yet"),
    ],
)
def test_a_wrong_dynamic_change_is_refused(name: str, value: str, sentence: str) -> None:
    with pytest.raises(SettingsError) as refused:
        check_dynamic(load().settings, {name: value}, cluster_wide=True)
    assert sentence in str(refused.value)


def test_dynamic_values_from_elsewhere_are_used_as_far_as_possible() -> None:
    good, objections = dynamic_values({"log.retention.ms": "5", "message.max.bytes": "x", "their.plugin.size": "1"})
    assert good == {"log.retention.ms": "5"}
    assert len(objections) == 2
