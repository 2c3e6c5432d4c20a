"""What to do when records that a query should have read are gone: `failOnDataLoss` decides, and it is always said."""

from __future__ import annotations

import logging
from typing import Final

from millstream.client.errors import ClientError, topic_subject

_LOG: Final = logging.getLogger("millstream.spark")


class DataLost(ClientError):
    """Records between where a query stands and what the topic holds are gone. `what` is said without advice."""

    def __init__(self, what: str, advice: str = "") -> None:
        super().__init__(f"{what}. {advice}" if advice else what)
        self.what = what


def report_loss(what: str, *, fail: bool, instead: str) -> None:
    """Raise, or say on the worker's standard error that records are missing and how it goes on."""
    if fail:
        raise DataLost(what, f"With failOnDataLoss=false {instead}.")
    _LOG.warning("%s. As failOnDataLoss asks, %s.", what, instead)


def recreated(topic: str, before: str, now: str) -> str:
    return f"{topic_subject(topic)} was deleted and created again since it was read (its id was {before}, now {now})"
