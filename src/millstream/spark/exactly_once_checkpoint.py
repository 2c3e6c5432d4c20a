"""What Spark's checkpoint says: the query's id, and how far each batch reads.

Before a batch runs, Spark has written `offsets/<batch id>`: a version, the batch's metadata, and for each source the
offset where the batch ends, as the source's own JSON. A batch that is run again reads the same range, which is what
makes a transaction per batch enough. The files are read through Hadoop's file system, so they may be anywhere.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.spark.offsets import IDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.client.grouping import TopicPartition

_NO_OFFSET = "-"


@dataclass(frozen=True, slots=True)
class BatchEnd:
    """Where a batch ends in each of its sources."""

    sources: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Tells two plans for the same batch id apart."""
        return hashlib.sha256("\n".join(self.sources).encode()).hexdigest()[:16]

    def topics(self) -> list[SourceTopic]:
        """The sources that are topics; Spark's own Kafka source writes them in the same way, without ids."""
        found = []
        for source in self.sources:
            ids = _ids_in(source)
            places: dict[str, dict[TopicPartition, int]] = {}
            for place, offset in offsets_in(source).items():
                places.setdefault(place[0], {})[place] = offset
            found += [SourceTopic(name, ids.get(name), ends) for name, ends in places.items()]
        return found


class SourceTopic(NamedTuple):
    """A topic that is read, its id if that is known, and where a batch ends in its partitions."""

    name: str
    id: str | None
    ends: dict[TopicPartition, int]


def offsets_in(source: str) -> dict[TopicPartition, int]:
    """The offsets of {"topic": {"0": 23}}; nothing for the JSON of a source that is no topic."""
    try:
        topics = json.loads(source)
    except ValueError:
        return {}
    if not isinstance(topics, dict):
        return {}
    found: dict[TopicPartition, int] = {}
    for topic, partitions in topics.items():
        if topic.startswith("@"):
            continue  # what our own source keeps besides (offsets.py)
        if not isinstance(partitions, dict):
            return {}
        for index, offset in partitions.items():
            if not (index.isdecimal() and isinstance(offset, int)):
                return {}
            found[topic, int(index)] = offset
    return found


def _ids_in(source: str) -> dict[str, str]:
    """The ids of a source's topics; only ours writes them."""
    try:
        found = json.loads(source).get(IDS, {})
    except (ValueError, AttributeError):
        return {}
    return dict(found) if isinstance(found, dict) else {}


class Checkpoint:
    """A query's checkpoint directory."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        # Any: what Py4J gives has no types.
        context: Any = spark.sparkContext
        self._jvm: Any = context._jvm
        path = self._jvm.org.apache.hadoop.fs.Path(location)
        self._files: Any = path.getFileSystem(context._jsc.hadoopConfiguration())
        self._root: Any = self._files.makeQualified(path)
        # Most checkpoints of small jobs are local, and plain files are read in a tenth of the time.
        self._local = Path(self._root.toUri().getPath()) if self._root.toUri().getScheme() == "file" else None

    def query_id(self) -> str:
        """The id that Spark gave the query when it was first started; a restart keeps it."""
        found: str = json.loads(self._read("metadata"))["id"]
        return found

    def end_of(self, batch_id: int) -> BatchEnd:
        """Where a batch that is planned ends."""
        version, _metadata, *sources = self._read(f"offsets/{batch_id}").splitlines()
        if version != "v1":
            raise RuntimeError(f"the checkpoint {self._root} has offsets of version {version!r}, and only v1 is known")
        return BatchEnd(tuple(source for source in sources if source != _NO_OFFSET))

    def _read(self, name: str) -> str:
        if self._local is not None:
            return (self._local / name).read_text()
        stream = self._files.open(self._jvm.org.apache.hadoop.fs.Path(self._root, name))
        try:
            text: str = self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
        finally:
            stream.close()
        return text
