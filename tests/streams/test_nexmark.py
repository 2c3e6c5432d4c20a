"""Nexmark's queries in the test driver say what a few lines of plain Python say about the same events."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.requirements import PROJECT_ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

EVENTS = 4_000
# Slow enough that the events last for several windows.
PER_SECOND = 100
WINDOW_MS, ADVANCE_MS = 10_000, 2_000


@pytest.fixture(scope="module")
def nexmark() -> Iterator[Any]:
    sys.path.insert(0, str(PROJECT_ROOT / "examples"))
    import nexmark  # type: ignore[import-not-found]

    # The module's own events are those of the benchmark, ten times as dense.
    dense = nexmark.events
    nexmark.events = lambda count: dense(count, per_second=PER_SECOND)
    yield nexmark
    nexmark.events = dense
    sys.path.pop(0)


@pytest.fixture(scope="module")
def happened(nexmark: Any) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = defaultdict(list)
    for topic, _, event in nexmark.events(EVENTS):
        found[topic.removeprefix("nexmark-")].append(event)
    return found


def test_events_are_in_nexmarks_proportions(happened: dict[str, list[Any]]) -> None:
    assert [len(happened[kind]) * 50 // EVENTS for kind in ("persons", "auctions", "bids")] == [1, 3, 46]


def test_q0_to_q2_are_about_single_bids(nexmark: Any, happened: dict[str, list[Any]]) -> None:
    bids = happened["bids"]
    assert [bid for _, bid in nexmark.results("q0", EVENTS)] == bids
    assert [row["price"] for _, row in nexmark.results("q1", EVENTS)] == [bid.price * 0.908 for bid in bids]
    chosen = [(bid.auction, bid.price) for bid in bids if bid.auction % 123 == 0]
    assert [(row["auction"], row["price"]) for _, row in nexmark.results("q2", EVENTS)] == chosen
    assert chosen


def test_q3_pairs_auctions_of_a_category_with_sellers_of_some_states(
    nexmark: Any, happened: dict[str, list[Any]]
) -> None:
    people = {person.id: person for person in happened["persons"]}
    expected = {
        auction.id: people[auction.seller].name
        for auction in happened["auctions"]
        if auction.category == 10 and people[auction.seller].state in ("OR", "ID", "CA")
    }
    found = {number: row["name"] for number, row in nexmark.results("q3", EVENTS) if row is not None}
    assert found == expected
    assert found


def test_q4_is_the_mean_of_winning_bids(nexmark: Any, happened: dict[str, list[Any]]) -> None:
    auctions = {auction.id: auction for auction in happened["auctions"]}
    winning: dict[int, int] = {}
    for bid in happened["bids"]:
        auction = auctions[bid.auction]
        if auction.date_time <= bid.date_time <= auction.expires:
            winning[auction.id] = max(bid.price, winning.get(auction.id, 0))
    prices: dict[int, list[int]] = defaultdict(list)
    for number, price in winning.items():
        prices[auctions[number].category].append(price)
    expected = {category: sum(each) / len(each) for category, each in prices.items()}
    assert dict(nexmark.results("q4", EVENTS)) == pytest.approx(expected)


def test_q5_is_the_auction_with_most_bids_in_each_window(nexmark: Any, happened: dict[str, list[Any]]) -> None:
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    for bid in happened["bids"]:
        last = bid.date_time // ADVANCE_MS * ADVANCE_MS
        for start in range(last - WINDOW_MS + ADVANCE_MS, last + 1, ADVANCE_MS):
            counts[start][bid.auction] += 1
    found = dict(nexmark.results("q5", EVENTS))
    assert set(found) == set(counts)
    for start, row in found.items():
        most = max(counts[start].values())
        assert row["bids"] == most
        assert row["auction"] in {auction for auction, count in counts[start].items() if count == most}


def test_q6_is_the_mean_of_a_sellers_last_sales(nexmark: Any, happened: dict[str, list[Any]]) -> None:
    auctions = {auction.id: auction for auction in happened["auctions"]}
    winning: dict[int, int] = {}
    for bid in happened["bids"]:
        if bid.date_time <= auctions[bid.auction].expires:
            winning[bid.auction] = max(bid.price, winning.get(bid.auction, 0))
    # Every second it is looked which have closed, two seconds after they have.
    before_ms = max(bid.date_time for bid in happened["bids"]) // 1_000 * 1_000 - 2_000
    sales: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for number, price in winning.items():
        if auctions[number].expires < before_ms:
            sales[auctions[number].seller].append((auctions[number].expires, number, price))
    expected = {
        seller: sum(price for _, _, price in sorted(each)[-10:]) / len(each[-10:]) for seller, each in sales.items()
    }
    assert dict(nexmark.results("q6", EVENTS)) == pytest.approx(expected)
    assert len(expected) > 10
    assert len(winning) > sum(map(len, sales.values())), "some are open still"


def test_q6_forgets_what_was_sold_before_the_last_ten(nexmark: Any) -> None:
    sales: list[list[int]] = []
    for number in (3, 12, 1, 2, *range(4, 12)):
        sales = nexmark.last_sales(7, nexmark.Sale(number, 7, 1_000 * number, 10 * number), sales)
    assert nexmark.mean_price(sales) == sum(10 * number for number in range(3, 13)) / 10


def test_q7_is_the_highest_bid_of_each_window(nexmark: Any, happened: dict[str, list[Any]]) -> None:
    highest: dict[int, int] = defaultdict(int)
    for bid in happened["bids"]:
        start = bid.date_time // WINDOW_MS * WINDOW_MS
        highest[start] = max(highest[start], bid.price)
    found = dict(nexmark.results("q7", EVENTS))
    assert {start: row["price"] for start, row in found.items()} == highest
    bids = {(bid.auction, bid.bidder, bid.price) for bid in happened["bids"]}
    assert all((row["auction"], row["bidder"], row["price"]) in bids for row in found.values())


def test_q8_is_about_people_who_offer_at_once(nexmark: Any, happened: dict[str, list[Any]]) -> None:
    people = {person.id: person for person in happened["persons"]}
    expected = sorted(
        (auction.seller, auction.reserve)
        for auction in happened["auctions"]
        if people[auction.seller].date_time // WINDOW_MS == auction.date_time // WINDOW_MS
    )
    assert sorted((number, row["reserve"]) for number, row in nexmark.results("q8", EVENTS)) == expected
    assert expected
