"""Several requests of one producer under way at once, and each partition's batches in order all the same.

While a broker appends one request the next is already on its way to it; waiting for each answer leaves one of the two
idle. What keeps the order is the broker: it takes a batch with a producer id only if the sequence number is the one
that follows. So a request is sent once without much thought, and where a batch is refused, those behind it of the same
partition are refused as well. Each then waits until everything before it is settled, and is sent again with patience
(`produce`), one after the other. A broker recognises a producer's last five batches, so no more may be under way.

Two things a broker cannot check are left to whoever calls. A partition's first batch must have been acknowledged before
the second is sent: a producer that it has never heard of may begin with any number. And batches without a producer id
have no number at all, so a partition may have only one of those under way.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from millstream.client.errors import ClientError
from millstream.client.grouping import by_topic
from millstream.client.produce import produce, produce_once, unless_safe

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.client.client import Client
    from millstream.client.grouping import TopicPartition
    from millstream.client.produce import Produced

    Buffer = bytes | bytearray | memoryview

IN_FLIGHT_MAX: Final = 5


class GivenUp(ClientError):
    """A batch before this one could not be written, so neither can this one."""


class InOrder:
    """The requests of one producer, in the order in which `send` is called; use it from one event loop."""

    def __init__(self, acks: int, *, transactional_id: str | None = None, version_max: int = 32767) -> None:
        self._acks = acks
        self._transactional_id = transactional_id
        self._version_max = version_max
        # Whether the last one that was sent is settled well; False for good after the first that is not.
        self._last: asyncio.Future[bool] | None = None
        self._again = 0

    async def send(self, client: Client, batches: Mapping[TopicPartition, Buffer]) -> dict[TopicPartition, Produced]:
        """Write one batch to each of these partitions, after those of the calls before."""
        settled: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        before, self._last = self._last, settled
        well = False
        try:
            written = await self._send(client, batches, before)
            well = True
        finally:
            settled.set_result(well)
        return written

    async def _send(
        self, client: Client, batches: Mapping[TopicPartition, Buffer], before: asyncio.Future[bool] | None
    ) -> dict[TopicPartition, Produced]:
        written: dict[TopicPartition, Produced] = {}
        loop = asyncio.get_running_loop()
        patience_ms = client.options.delivery_timeout_ms
        began_s = loop.time()
        if self._again:
            # Something before is being sent again: what came now would only be refused.
            await _wait_for(before)
        else:
            try:
                written, failure = await produce_once(
                    client,
                    batches,
                    acks=self._acks,
                    transactional_id=self._transactional_id,
                    version_max=self._version_max,
                )
            except ClientError as error:
                failure = error
            if failure is None:
                return written
            if not isinstance(failure, ClientError):
                raise failure
            # An answer that did not come counts as a connection that was lost, which it is by now: the number tells a
            # broker that has the batch already.
            patience_ms -= int((loop.time() - began_s) * 1000)
            final = unless_safe(failure, batches)
            if patience_ms <= 0 or final is not failure:
                raise final
        self._again += 1
        try:
            await _wait_for(before)
            left = {place: batch for place, batch in batches.items() if place not in written}
            for topic in by_topic(left):
                client.metadata.forget(topic)
            written |= await produce(
                client,
                left,
                acks=self._acks,
                timeout_ms=patience_ms,
                transactional_id=self._transactional_id,
                version_max=self._version_max,
            )
        finally:
            self._again -= 1
        return written


async def _wait_for(before: asyncio.Future[bool] | None) -> None:
    # Shielded: whoever is cancelled while waiting must not cancel what others wait for too.
    if before is not None and not await asyncio.shield(before):
        raise GivenUp("a batch before this one could not be written")
