"""A broker that keeps nothing: what a client can do at most on this machine.

Millstream with one change: Produce answers that all is well and appends nothing. Where a row's load generator is the
limit, no broker can be further ahead than this one; the table shows it beside the contenders.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from millstream.broker.handlers import produce
from millstream.cli.main import main
from millstream.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse

if TYPE_CHECKING:
    from millstream.broker.dispatch import Context
    from millstream.protocol.messages.produce import ProduceRequest


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


if __name__ == "__main__":
    produce._append_all = accept_and_forget
    sys.exit(main())
