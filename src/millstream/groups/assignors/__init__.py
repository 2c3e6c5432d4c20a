"""Server-side assignors of KIP-848: who of a group shall read what.

`ASSIGNORS` has them by the name that `group.consumer.assignors` and clients use. Both give the very result that Apache
Kafka 4.3 gives, down to which member gets the odd partition: a group that moves between the two brokers stays put.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.groups.assignors.range import assign_range
from millstream.groups.assignors.uniform import assign_uniform

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.groups.assignors.spec import GroupSpec, Partitions

ASSIGNORS: dict[str, Callable[[GroupSpec], dict[str, Partitions]]] = {
    "uniform": assign_uniform,
    "range": assign_range,
}
