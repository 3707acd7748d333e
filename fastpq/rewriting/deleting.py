"""delete_rows: a file without some rows. Row groups and pages that have none of them are copied."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from fastpq import format as fmt
from fastpq.arrow.hints import ArrowFields
from fastpq.errors import SchemaError
from fastpq.filters.predicate import bind_filters
from fastpq.format.stored_footer import ARROW_KEY
from fastpq.io.source import Source
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.options import ReaderProperties, takes_options
from fastpq.read.file_reader import FileReader
from fastpq.read.open_file import OpenFile, ReadRequest
from fastpq.rewriting.one_file import FilePlan, rewrite_file
from fastpq.rewriting.part_metadata import KeptRows, entries_of_part
from fastpq.rewriting.redaction import without_values
from fastpq.rewriting.report import DroppedMetadata, RewritingReport
from fastpq.rewriting.rewriting_options import RewritingKeywords, RewritingOptions


@takes_options(RewritingOptions)
def delete_rows(
    source: Any,
    target: Any,
    filters: Any = None,
    *,
    rows: Iterable[int] | None = None,
    **options: Unpack[RewritingKeywords],
) -> RewritingReport:
    """Write a file without the rows that match filters, or without the rows with certain numbers.

    Row groups that have none of these rows are copied, and so are pages in other row groups. Pages with such rows are decoded,
    and their other rows are encoded again without a dictionary. No value that only deleted rows had is left in pages,
    dictionaries, statistics, page indexes, bloom filters, or entries of the key-value metadata that are known to hold values.
    In a dictionary that copied pages share, a blank takes the place of such a value. Older copies of the file, snapshots of a
    filesystem and free disk blocks still have the values.

    Args:
        source, target: as in ``project_file``.
        filters: which rows are deleted, as in ``ParquetFile.read``.
        rows: numbers of the rows that are deleted, counted from 0 through all row groups. Give filters or rows.
        **options: any of the options that are common to all functions that make one file from another:

    Returns:
        A RewritingReport, which counts the copied and the decoded pages.

    Raises:
        SchemaError: filters do not fit the columns, or there is no row with a number.
        FormatError, UnsupportedError, LimitError, KeyAccessError, TagVerificationError, CryptoError: as in encrypt_file.
    """
    if (filters is None) == (rows is None):
        raise ValueError("give filters or rows: one of them says which rows are deleted")
    row_numbers = None if rows is None else np.array([operator.index(row) for row in rows], np.int64)
    arguments = RewritingOptions.of(options)

    def plan(file: Source, metadata: FileMetaData) -> FilePlan:
        kept_rows = _kept_by_number(metadata, row_numbers) if row_numbers is not None else _kept_by_filter(
            file, metadata, filters, arguments.reading
        )
        metadata.calendar.is_kept = True        # values are written as they are stored
        entries: list[fmt.KeyValue] | None = metadata.key_values or None
        dropped_metadata: list[DroppedMetadata] = []
        if kept_rows:
            entries, dropped_metadata = without_values(metadata, frozenset(metadata.schema.names), arguments.keep_metadata)
            entries, more_dropped = entries_of_part(metadata, entries or [], kept_rows, arguments.keep_metadata)
            dropped_metadata += more_dropped
        leaves = range(metadata.num_columns)
        return FilePlan(
            metadata.schema, leaves, entries, dropped_metadata=tuple(dropped_metadata), kept_rows=kept_rows
        )

    return rewrite_file(source, target, plan, arguments)


def _kept_by_number(metadata: FileMetaData, rows: NDArray[np.int64]) -> KeptRows:
    """Return for each row group that loses rows which rows stay."""
    first_rows = metadata.first_rows
    wrong_rows = rows[(rows < 0) | (rows >= first_rows[-1])]
    if len(wrong_rows):
        raise SchemaError(f"there is no row {wrong_rows[0]}: the file has {first_rows[-1]} rows")
    kept_rows: KeptRows = {}
    groups = np.searchsorted(first_rows, rows, side="right") - 1
    for group in np.unique(groups).tolist():
        kept_mask = np.ones(int(first_rows[group + 1] - first_rows[group]), np.bool_)
        kept_mask[rows[groups == group] - first_rows[group]] = False
        kept_rows[group] = kept_mask
    return kept_rows


def _kept_by_filter(
    source: Source, metadata: FileMetaData, filters: Any, properties: ReaderProperties
) -> KeptRows:
    """Return for each row group that loses rows which rows stay. Only the columns in the filters are read."""
    arrow = ArrowFields(metadata.key_value(ARROW_KEY), metadata.schema.root.children)
    file = OpenFile(source, metadata, properties, "views", "auto", 1)

    def bind(types: Any) -> Any:
        return bind_filters(filters, metadata.schema, types, arrow.duration_unit)

    groups = [(group, None) for group in range(metadata.num_row_groups)]
    request = ReadRequest((), groups, bind(file.types(metadata.schema.columns)), is_selective=True, bind=bind)
    scan = FileReader(file).selective(request)
    kept_rows: KeptRows = {}
    for selection in scan.select(groups):
        for group, matching_rows in scan.matching_rows([selection], 1).items():
            kept_mask = np.ones(matching_rows.num_rows, np.bool_)
            kept_mask[matching_rows.rows()] = False
            kept_rows[group] = kept_mask
    return kept_rows
