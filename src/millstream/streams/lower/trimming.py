"""Changelogs of windows lose what is old by stream time, and by that alone.

Kafka Streams gives them a retention, and brokers count a record's age from its own time to the wall clock. Whoever
works off last year's records would find the state of a moment ago expired; Kafka Streams has another copy on its disk,
here the changelog is all there is. So these topics expire nothing by themselves, and the application deletes what lies
before the first record that is young enough (docs/adr/0018). What is young is told from the changelog: its records have
the times of what its store has seen (tasks/stores.py), so the newest of its last ones is a time that the store has
reached, whatever else the application reads.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

from millstream.client.admin.topics import delete_records
from millstream.client.errors import Refusal
from millstream.client.offsets import list_offsets
from millstream.client.sync import SyncClient
from millstream.spark.clients import let_go
from millstream.spark.options import Selection
from millstream.spark.planning import earliest_of, find_present, latest_of
from millstream.streams.lower.tasks.restoring import read_back

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.client.grouping import TopicPartition

log = logging.getLogger("millstream.streams")

# As often as brokers look by default (log.retention.check.interval.ms).
_EVERY_S: Final = 300.0
# So many of the last records are looked at; among them are markers of transactions, which have the wall clock's time.
_LAST: Final = 500
_PATIENCE_MS: Final = 30_000
_CLOSE_S: Final = 5.0


class Trimming:
    """For the changelogs of one running application, on a thread of its own."""

    def __init__(self, connection: Mapping[str, str], retentions_ms: Mapping[str, int], name: str) -> None:
        """`retentions_ms`: for each changelog how long it keeps what is in it."""
        self._connection = {**connection, "client.id": f"{name}-trimming"}
        self._retentions_ms = dict(retentions_ms)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"trimming-{name}", daemon=True)

    def start(self) -> None:
        if self._retentions_ms:
            self._thread.start()

    def _run(self) -> None:
        # The first time at once, for what was left by runs that were shorter than the pause.
        while not self._ended.is_set():
            try:
                trim(self._connection, self._retentions_ms)
            except Exception as error:  # noqa: BLE001  # it is tried again, and the application goes on meanwhile
                if not self._ended.is_set():
                    log.warning("changelogs are not trimmed now: %s", error)
            self._ended.wait(_EVERY_S)
        let_go(self._connection)

    def close(self) -> None:
        self._ended.set()
        if self._thread.is_alive():
            # Whoever resets the application next should not find it deleting.
            self._thread.join(_CLOSE_S)


def trim(connection: Mapping[str, str], retentions_ms: Mapping[str, int]) -> dict[TopicPartition, int]:
    """Delete what is older than the retention, counted back from the newest; where partitions begin now that did not
    before."""
    with SyncClient(connection) as client:
        present = client.run(find_present, Selection(names=tuple(retentions_ms)))
        firsts = client.run(earliest_of, present.places)
        ends = client.run(latest_of, present.places, read_committed=True)
        young_ms: dict[TopicPartition, int] = {}
        for place, end in ends.items():
            begin = max(firsts[place], end - _LAST)
            rows = read_back(present.ids, connection, _PATIENCE_MS, *place, begin, end) if begin < end else ()
            newest_ms = max((time_ms for _, _, time_ms in rows), default=0)
            if newest_ms > retentions_ms[place[0]]:
                young_ms[place] = newest_ms - retentions_ms[place[0]]
        found = client.run(list_offsets, young_ms) if young_ms else {}
        old = {place: each.offset for place, each in found.items() if each.offset > firsts[place]}
        outcomes = client.run(delete_records, old) if old else {}
    trimmed: dict[TopicPartition, int] = {}
    for place, outcome in outcomes.items():
        if isinstance(outcome, Refusal):
            raise outcome
        trimmed[place] = outcome
    return trimmed
