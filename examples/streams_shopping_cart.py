"""A shopping cart rebuilt from its events: the cart is a table, its events are its history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from run_streams import Opening, opened

from millstream.streams import StreamsBuilder, Topology


@dataclass
class CartEvent:
    action: str  # add, remove or check out
    item: str = ""
    quantity: int = 1


def apply(_cart_id: str, event: CartEvent, cart: dict[str, int]) -> dict[str, int] | None:
    """The cart after the event; none when it is checked out."""
    if event.action == "check out":
        return None
    change = event.quantity if event.action == "add" else -event.quantity
    quantity = cart.get(event.item, 0) + change
    rest = {item: count for item, count in cart.items() if item != event.item}
    return rest | {event.item: quantity} if quantity > 0 else rest


def empty() -> dict[str, Any]:
    return {}


def topology() -> Topology:
    builder = StreamsBuilder()
    carts = builder.stream("cart-events", value=CartEvent).group_by_key().aggregate(empty, apply, store="carts")
    carts.to_stream().to("carts")
    return builder.build()


def main(open_driver: Opening = opened) -> None:
    with open_driver(topology()) as driver:
        events = driver.input_topic("cart-events")
        events.pipe_input("cart-1", CartEvent("add", "flour", 2))
        events.pipe_input("cart-1", CartEvent("add", "salt"))
        events.pipe_input("cart-1", CartEvent("remove", "flour"))
        events.pipe_input("cart-2", CartEvent("add", "yeast"))
        events.pipe_input("cart-2", CartEvent("check out"))
        for cart, items in driver.store("carts").all():
            print(cart, items)


if __name__ == "__main__":
    main()
