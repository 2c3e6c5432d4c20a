"""All that a broker says of groups, offsets, transactions and producers, in a form that can be compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from millstream.protocol.messages.describe_groups import DescribeGroupsRequest
from millstream.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from millstream.protocol.messages.describe_transactions import DescribeTransactionsRequest
from millstream.protocol.messages.list_groups import ListGroupsRequest
from millstream.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from millstream.protocol.messages.list_transactions import ListTransactionsRequest
from millstream.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tests.kafka_directory.coordinated import PASSING
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.support.raw import RawClient

READ_COMMITTED = 1
LATEST = -1
# What belongs to the broker that answers, not to what it tells of: a new leader has a new epoch.
OF_THE_BROKER = {"throttle_time_ms", "leader_epoch"}


def plain(value: Any) -> Any:
    """Lists in an order of their own, bytes as text: neither broker promises an order here."""
    if isinstance(value, msgspec.Struct):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__ if name not in OF_THE_BROKER}
    if isinstance(value, list | tuple):
        return sorted((plain(each) for each in value), key=str)
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    return value


def _codes(value: Any) -> set[int]:
    """Every error code in an answer."""
    if isinstance(value, dict):
        own = {value["error_code"]} if "error_code" in value else set()
        return own.union(*(_codes(each) for each in value.values()))
    if isinstance(value, list):
        return set().union(*(_codes(each) for each in value))
    return set()


def state_of(
    client: RawClient, topic: str, partitions: int, *, groups_known: Iterable[str], transactions_known: Iterable[str]
) -> dict[str, Any]:
    """What the broker says, once it has loaded everything and every ended transaction has its markers.

    A broker that has not begun to load lists nothing, and says so in no other way: so it is asked by name first.
    """

    def asked(request: Any, version: int) -> Any:
        return plain(client.call(request, version))

    def loaded() -> bool:
        known = [
            asked(DescribeGroupsRequest(groups=list(groups_known)), 6),
            asked(DescribeTransactionsRequest(transactional_ids=list(transactions_known)), 0),
        ]
        return not _codes(known) & PASSING

    def everything() -> dict[str, Any] | None:
        groups = asked(ListGroupsRequest(), 5)
        transactions = asked(ListTransactionsRequest(state_filters=[], producer_id_filters=[]), 1)
        kinds = {each["group_id"]: each["group_type"] for each in groups["groups"]}
        ids = [each["transactional_id"] for each in transactions["transaction_states"]]
        numbers = list(range(partitions))
        classic = [name for name, kind in kinds.items() if kind == "classic"]
        new = [name for name, kind in kinds.items() if kind == "consumer"]
        everybody = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in sorted(kinds)]
        ends = [ListOffsetsPartition(partition_index=number, timestamp=LATEST) for number in numbers]
        ends_request = ListOffsetsRequest(
            replica_id=-1, isolation_level=READ_COMMITTED, topics=[ListOffsetsTopic(name=topic, partitions=ends)]
        )
        found = {
            "groups": groups,
            "classic": asked(DescribeGroupsRequest(groups=classic), 6),
            "new": asked(ConsumerGroupDescribeRequest(group_ids=new, include_authorized_operations=False), 1),
            "offsets": asked(OffsetFetchRequest(groups=everybody), 9),
            "stable offsets": asked(OffsetFetchRequest(groups=everybody, require_stable=True), 9),
            "transactions": transactions,
            "described": asked(DescribeTransactionsRequest(transactional_ids=ids), 0),
            "producers": asked(
                DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=numbers)]), 0
            ),
            "stable ends": asked(ends_request, 7),
        }
        preparing = any(each["transaction_state"].startswith("Prepare") for each in transactions["transaction_states"])
        return None if preparing or _codes(found) & PASSING else found

    wait_until(loaded, "the broker to lead its internal topics", within_s=180, every_s=0.1)
    found = wait_until(everything, "the broker to have loaded all", within_s=180, every_s=0.1)
    fine = {ErrorCode.NONE, ErrorCode.UNSTABLE_OFFSET_COMMIT}
    refused = {what: said for what, said in found.items() if not _codes(said) <= fine}
    assert not refused, refused
    return found
