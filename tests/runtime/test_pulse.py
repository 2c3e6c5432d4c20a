"""The pulse: silent while the loop is in time, repeats its last message while it is late, silent when it has hung."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from tests.support.waiting import wait_until

from millstream.runtime.pulse import RealPulse

if TYPE_CHECKING:
    from collections.abc import Iterator

ANSWER = b"\x00\x00\x00\x02ok"


class Listener:
    """Answers every message of four bytes."""

    def __init__(self) -> None:
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.server.getsockname()[1]
        self.heard: list[bytes] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            # Answers that nobody reads end a connection with a reset.
            with connection, suppress(ConnectionResetError):
                while message := connection.recv(4):
                    self.heard.append(message)
                    connection.sendall(ANSWER)


@contextmanager
def listening() -> Iterator[Listener]:
    listener = Listener()
    try:
        yield listener
    finally:
        listener.server.close()


def test_a_late_loop_is_spoken_for_and_a_hung_one_is_not() -> None:
    with listening() as controller:
        pulse = RealPulse(late_ms=40, hung_ms=4_000)
        try:
            pulse.beat([("127.0.0.1", controller.port)], b"beat")
            wait_until(lambda: len(controller.heard) >= 2, "two repeated beats", within_s=30)
            thread = pulse._thread
            assert thread is not None
            wait_until(lambda: pulse.is_silent, "silence")
            assert set(controller.heard) == {b"beat"}
            # The loop is back: what it says now is repeated the next time.
            pulse.beat([("127.0.0.1", controller.port)], b"more")
            wait_until(lambda: b"more" in controller.heard, "the new message", within_s=30)
        finally:
            pulse.close()


def test_a_loop_in_time_is_not_interrupted() -> None:
    with listening() as controller:
        pulse = RealPulse(late_ms=60_000, hung_ms=90_000)
        pulse.beat([("127.0.0.1", controller.port)], b"beat")
        pulse.close()
        assert controller.heard == []


def test_a_controller_that_cannot_be_reached_is_tried_again() -> None:
    with listening() as controller:
        gone = socket.create_server(("127.0.0.1", 0))
        nobody = gone.getsockname()[1]
        gone.close()
        pulse = RealPulse(late_ms=20, hung_ms=60_000)
        try:
            pulse.beat([("127.0.0.1", nobody)], b"beat")
            wait_until(lambda: pulse.failed > 0, "a failure", within_s=30)
            pulse.beat([("127.0.0.1", controller.port)], b"beat")
            wait_until(lambda: controller.heard, "a beat", within_s=30)
        finally:
            pulse.close()


def test_a_controller_that_does_not_answer_keeps_nothing_from_the_others() -> None:
    with listening() as controller, socket.create_server(("127.0.0.1", 0)) as deaf:
        pulse = RealPulse(late_ms=20, hung_ms=60_000)
        try:
            pulse.beat([deaf.getsockname(), ("127.0.0.1", controller.port)], b"beat")
            wait_until(lambda: len(controller.heard) >= 5, "five beats", within_s=30)
        finally:
            pulse.close()
