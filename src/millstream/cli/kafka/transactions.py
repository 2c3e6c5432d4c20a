"""`kafka-transactions`: list, describe, describe-producers, abort, find-hanging, forceTerminateTransaction."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from millstream.cli.connect import open_client
from millstream.cli.declare import UsageError
from millstream.cli.kafka.arguments import ToolParser, client_options_of
from millstream.cli.output import say
from millstream.client.admin import raise_first
from millstream.client.admin.hanging_transactions import find_hanging, open_transactions, partitions_on
from millstream.client.admin.transactions import (
    describe_transactions,
    force_terminate,
    list_transactions,
    producers_on,
    write_abort_marker,
)
from millstream.client.client import LeaderOf
from millstream.client.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from millstream.client.client import Client
    from millstream.client.sync import SyncClient

MINUTE_MS = 60_000
LONGEST_TRANSACTION_MINUTES = 15


def run(words: Sequence[str]) -> int:
    parsed = _parser().read(words)
    with open_client(client_options_of(parsed)) as client:
        try:
            parsed.action(client, parsed)
        except ClientError as error:
            say(str(error))
            return 1
    return 0


def _parser() -> ToolParser:
    parser = ToolParser("kafka-transactions", "Look at transactions, and end those that hang.")
    parser.connection()
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Command)
    listing = commands.add_parser("list", help="list transactions")
    listing.set_defaults(action=_list)
    listing.add_argument("--duration-filter", type=int, default=-1, metavar="MS", help="only those open for longer")
    listing.add_argument("--transactional-id-pattern", metavar="REGEX", help="only ids that match")
    describing = commands.add_parser("describe", help="describe one transactional id")
    describing.set_defaults(action=_describe)
    describing.add_argument("--transactional-id", required=True, help="the id")
    producers = commands.add_parser("describe-producers", help="producers that a partition remembers")
    producers.set_defaults(action=_describe_producers)
    producers.add_argument("--broker-id", type=int, help="ask this replica, not the leader")
    producers.add_argument("--topic", required=True, help="the topic")
    producers.add_argument("--partition", type=int, required=True, help="the partition")
    abort = commands.add_parser("abort", help="end a transaction that hangs")
    abort.set_defaults(action=_abort)
    abort.add_argument("--topic", required=True, help="the topic")
    abort.add_argument("--partition", type=int, required=True, help="the partition")
    abort.add_argument("--start-offset", type=int, help="its first offset in the partition")
    abort.add_argument("--producer-id", type=int, help="for brokers before 3.0: the producer's id")
    abort.add_argument("--producer-epoch", type=int, help="for brokers before 3.0: the producer's epoch")
    abort.add_argument("--coordinator-epoch", type=int, help="for brokers before 3.0: the coordinator's epoch")
    hanging = commands.add_parser("find-hanging", help="find transactions that hang")
    hanging.set_defaults(action=_find_hanging)
    hanging.add_argument("--broker-id", type=int, help="look at this broker's replicas")
    hanging.add_argument(
        "--max-transaction-timeout",
        type=int,
        default=LONGEST_TRANSACTION_MINUTES,
        metavar="MINUTES",
        help="leave out what is younger",
    )
    hanging.add_argument("--topic", help="look at this topic")
    hanging.add_argument("--partition", type=int, help="look at this partition of the topic")
    force = commands.add_parser("forceTerminateTransaction", help="end what a transactional id has open")
    force.set_defaults(action=_force_terminate)
    force.add_argument("--transactionalId", dest="transactional_id", required=True, help="the id")
    return parser


class _Command(argparse.ArgumentParser):
    """A sub-command's parser, whose complaints are exceptions as its parent's are."""

    def error(self, message: str) -> None:  # type: ignore[override]
        raise UsageError(f"{message} (see {self.prog} --help)")


def _print(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns with a tab behind each, as wide as their widest cell."""
    cells = [list(columns), *([str(value) for value in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    for row in cells:
        sys.stdout.write("".join(f"{cell:<{width}}\t" for cell, width in zip(row, widths, strict=True)) + "\n")


def _list(client: SyncClient, parsed: argparse.Namespace) -> None:
    found = client.run(
        list_transactions,
        running_longer_than_ms=parsed.duration_filter,
        pattern=parsed.transactional_id_pattern,
    )
    rows = [(each.id, each.coordinator_id, each.producer_id, each.state) for each in found]
    _print(("TransactionalId", "Coordinator", "ProducerId", "TransactionState"), rows)


def _describe(client: SyncClient, parsed: argparse.Namespace) -> None:
    name = parsed.transactional_id
    found = raise_first(client.run(describe_transactions, [name]))[name]
    opened = found.started_ms >= 0
    row = (
        found.coordinator_id,
        found.id,
        found.producer_id,
        found.producer_epoch,
        found.state,
        found.timeout_ms,
        found.started_ms if opened else "None",
        client.client.ports.clock.wall_ms() - found.started_ms if opened else "None",
        ",".join(f"{topic}-{index}" for topic, index in sorted(found.partitions)),
    )
    columns = ("CoordinatorId", "TransactionalId", "ProducerId", "ProducerEpoch", "TransactionState")
    timing = ("TransactionTimeoutMs", "CurrentTransactionStartTimeMs", "TransactionDurationMs", "TopicPartitions")
    _print((*columns, *timing), [row])


async def _leader(client: Client, topic: str, partition: int) -> int:
    return await client.resolve(LeaderOf(topic, partition))


def _describe_producers(client: SyncClient, parsed: argparse.Namespace) -> None:
    place = (parsed.topic, parsed.partition)
    node = parsed.broker_id if parsed.broker_id is not None else client.run(_leader, *place)
    producers = raise_first(client.run(producers_on, node, [place]))[place]
    rows = [
        (
            producer.producer_id,
            producer.producer_epoch,
            producer.coordinator_epoch,
            producer.last_sequence,
            producer.last_timestamp,
            producer.current_txn_start_offset if producer.current_txn_start_offset >= 0 else "None",
        )
        for producer in producers
    ]
    columns = ("ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch", "LastSequence", "LastTimestamp")
    _print((*columns, "CurrentTransactionStartOffset"), rows)


def _abort(client: SyncClient, parsed: argparse.Namespace) -> None:
    if parsed.start_offset is not None:
        found = client.run(open_transactions, [(parsed.topic, parsed.partition)])
        chosen = [each for each in found if each.start_offset == parsed.start_offset]
        if not chosen:
            place = f"{parsed.topic}-{parsed.partition}"
            raise ClientError(
                f"Could not find any open transactions starting at offset {parsed.start_offset} on partition {place}"
            )
        producer_id, producer_epoch = chosen[0].producer_id, chosen[0].producer_epoch
        # The partition has seen no coordinator at all if this is the producer's first transaction here.
        coordinator_epoch = max(chosen[0].coordinator_epoch, 0)
    else:
        given = (parsed.producer_id, parsed.producer_epoch, parsed.coordinator_epoch)
        if None in given:
            raise UsageError(
                "abort needs --start-offset, or for brokers before 3.0 --producer-id, --producer-epoch and "
                "--coordinator-epoch"
            )
        producer_id, producer_epoch, coordinator_epoch = given
        # A coordinator that is not known is told as -1; markers want a number from 0 on.
        coordinator_epoch = max(coordinator_epoch, 0)
    client.run(
        write_abort_marker,
        parsed.topic,
        parsed.partition,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        coordinator_epoch=coordinator_epoch,
    )


def _find_hanging(client: SyncClient, parsed: argparse.Namespace) -> None:
    if parsed.topic is None and parsed.broker_id is None:
        raise UsageError("find-hanging needs --topic or --broker-id, so that it has less to search")
    if parsed.partition is not None and parsed.topic is None:
        raise UsageError("--partition needs --topic")
    if parsed.partition is not None:
        places = [(parsed.topic, parsed.partition)]
    else:
        places = client.run(partitions_on, parsed.broker_id, parsed.topic)
    now_ms = client.client.ports.clock.wall_ms()
    found = client.run(
        find_hanging,
        places,
        silent_for_ms=parsed.max_transaction_timeout * MINUTE_MS,
        now_ms=now_ms,
        broker_id=parsed.broker_id,
    )
    rows = [
        (
            each.topic,
            each.partition,
            each.producer_id,
            each.producer_epoch,
            each.coordinator_epoch,
            each.start_offset,
            each.last_timestamp_ms,
            (now_ms - each.last_timestamp_ms) // MINUTE_MS,
        )
        for each in found
    ]
    columns = ("Topic", "Partition", "ProducerId", "ProducerEpoch", "CoordinatorEpoch", "StartOffset")
    _print((*columns, "LastTimestamp", "Duration(min)"), rows)


def _force_terminate(client: SyncClient, parsed: argparse.Namespace) -> None:
    client.run(force_terminate, parsed.transactional_id)
