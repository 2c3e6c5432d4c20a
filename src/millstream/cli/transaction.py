"""`millstream transaction`: which are open, who holds them up, and an end for those that hang."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.cli.declare import Group, UsageError, argument, flag, option
from millstream.cli.output import Rows
from millstream.cli.times import parse_duration_ms
from millstream.client.admin import raise_first
from millstream.client.admin.hanging_transactions import (
    find_hanging,
    open_transactions,
    partitions_on,
)
from millstream.client.admin.transactions import (
    describe_transactions,
    force_terminate,
    list_transactions,
    write_abort_marker,
)
from millstream.client.errors import ClientError

if TYPE_CHECKING:
    from millstream.client.admin.hanging_transactions import OpenTransaction
    from millstream.client.sync import SyncClient

GROUP = Group("transaction", "Transactions: list, describe, abort.")
GROUPS = {"transaction": GROUP}
OPEN_STATES = ("Ongoing", "PrepareCommit", "PrepareAbort")
HANGING_COLUMNS = ("topic", "partition", "producer_id", "producer_epoch", "start_offset", "silent_s")


@GROUP.command(
    "list",
    option("--state", repeat=True, help="only in this state: Ongoing, CompleteCommit, ..."),
    option("--open-for", metavar="DURATION", help="only transactions that have been open for longer: 10m, 2h"),
    option("--pattern", metavar="REGEX", help="only ids that match"),
    example="millstream transaction list --open-for 10m",
)
def list_(client: SyncClient, *, state: list[str], open_for: str | None, pattern: str | None) -> Rows:
    """List transactional ids."""
    found = client.run(
        list_transactions,
        # A broker also counts the time of transactions that have ended.
        states=state or (OPEN_STATES if open_for is not None else ()),
        running_longer_than_ms=-1 if open_for is None else parse_duration_ms(open_for),
        pattern=pattern,
    )
    return Rows(
        ("transactional_id", "state", "producer_id", "coordinator"),
        [(each.id, each.state, each.producer_id, each.coordinator_id) for each in found],
    )


@GROUP.command(
    "describe",
    argument("ids", "transactional ids", nargs="+"),
    example="millstream transaction describe billing-1",
)
def describe(client: SyncClient, *, ids: list[str]) -> Rows:
    """Show what transactional ids have open."""
    return _described(client, ids)


def _described(client: SyncClient, ids: list[str], note: str = "") -> Rows:
    now_ms = client.client.ports.clock.wall_ms()
    rows = [
        (
            found.id,
            found.state,
            found.producer_id,
            found.producer_epoch,
            found.timeout_ms,
            None if found.started_ms < 0 else now_ms - found.started_ms,
            tuple(f"{topic}:{index}" for topic, index in sorted(found.partitions)),
            found.coordinator_id,
        )
        for found in raise_first(client.run(describe_transactions, ids)).values()
    ]
    columns = ("transactional_id", "state", "producer_id", "producer_epoch", "timeout_ms", "started_ms_ago")
    return Rows((*columns, "partitions", "coordinator"), rows, note=note)


@GROUP.command(
    "find-hanging",
    option("--topic", help="look at this topic (default: all)"),
    option("--partition", type=int, help="look at this partition of the topic"),
    option("--broker", type=int, help="look at this broker's replicas"),
    option("--silent-for", default="15m", metavar="DURATION", help="no record for longer than this (default: 15m)"),
    example="millstream transaction find-hanging --topic orders",
)
def hanging(
    client: SyncClient, *, topic: str | None, partition: int | None, broker: int | None, silent_for: str
) -> Rows:
    """Find transactions that partitions wait for and no coordinator will end."""
    if partition is not None and topic is None:
        raise UsageError("--partition needs --topic")
    places = client.run(partitions_on, broker, topic)
    if partition is not None:
        places = [place for place in places if place[1] == partition]
    now_ms = client.client.ports.clock.wall_ms()
    found = client.run(
        find_hanging, places, silent_for_ms=parse_duration_ms(silent_for), now_ms=now_ms, broker_id=broker
    )
    return _open_rows(found, now_ms)


def _open_rows(found: list[OpenTransaction], now_ms: int, note: str = "") -> Rows:
    rows = [
        (
            each.topic,
            each.partition,
            each.producer_id,
            each.producer_epoch,
            each.start_offset,
            (now_ms - each.last_timestamp_ms) // 1000,
        )
        for each in found
    ]
    return Rows(HANGING_COLUMNS, rows, note=note)


@GROUP.command(
    "abort",
    argument("transactional_id", "end what this id has open; its producer is fenced", nargs="?"),
    option("--topic", help="instead of an id: the topic of a transaction that hangs"),
    option("--partition", type=int, help="its partition"),
    option("--start-offset", type=int, help="its first offset there, as find-hanging shows it"),
    flag("--dry-run", help="only show what would be aborted"),
    example="millstream transaction abort --topic orders --partition 3 --start-offset 1200",
)
def abort(
    client: SyncClient,
    *,
    transactional_id: str | None,
    topic: str | None,
    partition: int | None,
    start_offset: int | None,
    dry_run: bool,
) -> Rows:
    """Abort a transaction: by its id through its coordinator, or where it hangs with a marker in one partition."""
    place = (topic, partition, start_offset)
    if transactional_id is not None and place == (None, None, None):
        return _abort_by_id(client, transactional_id, dry_run=dry_run)
    if transactional_id is not None or topic is None or partition is None or start_offset is None:
        raise UsageError("abort takes a transactional id, or --topic, --partition and --start-offset together")
    now_ms = client.client.ports.clock.wall_ms()
    candidates = client.run(open_transactions, [(topic, partition)])
    chosen = [each for each in candidates if each.start_offset == start_offset]
    if not chosen:
        raise ClientError(
            f"topic {topic!r} partition {partition} has no open transaction from offset {start_offset} on"
        )
    if not dry_run:
        client.run(
            write_abort_marker,
            topic,
            partition,
            producer_id=chosen[0].producer_id,
            producer_epoch=chosen[0].producer_epoch,
            # The partition has seen no coordinator at all if this is the producer's first transaction here.
            coordinator_epoch=max(chosen[0].coordinator_epoch, 0),
        )
    return _open_rows(chosen, now_ms, "nothing was aborted" if dry_run else "aborted")


def _abort_by_id(client: SyncClient, name: str, *, dry_run: bool) -> Rows:
    # Asked first, because taking over an id that does not exist would create it.
    found = _described(client, [name], "nothing was aborted" if dry_run else "aborted")
    if not dry_run:
        client.run(force_terminate, name)
    return found
