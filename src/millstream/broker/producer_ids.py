"""Producer ids, handed out from blocks that the controller gives to one broker and never again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class ProducerIds:
    """This broker's ids. Many may ask at once; one block is fetched for all of them."""

    def __init__(self, allocate_block: Callable[[], Awaitable[range]]) -> None:
        self._allocate_block = allocate_block
        self._block = range(0)
        self._refill = asyncio.Lock()

    async def next(self) -> int:
        while not self._block:
            async with self._refill:
                if not self._block:
                    self._block = await self._allocate_block()
        taken = self._block[0]
        self._block = self._block[1:]
        return taken
