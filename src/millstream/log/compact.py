"""The child process of a compaction: `python -m millstream.log.compact FOLDER`.

It reads the plan that the broker left in the folder, makes the cleaned segments and leaves a result. It touches no
file that counts, so it can be killed at any time.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import msgspec

from millstream.log.compaction_plan import PLAN_FILE, RESULT_FILE, Plan
from millstream.log.compaction_rewrite import compact
from millstream.runtime.real import RealDisk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.runtime.ports import Disk


def main(arguments: Sequence[str], disk: Disk | None = None) -> None:
    """`disk` is given where the machine is a simulated one."""
    (directory,) = arguments
    disk = disk or RealDisk()
    plan = msgspec.json.decode(disk.read_file(f"{directory}/{PLAN_FILE}"), type=Plan)
    disk.replace_file(f"{directory}/{RESULT_FILE}", msgspec.json.encode(compact(disk, plan)))


if __name__ == "__main__":
    main(sys.argv[1:])
