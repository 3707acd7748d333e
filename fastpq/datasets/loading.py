"""read_dataset: the rows of many files in one call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fastpq.arrays.table import Table
from fastpq.common.progress import Progress
from fastpq.datasets.dataset import DatasetSchema, ParquetDataset
from fastpq.datasets.opened_files import DatasetDecryption
from fastpq.options import MemoryMap, OnError, ReaderProperties
from fastpq.read.opener import StringLayout
from fastpq.schema.parquet_schema import Int96UnitName


def read_dataset(
    where: Any,
    columns: Iterable[str] | None = None,
    *,
    schema: DatasetSchema = "union",
    filters: Any = None,
    progress: Progress | None = None,
    partitioning: str | None = "hive",
    decryption_properties: DatasetDecryption = None,
    memory_map: MemoryMap = False,
    threads: int | None = None,
    strings: StringLayout = "views",
    coerce_int96_timestamp_unit: Int96UnitName = "auto",
    arrow_schema: bool = True,
    properties: ReaderProperties | None = None,
    on_error: OnError = "raise",
) -> Table:
    """Read a dataset into memory, by a ParquetDataset.

    Args:
        where: a directory, a glob, a path, an fsspec URL of these, or a list of them.
        columns: names of whole columns, in the order of the result; None for all.
        schema: columns and types: ``"union"`` of the files that are opened, ``"first"``, or a schema, as for ParquetDataset.
        filters: as for ``ParquetFile.read``, on columns of files and of partitions: files of other partitions are not opened.
        progress: called as ``progress(done, total)``, in rows of all files; the last call is
            ``(total, total)``.
        partitioning: ``"hive"`` (``name=value`` directories) or None.
        decryption_properties: keys, or a function from a file's path to its keys, as for ParquetDataset.
        memory_map: ``"keep"`` maps a local file, and columns may be views of the map: nobody may truncate or change the file as
            long as a column is in use. False and True read the file, and a change of the file later changes no column.
        threads: number of chunks decoded at the same time; None for one a core.
        strings: layout of variable-length values: ``"views"`` (no copy), ``"offsets"`` or ``"dictionary"`` (codes).
        coerce_int96_timestamp_unit: unit of INT96 timestamps in memory: ``"ms"``, ``"us"``, ``"ns"``, or ``"auto"`` for the
            finest unit in which the values read of a column fit.
        arrow_schema: give columns the Arrow types named in the metadata's ARROW:schema.
        properties: bounds and checks.
        on_error: ``"raise"``; ``"null"`` for nulls in the place of unreadable values; ``"skip"`` to leave out rows with
            unreadable values.

    Returns:
        A Table of the columns of the files, then the partition columns.

    Raises:
        FileNotFoundError: there is no file.
        SchemaError: incompatible files, unknown columns or invalid filters.
        FormatError, UnsupportedError, LimitError, CryptoError: see fastpq.errors.
    """
    dataset = ParquetDataset(
        where,
        schema=schema,
        filters=filters,
        partitioning=partitioning,
        decryption_properties=decryption_properties,
        memory_map=memory_map,
        threads=threads,
        strings=strings,
        coerce_int96_timestamp_unit=coerce_int96_timestamp_unit,
        arrow_schema=arrow_schema,
        properties=properties,
        on_error=on_error,
    )
    return dataset.read(columns, filters=filters, progress=progress)
