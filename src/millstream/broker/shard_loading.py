"""Replays a coordinator's partition into its machine.

Records are applied in order, except committed offsets: of those only the last value of each key is decoded and applied,
after everything else. A million commits of a thousand keys then cost a thousand decodings. While a transaction is open
they are applied in order too: whether a commit came before or after a transaction's own makes a difference. And a group
that ends takes the offsets before its end with it, so those are applied before.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from millstream.protocol.coordinator_frame import decode_coordinator_key, decode_coordinator_value
from millstream.protocol.errors import UnknownRecordType
from millstream.records.building import ControlType
from millstream.records.reading import control_record, decode_records, each_batch
from millstream.runtime.logs import Logger

if TYPE_CHECKING:
    from millstream.log.log import Log
    from millstream.protocol.apis import CoordinatorLog
    from millstream.records.batch import BatchHeader
    from millstream.runtime.shard import Machine

_SLICE_BYTES = 256 * 1024
# The key types of committed offsets in `__consumer_offsets`: 0 (written by very old brokers) and 1.
_OFFSET_KEYS = (b"\x00\x00", b"\x00\x01")
# The key types whose tombstones end a group: classic, consumer.
_GROUP_KEYS = (b"\x00\x02", b"\x00\x03")
_NOTHING = (None, -1, None)

_log = Logger("millstream.coordinator")


async def load_shard(kind: CoordinatorLog, machine: Machine, log: Log) -> int:
    """Replay everything; the last offset read."""
    replay = _Replay(kind, machine)
    offset = log.start_offset
    while offset < log.end_offset:
        data = log.read(offset, _SLICE_BYTES, log.end_offset, at_least_one_batch=True)
        if not data:
            break
        for position, header in each_batch(data):
            offset = header.next_offset
            if header.is_control:
                replay.control_batch(data, position, header)
            else:
                replay.batch(data, position, header)
        await asyncio.sleep(0)
    replay.apply_offsets()
    return offset - 1


class _Replay:
    """A replay under way: what it puts off, and the transactions that are open where it is."""

    def __init__(self, kind: CoordinatorLog, machine: Machine) -> None:
        self._kind = kind
        self._machine = machine
        # By key: the last value and its offset; before a tombstone also one value, which tells that there was a group.
        self._offsets: dict[bytes, tuple[bytes | None, int, bytes | None]] = {}
        self._open_transactions: dict[int, None] = {}

    def control_batch(self, data: bytes, position: int, header: BatchHeader) -> None:
        control = control_record(data, position)
        if control.type in (ControlType.COMMIT, ControlType.ABORT):
            self._open_transactions.pop(header.producer_id, None)
            self._machine.end_transaction(
                header.producer_id, header.producer_epoch, committed=control.type == ControlType.COMMIT
            )

    def batch(self, data: bytes, position: int, header: BatchHeader) -> None:
        transaction = (header.producer_id, header.producer_epoch) if header.is_transactional else None
        if transaction is not None:
            self.apply_offsets()
            self._open_transactions[header.producer_id] = None
        defer_offsets = self._kind == "groups" and not self._open_transactions
        for offset, _, key, value, _ in decode_records(data, position, header=header):
            if key is None:
                continue
            if defer_offsets and key[:2] in _OFFSET_KEYS:
                self._offsets[key] = (value, offset, None if value is not None else self._last_value(key))
                continue
            if value is None and key[:2] in _GROUP_KEYS:
                self.apply_offsets()
            self._apply(key, value, transaction, offset)

    def _last_value(self, key: bytes) -> bytes | None:
        value, _, before = self._offsets.get(key, _NOTHING)
        return before if value is None else value

    def apply_offsets(self) -> None:
        """Catch up with what was put off."""
        for key, (value, offset, before) in self._offsets.items():
            if before is not None:
                self._apply(key, before, None, offset)
            self._apply(key, value, None, offset)
        self._offsets.clear()

    def _apply(self, key: bytes, value: bytes | None, transaction: tuple[int, int] | None, offset: int) -> None:
        try:
            decoded_key = decode_coordinator_key(self._kind, key)
            decoded: Any = None if value is None else decode_coordinator_value(self._kind, decoded_key, value)[0]
        except UnknownRecordType as unknown:
            _log.warning("a record of a newer release was passed over", offset=offset, error=str(unknown))
            return
        self._machine.apply(decoded_key, decoded, transaction=transaction, offset=offset)
