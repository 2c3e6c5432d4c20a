"""Transactions enriched by customer: a table of accounts refers to a table of customers by a foreign key, and each
transaction takes up what its account knows at that moment."""

from __future__ import annotations

from dataclasses import dataclass

from run_streams import Opening, opened

from millstream.streams import StreamsBuilder, Topology, col, left, right, struct


@dataclass
class Transaction:
    account: str
    cents: int


@dataclass
class Account:
    customer: str
    currency: str


@dataclass
class Customer:
    name: str
    segment: str


def topology() -> Topology:
    builder = StreamsBuilder()
    customers = builder.table("customers", value=Customer)
    accounts = builder.table("accounts", value=Account).join(
        customers,
        struct(currency=left("currency"), name=right("name"), segment=right("segment")),
        on=col("customer"),
        store="accounts-with-customers",
    )
    (
        builder.stream("transactions", value=Transaction)
        .select_key(col("account"))
        .join(accounts, struct(cents=left("cents"), currency=right("currency"), name=right("name")))
        .to("enriched-transactions")
    )
    return builder.build()


def main(open_driver: Opening = opened) -> None:
    with open_driver(topology()) as driver:
        driver.input_topic("customers").pipe_input("c1", Customer("Ada", "gold"))
        driver.input_topic("accounts").pipe_input("a1", Account("c1", "EUR"))
        driver.input_topic("transactions").pipe_value(Transaction("a1", 1_250))
        for key, value in driver.output_topic("enriched-transactions").read_key_values_to_list():
            print(key, value)


if __name__ == "__main__":
    main()
