"""Tells the controller in which log directory each replica lives, and which of them have lost theirs (KIP-858).

Until the controller knows that a replica's files have failed, nobody else leads instead. So a report is kept until it
is taken, however long there is no controller: what cannot be said now is said again, with what came up since. There is
one request at a time.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from millstream.metadata.decide_directories import directories_request
from millstream.protocol.errors import BrokerError, ErrorCode
from millstream.runtime.logs import Logger

if TYPE_CHECKING:
    from millstream.broker.node import Node
    from millstream.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsResponse
    from millstream.protocol.uuid import Uuid

    Places = dict[tuple[Uuid, int], Uuid]

_TIMEOUT_MS = 10_000
_PAUSE_S = 0.1
_PAUSE_S_MAX = 2.0
# Said of a replica: the report came too late, there is nothing left to report.
_TOO_LATE = (
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
)
# Said of the broker: another one has its number by now. A heartbeat tells it the same, and it stops.
_REPLACED = (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED)

_log = Logger("millstream.directories")


class DirectoryReports:
    """See the module's docstring."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._untold: Places = {}
        self._telling: asyncio.Task[None] | None = None
        self._is_stopped = False

    def add(self, topic_id: Uuid, index: int, directory_id: Uuid) -> None:
        """Tell it soon, together with everything else of this turn of the loop.

        Not once this has stopped: a disk may fail in the node's last sync, and the next start finds that out by itself.
        """
        if self._is_stopped:
            return
        self._untold[topic_id, index] = directory_id
        if self._telling is None:
            self._telling = self._node.loop.create_task(self._tell_all())

    async def stop(self) -> None:
        self._is_stopped = True
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.gather(self._telling, return_exceptions=True)

    async def _tell_all(self) -> None:
        pause_s = _PAUSE_S
        try:
            while self._untold:
                told, self._untold = self._untold, {}
                if await self._tell(told):
                    pause_s = _PAUSE_S
                else:
                    await asyncio.sleep(pause_s)
                    pause_s = min(2 * pause_s, _PAUSE_S_MAX)
        finally:
            self._telling = None

    async def _tell(self, places: Places) -> bool:
        """Whether it was taken. What has to be told again is untold after this, unless there is newer word of it."""
        node = self._node
        request = directories_request(node.node_id, node.broker_epoch, places)
        try:
            answer = await node.ask_controller(request, timeout_ms=_TIMEOUT_MS)
        except BrokerError as error:
            return self._again(places, str(error))
        code = answer.error_code
        if code in _REPLACED:
            _log.warning("this broker's replicas are somebody else's by now", error=_name_of(code))
            return True
        if code != ErrorCode.NONE:
            return self._again(places, _name_of(code))
        refused = {place: why for place, why in _refusals(answer).items() if why not in _TOO_LATE}
        if not refused:
            return True
        return self._again({place: places[place] for place in refused}, _name_of(next(iter(refused.values()))))

    def _again(self, places: Places, why: str) -> bool:
        _log.warning("a report of log directories was not taken and is made again", replicas=len(places), why=why)
        self._untold = {**places, **self._untold}
        return False


def _refusals(answer: AssignReplicasToDirsResponse) -> dict[tuple[Uuid, int], int]:
    return {
        (topic.topic_id, partition.partition_index): partition.error_code
        for directory in answer.directories
        for topic in directory.topics
        for partition in topic.partitions
        if partition.error_code != ErrorCode.NONE
    }


def _name_of(code: int) -> str:
    """A controller may be newer than this broker, and know codes that this one does not."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"
