"""The Data Source `millstream`: what Spark calls for reads and writes, batch and streaming."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from millstream.client.errors import BadOption

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from millstream.spark.batch_reader import BatchReader
    from millstream.spark.json_columns import JsonColumns
    from millstream.spark.stream_reader import StreamReader
    from millstream.spark.writer import BatchWriter, StreamWriter


class MillstreamDataSource(DataSource):
    """`spark.read.format("millstream")` and the three others.

    The modules are loaded where they are used: an executor that reads has no use for a writer.
    """

    @classmethod
    def name(cls) -> str:
        return "millstream"

    def schema(self) -> StructType | str:
        from millstream.spark.formats import parse_formats
        from millstream.spark.schema import read_schema

        wanted = str(self.options.get("includeHeaders", "false")).lower() == "true"
        formats = parse_formats(self.options)
        return read_schema(include_headers=wanted) if formats is None else formats.ddl(include_headers=wanted)

    def reader(self, schema: StructType) -> BatchReader:
        from millstream.spark.batch_reader import BatchReader
        from millstream.spark.options import parse_read

        return BatchReader(parse_read(self.options, streaming=False), *self._columns(schema))

    def streamReader(self, schema: StructType) -> StreamReader:  # noqa: N802  # Spark's name
        from millstream.spark.options import parse_read
        from millstream.spark.stream_reader import StreamReader

        return StreamReader(parse_read(self.options, streaming=True), *self._columns(schema))

    def _columns(self, schema: StructType) -> tuple[pa.Schema, JsonColumns | None]:
        """What to read of the records, and what to make of it where a part of them is JSON."""
        from millstream.spark.formats import parse_formats
        from millstream.spark.schema import arrow_schema

        formats = parse_formats(self.options)
        if formats is None:
            return arrow_schema(schema), None
        columns = formats.columns(schema)
        return columns.fetched(), columns

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:  # noqa: FBT001  # as Spark calls it
        from millstream.spark.options import parse_write
        from millstream.spark.schema import check_written
        from millstream.spark.writer import BatchWriter

        if overwrite:
            raise BadOption("a topic cannot be overwritten: use mode('append')")
        options = parse_write(self.options)
        return BatchWriter(options, check_written(schema, options.topic))

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: N802, FBT001
        """In complete mode all rows are written again with each batch, as Spark's Kafka sink does."""
        from millstream.spark.options import parse_write
        from millstream.spark.schema import check_written
        from millstream.spark.writer import StreamWriter

        options = parse_write(self.options)
        return StreamWriter(options, check_written(schema, options.topic))
