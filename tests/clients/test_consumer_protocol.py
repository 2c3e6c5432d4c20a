"""What consumers of the new protocol (KIP-848) may expect of a broker, and consumers of both protocols in one group.

Members are processes (tests/clients/members). The broker has short sessions, so that crashed ones are found out soon.
Every claim holds for Apache Kafka too (`--against both`).
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import ConsumerGroupState, ConsumerGroupType
from confluent_kafka.admin import AdminClient

from tests.clients.members.member import Member, read_by, share
from tests.clients.members.programs import Confluent, Java, Program
from tests.clients.reference import Reference
from tests.support.apache_kafka import ApacheKafka, run_tool
from tests.support.batches import Record
from tests.support.millstream_process import MillstreamProcess
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.running import RunningBroker

pytestmark = [pytest.mark.clients, pytest.mark.slow]

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "4000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.assignment.interval.ms": "0",
}


class NewConfluent(Confluent):
    name = "confluent-kafka"
    script = "confluent_new_member.py"
    strategies = frozenset({"uniform", "range"})


class NewJava(Java):
    """Apache Kafka's VerifiableConsumer with its own new protocol."""

    strategies = frozenset({"uniform", "range"})

    def command(self, servers: str, group: str, topics: Any, strategy: str, instance_id: str | None) -> Any:
        command, environment = super().command(servers, group, topics, "range", instance_id)
        # What only the classic protocol has goes; the broker decides on it.
        without = ("--session-timeout", "--assignment-strategy", "--group-protocol")
        places = {index + offset for index, part in enumerate(command) if part in without for offset in (0, 1)}
        kept = [part for index, part in enumerate(command) if index not in places]
        return [*kept, "--group-protocol", "consumer", "--group-remote-assignor", strategy], environment


CONFLUENT, JAVA = NewConfluent(), NewJava()
EVERY = pytest.mark.parametrize(
    "program", [pytest.param(CONFLUENT, id="confluent"), pytest.param(JAVA, id="java", marks=pytest.mark.java)]
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "kind" in metafunc.fixturenames:
        against = metafunc.config.getoption("--against")
        names = ["apache-kafka", "millstream"] if against == "both" else [against]
        metafunc.parametrize("kind", names, scope="module")


@pytest.fixture(scope="module")
def quick(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    directory = tmp_path_factory.mktemp(kind)
    made: ApacheKafka | MillstreamProcess
    if kind == "millstream":
        made = MillstreamProcess(directory, settings=SETTINGS, controller_listener=True)
    else:
        made = ApacheKafka(directory, properties={})
        made.properties |= SETTINGS
        made._write_properties()
        made.format()
    with made:
        made.start()
        yield made


@pytest.fixture
def reference(quick: RunningBroker, references: dict[str, Reference]) -> Reference:
    return references.setdefault(quick.bootstrap_servers, Reference(quick.bootstrap_servers))


@pytest.fixture
def start(quick: RunningBroker) -> Iterator[Callable[..., Member]]:
    """Starts members of this test; whatever still runs at its end is killed."""
    with ExitStack() as members:

        def begin(program: Program, group: str, *topics: str, **options: str) -> Member:
            strategy = options.pop("strategy", "uniform" if program in (CONFLUENT, JAVA) else "range")
            return members.enter_context(
                Member(program, quick.bootstrap_servers, group, topics, strategy=strategy, **options)
            )

        yield begin


@pytest.fixture
def admin(quick: RunningBroker) -> AdminClient:
    return AdminClient({"bootstrap.servers": quick.bootstrap_servers})


@pytest.fixture
def three(reference: Reference, fresh_name: str) -> str:
    """A topic with three partitions."""
    reference.create_topic(fresh_name, partitions=3)
    return fresh_name


def places(topic: str, count: int = 3) -> list[tuple[str, int]]:
    return [(topic, partition) for partition in range(count)]


def send(reference: Reference, topic: str, *values: str, partitions: int = 3) -> None:
    for partition in range(partitions):
        now_ms = int(time.time() * 1000)
        mine = [Record(f"{value}/{partition}".encode(), None, (), now_ms) for value in values]
        reference.produce(topic, mine, partition=partition)


def sent(*values: str, partitions: int = 3) -> list[str]:
    return sorted(f"{value}/{partition}" for value in values for partition in range(partitions))


def values_read(*members: Member) -> list[str]:
    return sorted(seen.value for seen in read_by(members))


def described(admin: AdminClient, group: str) -> Any:
    return admin.describe_consumer_groups([group])[group].result()


# --- one protocol


@EVERY
def test_one_member_reads_everything_and_goes_on_where_it_was(
    program: Program, start: Any, three: str, reference: Reference, admin: AdminClient
) -> None:
    send(reference, three, "before")
    member = start(program, three, three)
    wait_until(lambda: values_read(member) == sent("before"), "the first records", within_s=90)
    assert described(admin, three).type is ConsumerGroupType.CONSUMER
    member.leave()
    wait_until(lambda: described(admin, three).state is ConsumerGroupState.EMPTY, "an empty group")
    send(reference, three, "after")
    back = start(program, three, three)
    wait_until(lambda: values_read(back) == sent("after"), "the second records, and them alone", within_s=90)


@pytest.mark.parametrize("assignor", ["uniform", "range"])
@EVERY
def test_four_members_share_three_partitions_and_take_over_from_each_other(
    program: Program, assignor: str, start: Any, three: str, reference: Reference
) -> None:
    members = [start(program, three, three, strategy=assignor) for _ in range(4)]

    def shared() -> bool:
        owned = [place for member in members for place in member.partitions]
        return sorted(owned) == places(three) and max(len(member.partitions) for member in members) == 1

    wait_until(shared, "three of them to have a partition each", within_s=90)
    busy = next(member for member in members if member.partitions)
    busy.leave()
    members.remove(busy)
    wait_until(shared, "the fourth to take over", within_s=90)
    members.append(start(program, three, three, strategy=assignor))
    send(reference, three, "a", "b")
    wait_until(lambda: set(values_read(*members)) == set(sent("a", "b")), "all records", within_s=90)
    wait_until(shared, "one each again", within_s=90)


@EVERY
def test_a_crashed_member_is_replaced_when_its_session_ends(program: Program, start: Any, three: str) -> None:
    first, second = start(program, three, three), start(program, three, three)
    share([first, second], places(three), within_s=90)
    first.crash()
    share([second], places(three), within_s=90)


def test_a_stalled_member_loses_its_partitions_and_gets_a_share_again_when_it_goes_on(start: Any, three: str) -> None:
    first, second = start(CONFLUENT, three, three), start(CONFLUENT, three, three)
    share([first, second], places(three), within_s=90)
    first.stall()
    share([second], places(three), within_s=90)
    first.go_on()
    share([first, second], places(three), within_s=90)


def test_a_static_member_comes_back_to_what_it_had(start: Any, three: str, admin: AdminClient) -> None:
    first = start(CONFLUENT, three, three, instance_id="one")
    second = start(CONFLUENT, three, three, instance_id="two")
    share([first, second], places(three), within_s=90)
    had = first.partitions
    first.leave()
    back = start(CONFLUENT, three, three, instance_id="one")
    wait_until(lambda: back.partitions == had, "its partitions", within_s=90)
    assert len(described(admin, three).members) == 2


def test_a_pattern_matches_topics_that_come_later(start: Any, fresh_name: str, reference: Reference) -> None:
    reference.create_topic(f"{fresh_name}.a", partitions=1)
    member = start(CONFLUENT, fresh_name, f"^{fresh_name}\\.[ab]$")
    wait_until(lambda: member.partitions == {(f"{fresh_name}.a", 0)}, "the first topic", within_s=90)
    reference.create_topic(f"{fresh_name}.b", partitions=2)
    everything = {(f"{fresh_name}.a", 0), *places(f"{fresh_name}.b", 2)}
    # Between two look-ups pass ten seconds.
    wait_until(lambda: member.partitions == everything, "the second topic", within_s=90)


def test_two_groups_each_get_everything(start: Any, three: str, reference: Reference) -> None:
    one, other = start(CONFLUENT, f"{three}-1", three), start(CONFLUENT, f"{three}-2", three)
    send(reference, three, "x")
    wait_until(lambda: values_read(one) == values_read(other) == sent("x"), "all records, twice", within_s=90)


# --- two protocols


@EVERY
def test_a_fleet_is_moved_to_the_new_protocol_and_back_one_by_one(
    program: Program, start: Any, three: str, reference: Reference, admin: AdminClient
) -> None:
    old = Java() if program is JAVA else Confluent()
    # librdkafka's sticky assignor puts data of its own into assignments: neither broker upgrades such a group.
    strategy = "cooperative-sticky" if program is JAVA else "range"
    members = [start(old, three, three, strategy=strategy) for _ in range(2)]
    share(members, places(three), within_s=90)
    assert described(admin, three).type is ConsumerGroupType.CLASSIC
    for replaced in range(2):
        members.append(start(program, three, three))
        members.pop(0).leave()
        share(members, places(three), within_s=90)
        assert described(admin, three).type is ConsumerGroupType.CONSUMER, f"after {replaced + 1}"
    send(reference, three, "new")
    wait_until(lambda: set(values_read(*members)) >= set(sent("new")), "the records", within_s=90)
    for _ in range(2):
        members.append(start(old, three, three, strategy=strategy))
        members.pop(0).leave()
        share(members, places(three), within_s=90)
    wait_until(lambda: described(admin, three).type is ConsumerGroupType.CLASSIC, "a classic group again")
    send(reference, three, "old")
    wait_until(lambda: set(values_read(*members)) >= set(sent("old")), "the records", within_s=90)


# --- Apache Kafka's tools


@pytest.mark.java
def test_kafkas_tools_consume_and_describe(start: Any, three: str, reference: Reference, quick: RunningBroker) -> None:
    send(reference, three, "x")
    servers = quick.bootstrap_servers
    read = run_tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", servers, "--topic", three, "--group", three, "--from-beginning", "--max-messages", "3"),
        *("--command-property", "group.protocol=consumer", "--timeout-ms", "60000"),
        check=True,
    )
    assert sorted(read.stdout.split()) == sent("x")
    member = start(CONFLUENT, three, three)
    share([member], places(three), within_s=90)
    command = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    told = run_tool(command, "--bootstrap-server", servers, "--describe", "--group", three, check=True).stdout
    rows = [line.split() for line in told.splitlines() if line.startswith(three)]
    assert sorted((row[1], int(row[2]), row[5]) for row in rows) == [(three, index, "0") for index in range(3)]
    state = run_tool(command, "--bootstrap-server", servers, "--describe", "--group", three, "--state", "--verbose")
    assert "Stable" in state.stdout
    assert "uniform" in state.stdout
    members = run_tool(command, "--bootstrap-server", servers, "--describe", "--group", three, "--members", "--verbose")
    assert f"{three}:0,1,2" in members.stdout
    listed = run_tool(command, "--bootstrap-server", servers, "--list", "--type").stdout
    assert [line.split()[1] for line in listed.splitlines() if line.startswith(f"{three} ")] == ["Consumer"]
