"""What nodes log, as remarks in the simulation's trace instead of lines on somebody's terminal."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from millstream.testing.loop import current_process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, MutableMapping


@contextmanager
def logs_go_to(listener: Callable[[str], None]) -> Iterator[None]:
    """Until the end of the block every line goes to `listener`, with the program that wrote it in front."""
    import structlog

    def hand_over(_: Any, level: str, event: MutableMapping[str, Any]) -> Any:
        process = current_process()
        text = event.pop("event", "")
        event.pop("logger", None)
        fields = " ".join(f"{name}={value!r}" for name, value in event.items())
        listener(f"{process.name if process else 'client'}: [{level}] {text} {fields}")
        raise structlog.DropEvent

    # In place: loggers that exist keep a reference to this very list.
    processors = structlog.get_config()["processors"]
    before = list(processors)
    processors[:] = [hand_over]
    try:
        yield
    finally:
        processors[:] = before
