"""Groups and the broker's end: killed or stopped, it knows its groups when it is back."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.clients.members import ALL_PROGRAMS
from tests.clients.members.member import Member, share
from tests.clients.reference import Reference
from tests.support.batches import Record
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.clients.members.programs import Program
    from tests.support.running import RunningBroker

pytestmark = [pytest.mark.clients, pytest.mark.slow]

by_program = pytest.mark.parametrize(
    "program",
    [each for each in ALL_PROGRAMS if each.outlives_the_broker and not each.needs_java],
    ids=lambda each: each.name,
)


def say(reference: Reference, topic: str, word: str) -> None:
    for partition in range(3):
        record = Record(f"{word}-{partition}".encode(), None, (), int(time.time() * 1000))
        reference.produce(topic, [record], partition=partition)


def heard(members: list[Member], word: str) -> Callable[[], bool]:
    wanted = {f"{word}-{partition}" for partition in range(3)}
    return lambda: wanted <= {seen.value for member in members for seen in member.reads}


@by_program
@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_a_group_goes_on_when_its_broker_is_back(own_broker: RunningBroker, program: Program, how: str) -> None:
    reference = Reference(own_broker.bootstrap_servers)
    reference.create_topic("t", partitions=3)
    places = [("t", partition) for partition in range(3)]
    with ExitStack() as stack:
        members = [stack.enter_context(Member(program, own_broker.bootstrap_servers, "g", ["t"])) for _ in range(2)]
        share(members, places, within_s=90)
        say(reference, "t", "before")
        wait_until(heard(members, "before"), "what was said before", within_s=90)
        if how == "killed":
            own_broker.kill()
        else:
            own_broker.stop()
        own_broker.start()
        say(reference, "t", "after")
        wait_until(heard(members, "after"), "what was said after", within_s=90)
        share(members, places, within_s=90)
    reference.close()
