"""One seed from its beginning to its end: a cluster, clients that work, faults, and everything checked.

    report = simulate(Plan(seed=7, nodes=3, seconds=60))
    report.violation        # None if all went well

A seed decides everything: settings, topics, what clients do, what breaks when, every delay. After the time of faults
everything is mended, and then it must come to rest: all nodes up, all replicas in sync, all transactions decided. A
final read goes to the history checker together with all that clients saw.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.client.admin.topics import NewTopic, create_topics
from millstream.client.errors import ClientError, Refusal
from millstream.client.groups import committed_offsets
from millstream.client.offsets import LATEST, list_offsets
from millstream.testing.administrators import Administrator, existing_topics
from millstream.testing.checking import check
from millstream.testing.cluster import SimulatedCluster, dice
from millstream.testing.consumer_members import ConsumerMember
from millstream.testing.drawing import draw_broker_settings, draw_topic_settings
from millstream.testing.faults import Nemesis
from millstream.testing.history import Committed, History
from millstream.testing.layouts import LAYOUTS, draw_layout
from millstream.testing.quorum_invariants import QuorumInvariants
from millstream.testing.readers import GroupWorker, Reader, read_once
from millstream.testing.replica_invariants import ReplicaInvariants
from millstream.testing.transactors import ReadingTransactor, Transactor
from millstream.testing.violations import TookTooLong, Violation
from millstream.testing.writers import KeyedWriter, Writer

if TYPE_CHECKING:
    from collections.abc import Collection

    from millstream.client.client import Client
    from millstream.metadata.image import MetadataImage
    from millstream.testing.checking import Anomaly
    from millstream.testing.history import Place
    from millstream.testing.workers import Worker

TOPICS = {"orders": 3, "payments": 2}
COMPACTED = "accounts"
COMPACTED_SETTINGS = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0", "internal.segment.bytes": "1024"}
# Of deliveries that meet others in one turn of the loop: none, some, most.
COINCIDING_SHARES = (0.0, 0.1, 0.6)
WORK = ("write", "read", "transact", "exchange", "compact", "group", "consumer-group", "administrate")


@dataclass(frozen=True, slots=True)
class Plan:
    """What to simulate. The same plan gives the same run."""

    seed: int
    nodes: int = 3
    seconds: float = 60
    """Of virtual time, before everything is mended."""
    faults: Collection[str] | None = None
    """Names of faults.Nemesis.kinds; None for all."""
    work: Collection[str] = WORK
    settings: dict[str, str] = field(default_factory=dict)
    layout: str | None = None
    """One of layouts.LAYOUTS, with so many brokers as `nodes` says; None leaves it to the seed."""
    invariants: bool = True
    """Whether nodes are looked into. Without it what clients saw has to do, as with a cluster of somebody else's."""
    aloud: bool = False


@dataclass(slots=True)
class Report:
    """How it went."""

    plan: Plan
    violation: BaseException | None = None
    digest: str = ""
    events: int = 0
    virtual_s: float = 0.0
    sent: int = 0
    acknowledged: int = 0
    read: int = 0
    committed_transactions: int = 0
    elections: int = 0
    controller_elections: int = 0
    images_compared: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    layout: str = ""
    last_events: tuple[str, ...] = ()
    history: History = field(default_factory=History)
    anomalies: list[Anomaly] = field(default_factory=list)
    """What the history checker found."""

    @property
    def rule(self) -> str | None:
        """The rule that was broken; None if none was, or if the run ended with an error that breaks no rule."""
        return self.violation.rule if isinstance(self.violation, Violation) else None

    def __str__(self) -> str:
        faults = ", ".join(f"{name} {count}" for name, count in self.faults.items()) or "none"
        return (
            f"seed {self.plan.seed} ({self.layout}): {self.events} events in {self.virtual_s:.0f} s of virtual time, "
            f"{self.acknowledged} of {self.sent} writes acknowledged, {self.read} records read, "
            f"{self.committed_transactions} transactions, {self.elections} elections, "
            f"{self.controller_elections} of controllers, {self.images_compared} images compared, faults: {faults}; "
            f"trace {self.digest}"
        )


def simulate(plan: Plan) -> Report:
    """Run one seed; never raises for what the cluster did wrong, but reports it."""
    return _Simulation(plan).run()


class _Simulation:
    """The parts of one run."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.history = History(writes_cross=frozenset(TOPICS))
        self.anomalies: list[Anomaly] = []
        draw = dice(plan.seed, "settings")
        drawn = draw_broker_settings(draw)
        self.topics = dict(TOPICS)
        self.topic_settings = {topic: draw_topic_settings(draw) for topic in TOPICS}
        if "compact" in plan.work:
            self._compact(drawn)
        layout = (
            draw_layout(dice(plan.seed, "layout"), plan.nodes)
            if plan.layout is None
            else LAYOUTS[plan.layout](plan.nodes)
        )
        self.cluster = SimulatedCluster(
            plan.seed,
            layout=layout,
            settings={**base_settings(plan.nodes), **drawn, **plan.settings},
            aloud=plan.aloud,
        )
        self.cluster.network.coinciding_share = dice(plan.seed, "coinciding share").choice(COINCIDING_SHARES)
        settings = self.cluster.nodes[1].settings
        self.quorum = QuorumInvariants()
        self.replicas = ReplicaInvariants()
        if plan.invariants:
            self.cluster.checkers += [self.quorum.look, self.replicas.look, _no_failed_handlers]
        self.nemesis = Nemesis(
            self.cluster,
            kinds=plan.faults,
            power_is_safe=settings.get("millstream.acks.fsync") == "true",
            all_in_sync=self.all_in_sync,
        )
        self.places: list[Place] = [(topic, index) for topic, count in TOPICS.items() for index in range(count)]
        self.all_places: list[Place] = [(name, index) for name, count in self.topics.items() for index in range(count)]
        self.workers: list[Worker] = []

    def _compact(self, drawn: dict[str, str]) -> None:
        """One more topic, where only the newest value of each key stays."""
        self.history.compacted = frozenset({COMPACTED})
        self.topics[COMPACTED] = 1
        drawn["log.cleaner.backoff.ms"] = "1000"
        self.topic_settings[COMPACTED] = dict(COMPACTED_SETTINGS)
        if self.plan.nodes == 1:
            # A follower that misses a tombstone for longer than this keeps what was deleted, in Apache Kafka as well.
            self.topic_settings[COMPACTED]["delete.retention.ms"] = "1000"

    def run(self) -> Report:
        report = Report(self.plan, layout=self.cluster.layout.name, history=self.history, anomalies=self.anomalies)
        try:
            self.cluster.run(self._scenario)
        except Exception as error:  # noqa: BLE001  # whatever it is, its seed is worth keeping
            report.violation = self.cluster.violations[0] if self.cluster.violations else error
        trace, history = self.cluster.trace, self.history
        report.digest, report.events, report.last_events = trace.digest, trace.events, tuple(trace.last)
        report.virtual_s = self.cluster.loop.time()
        report.sent = len(history.sent)
        report.acknowledged = sum(sent.outcome.value == "ok" for sent in history.sent)
        report.read = sum(len(poll.records) for poll in history.polled)
        report.committed_transactions = sum(outcome.value == "ok" for outcome in history.transactions.values())
        report.elections = sum(len(ledger.leaders) for ledger in self.replicas.ledgers.values())
        report.controller_elections = len(self.quorum.leaders)
        report.images_compared = self.quorum.images_compared
        report.faults = self.nemesis.counts
        return report

    async def _scenario(self, cluster: SimulatedCluster) -> None:
        await cluster.start()
        await self._create_topics()
        self._hire()
        running = [asyncio.create_task(worker.run()) for worker in self.workers]
        breaking = asyncio.create_task(self.nemesis.run())
        await self._let_work([*running, breaking])
        self.nemesis.stopping = True
        await breaking
        self.nemesis.mend()
        for node in cluster.nodes.values():
            await node.until_ready()
        await self._progress()
        for worker in self.workers:
            worker.stopping = True
        await asyncio.gather(*running)
        await self._until_in_sync()
        late = await self._until_decided()
        await self._final_read()
        await self.cluster.until(self._all_know_the_mark, within_s=60, what="all replicas know how far it is committed")
        self._judge(await existing_topics(self.workers[0]) if self.workers else {})
        if late is not None:
            raise late

    async def _let_work(self, running: list[asyncio.Task[None]]) -> None:
        """For as long as planned. A worker's own mistake ends it: it would look like a cluster that does nothing."""
        await asyncio.wait(running, timeout=self.plan.seconds, return_when=asyncio.FIRST_EXCEPTION)
        for task in running:
            if task.done():
                task.result()

    async def _create_topics(self) -> None:
        client = self.cluster.client("creator")
        replicas = min(3, self.plan.nodes)
        for topic, partitions in self.topics.items():
            new = NewTopic(topic, partitions, replicas, self.topic_settings[topic])
            for _ in range(20):
                try:
                    outcome = (await create_topics(client, [new]))[topic]
                except ClientError:
                    continue
                if isinstance(outcome, Refusal) and outcome.code.name != "TOPIC_ALREADY_EXISTS":
                    raise AssertionError(f"{topic} cannot be created: {outcome}")
                break
            else:
                raise TookTooLong(f"creating {topic}")
        await client.close()

    def _hire(self) -> None:
        cluster, history, places, work = self.cluster, self.history, self.places, self.plan.work
        if "write" in work:
            self.workers += [Writer(cluster, f"writer-{number}", history, places) for number in range(3)]
        if "transact" in work:
            self.workers += [Transactor(cluster, f"transactor-{number}", history, places) for number in range(2)]
        if "exchange" in work:
            self.workers += [ReadingTransactor(cluster, f"exchanger-{number}", history, places) for number in range(2)]
        if "compact" in work:
            self.workers.append(KeyedWriter(cluster, "keyed", history, [(COMPACTED, 0)]))
        if "read" in work:
            self.workers += [
                Reader(cluster, f"reader-{number}", history, self.all_places, committed_only=bool(number))
                for number in range(2)
            ]
        if "group" in work:
            self.workers += [
                GroupWorker(cluster, f"member-{number}", history, group="group", topics=list(TOPICS))
                for number in range(2)
            ]
        if "consumer-group" in work:
            self.workers += [
                ConsumerMember(cluster, f"consumer-{number}", history, group="consumer-group", topics=list(TOPICS))
                for number in range(2)
            ]
        if "administrate" in work:
            self.workers.append(Administrator(cluster, "admin", history, places))

    # --- coming to rest

    async def _until_in_sync(self) -> None:
        try:
            await self.cluster.until(self.all_in_sync, within_s=90, what="all replicas in sync")
        except TookTooLong:
            raise TookTooLong(f"after 90 s: {self._out_of_sync()}") from None

    def image(self) -> MetadataImage | None:
        """The newest one that a node has committed."""
        images = [node.serving.controller.image for node in self.cluster.nodes.values() if node.serving is not None]
        return max(images, key=lambda image: image.offset, default=None)

    def all_in_sync(self) -> bool:
        return not self._out_of_sync()

    def _out_of_sync(self) -> str:
        """What is missing until all is well; empty if nothing is."""
        for node in self.cluster.nodes.values():
            if node.serving is None:
                return f"{node.host} does not serve"
        image = self.image()
        if image is None:
            return "nobody has an image"
        for number in self.cluster.brokers:
            broker = image.brokers.get(number)
            if broker is None or broker.fenced:
                return f"broker {number} is fenced"
        for topic in image.topics.by_name.values():
            for index, partition in topic.partitions.items():
                if partition.leader < 0 or sorted(partition.isr) != sorted(partition.replicas):
                    return f"{topic.name}-{index}: {partition}"
        return ""

    async def _progress(self) -> None:
        """After everything is mended every producer gets something done."""
        writers = [worker for worker in self.workers if isinstance(worker, Writer)]
        before = [writer.acked for writer in writers]
        await self.cluster.until(
            lambda: all(writer.acked > count for writer, count in zip(writers, before, strict=True)),
            within_s=120,
            what="writes are acknowledged again after everything was mended",
        )

    async def _until_decided(self) -> TookTooLong | None:
        """What is late, if something is: clients' histories are judged first, they may say more."""
        try:
            await self.cluster.until(self._all_decided, within_s=120, what="all transactions are decided")
        except TookTooLong as late:
            return late
        return None

    async def _final_read(self) -> None:
        client = self.cluster.client("final")
        final: dict[Place, tuple[tuple[int, str], ...]] = {}
        await self._note_ends(client)
        for place in self.all_places:
            end = self.history.stable_ends[place][0]
            position, records = 0, []
            deadline_s = self.cluster.loop.time() + 120
            while position < end:
                if self.cluster.loop.time() > deadline_s:
                    raise TookTooLong(f"reading {place} from {position} to {end}")
                try:
                    found, position = await read_once(client, place, position, committed_only=True)
                    records += found
                except ClientError:
                    await asyncio.sleep(0.2)
            final[place] = tuple(records)
        self.history.final = final
        await client.close()

    async def _note_ends(self, client: Client) -> None:
        """How far readers of either kind can get, and what groups have stored."""
        latest = dict.fromkeys(self.all_places, LATEST)
        stable = await list_offsets(client, latest, read_committed=True)
        ends = await list_offsets(client, latest)
        self.history.stable_ends = {place: (stable[place].offset, ends[place].offset) for place in self.all_places}
        groups: dict[str, dict[Place, None]] = {}
        for commit in self.history.committed:
            groups.setdefault(commit.group, {})[commit.place] = None
        for group, places in groups.items():
            found = await committed_offsets(client, group, list(places))
            self.history.committed += [
                Committed(group, place, found[place].offset if place in found else -1) for place in places
            ]

    def _all_decided(self) -> bool:
        for node in self.cluster.serving:
            for partition in node.serving.partitions if node.serving else ():
                log = partition.log
                if partition.leader is not None and not log.last_stable_offset == log.high_watermark == log.end_offset:
                    return False
        return True

    def _all_know_the_mark(self) -> bool:
        """A follower hears of the high watermark with its next answer."""
        marks: dict[tuple[str, int], int] = {}
        for node in self.cluster.serving:
            for partition in node.serving.partitions if node.serving else ():
                mark = partition.log.high_watermark
                if marks.setdefault((partition.topic, partition.index), mark) != mark:
                    return False
        return True

    def _judge(self, topics: dict[str, None]) -> None:
        found = list(
            self.replicas.at_rest([(node, node.serving) for node in self.cluster.nodes.values() if node.serving])
        )
        self.anomalies += check(self.history)
        found += [Violation(anomaly.kind.value, anomaly.text) for anomaly in self.anomalies]
        for worker in self.workers:
            for name, exists in worker.topics.items() if isinstance(worker, Administrator) else ():
                if exists is not None and exists != (name in topics):
                    what = f"{name} was {'created' if exists else 'deleted'}, and is {'not ' * exists}there"
                    found.append(Violation("what the controller promised holds", what))
        self.cluster.violations += found
        self.cluster.raise_violations()


def base_settings(nodes: int) -> dict[str, str]:
    """A small cluster that reacts quickly, so that a minute shows what takes hours elsewhere."""
    replicas = str(min(3, nodes))
    min_isr = "2" if nodes > 2 else "1"
    return {
        "offsets.topic.num.partitions": "2",
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.num.partitions": "2",
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": min_isr,
        "default.replication.factor": replicas,
        "min.insync.replicas": min_isr,
        "group.initial.rebalance.delay.ms": "0",
    }


def _no_failed_handlers(at: object, node: object) -> None:
    # A node that goes down because its metadata log failed may leave a question unanswered.
    if node.metrics.failed_handlers and not node.failed.done():  # type: ignore[attr-defined]
        raise Violation("no handler fails", f"{at}: a request made a handler raise")
