"""Fraud: cards with more than three attempts within five seconds, as a table."""

from __future__ import annotations

from dataclasses import dataclass

from run_streams import Opening, opened

from millstream.streams import StreamsBuilder, Topology, col, tumbling, value


@dataclass
class Attempt:
    card_number: str
    amount: float


def topology() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("authorization-attempts", value=Attempt)
        .group_by(col("card_number"))
        .windowed_by(tumbling(5_000, grace_ms=1_000))
        .count()
        .filter(value() > 3, store="possible-fraud")
        .to_stream()
        .to("possible-fraud")
    )
    return builder.build()


def main(open_driver: Opening = opened) -> None:
    with open_driver(topology()) as driver:
        attempts = driver.input_topic("authorization-attempts")
        for number in range(5):
            attempts.pipe_value(Attempt("4711", 9.99), number * 500)
        attempts.pipe_value(Attempt("1234", 20.0), 2_000)
        for windowed, count in driver.output_topic("possible-fraud").read_key_values_to_list():
            if count is not None:
                print(f"{windowed.key}: {count} attempts in the five seconds from {windowed.window.start_ms}")


if __name__ == "__main__":
    main()
