"""Requests that are made one after the other reach a broker in that order, however many brokers each of them is for."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from millstream.client.admin.topics import NewTopic, create_topics
from millstream.client.produce import init_producer_id, produce, produce_once
from millstream.records.building import encode_batch
from millstream.testing.cluster import SimulatedCluster
from millstream.testing.simulation import base_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

EVERYWHERE, ONE = range(6), (0,)


@pytest.mark.parametrize("calls", [(EVERYWHERE, ONE), (ONE, EVERYWHERE), (EVERYWHERE, ONE, ONE, EVERYWHERE, ONE)])
def test_calls_of_one_turn_keep_their_order(calls: Sequence[Sequence[int]]) -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        client = cluster.client()
        await create_topics(client, [NewTopic("ordered", partitions=6)])
        producer = await init_producer_id(client)
        sent: Counter[int] = Counter()

        def batches(partitions: Sequence[int]) -> dict[tuple[str, int], bytearray]:
            made = {}
            for index in partitions:
                made["ordered", index] = encode_batch(
                    [(None, b"value", (), 0)],
                    producer_id=producer.id,
                    producer_epoch=producer.epoch,
                    base_sequence=sent[index],
                )
                sent[index] += 1
            return made

        await produce(client, batches(EVERYWHERE))
        for _ in range(10):
            made = [batches(partitions) for partitions in calls]
            outcomes = await asyncio.gather(*(produce_once(client, each) for each in made))
            assert [failure for _, failure in outcomes] == [None] * len(calls)
        await client.close()

    SimulatedCluster(3, nodes=3, settings=base_settings(3)).run(scenario)
