"""Conversations of transactional producers, request by request, of both generations (before and with KIP-890)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.broker.handlers.transaction_transcript import ABORT, COMMIT, GROUP_KEY, Transcript

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.broker.handlers.conversations import Talk
    from tests.broker.handlers.transaction_transcript import Producer


def after(producer: Producer, epochs: int = 1) -> Producer:
    return producer[0], producer[1] + epochs


def other(producer: Producer) -> Producer:
    return producer[0] + 100_000, producer[1]


def transactions_of_version_2(talk: Talk) -> None:
    it = Transcript(talk)
    it.init("a")
    it.state("a")
    it.init("a")
    first = it.init("a")
    it.produce("a", first, 0)
    it.produce("a", first, 1)
    it.state("a")
    it.produce("a", first, 5)
    it.produce("a", after(first, -1), 0, 1)
    it.produce("a", after(first), 0, 1)
    it.produce("nobody", first, 0, 1)
    it.produce(None, first, 0, 1)
    it.produce("a", other(first), 0, 1)
    it.produce("a", first, 2, transactional=False)
    it.add_as_broker("a", first, 0, 1, verify=True)
    it.add_as_broker("a", first, 0, 1, verify=True, version=4)
    it.add_as_broker("a", after(first, -1), 0, verify=True)
    it.add_as_broker("a", other(first), 0, verify=True)
    it.add_as_broker("a", first, 2)
    it.state("a")
    it.end("a", after(first, -1), COMMIT)
    it.end("a", after(first), COMMIT)
    it.end("a", other(first), COMMIT)
    it.end("nobody", first, COMMIT)
    it.end("", first, COMMIT)
    second = it.end("a", first, COMMIT)
    it.state("a")
    it.end("a", first, COMMIT)
    it.end("a", first, ABORT)
    it.end("a", second, COMMIT)
    it.end("a", after(first, -1), COMMIT)
    third = it.end("a", second, ABORT)
    it.state("a")
    it.end("a", second, ABORT)
    it.end("a", second, COMMIT)
    it.end("a", third, COMMIT)
    fourth = it.end("a", third, ABORT)
    it.produce("a", first, 2)
    it.produce("a", fourth, 0)
    it.produce("a", fourth, 1, version=11)
    it.produce("a", fourth, 0, 1, version=11)
    it.produce("a", fourth, 0, 1, version=10)
    it.state("a")


def fencing(talk: Talk) -> None:
    it = Transcript(talk)
    first = it.init("a")
    it.produce("a", first, 0)
    it.init("a")
    it.state("a")
    second = it.init("a")
    it.state("a")
    it.end("a", first, COMMIT)
    it.produce("a", first, 1)
    it.init("a", second)
    it.init("a", second)
    it.init("a", after(second, -1))
    it.init("a", other(second))
    it.init("a", (second[0], -1))
    it.init("a", (-1, 3))
    it.state("a")
    it.init("a", after(second, -1), version=3)
    it.init("a", after(second, -1), version=4)
    # A producer that lost touch in the midst of a transaction and goes on (KIP-360).
    third = it.init("b")
    it.produce("b", third, 0)
    it.init("b", third)
    it.state("b")
    it.init("b", third)
    it.state("b")
    it.init("never seen", other(third))


def transaction_timeouts(talk: Talk) -> None:
    it = Transcript(talk)
    it.init("")
    for timeout_ms in (0, -1, 2**31 - 1, -(2**31), 900_001, 900_000):
        it.init("a", timeout_ms=timeout_ms)
    it.state("a")
    it.state("nobody")


def transactions_of_version_0(talk: Talk) -> None:
    it = Transcript(talk)
    it.find(GROUP_KEY, "g")
    first = it.init("a", version=2)
    it.end("a", first, COMMIT, 4)
    it.end("a", first, ABORT, 4)
    it.add("a", first, 0, 1)
    it.add("a", first, 0)
    it.add("a", first, 7)
    it.add("a", first, 0, 7, 1)
    it.add("a", first, 0, topic="none")
    it.add("a", after(first), 0)
    it.add("a", after(first), 0, version=1)
    it.add("a", other(first), 0)
    it.add("nobody", first, 0)
    it.add("", first, 0)
    it.state("a")
    it.produce("a", first, 0, version=11)
    it.produce("a", first, 0, 2, version=11)
    it.produce("a", first, 0, 2, version=9)
    it.commit_offsets("a", first, "g", 5, 3)
    it.commit_offsets("a", first, "g", 5, 4)
    it.add_offsets("a", first, "g")
    it.add_offsets("a", after(first), "g")
    it.add_offsets("a", after(first), "g", 1)
    it.commit_offsets("a", first, "g", 5, 3)
    it.commit_offsets("a", first, "g", 5, 3, generation=4)
    it.commit_offsets("a", first, "g", 5, 3, topic="none")
    it.end("a", after(first), COMMIT, 1)
    it.end("a", after(first), COMMIT, 2)
    it.end("a", first, COMMIT, 4)
    it.state("a")
    it.end("a", first, COMMIT, 4)
    it.end("a", first, ABORT, 4)
    it.produce("a", first, 1, version=11)
    it.add("a", first, 0)
    it.produce("a", first, 1, version=11)
    it.end("a", first, ABORT, 3)
    it.state("a")
    it.end("a", first, ABORT, 3)
    it.end("a", first, COMMIT, 3)
    it.add("a", first, 0)
    it.init("a", version=2)
    it.state("a")
    it.init("a", version=2)
    it.state("a")
    it.end("a", first, COMMIT, 3)
    it.produce("a", first, 2, version=11)


def versions_mixed(talk: Talk) -> None:
    it = Transcript(talk)
    it.find(GROUP_KEY, "g")
    first = it.init("a")
    it.add("a", first, 0)
    it.end("a", first, COMMIT)
    it.state("a")
    it.end("a", first, COMMIT, 4)
    second = it.init("a")
    it.produce("a", second, 0)
    it.end("a", second, COMMIT, 4)
    it.state("a")
    it.produce("a", second, 1)
    it.commit_offsets("a", second, "g", 7, 5)
    it.commit_offsets("a", after(second), "g", 7, 5)
    it.commit_offsets("a", other(second), "g", 7, 5)
    it.commit_offsets("nobody", second, "g", 7, 5)
    it.end("a", second, ABORT)
    it.state("a")


def markers(talk: Talk) -> None:
    it = Transcript(talk)
    producer = it.init("a")
    it.produce("a", producer, 0, 2)
    it.write_markers(producer, COMMIT, 2, -1)
    it.write_markers(producer, COMMIT, 2)
    it.write_markers(producer, ABORT, 2, 5)
    it.write_markers(producer, ABORT, 2, 3)
    it.write_markers(producer, COMMIT, 9)
    it.produce("a", producer, 1, 2)
    it.write_markers(producer, COMMIT, 2, 5, 2)
    it.write_markers(after(producer), COMMIT, 2, 5, 2)
    it.write_markers(after(producer), COMMIT, 2, 5, 2)
    it.write_markers(other(producer), COMMIT, 2, 5, 2)
    it.produce("a", producer, 2, 2)
    it.state("a")


def transactions_listed(talk: Talk) -> None:
    it = Transcript(talk)
    busy, idle = it.init("busy"), it.init("idle")
    it.produce("busy", busy, 0)
    it.list(pattern="%.*")
    it.list(("Ongoing",), pattern="%.*")
    it.list(("Empty", "Nonsense"), pattern="%.*")
    it.list(("Nonsense",), pattern="%.*")
    it.list(producers=(idle,), pattern="%.*")
    it.list(producers=(idle, busy), pattern="%b[a-u]+sy")
    it.list(pattern="(")
    it.list(pattern="%bus")


def partitions_that_cannot_be_added(talk: Talk) -> None:
    it = Transcript(talk)
    it.find(GROUP_KEY, "g")
    first = it.init("a")
    for version in range(4):
        it.add("a", first, version=version)
        it.add("a", first, -1, version=version)
        it.add_internal("a", first, version)
    for version in (4, 5):
        for verify in (True, False):
            it.add_as_broker("a", first, 0, 9, verify=verify, version=version)
            it.add_as_broker("a", first, verify=verify, version=version)
            it.add_as_broker("", first, 0, verify=verify, version=version)
            it.add_as_broker("a", (-1, 0), 0, verify=verify, version=version)
            it.add_as_broker("a", (first[0], -1), 0, verify=verify, version=version)
    it.state("a")


def transactions_listed_by_age(talk: Talk) -> None:
    it = Transcript(talk)
    busy, done = it.init("busy"), it.init("done")
    it.init("idle")
    it.produce("busy", busy, 0)
    it.produce("done", done, 0, 1)
    it.end("done", done, COMMIT)
    it.state("done")
    for longer_than_ms in (-5, 10**9, 2**63 - 1):
        it.list(pattern="%.*", longer_than_ms=longer_than_ms)


def transactions_read(talk: Talk) -> None:
    it = Transcript(talk)
    one, two, three = it.init("one"), it.init("two"), it.init("three")
    it.produce("one", one, 0)
    it.produce("two", two, 0)
    it.produce("three", three, 0)
    it.produce("two", two, 1)
    it.read(0)
    it.end("two", two, ABORT)
    it.state("two")
    it.read(0)
    it.end("one", one, COMMIT)
    it.state("one")
    it.read(0)
    it.read(1)
    it.end("three", three, ABORT)
    it.state("three")
    it.read(0)
    it.read(4)
    it.read(7)
    it.read(8)


TRANSACTIONS: tuple[Callable[[Talk], None], ...] = (
    transactions_of_version_2,
    fencing,
    transaction_timeouts,
    transactions_of_version_0,
    versions_mixed,
    markers,
    partitions_that_cannot_be_added,
    transactions_listed,
    transactions_listed_by_age,
    transactions_read,
)
