"""What real clients note is enough: on a broker that is made to err, their history has the anomaly by its name.

`tests/testing/test_live_plants.py` has every anomaly on the simulated cluster, whose clients are Millstream's. Here
some of the same plants are in an embedded broker, and the clients are librdkafka's: the rules are those that need more
than what was written and read.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import pytest

from millstream import Broker
from millstream.runtime.real import RealWorkers
from millstream.testing.checking import Kind, check
from tests.chaos import reading
from tests.chaos.workload import Workload, create_topics, gathered, progress, until_compacted
from tests.testing import plants

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.slow, pytest.mark.clients]

SETTINGS = {"group.initial.rebalance.delay.ms": 0, "log.cleaner.backoff.ms": 1000}


async def _compacts_in_this_process(_: RealWorkers, module: str, arguments: Any) -> None:
    """A child of its own would have the right functions."""
    importlib.import_module(module).main(list(arguments))


PLANTS = {
    "open transactions are read": (
        (plants.shows_open_transactions,),
        {Kind.READ_OF_OWN_UNCOMMITTED_WRITE, Kind.CYCLE, Kind.READ_OF_ABORTED_WRITE},
    ),
    "transactions stay open": ((plants.ends_no_transaction,), {Kind.STUCK_STABLE_OFFSET}),
    "ends, commits and keys are forgotten": (
        (plants.answers_with_an_old_end, plants.forgets_commits, plants.loses_the_newest),
        {Kind.END_WENT_BACK, Kind.COMMITTED_OFFSET_WENT_BACK, Kind.NEWEST_VALUE_LOST},
    ),
}


@pytest.mark.parametrize("what", PLANTS)
def test_a_planted_anomaly_is_found_by_its_name(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    planted, kinds = PLANTS[what]
    planting: tuple[Callable[[pytest.MonkeyPatch], None], ...] = planted
    for plant in planting:
        plant(monkeypatch)
    monkeypatch.setattr(RealWorkers, "in_child", _compacts_in_this_process)
    # Here it is known that they never will be.
    monkeypatch.setattr(reading, "DECIDED_S", 1)
    with Broker(settings=SETTINGS) as broker:
        create_topics(broker.bootstrap_servers, delete_retention_ms="1000")
        workload = Workload(broker.bootstrap_servers)
        workload.start()
        try:
            progress(workload, acked=300, copied=100, exchanged=20)
            until_compacted(broker.bootstrap_servers)
        finally:
            history = gathered(workload)
    assert kinds <= {anomaly.kind for anomaly in check(history)}
