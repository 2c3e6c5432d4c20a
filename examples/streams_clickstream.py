"""Clicks enriched with a table of users: a LEFT JOIN, so that clicks of unknown users are kept."""

from __future__ import annotations

from dataclasses import dataclass

from run_streams import Opening, opened

from millstream.streams import StreamsBuilder, Topology, col, left, right, struct


@dataclass
class Click:
    user_id: str
    url: str


@dataclass
class User:
    name: str
    city: str


def topology() -> Topology:
    builder = StreamsBuilder()
    users = builder.table("users", value=User, store="users")
    clicks = builder.stream("clicks", value=Click).select_key(col("user_id"))
    enriched = clicks.left_join(users, struct(url=left("url"), name=right("name"), city=right("city")))
    enriched.to("enriched-clicks")
    return builder.build()


def main(open_driver: Opening = opened) -> None:
    with open_driver(topology()) as driver:
        driver.input_topic("users").pipe_input("u1", User("Ada", "London"))
        clicks = driver.input_topic("clicks")
        clicks.pipe_value(Click("u1", "/mill"))
        clicks.pipe_value(Click("u2", "/stream"))
        for key, value in driver.output_topic("enriched-clicks").read_key_values_to_list():
            print(key, value)


if __name__ == "__main__":
    main()
