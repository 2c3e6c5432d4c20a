"""The main job in one minute: a broker, a producer, a consumer, and what happened between them.

Run it with `make demo`. Everything happens on this machine, in a temporary directory; nothing is left behind.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter

from rich.console import Console
from rich.table import Table

from millstream import Broker
from millstream.client.fetch import fetch
from millstream.client.produce import Producer
from millstream.client.reading import batches_from, next_offset
from millstream.client.sync import SyncClient
from millstream.records.partitioning import partition_for_key

TOPIC = "orders"
PARTITIONS = 3
ORDERS = 30_000
CITIES = ("Amsterdam", "Berlin", "Cork", "Dresden", "Espoo", "Faro", "Ghent")

console = Console()


def feed(client: SyncClient) -> float:
    """Write the orders, one batch of 500 at a time, each to the partition of its key as Java would choose it."""
    dice = random.Random(2026)  # demo data
    by_partition: dict[int, list[tuple[bytes, bytes, tuple[()], int]]] = {index: [] for index in range(PARTITIONS)}
    now_ms = time.time_ns() // 1_000_000
    for number in range(ORDERS):
        city = dice.choice(CITIES)
        order = {"order": number, "city": city, "euros": dice.randint(5, 500)}
        key = city.encode()
        by_partition[partition_for_key(key, PARTITIONS)].append((key, json.dumps(order).encode(), (), now_ms))
    producer = Producer(client.client)
    started = time.perf_counter()
    for index, records in by_partition.items():
        for at in range(0, len(records), 500):
            client.run(lambda _, index=index, part=records[at : at + 500]: producer.send(TOPIC, index, part))
    return time.perf_counter() - started


def read_back(client: SyncClient) -> tuple[Counter[str], Counter[str], float]:
    """Read every partition from the beginning; euros and orders by city."""
    euros: Counter[str] = Counter()
    orders: Counter[str] = Counter()
    positions = {(TOPIC, index): 0 for index in range(PARTITIONS)}
    started = time.perf_counter()
    while sum(orders.values()) < ORDERS:
        for fetched in client.run(fetch, positions, max_wait_ms=100):
            place = (fetched.topic, fetched.partition)
            for batch in batches_from(fetched, positions[place]):
                for record in batch.records:
                    order = json.loads(bytes(record.value or b"{}"))
                    euros[order["city"]] += order["euros"]
                    orders[order["city"]] += 1
            positions[place] = next_offset(fetched, positions[place])
    return euros, orders, time.perf_counter() - started


def main() -> None:
    started = time.perf_counter()
    with Broker() as broker:
        console.print(
            f"[bold]Millstream[/] serves Kafka's protocol on [cyan]{broker.bootstrap_servers}[/], "
            f"[green]{(time.perf_counter() - started) * 1000:.0f} ms[/] after it was asked to."
        )
        broker.create_topic(TOPIC, partitions=PARTITIONS)
        with SyncClient({"bootstrap.servers": broker.bootstrap_servers}) as client:
            seconds = feed(client)
            console.print(f"{ORDERS:,} orders written, every batch acknowledged, in {seconds:.2f} s.")
            euros, orders, seconds = read_back(client)
        console.print(f"{sum(orders.values()):,} orders read back and added up in {seconds:.2f} s.\n")
        table = Table("city", "partition", "orders", "euros", title=f"topic '{TOPIC}'")
        for city, total in euros.most_common():
            place = partition_for_key(city.encode(), PARTITIONS)
            table.add_row(city, str(place), f"{orders[city]:,}", f"{total:,}")
        console.print(table)
        assert sum(orders.values()) == ORDERS, "an order was lost or doubled"
    console.print("\nNow you: [bold]millstream broker[/], and any Kafka client on localhost:9092.")


if __name__ == "__main__":
    main()
