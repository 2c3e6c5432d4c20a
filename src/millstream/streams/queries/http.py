"""Stores over HTTP: the same questions as in process, answered as JSON.

    GET /stores                               which stores there are, how many rows they hold, how far behind they are
    GET /stores/{name}?low=&high=&limit=      rows by key; windows and sessions by ?from=&to= (times of their starts)
    GET /stores/{name}/{key}                  one key; 404 if it has no value; windows take ?from=&to= too
    GET /stores/{name}/-/changes              server-sent events: every change from now on

It is Python's own threaded server: a thread for each connection, none for each request. It listens on this machine only
unless told otherwise, and knows no passwords: put it behind something that does. Keys of bytes are base64, as they are
listed; `/stores/{name}/` is the key that is empty.
"""

from __future__ import annotations

import queue
import sys
import threading
from base64 import b64decode
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

from millstream.client.errors import ClientError
from millstream.streams.queries.following import KeyValueView, SessionView, WindowView
from millstream.streams.types import BINARY, DOUBLE, INT, LONG, STRING
from millstream.streams.windows import Window, Windowed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from millstream.streams.types import DataType

    View = KeyValueView | WindowView | SessionView

_ROWS = 100
_LAST_MS = 2**63 - 1
_CHANGES_MAX = 10_000
# A comment now and then tells a listener that the line is alive, and the server that the listener is.
_IDLE_S = 15.0


class NoSuchThing(LookupError):
    """There is nothing under this path."""


class StoreServer:
    """Serves views by name. `with StoreServer({"counts": view}, port=8080): ...`"""

    def __init__(self, views: Mapping[str, View], *, host: str = "127.0.0.1", port: int = 0) -> None:
        self.views = dict(views)
        stores = self

        class Handler(_Handler):
            server_stores = stores

        self._server = _Server((host, port), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="millstream-stores", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def answer(self, path: str) -> Any:
        """What is under a path, as values for JSON."""
        split = urlsplit(path)
        wanted = {name: values[-1] for name, values in parse_qs(split.query).items()}
        match [unquote(part) for part in split.path.lstrip("/").split("/")]:
            case ["stores"] | ["stores", ""]:
                return {name: _summary(view) for name, view in self.views.items()}
            case ["stores", name]:
                return _rows(self.view(name), wanted)
            case ["stores", name, key]:
                return _one(self.view(name), key, wanted)
        raise NoSuchThing(f"there is nothing under {split.path}: try /stores")

    def view(self, name: str) -> View:
        if name not in self.views:
            raise NoSuchThing(f"there is no store {name!r}; there are {', '.join(self.views) or 'none'}")
        return self.views[name]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _summary(view: View) -> dict[str, Any]:
    return {"topic": view.topic, "rows": len(view), "behind": view.behind()}


def _rows(view: View, wanted: Mapping[str, str]) -> list[dict[str, Any]]:
    limit = int(wanted.get("limit", _ROWS))
    found: Iterable[tuple[Any, Any]]
    if isinstance(view, KeyValueView):
        low, high = (_key(wanted[name], view.key_type) if name in wanted else None for name in ("low", "high"))
        found = view.range(low, high)
    elif isinstance(view, WindowView):
        found = view.fetch_all(*_times(wanted))
    else:
        from_ms, to_ms = _times(wanted)
        found = (each for each in view.all() if from_ms <= each[0].window.start_ms <= to_ms)
    return [_row(key, value) for key, value in islice(found, limit)]


def _one(view: View, text: str, wanted: Mapping[str, str]) -> Any:
    key = _key(text, view.key_type)
    if isinstance(view, KeyValueView):
        value = view.get(key)
        if value is None:
            raise NoSuchThing(f"{text!r} has no value")
        return _row(key, value)
    found = view.fetch(key, *_times(wanted)) if isinstance(view, WindowView) else view.fetch(key)
    return [_row(Windowed(key, window), value) for window, value in found]


def _times(wanted: Mapping[str, str]) -> tuple[int, int]:
    return int(wanted.get("from", 0)), int(wanted.get("to", _LAST_MS))


def _key(text: str, kind: DataType) -> Any:
    if kind == STRING:
        return text
    if kind in (INT, LONG):
        return int(text)
    if kind == BINARY:
        # Of base64 both alphabets are understood: a "/" or "+" means something else in an address.
        return b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
    return float(text) if kind == DOUBLE else msgspec.json.decode(text)


def _row(key: Any, value: Any) -> dict[str, Any]:
    if isinstance(key, Windowed) and isinstance(key.window, Window):
        return {
            "key": key.key,
            "window": {"start_ms": key.window.start_ms, "end_ms": key.window.end_ms},
            "value": value,
        }
    return {"key": key, "value": value}


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Somebody who leaves in the middle of an answer, as every listener to changes does, is no error."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server_stores: StoreServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    # One write for a whole answer.
    wbufsize = -1

    def do_GET(self) -> None:
        """Answer a question."""
        match urlsplit(self.path).path.strip("/").split("/"):
            case ["stores", name, "-", "changes"] if unquote(name) in self.server_stores.views:
                self._changes(self.server_stores.views[unquote(name)])
                return
        try:
            status, answer = HTTPStatus.OK, self.server_stores.answer(self.path)
        except NoSuchThing as missing:
            status, answer = HTTPStatus.NOT_FOUND, {"error": str(missing)}
        except (ValueError, msgspec.DecodeError) as wrong:
            status, answer = HTTPStatus.BAD_REQUEST, {"error": str(wrong)}
        except (RuntimeError, ClientError) as failed:
            status, answer = HTTPStatus.SERVICE_UNAVAILABLE, {"error": str(failed)}
        content = msgspec.json.encode(answer)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()

    def _changes(self, view: View) -> None:
        waiting: queue.Queue[tuple[Any, Any]] = queue.Queue(_CHANGES_MAX)
        overrun = threading.Event()

        def listen(key: Any, value: Any) -> None:
            try:
                waiting.put_nowait((key, value))
            except queue.Full:
                # A listener that is too slow is let go, so that it knows that something is missing.
                overrun.set()

        view.on_change(listen)
        self.close_connection = True
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.end_headers()
        try:
            self.wfile.flush()
            while not overrun.is_set() and not view.has_failed:
                try:
                    content = b"data: " + msgspec.json.encode(_row(*waiting.get(timeout=_IDLE_S))) + b"\n\n"
                except queue.Empty:
                    content = b":\n\n"
                self.wfile.write(content)
                self.wfile.flush()
        except OSError:
            pass  # the listener has left
        finally:
            view.off_change(listen)

    def log_message(self, *_: object) -> None:
        """Requests are not logged."""
