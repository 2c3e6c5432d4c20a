"""Replays a coordinator's partition into its machine.

Records are applied in order, except committed offsets: of those only the last value of each key is decoded and applied,
after everything else. A million commits of a thousand keys then cost a thousand decodings. While a transaction is open
they are applied in order too: whether a commit came before or after a transaction's own makes a difference.
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
    from millstream.runtime.shard import Machine

_SLICE_BYTES = 256 * 1024
# The key types of committed offsets in `__consumer_offsets`: 0 (written by very old brokers) and 1.
_OFFSET_KEYS = (b"\x00\x00", b"\x00\x01")

_log = Logger("millstream.coordinator")


async def load_shard(kind: CoordinatorLog, machine: Machine, log: Log) -> int:
    """Replay everything; the last offset read."""
    offset = log.start_offset
    last_values: dict[bytes, tuple[bytes | None, int]] = {}
    open_transactions: dict[int, None] = {}
    while offset < log.end_offset:
        data = log.read(offset, _SLICE_BYTES, log.end_offset, at_least_one_batch=True)
        if not data:
            break
        for position, header in each_batch(data):
            offset = header.next_offset
            if header.is_control:
                control = control_record(data, position)
                if control.type in (ControlType.COMMIT, ControlType.ABORT):
                    open_transactions.pop(header.producer_id, None)
                    machine.end_transaction(
                        header.producer_id, header.producer_epoch, committed=control.type == ControlType.COMMIT
                    )
                continue
            transaction = (header.producer_id, header.producer_epoch) if header.is_transactional else None
            if transaction is not None:
                _apply_offsets(kind, machine, last_values)
                open_transactions[header.producer_id] = None
            defer_offsets = kind == "groups" and not open_transactions
            for offset_of_record, _, key, value, _ in decode_records(data, position, header=header):
                if key is None:
                    continue
                if defer_offsets and key[:2] in _OFFSET_KEYS:
                    last_values[key] = (value, offset_of_record)
                else:
                    _apply(kind, machine, key, value, transaction, offset_of_record)
        await asyncio.sleep(0)
    _apply_offsets(kind, machine, last_values)
    return offset - 1


def _apply_offsets(kind: CoordinatorLog, machine: Machine, last: dict[bytes, tuple[bytes | None, int]]) -> None:
    for key, (value, offset) in last.items():
        _apply(kind, machine, key, value, None, offset)
    last.clear()


def _apply(
    kind: CoordinatorLog,
    machine: Machine,
    key: bytes,
    value: bytes | None,
    transaction: tuple[int, int] | None,
    offset: int,
) -> None:
    try:
        decoded_key = decode_coordinator_key(kind, key)
        decoded: Any = None if value is None else decode_coordinator_value(kind, decoded_key, value)[0]
    except UnknownRecordType as unknown:
        _log.warning("a record of a newer release was passed over", offset=offset, error=str(unknown))
        return
    machine.apply(decoded_key, decoded, transaction=transaction, offset=offset)
