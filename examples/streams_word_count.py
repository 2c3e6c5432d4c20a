"""Word count: the hello of streams. Lines go in, for each word its count so far comes out."""

from __future__ import annotations

from run_streams import Opening, opened

from millstream.streams import StreamsBuilder, Topology, function, value


def topology() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("lines", value=str)
        .flat_map_values(function("split", function("lower", value()), " +"))
        .group_by(value())
        .count(store="word-counts")
        .to_stream()
        .to("counts")
    )
    return builder.build()


def main(open_driver: Opening = opened) -> None:
    print(topology().describe())
    with open_driver(topology()) as driver:
        driver.input_topic("lines").pipe_value("To mill or not to mill")
        for word, count in driver.store("word-counts").all():
            print(f"{word:<10}{count}")


if __name__ == "__main__":
    main()
