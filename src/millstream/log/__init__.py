"""One partition's log on disk, with Kafka's files and Kafka's bytes, on the Disk port.

    log.py          the Log: state, and the one place to call      directory.py    a log directory of many of them
    appending.py    as leader       following.py  as follower      checkpoints.py  offsets of all partitions
    rolling.py      new segments, clean close                      partition_metadata.py  the topic id
    reading.py      fetches         lookup.py     by time          segment.py      one segment
    cutting.py      truncation, retention, deletion                indexes.py, transactions.py  beside it
    loading.py      opening         recovery.py   after a crash    epochs.py, producers.py, snapshots.py
    interrupted.py  leftovers of a crash in mid-rename             batches.py      walking over headers
    flushing.py     what fsync must reach                          compact*.py     compaction, in a child process

Everything is synchronous and belongs to one thread; files are touched through the port only, and time is an argument.
"""
