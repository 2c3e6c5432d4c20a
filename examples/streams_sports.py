"""Sports: events of a game with at least two seconds of possession, by player, as a table of shots and assists."""

from __future__ import annotations

from dataclasses import dataclass

from run_streams import Opening, opened

from millstream.streams import StreamsBuilder, Topology, col, sum_of, when


@dataclass
class Event:
    player: str
    kind: str
    possession_s: float


def topology() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("game-events", value=Event)
        .filter(col("possession_s") >= 2)
        .group_by(col("player"))
        .agg(
            shots=sum_of(when(col("kind") == "shot", 1).otherwise(0)),
            assists=sum_of(when(col("kind") == "assist", 1).otherwise(0)),
            store="players",
        )
        .to_stream()
        .to("player-statistics")
    )
    return builder.build()


def main(open_driver: Opening = opened) -> None:
    with open_driver(topology()) as driver:
        events = driver.input_topic("game-events")
        for event in (Event("Kim", "shot", 3.5), Event("Lee", "assist", 2.0), Event("Kim", "shot", 0.4)):
            events.pipe_input("game-1", event)
        for player, row in driver.store("players").all():
            print(player, row)


if __name__ == "__main__":
    main()
