"""Asking the active controller, whoever that is.

    answer = await node.ask_controller(AlterPartitionRequest(...), timeout_ms=2000)

Where this node is the active controller the handler is called here, without a socket. Otherwise the request goes to the
node that leads the metadata quorum, as far as this node knows. While nobody is known to lead, where the node that was
asked cannot be reached or says NOT_CONTROLLER, and when another one takes over while the answer is awaited, the
question is asked again. So a request may be carried out twice: those that are sent here bear that, since they name the
epochs they mean (as AlterPartition does), or because doing it twice changes nothing.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from millstream.broker.dispatch import HANDLERS, OwnContext, answer_of
from millstream.broker.peers import PeerUnreachable
from millstream.protocol.declare import declaration
from millstream.protocol.errors import ErrorCode, NotController, RequestTimedOut

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from millstream.broker.node import Node

RETRY_PAUSE_S = 0.05
# How often somebody who waits for an answer looks whether the one it asked is still the active controller.
LOOK_S = 0.2


class ControllerChannel:
    """See the module's docstring."""

    def __init__(self, node: Node) -> None:
        self._node = node

    async def ask(
        self, request: Any, *, version: int | None = None, timeout_ms: int, purpose: str = "controller"
    ) -> Any:
        """The active controller's answer; RequestTimedOut where none came in time. See `Peers` for the purpose."""
        clock = self._node.ports.clock
        deadline_ms = clock.monotonic_ms() + timeout_ms
        while True:
            left_ms = deadline_ms - clock.monotonic_ms()
            try:
                answer = await self._attempt(request, version, max(left_ms, 1), purpose)
            except (PeerUnreachable, NotController) as error:
                why = str(error)
            else:
                if getattr(answer, "error_code", 0) != ErrorCode.NOT_CONTROLLER:
                    return answer
                why = "the node that was asked is not the active controller"
            if clock.monotonic_ms() + RETRY_PAUSE_S * 1000 >= deadline_ms:
                raise RequestTimedOut(f"{_name(request)} could not be brought to the active controller: {why}")
            await asyncio.sleep(RETRY_PAUSE_S)

    async def _attempt(self, request: Any, version: int | None, timeout_ms: int, purpose: str) -> Any:
        controller = self._node.controller
        if controller.is_active:
            return await self._ask_here(request, version)
        leader = controller.leader()
        if leader is None or leader.id == self._node.node_id:
            raise PeerUnreachable("no controller is known to be active")
        peer = self._node.peers.at(leader.host, leader.port, purpose)
        return await self._while_it_leads(peer.ask(request, version=version, timeout_ms=timeout_ms), leader.epoch)

    async def _while_it_leads(self, asking: Coroutine[Any, Any, Any], epoch: int) -> Any:
        """The answer, unless another controller takes over first: who was asked may never answer."""
        task = asyncio.ensure_future(asking)
        try:
            while True:
                done, _ = await asyncio.wait((task,), timeout=LOOK_S)
                if done:
                    return task.result()
                now = self._node.controller.leader()
                if now is not None and now.epoch != epoch:
                    raise NotController("another controller took over")
        finally:
            task.cancel()

    async def _ask_here(self, request: Any, version: int | None) -> Any:
        api_key = declaration(type(request)).api_key
        assert api_key is not None
        handling = HANDLERS[api_key]
        ctx = OwnContext(self._node, api_key, handling.served.last if version is None else version)
        return await answer_of(handling.call(request, ctx))


def _name(request: Any) -> str:
    return type(request).__name__.removesuffix("Request")
