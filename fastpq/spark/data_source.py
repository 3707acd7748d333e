"""FastpqDataSource, the PySpark data source for the format ``fastpq``. It makes readers and writers for Spark."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import ClassVar

from pyspark.sql import datasource as ds
from pyspark.sql import types as st

from fastpq.spark.options import ReadOptions, WriteOptions, read_options, write_options
from fastpq.spark.scan.dataset_footers import Footers
from fastpq.spark.scan.reader import PushdownReader, Reader, schema_of_files
from fastpq.spark.streams.file_streams import StreamReader, StreamWriter
from fastpq.spark.streams.store_streams import StoreStreamWriter
from fastpq.spark.tables.listing import list_files, store_of
from fastpq.spark.write.folder_writer import Writer
from fastpq.spark.write.store_writer import StoreWriter


class FastpqDataSource(ds.DataSource):
    """A data source whose executors read and write Parquet datasets, encrypted or not, with fastpq.

    Call ``spark.dataSource.register(FastpqDataSource)``, then ``spark.read.format("fastpq")`` and ``df.write.format("fastpq")``.
    Spark calls the methods.

    Args:
        options: text by name, as Spark passes options. fastpq.spark.options describes them.
    """

    pushes_filters = False
    # Options that replace missing ones, taken from session settings (fastpq.spark.register).
    read_defaults: ClassVar[Mapping[str, str]] = {}
    write_defaults: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def name(cls) -> str:
        """Return the format's name, ``fastpq``."""
        return "fastpq"

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)

    def schema(self) -> st.StructType:
        """Return the dataset's schema, taken from footers and paths."""
        options = read_options({**self.read_defaults, **self.options})
        return schema_of_files(list_files(options.paths, options.base_path), options, Footers(options.service))

    def reader(self, schema: st.StructType) -> ds.DataSourceReader:
        """Return the reader for a DataFrame.

        Args:
            schema: columns to read.
        """
        options = self._read_options()
        return PushdownReader(schema, options) if options.push_filters else Reader(schema, options)

    def writer(self, schema: st.StructType, overwrite: bool) -> ds.DataSourceWriter:
        """Return the writer for a DataFrame.

        Args:
            schema: the DataFrame's columns.
            overwrite: replace the files of the dataset.
        """
        options = self._write_options()
        kind = Writer if store_of(options.path) is None else StoreWriter
        return kind(schema, options, overwrite)

    def streamReader(self, schema: st.StructType) -> ds.DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return the reader for a stream.

        Args:
            schema: columns to read.
        """
        return StreamReader(schema, self._read_options())

    def streamWriter(self, schema: st.StructType, overwrite: bool) -> ds.DataSourceStreamWriter:  # noqa: N802
        """Return the writer for a stream.

        Args:
            schema: the DataFrame's columns.
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
    """FastpqDataSource with pushed filters. Without spark.sql.python.filterPushdown.enabled, Spark refuses it."""

    pushes_filters = True
