"""What the operating system allows this process."""

from __future__ import annotations

import resource
from functools import cache


@cache
def descriptors_for_connections() -> int:
    """How many connections leave enough file descriptors for logs: half of what the process may open.

    The soft limit is raised to the hard one first; its usual 1,024 is meant for programs that use `select`.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return 1 << 31 if hard == resource.RLIM_INFINITY else max(1, hard // 2)
