"""What each encoding makes of a sample of a column: the sample is written in every one of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fastpq.column.chunk_writer import ChunkSettings, ChunkWriter
from fastpq.column.input import ColumnInput
from fastpq.column.shred import LeafToWrite
from fastpq.encodings import rle
from fastpq.encodings.dictionary import DictionaryEncoder
from fastpq.encodings.registry import automatic_encodings
from fastpq.encryption.encryptor import FileEncryptor
from fastpq.stats.statistics import Order
from fastpq.write.choice import DictionarySample, EncodingChoice, Sample, choose_encoding, index_width
from fastpq.write.chunks import ColumnSpec

RUNS = 8            # neighbouring rows show what deltas are worth, and places far apart how the column changes
RUN_ROWS = 1024
WHOLE_PAGE = 0x7FFFFFFF


def choose_by_sample(leaf: LeafToWrite, plan: ColumnSpec, num_rows: int, row_group_rows: int) -> EncodingChoice | None:
    """The encoding for a column, from some of its rows.

    Args:
        leaf: the column.
        plan: how it is to be written otherwise.
        num_rows: rows of the column, of which up to 8,192 are looked at.
        row_group_rows: rows of a row group.

    Returns:
        None where the sample has no value that is not null.
    """
    runs = [leaf.rows(plan.layout, start, stop) for start, stop in _places(num_rows)]
    rows = sum(run.rows for run in runs)
    values = sum(run.count_values() for run in runs)
    if values == 0:
        return None
    sizes = {}
    for encoding in automatic_encodings(plan.descriptor.physical_type):
        sizes[encoding] = sum(_stored_size(run, replace(plan.settings, value_encoding=encoding), plan) for run in runs)
    sample = Sample(
        values=values,
        expected=max(values, values * min(num_rows, row_group_rows) // rows),
        sizes=sizes,
        dictionary=_dictionary(runs, plan) if plan.settings.dictionary else None,
        dictionary_page_size=plan.settings.dictionary_page_size,
    )
    return choose_encoding(sample)


def _places(num_rows: int) -> list[tuple[int, int]]:
    """Runs of rows, spread evenly; all rows where they are few."""
    if num_rows <= RUNS * RUN_ROWS:
        return [(0, num_rows)]
    starts = np.linspace(0, num_rows - RUN_ROWS, RUNS).astype(np.int64).tolist()
    return [(start, start + RUN_ROWS) for start in starts]


def _stored_size(run: ColumnInput, settings: ChunkSettings, plan: ColumnSpec) -> int:
    cipher = FileEncryptor().chunk_cipher(plan.descriptor.path, 0, 0)
    whole = replace(
        settings, dictionary=False, order=Order.ORDER_NONE, data_page_size=WHOLE_PAGE, data_page_rows=WHOLE_PAGE, checksums=False,
        bloom_filter_fpp=None
    )
    writer = ChunkWriter(run, plan.codec, cipher, whole)
    writer.write(0, run.rows)
    return writer.stored_size


def _dictionary(runs: list[ColumnInput], plan: ColumnSpec) -> DictionarySample:
    encoder = DictionaryEncoder(plan.layout.stored_width)
    codes = [run.codes(encoder) for run in runs]
    occurrences = np.bincount(np.concatenate(codes))
    width = index_width(len(occurrences))
    page = encoder.values()
    return DictionarySample(
        distinct=len(occurrences),
        once=int((occurrences == 1).sum()),
        twice=int((occurrences == 2).sum()),
        plain_size=len(page),
        stored_size=len(plan.codec.compress(page)),
        indices_size=sum(len(plan.codec.compress(rle.encode(some, width))) for some in codes),
    )
