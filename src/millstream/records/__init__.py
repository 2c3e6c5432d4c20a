"""Record batches: their bytes, the native walker that looks inside, the codecs, and the checks a producer meets.

batch.py        the header and what is stamped in place     reading.py     records as objects, look-ups by time
_walker.py      the loops over records, compiled            building.py    batches from records, markers
_columns.py     whole batches to columns, compiled          _scatter.py    columns to whole batches, compiled
codecs.py       gzip, snappy, lz4, zstd, bounded            validation.py  what a broker asks of a batch
partitioning.py keys to partitions as Java does             scanning.py    whole valid batches of a log file
rewriting.py    fewer records (compaction), another codec

The broker, the log, the client and Arrow all stand on these; nothing here knows of any of them.
"""

from __future__ import annotations

from typing import Final

from millstream.records import _walker

NATIVE: Final[bool] = not (_walker.__file__ or "").endswith(".py")
"""Whether the walker is compiled."""
