"""Samples of columns: some rows are encoded in each encoding that the type has, and their sizes measured (choice.py chooses)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fastpq.codecs.catalogue import codec_for_write
from fastpq.codecs.codec import Codec
from fastpq.column.chunk_settings import ChunkSettings
from fastpq.column.chunk_writer import ChunkWriter
from fastpq.column.input import ColumnInput
from fastpq.column.layout import Conversion
from fastpq.column.shred import LeafToWrite
from fastpq.encodings import rle
from fastpq.encodings.dictionary import DictionaryEncoder
from fastpq.encodings.registry import automatic_encodings
from fastpq.encryption.cipher import ModuleCipher
from fastpq.format import Encoding
from fastpq.stats.statistics import Order
from fastpq.write.choice import DictionarySample, EncodingChoice, Sample, choose_encoding, choose_level, index_width
from fastpq.write.spec import ColumnSpec

# A sample has RUNS runs of rows with RUN_VALUES values, spread over the column. Neighbouring rows show what deltas save, and
# distant rows how the values change. In shorter runs, a codec's tables take too large a part.
RUNS = 4
RUN_VALUES = 4096
TEXT_RUN_VALUES = 2048      # for values of variable length
RUN_BYTES = 4 << 20         # most bytes in a run of values that are all equally large
MOST_ROWS = 0x7FFFFFFF      # rows in a page without a bound
PAGE_BYTES = 64 << 20       # bytes in a page of a sample. A few large values among small ones must not make a page too large


def choose_by_sample(leaf: LeafToWrite, spec: ColumnSpec, num_rows: int, row_group_rows: int) -> EncodingChoice | None:
    """Choose a column's encoding, using some of its rows.

    Args:
        leaf: the column.
        spec: how to write the column. Its encoding is ignored.
        num_rows: rows in the column. The sample takes rows with up to about 16,384 values.
        row_group_rows: rows in a row group.

    Returns:
        The choice, or None if the sample has only nulls.
    """
    run_values = TEXT_RUN_VALUES if spec.layout.conversion is Conversion.VARIABLE else RUN_VALUES
    run_rows = leaf.rows_with(run_values, RUN_BYTES, num_rows)
    runs = [leaf.rows(spec.layout, start, stop) for start, stop in _places(num_rows, run_rows)]
    rows = sum(run.rows for run in runs)
    values = sum(run.count_values() for run in runs)
    if values == 0:
        return None
    sizes = {}
    for encoding in automatic_encodings(spec.type, is_dictionary=leaf.is_dictionary):
        sizes[encoding] = sum(_stored_size(run, encoding, spec.codec, spec.settings) for run in runs)
    sample = Sample(
        values=values,
        chunk_values=max(values, values * min(num_rows, row_group_rows) // rows),
        sizes=sizes,
        dictionary=_dictionary(runs, spec) if spec.settings.dictionary else None,
        dictionary_page_size=spec.settings.dictionary_page_size,
    )
    choice = choose_encoding(sample)
    encoding = Encoding[choice.encoding]
    if not spec.levels or encoding not in sizes:
        return choice
    # neighbouring levels differ enough in half of the runs
    level_sizes = {
        level: sum(_stored_size(run, encoding, codec_for_write(spec.codec.name, level), spec.settings) for run in runs[::2])
        for level in spec.levels
    }
    ranking = ", ".join(f"{level} {size:,}" for level, size in level_sizes.items())
    return replace(choice, level=choose_level(level_sizes), reason=f"{choice.reason}; bytes by level: {ranking}")


def _places(num_rows: int, run_rows: int) -> list[tuple[int, int]]:
    """Return row runs as (start, stop), spread evenly, or all rows if they are few."""
    if num_rows <= RUNS * run_rows:
        return [(0, num_rows)]
    starts = np.linspace(0, num_rows - run_rows, RUNS).astype(np.int64).tolist()
    return [(start, start + run_rows) for start in starts]


def _stored_size(run: ColumnInput, encoding: Encoding, codec: Codec, settings: ChunkSettings) -> int:
    whole = replace(
        settings, value_encoding=encoding, dictionary=False, order=Order.ORDER_NONE, data_page_size=PAGE_BYTES,
        data_page_rows=MOST_ROWS, checksums=False, bloom_filter_fpp=None,
    )
    writer = ChunkWriter(run, codec, ModuleCipher(), whole)
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
