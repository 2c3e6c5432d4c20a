"""Which brokers a test of an application runs on, and commands that are given to them."""

from __future__ import annotations

import pytest

from tests.cli.conftest import run_command
from tests.support.waiting import wait_until

# The application knows no difference, so not every test has to be run twice. These are the ones in which much is asked
# of a broker: transactions with offsets in them, internal topics, groups, state that is read back.
on_either = pytest.mark.parametrize(
    "servers", ["embedded", pytest.param("apache_kafka", marks=pytest.mark.java)], indirect=True
)


def until_done(*words: str, servers: str) -> None:
    """Give a command until it is carried out.

    A group whose only member came and left within `group.initial.rebalance.delay.ms` is not empty before that is over,
    and until then its offsets cannot be moved.
    """
    said = [""]

    def done() -> bool:
        ended = run_command(*words, servers=servers)
        said[0] = ended.err
        return ended.code == 0

    try:
        wait_until(done, " ".join(words), within_s=120, every_s=0.5)
    except TimeoutError as error:
        raise AssertionError(f"{error}: {said[0]}") from None
