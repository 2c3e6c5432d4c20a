"""Page views per user and minute, up to thirty seconds late; columns only, so all of it can run natively on Spark."""

from __future__ import annotations

from dataclasses import dataclass

from run_streams import Opening, opened

from millstream.streams import StreamsBuilder, Topology, col, tumbling


@dataclass
class PageView:
    user: str
    page: str


def topology() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("page-views", value=PageView)
        .filter(~col("page").starts_with("/health"))
        .group_by(col("user"))
        .windowed_by(tumbling(60_000, grace_ms=30_000))
        .count(store="views")
        .to_stream()
        .to("views-per-minute")
    )
    return builder.build()


def main(open_driver: Opening = opened) -> None:
    with open_driver(topology()) as driver:
        views = driver.input_topic("page-views")
        for second, user, page in ((1, "ada", "/"), (20, "ada", "/mill"), (61, "bob", "/"), (62, "ada", "/health")):
            views.pipe_input(None, PageView(user, page), second * 1_000)
        for windowed, count in driver.store("views").all():
            print(windowed, count)


if __name__ == "__main__":
    main()
