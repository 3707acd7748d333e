"""Samples of columns: some rows, encoded in each encoding of the type and measured (choice.py chooses)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fastpq.column.chunk_settings import ChunkSettings
from fastpq.column.chunk_writer import ChunkWriter
from fastpq.column.input import ColumnInput
from fastpq.column.shred import LeafToWrite
from fastpq.encodings import rle
from fastpq.encodings.dictionary import DictionaryEncoder
from fastpq.encodings.registry import automatic_encodings
from fastpq.encryption.cipher import ModuleCipher
from fastpq.stats.statistics import Order
from fastpq.write.choice import DictionarySample, EncodingChoice, Sample, choose_encoding, index_width
from fastpq.write.spec import ColumnSpec

# A sample is RUNS runs of RUN_ROWS rows, spread over the column: neighbours show the worth of deltas, distance the changes.
RUNS = 8
RUN_ROWS = 1024
WHOLE_PAGE = 0x7FFFFFFF     # bytes and rows of a page without a bound


def choose_by_sample(leaf: LeafToWrite, spec: ColumnSpec, num_rows: int, row_group_rows: int) -> EncodingChoice | None:
    """The encoding for a column, from some of its rows.

    Args:
        leaf: the column.
        spec: how the column is written, its encoding aside.
        num_rows: rows of the column; the sample takes up to 8,192.
        row_group_rows: rows of a row group.

    Returns:
        None for a sample of nulls alone.
    """
    runs = [leaf.rows(spec.layout, start, stop) for start, stop in _places(num_rows)]
    rows = sum(run.rows for run in runs)
    values = sum(run.count_values() for run in runs)
    if values == 0:
        return None
    sizes = {}
    for encoding in automatic_encodings(spec.type, is_dictionary=leaf.is_dictionary):
        sizes[encoding] = sum(_stored_size(run, replace(spec.settings, value_encoding=encoding), spec) for run in runs)
    sample = Sample(
        values=values,
        expected=max(values, values * min(num_rows, row_group_rows) // rows),
        sizes=sizes,
        dictionary=_dictionary(runs, spec) if spec.settings.dictionary else None,
        dictionary_page_size=spec.settings.dictionary_page_size,
    )
    return choose_encoding(sample)


def _places(num_rows: int) -> list[tuple[int, int]]:
    """Runs of rows, spread evenly; all rows where they are few."""
    if num_rows <= RUNS * RUN_ROWS:
        return [(0, num_rows)]
    starts = np.linspace(0, num_rows - RUN_ROWS, RUNS).astype(np.int64).tolist()
    return [(start, start + RUN_ROWS) for start in starts]


def _stored_size(run: ColumnInput, settings: ChunkSettings, spec: ColumnSpec) -> int:
    whole = replace(
        settings, dictionary=False, order=Order.ORDER_NONE, data_page_size=WHOLE_PAGE, data_page_rows=WHOLE_PAGE, checksums=False,
        bloom_filter_fpp=None
    )
    writer = ChunkWriter(run, spec.codec, ModuleCipher(), whole)
    writer.write(0, run.rows)
    return writer.stored_size


def _dictionary(runs: list[ColumnInput], spec: ColumnSpec) -> DictionarySample:
    encoder = DictionaryEncoder(spec.layout.stored_width)
    codes = [run.codes(encoder) for run in runs]
    occurrences = np.bincount(np.concatenate(codes))
    width = index_width(len(occurrences))
    page = encoder.values()
    return DictionarySample(
        distinct=len(occurrences),
        once=int((occurrences == 1).sum()),
        twice=int((occurrences == 2).sum()),
        plain_size=len(page),
        stored_size=len(spec.codec.compress(page)),
        indices_size=sum(len(spec.codec.compress(rle.encode(some, width))) for some in codes),
    )
