"""Nexmark's first queries as topologies, mostly of columns: q0, q1, q2, q5 and q7 run in Spark's own operators.

    python examples/nexmark.py q5 --events 20000
    python -m bench --only streams-nexmark

Each is a function that gives the topology, with Nexmark's question above it. q6 asks for auctions *that have closed*,
and every auction closes at a time of its own, when nothing happens in the stream; windows close at fixed times, so no
verb notices. A processor with punctuation does.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nexmark_events import AUCTIONS, BIDS, FIRST_CATEGORY, PERSONS, Auction, Bid, Person, events

from millstream.streams import (
    LONG_SERDE,
    KeyValueStore,
    PunctuationType,
    Record,
    StreamsBuilder,
    Topology,
    TopologyTestDriver,
    col,
    concat,
    function,
    hopping,
    json,
    key,
    left,
    max_of,
    right,
    struct,
    tumbling,
    value,
    window_start,
    within,
)
from millstream.streams.types import LONG, STRING

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.streams import Expression, KStream, KTable

WINDOW_MS, ADVANCE_MS, GRACE_MS = 10_000, 2_000, 10_000
EUROS_PER_DOLLAR = 0.908
NEAR = ("OR", "ID", "CA")
# Auctions are looked through for closed ones once a second of the stream, and have so long for late bids.
LOOK_MS, LATE_MS = 1_000, 2_000
SALES = 10
# A number and what belongs to it, as a text: the largest number makes the largest text.
PADDING = 10**12


def ranked(number: Expression, *others: Expression) -> Expression:
    parts = [(number + PADDING).cast(STRING)]
    for other in others:
        parts += [":", other.cast(STRING)]
    return concat(*parts)


def of_rank(place: int) -> Expression:
    """The number (place 0), or what belonged to it."""
    part = function("split", value(), ":")[place].cast(LONG)
    return part - PADDING if place == 0 else part


def _bids(builder: StreamsBuilder) -> KStream:
    return builder.stream(BIDS, key=int, value=Bid)


def _auctions(builder: StreamsBuilder) -> KTable:
    return builder.table(AUCTIONS, key=int, value=Auction)


def q0() -> Topology:
    """Pass all bids through."""
    builder = StreamsBuilder()
    _bids(builder).to("q0")
    return builder.build()


def q1() -> Topology:
    """Bids with their price in euros."""
    builder = StreamsBuilder()
    bids = _bids(builder)
    bids.select(
        auction=col("auction"),
        bidder=col("bidder"),
        price=col("price") * EUROS_PER_DOLLAR,
        date_time=col("date_time"),
    ).to("q1")
    return builder.build()


def q2() -> Topology:
    """Bids for certain auctions."""
    builder = StreamsBuilder()
    bids = _bids(builder).filter(col("auction") % 123 == 0)
    bids.select(auction=col("auction"), price=col("price")).to("q2")
    return builder.build()


def q3() -> Topology:
    """Who, in some states, offers something of one category? Whoever comes second, person or auction."""
    builder = StreamsBuilder()
    people = builder.table(PERSONS, key=int, value=Person).filter(col("state").is_in(NEAR))
    offered = _auctions(builder).filter(col("category") == FIRST_CATEGORY)
    found = offered.join(
        people,
        struct(name=right("name"), city=right("city"), state=right("state"), auction=left("id")),
        on=col("seller"),
    )
    found.to_stream().to("q3")
    return builder.build()


def q4() -> Topology:
    """The mean of the winning bids of each category, where only bids count that came while the auction was open."""
    builder = StreamsBuilder()
    offered = _auctions(builder)
    in_time = left("date_time").between(right("date_time"), right("expires"))
    bids = _bids(builder).join(offered, struct(category=right("category"), price=left("price"), in_time=in_time))
    winning = (
        bids.filter(col("in_time"))
        .group_by_key()
        .agg(category=max_of(col("category")), price=max_of(col("price")), store="winning-bids")
    )
    winning.group_by(col("category"), col("price")).avg(value(), store="means").to_stream().to("q4")
    return builder.build()


def q5() -> Topology:
    """The auction with most bids in each ten seconds, every two seconds; of several with as many, one."""
    builder = StreamsBuilder()
    counts = _bids(builder).group_by_key().windowed_by(hopping(WINDOW_MS, ADVANCE_MS, grace_ms=GRACE_MS)).count()
    hottest = counts.to_stream().map(window_start(), ranked(value(), key()), key=int).group_by_key().max(value())
    hottest.select(auction=of_rank(1), bids=of_rank(0)).to_stream().to("q5")
    return builder.build()


@dataclass
class Sale:
    """The highest bid for an auction so far."""

    auction: int
    seller: int
    expires: int
    price: int


class Closing:
    """Holds the highest bid of each auction back until the auction has closed, and then gives it to the seller."""

    def init(self, context: Any) -> None:
        self.context = context
        self.open = context.get_state_store("open-auctions")
        context.schedule(LOOK_MS, PunctuationType.STREAM_TIME, self.sell_closed)

    def process(self, record: Record) -> None:
        best: Sale | None = self.open.get(record.key)
        if best is None or record.value["price"] > best.price:
            bid = record.value
            self.open.put(record.key, Sale(record.key, bid["seller"], bid["expires"], bid["price"]))

    def sell_closed(self, now_ms: int) -> None:
        # A whole second: then every partition closes the same ones, whatever its last record's time is.
        before_ms = now_ms // LOOK_MS * LOOK_MS - LATE_MS
        for number, sale in list(self.open.all()):
            if sale.expires < before_ms:
                self.context.forward(Record(sale.seller, sale, sale.expires))
                self.open.delete(number)


def last_sales(_seller: int, sale: Sale, before: list[list[int]]) -> list[list[int]]:
    """The last ten by the time at which they closed, in whichever order they come."""
    return sorted([*before, [sale.expires, sale.auction, sale.price]])[-SALES:]


def mean_price(sales: list[list[int]]) -> float:
    return sum(price for _, _, price in sales) / len(sales)


def q6() -> Topology:
    """The mean of what each seller's last ten auctions went for, of those that have closed."""
    builder = StreamsBuilder()
    builder.add_state_store(KeyValueStore("open-auctions", LONG_SERDE, json(Sale)))
    offered = _auctions(builder)
    in_time = left("date_time").between(right("date_time"), right("expires"))
    bids = _bids(builder).join(
        offered, struct(seller=right("seller"), expires=right("expires"), price=left("price"), in_time=in_time)
    )
    sold = bids.filter(col("in_time")).process(Closing, "open-auctions", key=int, value=Sale)
    sales = sold.group_by_key().aggregate(list, last_sales, value=list, store="last-sales")
    sales.map_values(mean_price, value=float).to_stream().to("q6")
    return builder.build()


def q7() -> Topology:
    """The highest bid of each ten seconds: the highest of each auction first, so that little has to move."""
    builder = StreamsBuilder()
    bid = ranked(col("price"), col("auction"), col("bidder"))
    highest = _bids(builder).group_by_key().windowed_by(tumbling(WINDOW_MS, grace_ms=GRACE_MS)).max(bid)
    overall = highest.to_stream().map(window_start(), value(), key=int).group_by_key().max(value())
    overall.select(auction=of_rank(1), bidder=of_rank(2), price=of_rank(0)).to_stream().to("q7")
    return builder.build()


def q8() -> Topology:
    """People who offered something in the ten seconds in which they joined."""
    builder = StreamsBuilder()
    people = builder.stream(PERSONS, key=int, value=Person)
    offered = builder.stream(AUCTIONS, key=int, value=Auction).select_key(col("seller"))
    same_window = left("date_time").div(WINDOW_MS) == right("date_time").div(WINDOW_MS)
    joined = people.join(
        offered,
        struct(name=left("name"), reserve=right("reserve"), same_window=same_window),
        within(WINDOW_MS, grace_ms=GRACE_MS),
    )
    joined.filter(col("same_window")).map_values(struct(name=col("name"), reserve=col("reserve"))).to("q8")
    return builder.build()


QUERIES: dict[str, Callable[[], Topology]] = {
    "q0": q0,
    "q1": q1,
    "q2": q2,
    "q3": q3,
    "q4": q4,
    "q5": q5,
    "q6": q6,
    "q7": q7,
    "q8": q8,
}
# What each reads.
INPUTS = {
    "q0": (BIDS,),
    "q1": (BIDS,),
    "q2": (BIDS,),
    "q3": (AUCTIONS, PERSONS),
    "q4": (AUCTIONS, BIDS),
    "q5": (BIDS,),
    "q6": (AUCTIONS, BIDS),
    "q7": (BIDS,),
    "q8": (PERSONS, AUCTIONS),
}


def results(name: str, count: int) -> list[tuple[object, object]]:
    """What a query says about so many events, in the test driver."""
    with TopologyTestDriver(QUERIES[name]()) as driver:
        topics = {topic: driver.input_topic(topic) for topic in INPUTS[name]}
        for topic, number, event in events(count):
            if topic in topics:
                topics[topic].pipe_input(number, event, event.date_time)
        return driver.output_topic(name).read_key_values_to_list()


def main() -> None:
    parser = argparse.ArgumentParser(description="A query of Nexmark's in the test driver.")
    parser.add_argument("query", choices=QUERIES)
    parser.add_argument("--events", type=int, default=20_000)
    arguments = parser.parse_args()
    print(QUERIES[arguments.query]().describe())
    found = results(arguments.query, arguments.events)
    for number, row in found[-10:]:
        print(number, row)
    print(f"{len(found):,} results of {arguments.events:,} events")


if __name__ == "__main__":
    main()
