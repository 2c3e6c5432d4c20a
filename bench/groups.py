"""Groups at the coordinator: how fast a hundred members agree, how many commits it takes in."""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time
from functools import partial
from typing import TYPE_CHECKING

import uvloop
from tests.support.raw import RawClient

from bench import contenders, offsets
from bench.member_connection import MemberConnection
from bench.members import ClassicMember, ConsumerMember, Group
from bench.rows import Bar, Figures, Row

if TYPE_CHECKING:
    from tests.support.running import RunningBroker

    from bench.session import Session

MEMBERS = 100
COMMITS = 20_000
_group_numbers = itertools.count(1)


def join(session: Session, name: str, kind: type[ClassicMember | ConsumerMember]) -> Figures:
    """The median of several groups, after as many to be warm. Every member has a connection, made beforehand."""
    broker = session.broker(name)
    groups = session.amount(20, 1)
    with contenders.topic(broker, partitions=MEMBERS) as topic:
        names = [f"{topic}-group-{next(_group_numbers)}" for _ in range(2 * groups)]
        with RawClient.of(broker, timeout_s=60) as client:
            offsets.wait_for_coordinators(client, names)
        took_s = uvloop.run(_form(broker, topic, names, kind))
    return {"s": statistics.median(took_s[groups:]), "slowest s": max(took_s[groups:])}


async def _form(
    broker: RunningBroker, topic: str, names: list[str], kind: type[ClassicMember | ConsumerMember]
) -> list[float]:
    connections = await asyncio.gather(*(MemberConnection.open(broker) for _ in range(MEMBERS)))
    took_s = []
    for name in names:
        group = Group(name, topic, MEMBERS)
        took_s.append(await group.form([kind(group, each, number) for number, each in enumerate(connections)]))
    for connection in connections:
        connection.close()
    return took_s


def commit(session: Session, name: str) -> Figures:
    """One partition in each commit, so that each is a request and a record; as many before, to be warm."""
    broker = session.broker(name)
    count = session.amount(COMMITS, 2_000)
    with contenders.topic(broker) as topic, RawClient.of(broker, timeout_s=60) as client:
        group = f"committers-of-{topic}"
        offsets.wait_for_coordinators(client, [group])
        frames = offsets.commit_frames([group], topic, range(6), rounds=count // 6, partitions_each=1)
        offsets.send_all(client, frames)
        began = time.perf_counter()
        offsets.send_all(client, frames)
        took_s = time.perf_counter() - began
        assert offsets.fetched(client, [group], topic) == {group: count // 6}
    return {"commits/s": len(frames) / took_s}


ROWS = (
    Row(
        "join-classic",
        f"{MEMBERS} members join one group until stable, classic protocol",
        partial(join, kind=ClassicMember),
        (Bar("s", "s", ratio_at_most=0.7),),
    ),
    Row(
        "join-consumer",
        f"{MEMBERS} members join one group until stable, consumer protocol (KIP-848)",
        partial(join, kind=ConsumerMember),
        (Bar("s", "s", ratio_at_most=0.7),),
    ),
    Row(
        "commits",
        f"{COMMITS:,} offset commits from one client, pipelined",
        commit,
        (Bar("commits/s", "commits/s", ratio_at_least=1.5),),
    ),
)
