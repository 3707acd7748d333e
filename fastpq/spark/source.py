"""FastpqDataSource, the PySpark data source with the format name ``fastpq``: makes readers and writers for Spark."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import ClassVar

from pyspark.sql import datasource as ds
from pyspark.sql import types as st

from fastpq.spark.footers import Footers
from fastpq.spark.listing import list_files, store_of
from fastpq.spark.options import ReadOptions, WriteOptions, read_options, write_options
from fastpq.spark.reader import PushdownReader, Reader, schema_of_files
from fastpq.spark.stores import StoreStreamWriter, StoreWriter
from fastpq.spark.stream import StreamReader, StreamWriter
from fastpq.spark.writer import Writer


class FastpqDataSource(ds.DataSource):
    """Parquet datasets, encrypted or not, read and written by fastpq in executors.

    ``spark.dataSource.register(FastpqDataSource)``, then ``spark.read.format("fastpq")`` and ``df.write.format("fastpq")``;
    fastpq.spark.options has the options. Spark calls the methods.

    Args:
        options: text by name, as Spark passes options; fastpq.spark.options describes them.
    """

    pushes_filters = False
    # Options in the place of missing ones, from the settings of the session (fastpq.spark.register).
    read_defaults: ClassVar[Mapping[str, str]] = {}
    write_defaults: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def name(cls) -> str:
        """The name of the format: ``fastpq``."""
        return "fastpq"

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)

    def schema(self) -> st.StructType:
        """The schema of the dataset, from footers and paths."""
        options = read_options({**self.read_defaults, **self.options})
        return schema_of_files(list_files(options.paths, options.base_path), options, Footers(options.service))

    def reader(self, schema: st.StructType) -> ds.DataSourceReader:
        """The reader of a DataFrame.

        Args:
            schema: columns to read.
        """
        options = self._read_options()
        return PushdownReader(schema, options) if options.push_filters else Reader(schema, options)

    def writer(self, schema: st.StructType, overwrite: bool) -> ds.DataSourceWriter:
        """The writer of a DataFrame.

        Args:
            schema: columns of the DataFrame.
            overwrite: replace the files of the dataset.
        """
        options = self._write_options()
        kind = Writer if store_of(options.path) is None else StoreWriter
        return kind(schema, options, overwrite)

    def streamReader(self, schema: st.StructType) -> ds.DataSourceStreamReader:  # noqa: N802 - Spark's name
        """The reader of a stream.

        Args:
            schema: columns to read.
        """
        return StreamReader(schema, self._read_options())

    def streamWriter(self, schema: st.StructType, overwrite: bool) -> ds.DataSourceStreamWriter:  # noqa: N802
        """The writer of a stream.

        Args:
            schema: columns of the DataFrame.
            overwrite: replace the files of the dataset.
        """
        options = self._write_options()
        kind = StreamWriter if store_of(options.path) is None else StoreStreamWriter
        return kind(schema, options, overwrite)

    def _read_options(self) -> ReadOptions:
        return read_options({**self.read_defaults, **self.options}, push_filters=self.pushes_filters)

    def _write_options(self) -> WriteOptions:
        return write_options({**self.write_defaults, **self.options})


class PushdownDataSource(FastpqDataSource):
    """FastpqDataSource with pushed filters, for sessions with spark.sql.python.filterPushdown.enabled; else Spark refuses."""

    pushes_filters = True
