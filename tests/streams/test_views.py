"""What a view answers, in process and over HTTP: as the driver's stores do, and nothing any more once it is closed."""

from __future__ import annotations

import json
import socket
import struct
import threading
from base64 import b64encode
from concurrent.futures import Future
from typing import Any, TypeVar
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from millstream import Broker
from millstream.streams import STRING_SERDE, StreamsBuilder, TopologyTestDriver, Window, Windowed, session, tumbling
from millstream.streams.queries import KeyValueView, SessionView, StoreServer, ViewClosed, WindowView, follow_table
from millstream.streams.queries.copies import Copy, KeyValueCopy, SessionCopy, WindowCopy
from millstream.streams.serdes import BYTES_SERDE, LONG_SERDE, SessionWindowedSerde, TimeWindowedSerde
from tests.support.waiting import wait_until

View = TypeVar("View", KeyValueView, WindowView, SessionView)


class NoClient:
    """Where there is no broker."""

    def close(self) -> None:
        """Nothing to end."""

    def run(self, *_: object) -> Any:
        raise RuntimeError("Event loop is closed")


def standing(kind: type[View], copy: Copy) -> View:
    """A view of a copy that nobody changes."""
    view = object.__new__(kind)
    view.topic = "standing"
    view._copy = copy  # type: ignore[assignment]
    view._failure = None
    view._moved = threading.Condition()
    view._listeners = []
    view._run = Future()
    view._client = NoClient()  # type: ignore[assignment]
    return view


def number(value: int) -> bytes:
    return LONG_SERDE.serialize(value)


def windows() -> WindowView:
    serde = TimeWindowedSerde(STRING_SERDE, 10)
    copy = WindowCopy(STRING_SERDE, LONG_SERDE, 10)
    for key, start_ms in (("b", 0), ("a", 10), ("a", 0)):
        copy.apply(serde.serialize(Windowed(key, Window(start_ms, start_ms + 10))), number(1))
    return standing(WindowView, copy)


def sessions() -> SessionView:
    serde = SessionWindowedSerde(STRING_SERDE)
    copy = SessionCopy(STRING_SERDE, LONG_SERDE)
    for key, at in (("b", Window(0, 3)), ("a", Window(100, 100)), ("a", Window(0, 5))):
        copy.apply(serde.serialize(Windowed(key, at)), number(1))
    return standing(SessionView, copy)


def rows(**values: int) -> KeyValueView:
    copy = KeyValueCopy(STRING_SERDE, LONG_SERDE)
    for key, value in values.items():
        copy.apply(key.encode(), number(value))
    return standing(KeyValueView, copy)


def test_windows_and_sessions_are_asked_as_in_the_driver() -> None:
    builder = StreamsBuilder(value=str)
    grouped = builder.stream("in").group_by_key()
    grouped.windowed_by(tumbling(10, grace_ms=100)).count(store="windows")
    grouped.windowed_by(session(5, grace_ms=100)).count(store="sessions")
    with TopologyTestDriver(builder.build()) as driver:
        driver.input_topic("in").pipe_input("a", "", timestamp_ms=3)
        driver.input_topic("in").pipe_input("b", "", timestamp_ms=3)
        driver.input_topic("in").pipe_input("b", "", timestamp_ms=11)
        driven, driven_sessions = driver.store("windows"), driver.store("sessions")
        assert [driven.fetch("b", at) for at in (0, 10, 20)] == [1, 1, None]
        copy = WindowCopy(STRING_SERDE, LONG_SERDE, 10)
        for key, value in driven.all():
            copy.apply(TimeWindowedSerde(STRING_SERDE, 10).serialize(key), number(value))
        view = standing(WindowView, copy)
        assert [view.fetch("b", at) for at in (0, 10, 20)] == [1, 1, None]
        assert [view.get("b", at) for at in (0, 10, 20)] == [1, 1, None]
        assert [(window.start_ms, value) for window, value in view.fetch("b", 0, 20)] == driven.fetch("b", 0, 20)
        assert list(view.all()) == list(driven.all())
        session_copy = SessionCopy(STRING_SERDE, LONG_SERDE)
        for key, value in driven_sessions.all():
            session_copy.apply(SessionWindowedSerde(STRING_SERDE).serialize(key), number(value))
        session_view = standing(SessionView, session_copy)
        assert list(session_view.all()) == list(driven_sessions.all())
        assert [(Windowed("b", window), value) for window, value in session_view.fetch("b")] == driven_sessions.fetch(
            "b"
        )


def test_a_closed_view_says_so_instead_of_answering() -> None:
    table, windowed, of_sessions = rows(a=1), windows(), sessions()
    with StoreServer({"rows": table}) as server:
        assert get(server, "/stores/rows/a") == {"key": "a", "value": 1}
        for view in (table, windowed, of_sessions):
            view.close()
            assert view.has_failed
        for question in (
            lambda: table.get("a"),
            table.range,
            table.all,
            table.behind,
            table.wait_until_current,
            lambda: windowed.get("a", 0),
            lambda: windowed.fetch("a", 0),
            lambda: windowed.fetch("a", 0, 10),
            windowed.all,
            lambda: of_sessions.fetch("a"),
            of_sessions.all,
        ):
            with pytest.raises(ViewClosed, match="'standing' is closed"):
                question()
        for path in ("/stores", "/stores/rows", "/stores/rows/a"):
            assert status(server, path) == 503


def test_who_waits_for_a_view_that_is_closed_hears_of_it() -> None:
    with Broker() as broker:
        broker.create_topic("closing")
        view = follow_table(broker.bootstrap_servers, "closing", key=str, value=int)
        view.wait_until_current()
        view.close()
        view.close()
        with pytest.raises(ViewClosed):
            view.wait_until_current()


def test_sessions_are_listed_over_http() -> None:
    with StoreServer({"visits": sessions(), "views": windows()}) as server:
        found = get(server, "/stores/visits")
        assert [(row["key"], row["window"]["start_ms"]) for row in found] == [("a", 0), ("a", 100), ("b", 0)]
        assert [row["key"] for row in get(server, "/stores/visits?to=50")] == ["a", "b"]
        assert len(get(server, "/stores/views")) == 3


def test_keys_of_bytes_are_asked_for_as_they_are_listed() -> None:
    copy = KeyValueCopy(BYTES_SERDE, LONG_SERDE)
    key = b"\xfb\xff\xfe"
    copy.apply(key, number(7))
    with StoreServer({"raw": standing(KeyValueView, copy)}) as server:
        (row,) = get(server, "/stores/raw")
        assert row["key"] == b64encode(key).decode() == "+//+"
        assert get(server, f"/stores/raw/{quote(row['key'], safe='')}") == row
        assert get(server, "/stores/raw/-__-") == row, "the alphabet for addresses"
        assert get(server, f"/stores/raw?low={quote(row['key'], safe='')}") == [row]
        assert status(server, "/stores/raw/!!") == 400


def test_an_empty_key_is_a_key() -> None:
    with StoreServer({"some": rows(a=1, **{"": 5}), "none": rows(a=1)}) as server:
        assert get(server, "/stores/some/") == {"key": "", "value": 5}
        assert status(server, "/stores/none/") == 404
        assert get(server, "/stores/none") == [{"key": "a", "value": 1}]


def test_a_listener_that_leaves_is_no_error(capfd: pytest.CaptureFixture[str]) -> None:
    view = rows()
    with StoreServer({"rows": view}) as server:
        host, port = server.address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=30) as listener:
            listener.sendall(b"GET /stores/rows/-/changes HTTP/1.1\r\nHost: x\r\n\r\n")
            assert listener.recv(100)
            answering = [each for each in threading.enumerate() if "process_request_thread" in each.name]
            assert answering
            # Gone at once, without a goodbye.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

        def left() -> bool:
            for listen in view._listeners:
                listen("a", 1)
            return not view._listeners

        wait_until(left, "the server to see that nobody listens", within_s=60)
        for thread in answering:
            thread.join(60)
    # Clients of other tests may still write to the same stderr: only what Python says of a failed handler counts.
    said = capfd.readouterr().err
    assert "Traceback" not in said
    assert "Exception" not in said


def get(server: StoreServer, path: str) -> Any:
    with urlopen(server.address + path, timeout=30) as answer:
        return json.load(answer)


def status(server: StoreServer, path: str) -> int:
    with pytest.raises(HTTPError) as refused:
        get(server, path)
    refused.value.close()
    return refused.value.code
