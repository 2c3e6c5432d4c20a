"""Filter and windowed count with Quix Streams, in an environment that has Quix Streams and nothing of ours.

    python rival_quix.py <bootstrap servers> <source> <target> <application id> <partitions> <scratch folder>

Everything that the framework decides is at its defaults: state in RocksDB with a changelog, at least once. It is spared
a result for each record: it has no way to send only what has changed since, so it sends each window's count once, when
the window has closed, which is less than ours sends.
"""

import sys

from quixstreams import Application
from rival_progress import Progress

servers, source, target, application_id, partitions, scratch = sys.argv[1:]
app = Application(
    broker_address=servers,
    consumer_group=application_id,
    auto_offset_reset="earliest",
    state_dir=scratch,
    loglevel="ERROR",
)
progress = Progress()
clicks = app.dataframe(app.topic(source, value_deserializer="json"))
clicks = clicks.update(progress.take)
clicks = clicks[clicks["cents"] > 100]
counts = clicks.tumbling_window(duration_ms=60_000, grace_ms=60_000).count().final()
counts = counts.to_topic(app.topic(target, value_serializer="json"))

if __name__ == "__main__":
    app.run()
