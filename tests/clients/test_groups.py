"""What the members of a consumer group may expect of a broker, whoever wrote their client.

Members are processes (tests/clients/members): they join, leave, crash, stall and come back, and say what they own and
what they read. Every claim holds for Apache Kafka too (`--against both`).
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.clients.members import ALL_PROGRAMS
from tests.clients.members.member import Member, read_by, share
from tests.support.batches import Record
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.clients.members.programs import Program
    from tests.clients.reference import Reference
    from tests.support.running import RunningBroker

pytestmark = [pytest.mark.clients, pytest.mark.slow]

Start = "Callable[..., Member]"


def every_program(*, pattern: bool = False, strategy: str = "range", static: bool = False) -> pytest.MarkDecorator:
    """Run the claim for each client that can do this."""
    able = [
        each
        for each in ALL_PROGRAMS
        if strategy in each.strategies and (each.patterns or not pattern) and (each.static or not static)
    ]
    params = [pytest.param(each, id=each.name, marks=[pytest.mark.java] if each.needs_java else []) for each in able]
    return pytest.mark.parametrize("program", params)


@pytest.fixture
def start(broker: RunningBroker) -> Iterator[Callable[..., Member]]:
    """Starts members of this test; whatever still runs at its end is killed."""
    with ExitStack() as members:

        def begin(program: Program, group: str, *topics: str, **options: str) -> Member:
            return members.enter_context(Member(program, broker.bootstrap_servers, group, topics, **options))  # type: ignore[arg-type]

        yield begin


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


def read_all(*values: str, by: list[Member], partitions: int = 3) -> None:
    """Wait until these members have read all of this and nothing else; more than once is no fault of the broker's."""
    wanted = set(sent(*values, partitions=partitions))
    try:
        wait_until(lambda: set(values_read(*by)) == wanted, "records", within_s=120)
    except TimeoutError as late:
        said = "\n".join(f"{member}: {member.reads} {''.join(member.noise[-20:])}" for member in by)
        raise AssertionError(f"{late}: not {sorted(wanted)}\n{said}") from late


@every_program()
def test_one_member_owns_and_reads_everything(program: Program, start: Start, three: str, reference: Reference) -> None:
    send(reference, three, "before")
    member = start(program, f"group-of-{three}", three)
    share([member], places(three))
    send(reference, three, "after")
    read_all("before", "after", by=[member])


@every_program()
def test_who_comes_back_goes_on_after_what_was_read(
    program: Program, start: Start, three: str, reference: Reference
) -> None:
    send(reference, three, "first")
    member = start(program, f"group-of-{three}", three)
    read_all("first", by=[member])
    member.leave()
    send(reference, three, "second")
    back = start(program, f"group-of-{three}", three)
    read_all("second", by=[back])


@every_program()
def test_four_members_share_three_partitions_and_take_over_from_each_other(
    program: Program, start: Start, three: str, reference: Reference
) -> None:
    group = f"group-of-{three}"
    members = [start(program, group, three) for _ in range(4)]
    share(members, places(three), within_s=90)
    busy = next(member for member in members if member.partitions)
    busy.leave()
    members.remove(busy)
    share(members, places(three))
    members.append(start(program, group, three))
    share(members, places(three))
    send(reference, three, "a", "b")
    read_all("a", "b", by=members)


@every_program()
def test_a_crashed_member_is_replaced(program: Program, start: Start, three: str, reference: Reference) -> None:
    group = f"group-of-{three}"
    members = [start(program, group, three) for _ in range(2)]
    share(members, places(three), within_s=90)
    members.pop().crash()
    share(members, places(three))
    send(reference, three, "a")
    read_all("a", by=members)


@every_program()
def test_a_stalled_member_is_replaced_and_may_come_back(program: Program, start: Start, three: str) -> None:
    group = f"group-of-{three}"
    going, stalling = start(program, group, three), start(program, group, three)
    share([going, stalling], places(three), within_s=90)
    stalling.stall()
    share([going], places(three))
    stalling.go_on()
    share([going, stalling], places(three))


@every_program()
def test_two_groups_each_get_everything(program: Program, start: Start, three: str, reference: Reference) -> None:
    members = [start(program, f"{name}-of-{three}", three) for name in ("one", "two")]
    for member in members:
        share([member], places(three), within_s=90)
    send(reference, three, "a", "b")
    for member in members:
        read_all("a", "b", by=[member])


@every_program(pattern=True)
def test_a_pattern_finds_topics_that_are_made_later(
    program: Program, start: Start, fresh_name: str, reference: Reference
) -> None:
    reference.create_topic(f"{fresh_name}.one", partitions=2)
    member = start(program, f"group-of-{fresh_name}", f"^{fresh_name}\\..*")
    share([member], places(f"{fresh_name}.one", 2))
    reference.create_topic(f"{fresh_name}.two")
    share([member], [*places(f"{fresh_name}.one", 2), (f"{fresh_name}.two", 0)])


@every_program()
def test_a_group_notices_new_partitions(program: Program, start: Start, three: str, reference: Reference) -> None:
    member = start(program, f"group-of-{three}", three)
    share([member], places(three))
    reference.grow(three, 5)
    share([member], places(three, 5))


@every_program(static=True)
def test_a_static_member_comes_back_without_a_rebalance(program: Program, start: Start, three: str) -> None:
    group = f"group-of-{three}"
    first = start(program, group, three, instance_id="first")
    second = start(program, group, three, instance_id="second")
    share([first, second], places(three), within_s=90)
    theirs, mine = first.owned, second.owned
    second.crash()
    back = start(program, group, three, instance_id="second")
    # Should it come back later than its session lasts, what the other got meanwhile is taken from it again.
    wait_until(lambda: back.owned == mine and first.owned == theirs, "what each owned before", within_s=90)


@every_program(strategy="cooperative-sticky")
def test_members_rebalance_cooperatively(program: Program, start: Start, three: str) -> None:
    group = f"group-of-{three}"
    members = [start(program, group, three, strategy="cooperative-sticky")]
    share(members, places(three))
    members.append(start(program, group, three, strategy="cooperative-sticky"))
    share(members, places(three), within_s=90)
    members.pop(0).leave()
    share(members, places(three))


def test_members_in_five_languages_make_one_group(start: Start, fresh_name: str, reference: Reference) -> None:
    """They share the range assignor; whoever leads assigns for all."""
    reference.create_topic(fresh_name, partitions=6)
    mixed = [each for each in ALL_PROGRAMS if not each.needs_java and each.name != "kafkajs"]
    members = [start(program, f"group-of-{fresh_name}", fresh_name) for program in mixed]
    share(members, places(fresh_name, 6), within_s=90)
    send(reference, fresh_name, "a", "b", partitions=6)
    read_all("a", "b", by=members, partitions=6)


def test_subscriptions_of_members_may_differ(start: Start, fresh_name: str, reference: Reference) -> None:
    topics = [f"{fresh_name}-one", f"{fresh_name}-two"]
    for topic in topics:
        reference.create_topic(topic, partitions=2)
    confluent = ALL_PROGRAMS[0]
    group = f"group-of-{fresh_name}"
    one = start(confluent, group, topics[0])
    share([one], places(topics[0], 2))
    both = start(confluent, group, *topics)
    share([one, both], places(topics[0], 2) + places(topics[1], 2), even=False)
    assert {topic for topic, _ in one.partitions} == {topics[0]}
    one.leave()
    share([both], places(topics[0], 2) + places(topics[1], 2))
