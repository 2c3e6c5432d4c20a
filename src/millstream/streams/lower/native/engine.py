"""A sub-topology on DataFrames: a micro-batch's records in, records for topics out, snapshots in between.

The nodes are compiled anew for each micro-batch, since an aggregation in windows needs to know what came before it.
Results of a try are held apart until the next micro-batch shows that it was committed; if the same one comes again,
everything is read back from the changelogs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from millstream.spark.options import Selection
from millstream.spark.planning import find_present
from millstream.streams.lower.ends import patience_ms, settled_ends
from millstream.streams.lower.native import flows, stateless
from millstream.streams.lower.native.aggregating import Aggregating
from millstream.streams.lower.native.flows import Flow
from millstream.streams.lower.native.frames import frame_of
from millstream.streams.lower.native.joins import HeldTable, joined_with_table
from millstream.streams.lower.native.json_source import FORMAT
from millstream.streams.lower.native.pruning import TYPES, json_fields, needed_columns, schema_of, users_of_records
from millstream.streams.lower.native.serdes import changelog_key, encode
from millstream.streams.lower.native.snapshots import read_span, read_topic
from millstream.streams.lower.native.supported import table_chain
from millstream.streams.lower.subtopologies import only_topic
from millstream.streams.lower.tasks.function import as_table
from millstream.streams.lower.tasks.partition import place_of
from millstream.streams.lower.tasks.restoring import read_back, reading_options
from millstream.streams.lower.tasks.wires import pack, unpack
from millstream.streams.lower.topics import tasks_topic
from millstream.streams.plan import nodes as n
from millstream.streams.plan.stores import KeyValueStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame, Row, SparkSession

    from millstream.client.client import Client
    from millstream.client.grouping import TopicPartition
    from millstream.client.sync import SyncClient
    from millstream.streams.lower.sinking import Span
    from millstream.streams.lower.subtopologies import SubTopology
    from millstream.streams.plan.plan import Plan
    from millstream.streams.plan.stores import Store
    from millstream.streams.settings import Settings

    Read = Callable[[list[str]], DataFrame]

# So many records are looked at one by one where that saves a step of Spark's.
_FEW = 2_000
_STATE = ("partition", "key", "value", "timestamp")


@dataclass(frozen=True)
class State:
    """What aggregations hold, by the names of their nodes: records as in their changelogs (partition, key, value and
    timestamp), and how far stream time has come in each partition."""

    records: Mapping[str, pa.Table]
    observed_ms: Mapping[str, Mapping[int, int]]


class NativeEngine:
    """One sub-topology of one running application."""

    # A transaction of some seconds.
    offsets_max = 2_000_000

    def __init__(self, plan: Plan, part: SubTopology, settings: Settings) -> None:
        self._plan = plan
        self._part = part
        self._connection = settings.connection
        self._patience_ms = patience_ms(settings.transaction_timeout_ms)
        self._application_id = settings.application_id
        self._nodes = [node for node in plan.nodes if node.name in part.nodes]
        self._aggregating = {node.name: Aggregating(node) for node in self._nodes if isinstance(node, n.Aggregate)}
        self._tables = {node.inputs[1]: HeldTable() for node in self._nodes if isinstance(node, n.StreamTableJoin)}
        self.columns = needed_columns(plan, part)
        fields = json_fields(plan, part)
        self.format = FORMAT if fields else "millstream"
        self.schema = schema_of(self.columns, fields)
        self._taken_apart = False
        self.only_topic = only_topic(plan, part, settings.application_id)
        self._reads_twice = users_of_records(plan, part) > 1
        self._tried: int | None = None
        self._ready_for: int | None = None
        self._persisted: list[DataFrame] = []

    # -- the driver's side of a micro-batch

    def output(self, batch: DataFrame, client: SyncClient, batch_id: int, span: Span) -> DataFrame:
        """What a micro-batch writes, as rows."""
        self._let_go()
        if self._ready_for != batch_id:
            self.begin(batch.sparkSession, client, batch_id, span)
        self._ready_for = None
        counts = {name: sum(span.sizes(name)) for name in self._names()}
        self._taken_apart = self.format == FORMAT
        if len(self._part.topics) == 1:
            return self.compiled(lambda _topics: batch, counts)
        # Each topic by itself: the batch is all of them in one, and each use of it would read all of them.
        return self.compiled(lambda names: self._read(batch.sparkSession, names, span), counts)

    def begin(self, spark: SparkSession, client: SyncClient, batch_id: int, span: Span) -> None:
        """Hold what was committed before a micro-batch."""
        _set_up(spark)
        if self._tried is not None and self._tried < batch_id:
            self.committed()
        else:
            self._restore(spark, client, span)
        self._tried = self._ready_for = batch_id

    @property
    def is_fresh(self) -> bool:
        """Whether nothing is held yet, or any more."""
        return self._tried is None

    def give(self, rows_max: int) -> State | None:
        """All that is held after `begin`, and from now on not held here; None if there are more rows than that."""
        if sum(each.rows_held() for each in self._aggregating.values()) > rows_max:
            return None
        records: dict[str, pa.Table] = {}
        observed_ms: dict[str, dict[int, int]] = {}
        for name, each in self._aggregating.items():
            observed_ms[name] = each.observed_ms
            rows = each.held()
            if rows is not None:
                changes = Flow(rows, windowed=each.node.windows is not None)
                records[name] = self._logged(changes, each.node.store).select(*_STATE).toArrow()
            each.let_go()
        self._tried = self._ready_for = None
        return State(records, observed_ms)

    def take(self, spark: SparkSession, batch_id: int, state: State) -> None:
        """Hold this at the begin of a micro-batch."""
        _set_up(spark)
        for name, each in self._aggregating.items():
            table = state.records.get(name)
            rows = frame_of(spark, table) if table is not None and table.num_rows else None
            each.hold(rows, dict(state.observed_ms.get(name, {})))
        self._tried = self._ready_for = batch_id

    def _names(self) -> list[str]:
        return [self._part.full_name(topic, self._application_id) for topic in self._part.topics]

    def _read(self, spark: SparkSession, names: list[str], span: Span) -> DataFrame:
        return read_span(spark, names, span, self._connection, self.columns)

    def committed(self) -> None:
        """What the last micro-batch made is what the next one starts from."""
        for each in self._aggregating.values():
            each.committed()
        for table in self._tables.values():
            table.committed()

    def written(self, rows: list[Row]) -> None:
        """How much has changed tells how large the snapshots are."""
        for each in self._aggregating.values():
            changelog = self._part.changelog(each.node.store, self._application_id)
            each.changed(sum(row["records"] for row in rows if row["topic"] == changelog))

    def _let_go(self) -> None:
        for rows in self._persisted:
            rows.unpersist()
        self._persisted = []

    def _restore(self, spark: SparkSession, client: SyncClient, span: Span) -> None:
        """Everything from the changelogs, as far as it is committed; tables from their topics, up to the batch."""
        for source, held in self._tables.items():
            self._restore_table(spark, source, held, span)
        if not self._aggregating:
            return
        ends, ids = client.run(self._ask_ends)
        topic = tasks_topic(self._application_id)
        read = partial(read_back, ids, self._connection, self._patience_ms)
        known: dict[tuple[bytes, int], Any] = {}
        for (name, index), end in ends.items():
            if name == topic and end > 0:
                for key, value, _ in read(topic, index, 0, end):
                    known[key or b"", index] = None if value is None else unpack(value)
        for each in self._aggregating.values():
            place = place_of(self._part.number, each.node.name, b"")
            observed = {index: held[0] for (key, index), held in known.items() if key == place and held}
            changelog = self._part.changelog(each.node.store, self._application_id)
            each.restore(spark, changelog, ends, self._reading_options(changelog), observed)

    def _restore_table(self, spark: SparkSession, name: str, held: HeldTable, span: Span) -> None:
        source, chain = table_chain(self._plan, name)
        ends = {place: start for place, start in span.starts.items() if place[0] == source.topic}
        count = sum(ends.values())
        if count == 0:
            held.hold(None, 0)
            return
        rows = read_topic(spark, source.topic, ends, self._reading_options(source.topic))
        changes = rows.selectExpr("*", "0L as offset", "null as headers", "timestamp_millis(timestamp) as at")
        flow = flows.decoded(changes.drop("timestamp").withColumnRenamed("at", "timestamp"), source.store)
        for node in chain:
            flow = stateless.table_mapped(node, flow)
        held.hold(flow.rows.where("value is not null"), count)

    def _reading_options(self, topic: str) -> dict[str, str]:
        return reading_options(self._connection, topic, self._patience_ms)

    async def _ask_ends(self, client: Client) -> tuple[dict[TopicPartition, int], dict[str, str]]:
        names = [self._part.changelog(each.node.store, self._application_id) for each in self._aggregating.values()]
        present = await find_present(client, Selection(names=(*names, tasks_topic(self._application_id))))
        return await settled_ends(client, present.places, self._patience_ms), present.ids

    # -- from records to records

    def compiled(self, read: Read, counts: Mapping[str, int]) -> DataFrame:
        """The sub-topology over the records that `read` gives for topics; aggregations in windows look at them at once.

        `counts` says about how many there are in each topic.
        """
        if self._reads_twice:
            read = self._kept(read)
        found: dict[str, Flow] = {}
        out: list[DataFrame] = []
        for node in self._nodes:
            self._compile(node, read, counts, found, out)
            if node.name in self._tables:
                topic = table_chain(self._plan, node.name)[0].topic
                self._tables[node.name].add(found[node.name].rows, counts.get(topic, 0))
        if not out:
            # A table that is there to be asked: its topic is its changelog, and nothing is written.
            return frame_of(next(iter(found.values())).rows.sparkSession, as_table([]))
        rows = out[0]
        for other in out[1:]:
            rows = rows.unionByName(other)
        # Each part of a union is tasks of its own, mostly tiny ones.
        return rows.coalesce(rows.sparkSession.sparkContext.defaultParallelism) if len(out) > 1 else rows

    def _kept(self, read: Read) -> Read:
        """Several need the records: they are read once."""
        rows: dict[tuple[str, ...], DataFrame] = {}

        def kept(names: list[str]) -> DataFrame:
            if tuple(names) not in rows:
                rows[tuple(names)] = read(names).persist()
                self._persisted.append(rows[tuple(names)])
            return rows[tuple(names)]

        return kept

    def _compile(
        self, node: n.AnyNode, read: Read, counts: Mapping[str, int], found: dict[str, Flow], out: list[DataFrame]
    ) -> None:
        fed = found.get(node.inputs[0]) if node.inputs else None
        match node:
            case n.StreamSource() | n.TableSource():
                found[node.name] = self._source(node, read)
            case n.Repartition():
                self._repartition(node, read, found, out)
            case n.Sink():
                assert fed is not None
                topic = node.topic if isinstance(node.topic, str) else stateless.column(node.topic, fed)  # type: ignore[arg-type]
                out.append(flows.written(fed, topic, node.key_serde, node.value_serde))
            case n.Aggregate():
                assert fed is not None
                found[node.name] = self._aggregate(node, fed, out, few=sum(counts.values()) in range(1, _FEW))
            case n.StreamTableJoin():
                assert fed is not None
                found[node.name] = joined_with_table(node, fed, self._tables[node.inputs[1]])
            case n.Merge():
                found[node.name] = stateless.merged([found[name] for name in node.inputs])
            case n.Branch():
                assert fed is not None
                found.update(stateless.branches(node, fed))
            case n.BranchChild():
                pass
            case _:
                assert fed is not None
                found[node.name] = self._one_by_one(node, fed, out)

    def _source(self, node: n.StreamSource | n.TableSource, read: Read) -> Flow:
        from pyspark.sql import functions as f

        if isinstance(node, n.StreamSource):
            return flows.decoded(read(list(node.topics)), node, taken_apart=self._taken_apart)
        changes = flows.decoded(read([node.topic]), node.store)
        return changes.with_rows(changes.rows.where(f.col("key").isNotNull()))

    def _repartition(self, node: n.Repartition, read: Read, found: dict[str, Flow], out: list[DataFrame]) -> None:
        from pyspark.sql import functions as f

        topic = f"{self._application_id}-{node.topic}"
        fed = found.get(node.inputs[0])
        if fed is not None:
            rows = fed.rows.where(f.col("key").isNotNull()) if node.drops_null_keys else fed.rows
            out.append(flows.written(fed.with_rows(rows), topic, node.key_serde, node.value_serde))
        if node.topic in self._part.topics:
            found[node.name] = flows.decoded(read([topic]), node)

    def _one_by_one(self, node: n.AnyNode, fed: Flow, out: list[DataFrame]) -> Flow:
        from dataclasses import replace

        from pyspark.sql import functions as f

        match node:
            case n.Filter():
                return stateless.filtered(node, fed)
            case n.Map() | n.MapValues() | n.SelectKey():
                return stateless.mapped(node, fed)
            case n.FlatMapValues():
                return stateless.flat_mapped_values(node, fed)
            case n.TableFilter() | n.TableMapValues():
                changed = stateless.table_mapped(node, fed)
                if node.store is not None:
                    out.append(self._logged(changed, node.store))
                return changed
            case n.ToTable():
                table = fed.with_rows(fed.rows.where(f.col("key").isNotNull()))
                if node.materialized:
                    out.append(self._logged(table, node.store))
                return table
            case n.ToStream():
                return replace(fed, old=False).with_rows(fed.rows.drop("old")) if fed.old else fed
        raise TypeError(f"{node!r} does not run in Spark's own operators")

    def _aggregate(self, node: n.Aggregate, fed: Flow, out: list[DataFrame], *, few: bool) -> Flow:
        each = self._aggregating[node.name]
        rows = each.add(fed.rows, self._persisted, few=few)
        changed = Flow(rows, windowed=node.windows is not None, old=node.sends_old_values)
        out.append(self._logged(changed, node.store))
        if node.windows is not None and each.observed_ms:
            out.append(self._stream_times(node, each.observed_ms, fed.rows.sparkSession))
        return changed

    def _stream_times(self, node: n.Aggregate, observed_ms: Mapping[int, int], spark: SparkSession) -> DataFrame:
        """How far stream time has come in each partition, as the engine for Python would keep it too."""
        place = place_of(self._part.number, node.name, b"")
        topic = tasks_topic(self._application_id)
        rows = [(topic, index, place, pack([at, None]), max(0, at), None) for index, at in observed_ms.items()]
        # As an Arrow table it is part of the plan: constants in columns would be compiled anew each time.
        return frame_of(spark, as_table(rows))

    def _logged(self, flow: Flow, store: Store) -> DataFrame:
        """Changes of a table as records of its changelog, in the partition of their task."""
        from pyspark.sql import functions as f

        if isinstance(store, KeyValueStore):
            key = encode(f.col("key"), store.key_serde)
        else:
            key = changelog_key(f.col("key.key"), store.key_serde, f.col("key.window.start_ms"))
        value = f.col("value") if flow.raw_value else encode(f.col("value"), store.value_serde)
        return flow.rows.select(
            f.lit(self._part.changelog(store, self._application_id)).alias("topic"),
            "partition",
            key.alias("key"),
            value.alias("value"),
            "timestamp",
            f.lit(None).cast(TYPES["headers"]).alias("headers"),
        )


def _set_up(spark: SparkSession) -> None:
    """A query has a session of its own. Adapting takes a job for each step, and small steps are what there is. Whatever
    the user's session says, expressions mean what they mean to the interpreter: overflow and division by 0 are errors,
    and names that differ in case are different names.
    """
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    spark.conf.set("spark.sql.ansi.enabled", "true")
    spark.conf.set("spark.sql.caseSensitive", "true")
