"""Sessions of clicks: clicks of a user with no pause of half an hour, one result for each session when it is over."""

from __future__ import annotations

from run_streams import Opening, opened

from millstream.streams import StreamsBuilder, Topology, session, until_window_closes

MINUTE_MS = 60_000


def topology() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("clicks", value=str)
        .group_by_key()
        .windowed_by(session(30 * MINUTE_MS, grace_ms=MINUTE_MS))
        .count(store="sessions")
        .suppress(until_window_closes())
        .to_stream()
        .to("finished-sessions")
    )
    return builder.build()


def main(open_driver: Opening = opened) -> None:
    with open_driver(topology()) as driver:
        clicks = driver.input_topic("clicks")
        for minute, user in ((0, "ada"), (10, "ada"), (35, "ada"), (50, "bob"), (120, "ada")):
            clicks.pipe_input(user, "/page", minute * MINUTE_MS)
        for windowed, count in driver.output_topic("finished-sessions").read_key_values_to_list():
            minutes = (windowed.window.end_ms - windowed.window.start_ms) // MINUTE_MS
            print(f"{windowed.key}: {count} clicks in {minutes} minutes")


if __name__ == "__main__":
    main()
