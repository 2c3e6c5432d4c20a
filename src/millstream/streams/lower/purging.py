"""Repartition topics lose what nobody will read again, as Kafka Streams' do.

What may be read again is what Spark's checkpoint says, not the group's offsets: a driver that was killed does its last
planned micro-batch anew, from where the one before ended, also if it was committed and Spark does not know. That a
micro-batch is planned says that the one before is done, in the checkpoint too. So when one begins, nothing before its
start is ever planned again. One more is kept, of each partition: a checkpoint that lost its newest file to a power
failure plans the micro-batch before once more, and then finds that it was committed.

The group's offsets, where a query goes on that has lost its checkpoint, are never before that: they are stored before
Spark hears that the micro-batch is done, with both guarantees. And a driver that was taken over by another one deletes
nothing that the other needs, since it deletes nothing behind offsets that it has stored itself.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

from millstream.client.admin.topics import delete_records
from millstream.client.errors import Refusal
from millstream.client.sync import SyncClient

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from millstream.client.grouping import TopicPartition

log = logging.getLogger("millstream.streams")

_CLOSE_S: Final = 5.0


class Purging:
    """For the repartition topics of one running application, on a thread of its own."""

    def __init__(self, connection: Mapping[str, str], topics: Collection[str], interval_ms: int, name: str) -> None:
        """`topics` are those of the application alone, each read by one sub-topology."""
        self._connection = {**connection, "client.id": f"{name}-purging"}
        self._topics = frozenset(topics)
        self._interval_s = interval_ms / 1000
        self._looking = threading.Lock()
        self._starts: dict[TopicPartition, int] = {}
        self._done: dict[TopicPartition, int] = {}
        self._purged: dict[TopicPartition, int] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"purging-{name}", daemon=True)

    def start(self) -> None:
        if self._topics:
            self._thread.start()

    def begun(self, starts: Mapping[TopicPartition, int]) -> None:
        """A micro-batch begins here. One that is tried again begins where it did before, and says nothing new."""
        with self._looking:
            for place, start in starts.items():
                if place[0] in self._topics:
                    known = self._starts.setdefault(place, start)
                    if start > known:
                        self._starts[place], self._done[place] = start, known

    def purge(self) -> dict[TopicPartition, int]:
        """Delete what may go now; where partitions begin that have lost something."""
        with self._looking:
            due = {place: offset for place, offset in self._done.items() if offset > self._purged.get(place, 0)}
        if not due:
            return {}
        with SyncClient(self._connection) as client:
            outcomes = client.run(delete_records, due)
        purged = {place: first for place, first in outcomes.items() if not isinstance(first, Refusal)}
        self._purged.update(purged)
        for outcome in outcomes.values():
            if isinstance(outcome, Refusal):
                raise outcome
        return purged

    def _run(self) -> None:
        while not self._ended.wait(self._interval_s):
            try:
                self.purge()
            except Exception as error:  # noqa: BLE001  # it is tried again, and the application goes on meanwhile
                if not self._ended.is_set():
                    log.warning("repartition topics are not purged now: %s", error)

    def close(self) -> None:
        self._ended.set()
        if self._thread.is_alive():
            # Whoever resets the application next should not find it deleting.
            self._thread.join(_CLOSE_S)
