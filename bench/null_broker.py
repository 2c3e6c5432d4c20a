"""Two brokers that are none: what a client can do at most on this machine, and what storing alone leaves of it.

Millstream with one change: Produce appends nothing and answers that all is well. Where a row's load generator is the
limit, no broker can be further ahead than this one. With `--stores` it does the least that any broker must who keeps
what it is sent: it checks each batch's CRC and writes the batch to its partition's file. No offsets, no index, no
producer state, no look at a record. The table shows both beside the contenders.
"""

from __future__ import annotations

import os
import sys
import tempfile
from typing import TYPE_CHECKING, Any

from millstream.broker.handlers import produce
from millstream.cli.main import main
from millstream.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from millstream.records.batch import CRC_AT, crc_of

if TYPE_CHECKING:
    from millstream.broker.dispatch import Context
    from millstream.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

STORES = "--stores"
_files: dict[tuple[bytes, int], int] = {}


def accept_and_forget(request: ProduceRequest, _ctx: Context, _refused: Any) -> ProduceResponse:
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionProduceResponse(index=data.index, base_offset=0, log_append_time_ms=-1, log_start_offset=0)
                    for data in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )


def accept_and_store(request: ProduceRequest, ctx: Context, refused: Any) -> ProduceResponse:
    for topic in request.topic_data:
        for data in topic.partition_data:
            _store(topic, data)
    return accept_and_forget(request, ctx, refused)


def _store(topic: TopicProduceData, data: PartitionProduceData) -> None:
    batch = data.records
    assert batch is not None
    assert crc_of(batch, 0, len(batch)) == int.from_bytes(batch[CRC_AT : CRC_AT + 4]), "a batch came in damaged"
    key = (bytes(topic.topic_id), data.index)
    if key not in _files:
        descriptor, name = tempfile.mkstemp(prefix="stored-")
        os.unlink(name)
        _files[key] = descriptor
    os.write(_files[key], batch)


if __name__ == "__main__":
    produce._append_all = accept_and_forget
    if STORES in sys.argv:
        sys.argv.remove(STORES)
        produce._append_all = accept_and_store
    sys.exit(main())
