"""Word count: the hello of streams. Lines go in, for each word its count so far comes out."""

from __future__ import annotations

from millstream.streams import StreamsBuilder, Topology, TopologyTestDriver


def topology() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("lines", value=str)
        .flat_map_values(lambda line: line.lower().split(), value=str)
        .group_by(lambda _key, word: word, key=str)
        .count(store="word-counts")
        .to_stream()
        .to("counts")
    )
    return builder.build()


def main() -> None:
    print(topology().describe())
    with TopologyTestDriver(topology()) as driver:
        driver.input_topic("lines").pipe_value("To mill or not to mill")
        for word, count in driver.store("word-counts").all():
            print(f"{word:<10}{count}")


if __name__ == "__main__":
    main()
