"""A broker of either kind for one test alone, which may stop or kill it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.support.apache_kafka import ApacheKafka
from tests.support.millstream_process import MillstreamProcess

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def own_broker_of(kind: str, folder: Path, **of_millstream: Any) -> Iterator[ApacheKafka | MillstreamProcess]:
    """Started, and gone afterwards; `of_millstream` is for a MillstreamProcess only."""
    made: ApacheKafka | MillstreamProcess
    if kind == "millstream":
        made = MillstreamProcess(folder, **of_millstream)
    else:
        made = ApacheKafka(folder)
        made.format()
    with made:
        made.start()
        yield made
