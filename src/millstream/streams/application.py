"""Running a topology: on Spark, with topics as its inputs, outputs and durable state.

    app = Application(topology, "shop", bootstrap_servers="localhost:9092")
    with app.start():                      # a SparkSession is made if none is given
        app.store("views").get("ada")      # answered from memory, no Spark involved
        app.wait()                         # until it is stopped or fails

    app.run()                              # the same in one call, until Ctrl-C

Each sub-topology of the description becomes one Spark query, cut at internal topics that have Kafka Streams' names. All
that must survive is in topics: the places in the inputs are the offsets of the consumer group `application id`, state
is in changelogs, and with exactly_once_v2 both change in the transaction that writes the results. So an application
goes on where it stopped, on another machine too, and Spark's checkpoints may be lost.

What runs is in lower/; nothing of Spark is loaded before `start`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from millstream.streams.settings import Settings, checked_trigger, guarantee_of, settings_of
from millstream.streams.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from millstream.streams.lower.running import Running
    from millstream.streams.plan.physical import InternalTopic
    from millstream.streams.queries import KeyValueView, SessionView, WindowView


class NotRunning(RuntimeError):
    """The application has not been started, or has ended."""


class Application:
    """A topology under an application id, on a cluster.

    `settings` are Kafka Streams' (`processing.guarantee`, `auto.offset.reset`, `commit.interval.ms`, `state.dir`,
    `topic.*` for internal topics ...) and the client's (`security.protocol` ...); an unknown one is refused.
    """

    def __init__(
        self,
        topology: Topology,
        application_id: str,
        *,
        bootstrap_servers: str | Mapping[str, str] | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        if not isinstance(topology, Topology):
            raise TypeError(f"an application runs a topology, such as builder.build() gives, not {topology!r}")
        self.topology = topology
        self.application_id = application_id
        self.settings: Settings = settings_of(application_id, bootstrap_servers, settings)
        self._running: Running | None = None
        self._views: dict[str, KeyValueView | WindowView | SessionView] = {}

    # -- running

    def start(
        self, spark: SparkSession | None = None, *, guarantee: str | None = None, trigger: str | None = None
    ) -> Self:
        """Start, and return at once. What Spark cannot do is refused here, in a sentence that names the operator.

        `trigger` is a time between micro-batches ("1 second"); "available_now" works off what is there and then ends.
        Without one a micro-batch follows the other, or `commit.interval.ms` says how often.
        """
        checked_trigger(trigger)
        from millstream.streams.lower.running import Running

        if self._running is not None and self._running.is_active:
            raise RuntimeError(f"the application {self.application_id!r} runs already")
        chosen = self.settings.guarantee if guarantee is None else guarantee_of(guarantee)
        self._running = Running(self.topology, self.settings, spark, guarantee=chosen, trigger=trigger)
        self._running.start()
        return self

    def run(
        self, spark: SparkSession | None = None, *, guarantee: str | None = None, trigger: str | None = None
    ) -> None:
        """Start, and return when it has been stopped (Ctrl-C stops it); raise what made it fail."""
        self.start(spark, guarantee=guarantee, trigger=trigger)
        try:
            self.wait()
        finally:
            self.stop()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Until it ends; False if it still runs after this time. If it failed, that is raised."""
        return self._now().wait(timeout_s)

    def process_all_available(self) -> None:
        """Until everything that is in the input topics now has gone through all sub-topologies."""
        self._now().process_all_available()

    def stop(self) -> None:
        """End after the micro-batches that are under way, and close the views of stores."""
        for view in self._views.values():
            view.close()
        self._views.clear()
        if self._running is not None:
            self._running.stop()

    def restart(self) -> Self:
        """Stop and start again, as it was started: it goes on where it stopped."""
        running = self._now()
        self.stop()
        running.start()
        return self

    @property
    def is_active(self) -> bool:
        return self._running is not None and self._running.is_active

    @property
    def queries(self) -> list[StreamingQuery]:
        """Spark's queries, one for each sub-topology, in the order of the description."""
        return self._now().queries

    def _now(self) -> Running:
        if self._running is None:
            raise NotRunning(f"the application {self.application_id!r} has not been started")
        return self._running

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- looking

    def store(self, name: str) -> KeyValueView | WindowView | SessionView:
        """A store, followed into memory from its topic (millstream.streams.queries); kept open until `stop`."""
        from millstream.streams.queries import follow_store

        self._now()
        if name not in self._views:
            said = self.settings.topic_settings.get("retention.ms")
            self._views[name] = follow_store(
                self.settings.connection,
                self.topology,
                name,
                application_id=self.application_id,
                retention_ms=None if said is None else int(said),
            )
        return self._views[name]

    def describe(self) -> str:
        """The topology with the full names of its internal topics."""
        return self.topology.describe(self.application_id)

    def engines(self) -> list[str]:
        """For each sub-topology, what runs it: "spark" for Spark's own operators, "python" for Python functions over
        the records of each partition; and why."""
        from millstream.streams.lower.deciding import engines

        return engines(self.topology.plan)

    def internal_topics(self) -> list[InternalTopic]:
        """The topics that the application owns."""
        return self.topology.internal_topics(self.application_id)
