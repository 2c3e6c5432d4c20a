"""Producer ids, handed out from blocks that the controller gives to one broker and never again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from millstream.protocol.errors import BrokerError, CoordinatorLoading

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class ProducerIds:
    """This broker's ids. Many may ask at once; one block is fetched for all of them."""

    def __init__(self, allocate_block: Callable[[], Awaitable[range]]) -> None:
        self._allocate_block = allocate_block
        self._block = range(0)
        self._refill = asyncio.Lock()
        self._refilling: asyncio.Task[None] | None = None

    @property
    def in_stock(self) -> int:
        """How many can be taken without waiting."""
        return len(self._block)

    async def next(self) -> int:
        """Wait for an id, if none is in stock."""
        while not self._block:
            await self.stock_up()
        return self.take()

    def take(self) -> int:
        """An id at once. Where none is left, the next block is asked for and the client told to come again."""
        if not self._block:
            self._stock_up_in_background()
            raise CoordinatorLoading("no producer id is left; the controller was asked for more")
        taken = self._block[0]
        self._block = self._block[1:]
        return taken

    async def stock_up(self) -> None:
        async with self._refill:
            if not self._block:
                self._block = await self._allocate_block()

    def _stock_up_in_background(self) -> None:
        if self._refilling is None or self._refilling.done():
            self._refilling = asyncio.get_running_loop().create_task(self._try_to_stock_up())

    async def _try_to_stock_up(self) -> None:
        try:
            await self.stock_up()
        except BrokerError:
            return  # whoever needs an id next asks again
