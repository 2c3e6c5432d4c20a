"""Two ways to run a topology, with one face: the examples `streams_*.py` run in the test driver, or with --spark on
a broker and Spark, started for them on this machine.

    python examples/streams_word_count.py
    python examples/streams_word_count.py --spark

In the driver each record goes through before the next one comes. On Spark, records of a topic go through in
micro-batches, and a table says the last value of each key and batch; before another topic gets its first record, those
of the topics before have gone through.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol

from millstream.streams import Topology, TopologyTestDriver
from millstream.streams.plan.nodes import GlobalTableSource, Sink, StreamSource, TableSource

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from pyspark.sql import SparkSession

    from millstream.streams.serdes import Serde

# As in the driver: time stands still in a partition without records, so a session there would not end.
PARTITIONS = 1
FOREVER_MS = 2**62
# The examples' records are of 1970, so no topic may look at their age.
KEEP = {"retention.ms": "-1"}


class Opening(Protocol):
    """How an example gets something to run its topology with."""

    def __call__(self, topology: Topology) -> Any: ...


def opened(topology: Topology) -> Any:
    """The test driver; with --spark on the command line, Spark."""
    return OnSpark(topology) if "--spark" in sys.argv[1:] else TopologyTestDriver(topology)


class OnSpark:
    """A topology on Spark, with the part of the test driver's face that the examples use."""

    def __init__(self, topology: Topology, spark: SparkSession | None = None) -> None:
        self.topology = topology
        self._spark = spark
        self._stack = ExitStack()
        self._topic = ""
        self._waiting: list[tuple[bytes | None, bytes | None, int]] = []
        self._inputs: dict[str, tuple[Serde, Serde]] = {}
        self._outputs: dict[str, tuple[Serde, Serde]] = {}
        for node in topology.plan.nodes:
            match node:
                case StreamSource(topics=topics):
                    self._inputs.update(dict.fromkeys(topics, (node.key_serde, node.value_serde)))
                case TableSource(topic=topic) | GlobalTableSource(topic=topic):
                    self._inputs[topic] = (node.store.key_serde, node.store.value_serde)
                case Sink(topic=str(topic)):
                    self._outputs[topic] = (node.key_serde, node.value_serde)

    def __enter__(self) -> Self:
        import millstream.spark
        from millstream import Broker
        from millstream.streams import Application

        try:
            broker = self._stack.enter_context(Broker())
            self.servers = broker.bootstrap_servers
            for topic in dict.fromkeys((*self._inputs, *self._outputs)):
                broker.create_topic(topic, partitions=PARTITIONS, config=KEEP)
            if self._spark is None:
                self._spark = millstream.spark.session("local[2]", log_level="ERROR")
                self._stack.callback(self._spark.stop)
            folder = self._stack.enter_context(TemporaryDirectory(prefix="millstream-example-"))
            settings = {"state.dir": folder} | {f"topic.{name}": text for name, text in KEEP.items()}
            self.application = Application(
                self.topology, "example", bootstrap_servers=self.servers, settings=settings
            ).start(self._spark)
            self._stack.callback(self.application.stop)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def input_topic(self, name: str) -> InputTopic:
        return InputTopic(self, name, *self._inputs[name])

    def output_topic(self, name: str) -> OutputTopic:
        return OutputTopic(self, name, *self._outputs[name])

    def store(self, name: str) -> Store:
        """A store, asked from outside of Spark: an interactive query."""
        return Store(self, name)

    def pipe(self, topic: str, key: bytes | None, value: bytes | None, timestamp_ms: int) -> None:
        if topic != self._topic:
            self.settle()
            self._topic = topic
        self._waiting.append((key, value, timestamp_ms))

    def settle(self) -> None:
        """Until all that was piped has gone through."""
        import pyarrow as pa

        from millstream import arrow

        if not self._waiting:
            return
        keys, values, times = zip(*self._waiting, strict=True)
        columns = {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "timestamp": pa.array(times, pa.int64()),
        }
        arrow.write(self.servers, self._topic, pa.table(columns))
        self._waiting.clear()
        self.application.process_all_available()


class InputTopic:
    def __init__(self, runner: OnSpark, name: str, key_serde: Serde, value_serde: Serde) -> None:
        self._runner = runner
        self._name = name
        self._to_key = key_serde.serialize
        self._to_value = value_serde.serialize

    def pipe_input(self, key: Any, value: Any, timestamp_ms: int = 0) -> None:
        key_bytes = None if key is None else self._to_key(key)
        self._runner.pipe(self._name, key_bytes, None if value is None else self._to_value(value), timestamp_ms)

    def pipe_value(self, value: Any, timestamp_ms: int = 0) -> None:
        self.pipe_input(None, value, timestamp_ms)


class OutputTopic:
    def __init__(self, runner: OnSpark, name: str, key_serde: Serde, value_serde: Serde) -> None:
        self._runner = runner
        self._name = name
        self._from_key = key_serde.deserialize
        self._from_value = value_serde.deserialize

    def read_key_values_to_list(self) -> list[tuple[Any, Any]]:
        """Everything that is in the topic, committed, partition by partition."""
        from millstream import arrow

        self._runner.settle()
        read = arrow.read(self._runner.servers, self._name, columns=["key", "value"])
        return [
            (None if key is None else self._from_key(key), None if value is None else self._from_value(value))
            for key, value in zip(read["key"].to_pylist(), read["value"].to_pylist(), strict=True)
        ]


class Store:
    def __init__(self, runner: OnSpark, name: str) -> None:
        self._runner = runner
        self._name = name

    def all(self) -> Iterator[tuple[Any, Any]]:
        self._runner.settle()
        view: Any = self._runner.application.store(self._name)
        view.wait_until_current()
        return iter(view.fetch_all(0, FOREVER_MS)) if hasattr(view, "fetch_all") else view.all()
