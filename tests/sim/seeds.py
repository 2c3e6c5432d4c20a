"""How many seeds each simulated crash is tried with: one in a test run, MILLSTREAM_SEEDS of them in a long one.

The seed decides which unsynced bytes a power failure spares, and the order in which the network delivers.
"""

from __future__ import annotations

import os

SEEDS = range(int(os.environ.get("MILLSTREAM_SEEDS", "1")))
