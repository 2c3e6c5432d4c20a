"""The real broker on virtual time and a lossy disk, crashed after every write, fsync and rename.

A dry run counts the disk's steps; then the same work runs once per step with the power going at that step. What was
acknowledged before must be there after the restart: always when only the process died, and with
`millstream.acks.fsync` also when everything unsynced is gone.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from millstream.client.admin.topics import NewTopic, create_topics, delete_records, delete_topics, list_topics
from millstream.client.errors import ClientError, Refusal
from millstream.client.fetch import fetch
from millstream.client.produce import Producer
from millstream.client.reading import batches_from
from millstream.testing.machine import Machine
from tests.sim.seeds import fresh_seeds, how_to_replay, kept_seeds, name_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.sim.conftest import Tried

PARTITIONS = 2
ROUNDS = 6


@dataclass
class History:
    """What the client was promised."""

    created: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    acked: dict[int, list[tuple[int, bytes]]] = field(default_factory=lambda: {0: [], 1: []})
    sent: dict[int, list[bytes]] = field(default_factory=lambda: {0: [], 1: []})
    start: int = 0


def machine(seed: int, *, fsync: bool) -> Machine:
    return Machine(
        seed=seed,
        settings={
            "millstream.acks.fsync": "true" if fsync else "false",
            "log.flush.offset.checkpoint.interval.ms": "50",
            "replica.high.watermark.checkpoint.interval.ms": "40",
        },
    )


def work(history: History):
    async def run(at: Machine) -> None:
        client = at.client
        for name in ("orders", "short-lived"):
            made = (await create_topics(client, [NewTopic(name, PARTITIONS, 1, {"internal.segment.bytes": "400"})]))[
                name
            ]
            assert not isinstance(made, Refusal), made
            history.created.append(name)
        producer = Producer(client, timeout_ms=5_000)
        for number in range(ROUNDS):
            for partition in range(PARTITIONS):
                value = f"{partition}-{number}".encode() * 10
                history.sent[partition].append(value)
                produced = await producer.send(
                    "orders", partition, [(b"key", value, [], at.node.ports.clock.wall_ms())]
                )
                history.acked[partition].append((produced.base_offset, value))
            if number == ROUNDS // 2:
                assert (await delete_topics(client, ["short-lived"]))["short-lived"] is None
                history.deleted.append("short-lived")
                # From here on it may be carried out, whether or not that is heard.
                history.start = 1
                low = (await delete_records(client, {("orders", 0): 1}))["orders", 0]
                assert low == 1

    return run


def check(history: History):
    async def run(at: Machine) -> None:
        names = [topic.name for topic in await list_topics(at.client)]
        assert "orders" in names or "orders" not in history.created
        if "short-lived" in history.deleted:
            assert "short-lived" not in names
        if "orders" not in names:
            return
        producer = Producer(at.client, timeout_ms=5_000)
        for partition in range(PARTITIONS):
            # The log goes on where it ended; once this is acknowledged, all before it can be read.
            last = await producer.send("orders", partition, [(b"key", b"after", [], at.node.ports.clock.wall_ms())])
            found = await read_all(at, partition)
            assert found.pop(last.base_offset) == b"after"
            for offset, value in history.acked[partition]:
                if partition == 0 and offset < history.start and offset not in found:
                    continue
                assert found.get(offset) == value, f"acknowledged at {offset} of {partition}, found {found}"
            values = list(found.values())
            assert len(set(values)) == len(values), "an idempotent producer writes once"
            assert [value for value in history.sent[partition] if value in values] == values, "in the order sent"

    return run


async def read_all(at: Machine, partition: int) -> dict[int, bytes]:
    """Every record, by offset."""
    log = at.node.partitions.get("orders", partition)
    assert log is not None
    found: dict[int, bytes] = {}
    offset = log.log.start_offset
    while offset < log.log.high_watermark:
        (fetched,) = await fetch(at.client, {("orders", partition): offset}, max_wait_ms=0)
        for batch in batches_from(fetched, offset):
            for record in batch.records:
                found[record.offset] = bytes(record.value or b"")
                offset = record.offset + 1
    return found


def steps_of_a_whole_run(*, fsync: bool) -> int:
    whole = machine(seed=1, fsync=fsync)
    history = History()
    whole.run(work(history))
    assert len(history.acked[0]) == ROUNDS
    whole.run(check(history))
    return whole.disk.steps


def crash_at_every_step(seeds: Iterable[int], *, fsync: bool, lose_unsynced: bool) -> None:
    steps = steps_of_a_whole_run(fsync=fsync)
    assert steps > 50
    for seed, step in itertools.product(seeds, range(1, steps + 1)):
        crashing = machine(seed=seed * 1_000_000 + step, fsync=fsync)
        history = History()
        crashing.disk.power_off_at = step
        at = "before it"
        try:
            crashing.run(work(history))
            at = crashing.disk.last_step
            crashing.disk.crash(keep_unsynced=not lose_unsynced)
            crashing.run(check(history))
        except (AssertionError, ClientError, OSError) as error:
            again = how_to_replay("one-node-crash", "tests/sim/test_one_node_crash.py", seed, fsync=int(fsync))
            raise AssertionError(f"crash at step {step} ({at}), fsync={fsync}: {error}\n{again}") from error


def every_step_holds(tried: Tried, *, fsync: bool, lose_unsynced: bool) -> None:
    fresh = fresh_seeds(1)
    seeds = [*kept_seeds("one-node-crash", fsync=int(fsync)), *fresh]
    crash_at_every_step(seeds, fsync=fsync, lose_unsynced=lose_unsynced)
    tried("a crash at every step", len(seeds), name_of(fresh))


@pytest.mark.slow
def test_a_killed_process_loses_nothing_acknowledged_whatever_step_is_its_last(tried: Tried) -> None:
    every_step_holds(tried, fsync=False, lose_unsynced=False)


@pytest.mark.slow
def test_with_fsync_a_power_failure_loses_nothing_acknowledged_whatever_step_is_the_last(tried: Tried) -> None:
    every_step_holds(tried, fsync=True, lose_unsynced=True)


def test_the_test_bites_without_fsync_a_power_failure_loses_something() -> None:
    with pytest.raises(AssertionError, match="acknowledged at"):
        crash_at_every_step([0], fsync=False, lose_unsynced=True)
