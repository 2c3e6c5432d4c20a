"""sarama, Go's other client: a group whose members copy a topic in transactions.

In two of the protocol's ages: 2.8.0, as many programs still say, and the newest that it knows.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.clients.members.member import Member, share
from tests.clients.members.programs import Command, Program, Topics
from tests.support import toolchains
from tests.support.topics import create_topics, in_the_middle, read_committed, write
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from tests.support.running import RunningBroker

pytestmark = [pytest.mark.clients, pytest.mark.slow]

PARTITIONS = 4


class Copier(Program):
    """tests/hardest/sarama_copier.go"""

    name = "sarama"

    def __init__(self, version: str) -> None:
        self.version = version

    def command(self, servers: str, group: str, topics: Topics, strategy: str, instance_id: str | None) -> Command:
        source, target = topics
        program = toolchains.go_program(Path(__file__).with_name("sarama_copier.go"), toolchains.SARAMA)
        return [str(program), servers, group, source, target, self.version], {}


def all_is_copied_once(broker: RunningBroker, members: list[Member], values: list[str], target: str) -> None:
    wanted = sorted(values)
    try:
        wait_until(
            lambda: len(read_committed(broker, target, 2)) >= len(wanted), "all copies", within_s=120, every_s=0.2
        )
    except TimeoutError as late:
        said = "\n".join(f"{member}: {''.join(member.noise[-20:])}" for member in members)
        raise AssertionError(f"{late}: {len(read_committed(broker, target, 2))} of {len(wanted)}\n{said}") from late
    assert sorted((seen.value or b"").decode() for seen in read_committed(broker, target, 2)) == wanted


@pytest.mark.parametrize("version", ["2.8.0", "4.3.1"])
def test_a_group_copies_a_topic_exactly_once(own_broker: RunningBroker, version: str) -> None:
    source, target = "originals", "copies"
    create_topics(own_broker, source, partitions=PARTITIONS)
    create_topics(own_broker, target, partitions=2)
    everything = [(source, partition) for partition in range(PARTITIONS)]
    values: list[str] = []

    def more(count: int) -> int:
        added = [f"value {number}" for number in range(len(values), len(values) + count)]
        write(own_broker, source, added)
        values.extend(added)
        return count

    with ExitStack() as running:

        def begin() -> Member:
            return running.enter_context(
                Member(Copier(version), own_broker.bootstrap_servers, "copiers", (source, target))
            )

        members = [begin(), begin()]
        share(members, everything)
        in_the_middle(own_broker, target, 2, before=0, of=more(1000), feed=more)
        members.pop().crash()
        more(300)
        all_is_copied_once(own_broker, members, values, target)

        members.append(begin())
        share(members, everything)
        more(300)
        own_broker.kill()
        own_broker.start()
        more(10)
        all_is_copied_once(own_broker, members, values, target)
        members.pop().leave()
        more(10)
        all_is_copied_once(own_broker, members, values, target)
