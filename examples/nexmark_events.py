"""Nexmark's auction site: people join, offer items and bid on them, in Nexmark's proportions.

Of fifty events one is a new person, three are new auctions and forty-six are bids. Half of the bids go to the newest
auctions, half of the auctions are offered by the newest people. The events follow from a number alone, so everybody who
asks for a thousand of them gets the same thousand.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PERSONS, AUCTIONS, BIDS = "nexmark-persons", "nexmark-auctions", "nexmark-bids"
ROUND = 50
PERSONS_IN_ROUND, AUCTIONS_IN_ROUND = 1, 3
FIRST_ID = 1_000
FIRST_CATEGORY, CATEGORIES = 10, 5
STATES = {
    "OR": "Portland",
    "ID": "Boise",
    "CA": "San Francisco",
    "WA": "Seattle",
    "AZ": "Phoenix",
    "WY": "Cheyenne",
}
NAMES = ("Ada", "Bela", "Carl", "Dora", "Emil", "Fred", "Gwen", "Hal")
CHANNELS = ("Apple", "Google", "Facebook", "Baidu")
ITEMS = ("clock", "globe", "lamp", "mill", "violin")
# As many of the newest are hot: they get half of what happens.
HOT = 20
START_MS = 1_760_000_000_000
# One in a millisecond: then a bid is always younger than its auction.
EVENTS_PER_SECOND = 1_000


@dataclass
class Person:
    id: int
    name: str
    email: str
    city: str
    state: str
    date_time: int


@dataclass
class Auction:
    id: int
    item: str
    initial_bid: int
    reserve: int
    date_time: int
    expires: int
    seller: int
    category: int


@dataclass
class Bid:
    auction: int
    bidder: int
    price: int
    channel: str
    date_time: int


Event = tuple[str, int, Person | Auction | Bid]


def events(count: int, *, seed: int = 2026, per_second: int = EVENTS_PER_SECOND) -> Iterator[Event]:
    """(topic, key, event), in the order of their times."""
    dice = random.Random(seed)
    persons = auctions = 0
    for number in range(count):
        now_ms = START_MS + number * 1_000 // per_second
        place = number % ROUND
        if place < PERSONS_IN_ROUND:
            yield PERSONS, FIRST_ID + persons, _person(dice, FIRST_ID + persons, now_ms)
            persons += 1
        elif place < PERSONS_IN_ROUND + AUCTIONS_IN_ROUND:
            yield AUCTIONS, FIRST_ID + auctions, _auction(dice, FIRST_ID + auctions, persons, now_ms)
            auctions += 1
        else:
            bid = _bid(dice, auctions, persons, now_ms)
            yield BIDS, bid.auction, bid


def _one_of(dice: random.Random, count: int) -> int:
    """An id that exists, half of the time one of the newest."""
    first = max(0, count - HOT) if dice.random() < 0.5 else 0
    return FIRST_ID + first + int(dice.random() * (count - first))


def _person(dice: random.Random, number: int, now_ms: int) -> Person:
    name, state = dice.choice(NAMES), dice.choice(tuple(STATES))
    return Person(number, name, f"{name.lower()}.{number}@example.com", STATES[state], state, now_ms)


def _auction(dice: random.Random, number: int, persons: int, now_ms: int) -> Auction:
    initial = 100 + int(dice.random() * 10_000)
    return Auction(
        number,
        dice.choice(ITEMS),
        initial,
        initial * 2,
        now_ms,
        now_ms + 1_000 + int(dice.random() * 20_000),
        _one_of(dice, persons),
        FIRST_CATEGORY + int(dice.random() * CATEGORIES),
    )


def _bid(dice: random.Random, auctions: int, persons: int, now_ms: int) -> Bid:
    price = int(100 * 10 ** (dice.random() * 4))
    return Bid(_one_of(dice, auctions), _one_of(dice, persons), price, dice.choice(CHANNELS), now_ms)
