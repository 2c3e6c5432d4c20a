"""Filter and windowed count with Faust, in an environment that has Faust and nothing of ours.

    python rival_faust.py <bootstrap servers> <source> <target> <application id> <partitions> <scratch folder>

Everything that the framework decides is at its defaults: tables in memory with a changelog, at least once. It is spared
a result for each record: once a second it sends those that have changed, as ours does with each micro-batch.
"""

import sys

import faust
from rival_progress import Progress

servers, source, target, application_id, partitions, scratch = sys.argv[1:]
app = faust.App(
    application_id,
    broker=";".join(f"kafka://{server}" for server in servers.split(",")),
    topic_partitions=int(partitions),
    topic_replication_factor=1,
    consumer_auto_offset_reset="earliest",
    datadir=scratch,
    web_enabled=False,
)
progress = Progress()


class Click(faust.Record, serializer="json"):
    user: str
    page: str
    cents: int


clicks = app.topic(source, key_type=str, value_type=Click)
results = app.topic(target, key_type=str, value_type=int)
changed: dict[str, int] = {}
counts = app.Table("counts", default=int, partitions=int(partitions)).tumbling(60.0, expires=600.0)


@app.agent(clicks)
async def count(stream: faust.StreamT) -> None:
    async for user, click in stream.items():
        progress.take()
        if click.cents > 100:
            counts[user] += 1
            changed[user] = counts[user].current()


@app.timer(1.0)
async def send_what_changed() -> None:
    waiting = dict(changed)
    changed.clear()
    for user, visits in waiting.items():
        await results.send(key=user, value=visits)


if __name__ == "__main__":
    faust.Worker(app, loglevel="ERROR", redirect_stdouts=False).execute_from_commandline()
