"""A dataset's picture: files and columns, as a file's picture has row groups and columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastpq.common.display import counted, of_bytes
from fastpq.options import DEFAULT_TAIL_READ, ReaderProperties
from fastpq.picture.byte_owners import NO_CHUNK, ByteKind, ByteMap, Claim
from fastpq.picture.chunk_drawing import DrawnFile
from fastpq.picture.chunk_facts import NO_KEY, ChunkFacts, EncodingClass, chunk_facts
from fastpq.picture.decoding_costs import estimated_costs
from fastpq.picture.file_picture import FilePicture
from fastpq.picture.filter_pruning import FilterPruning, pruning_of
from fastpq.picture.page_bars import MOST_COLUMNS, ColumnBars, RowBound, bars_of_bounds, group_bounds, is_bound_read
from fastpq.picture.plain_numbers import NETWORK_NAME, PlainNumber, plain_numbers, quartiles, spread_of
from fastpq.picture.stored_parts import file_bytes
from fastpq.read.filtered.filtered_scan import FilteredScan
from fastpq.read.open_file import OpenFile, ReadRequest
from fastpq.schema.parquet_schema import ColumnDescriptor

TAIL_BYTES = 8          # the footer's length and the magic bytes
MOST_NAMES = 4          # columns that a plain number lists

# Attributes of ChunkFacts with the shape (row groups, columns), and those that are added up for a file.
_CHUNK_ARRAYS = (
    "stored_sizes", "decoded_sizes", "values", "pages", "encodings", "codecs", "keys", "has_statistics", "has_column_index",
    "has_offset_index", "has_bloom_filter", "is_readable",
)
# Values for chunks that do not exist. The others are 0.
_OF_NOTHING: dict[str, int] = {"encodings": EncodingClass.OTHER, "keys": NO_KEY, "is_readable": True}
_SUMS = ("stored_sizes", "decoded_sizes", "values", "pages")


class DatasetMember(NamedTuple):
    """What a dataset's picture needs from one file.

    Attributes:
        name: the file.
        columns: its leaf columns.
        facts: its column chunks.
        owners: which part owns each byte.
        shares: shape (row groups, columns): the share of each chunk's bytes that a filter reads. None without a filter.
        reason, kind: why the filter leaves out the whole file, and which evidence says so. Empty if it is read.
        filtered_names: columns in the filter.
        filter_text: the filter, or an empty text.
        bounds: bounds by row group and column, and whether the filter reads them.
    """

    name: str
    columns: list[ColumnDescriptor]
    facts: ChunkFacts
    owners: ByteMap
    shares: NDArray[np.float64] | None
    reason: str
    kind: str
    filtered_names: list[str]
    filter_text: str
    bounds: dict[str, list[tuple[RowBound, bool]]]


def dataset_member(
    file: OpenFile, name: str, request: ReadRequest | None, scan: FilteredScan | None, left_out: str | None = None
) -> DatasetMember:
    """Return what a dataset's picture needs from an open file. No data page is read.

    Args:
        file: the file.
        name: how the picture calls it.
        request: the columns and the filter that the file is read with, or None if nothing is left of the filter.
        scan: the scan that would read them, or None.
        left_out: what leaves out the whole file before it is opened, an empty text if nothing does, or None without a filter.
    """
    facts = chunk_facts(file.metadata)
    columns = list(file.metadata.schema.columns)
    shares: NDArray[np.float64] | None = None
    reason = kind = text = ""
    names: list[str] = []
    pruning = None
    if request is not None and scan is not None:
        pruning = pruning_of(scan, request, len(facts.rows), facts.stored_sizes)
        shares, text = pruning.shares, pruning.text
        names = [columns[number].name for number in pruning.filtered_columns]
        if len(facts.rows) and all(pruning.reasons):
            reason, kind = "; ".join(dict.fromkeys(pruning.reasons)), Counter(pruning.kinds).most_common(1)[0][0]
    elif left_out:
        shares, reason, kind = np.zeros(facts.stored_sizes.shape), left_out, left_out
    elif left_out is not None:
        shares = np.ones(facts.stored_sizes.shape)
    bounds = {column.name: list(_bounds(file, facts, column, pruning, shares)) for column in columns}
    return DatasetMember(name, columns, facts, file_bytes(file.source, facts), shares, reason, kind, names, text, bounds)


def _bounds(
    file: OpenFile, facts: ChunkFacts, column: ColumnDescriptor, pruning: FilterPruning | None, shares: Any
) -> Iterator[tuple[RowBound, bool]]:
    for group in np.flatnonzero(facts.has_statistics[:, column.index]).tolist():
        for bound in group_bounds(file.metadata, column, group, int(facts.rows[group])):
            is_read = is_bound_read(bound, pruning) if pruning is not None else shares is None or bool(shares[group].any())
            yield bound, is_read


def dataset_picture(name: str, parts: Sequence[DatasetMember], properties: ReaderProperties) -> FilePicture:
    """Return a dataset's picture.

    Args:
        name: how the picture calls the dataset.
        parts: the files, in order.
        properties: options that decide which byte ranges are read together.
    """
    columns = list({column.name: column for part in reversed(parts) for column in part.columns}.values())
    order = {name: place for place, name in enumerate(dict.fromkeys(column.name for part in parts for column in part.columns))}
    columns.sort(key=lambda column: order[column.name])
    places = [[order[column.name] for column in part.columns] for part in parts]
    starts = np.concatenate([[0], np.cumsum([len(part.facts.rows) for part in parts])]).astype(np.int64)
    facts = _stacked(parts, places, len(columns))
    owners = _joined(parts, places, len(columns), starts)
    costs = estimated_costs(facts, columns)
    by_file = _by_file(facts, starts, owners)
    file_costs = np.stack([costs[first:last].sum(axis=0) for first, last in pairwise(starts.tolist())])
    pruning = _pruning(parts, places, by_file.stored_sizes)
    numbers = list(_numbers(parts, columns, facts, owners, properties, pruning))
    drawing = DrawnFile(columns, by_file, file_costs, False, pruning, "file", [part.name for part in parts])
    return FilePicture(name, owners, numbers, drawing, list(_bars(parts, columns, by_file, pruning)))


def _stacked(parts: Sequence[DatasetMember], places: list[list[int]], num_columns: int) -> ChunkFacts:
    """Return the chunks in all files as if one file had all columns. A column that a file lacks has no bytes in it."""
    key_names = list(dict.fromkeys(name for part in parts for name in part.facts.key_names))
    arrays: dict[str, list[NDArray[Any]]] = {}
    for part, own_places in zip(parts, places, strict=True):
        for field in _CHUNK_ARRAYS:
            values = getattr(part.facts, field)
            if field == "keys":
                numbers = np.array([*map(key_names.index, part.facts.key_names), NO_KEY], np.int64)
                values = numbers[values]       # NO_KEY is -1: the last place
            whole = np.full((len(part.facts.rows), num_columns), _OF_NOTHING.get(field, 0), values.dtype)
            whole[:, own_places] = values
            arrays.setdefault(field, []).append(whole)
    return ChunkFacts(
        **{field: np.concatenate(each) for field, each in arrays.items()},
        rows=np.concatenate([part.facts.rows for part in parts]),
        claims=[], metadata_copies=[], unsized_filters=[],
        key_names=key_names,
        pages_by_encoding=sum((part.facts.pages_by_encoding for part in parts), Counter()),
        external_chunks=sum(part.facts.external_chunks for part in parts),
        has_sealed_chunks=any(part.facts.has_sealed_chunks for part in parts),
    )


def _joined(parts: Sequence[DatasetMember], places: list[list[int]], num_columns: int, starts: NDArray[np.int64]) -> ByteMap:
    """Return which part owns each byte in all files, one file after another. Chunks are numbered as in ``_stacked``."""
    base, columns = 0, []
    for part, own_places, first in zip(parts, places, starts.tolist(), strict=False):
        owners, count = part.owners, max(len(own_places), 1)
        numbers = np.array([*own_places, 0], np.int64)
        chunks = (first + owners.chunks // count) * num_columns + numbers[owners.chunks % count]
        chunks = np.where(owners.chunks == NO_CHUNK, NO_CHUNK, chunks)
        columns.append((owners.starts + base, owners.lengths, owners.kinds, chunks))
        base += owners.size
    arrays = [np.concatenate(each) for each in zip(*columns, strict=True)]
    overlap, outside = sum(part.owners.overlap for part in parts), sum(part.owners.outside for part in parts)
    return ByteMap(arrays[0], arrays[1], arrays[2], arrays[3], base, overlap, outside)


def _by_file(facts: ChunkFacts, starts: NDArray[np.int64], owners: ByteMap) -> ChunkFacts:
    """Return the facts with one row for each file, not for each row group."""
    num_columns = facts.stored_sizes.shape[1]
    rows: dict[str, list[NDArray[Any]]] = {field: [] for field in _CHUNK_ARRAYS}
    for first, last in pairwise(starts.tolist()):
        sizes = facts.stored_sizes[first:last]
        largest = sizes.argmax(axis=0) if last > first else np.zeros(num_columns, np.int64)
        for field in _CHUNK_ARRAYS:
            values = getattr(facts, field)[first:last]
            if field in _SUMS:
                rows[field].append(values.clip(0).sum(axis=0))
            elif values.dtype == np.bool_:
                has_bytes = sizes.sum(axis=0) > 0
                rows[field].append((values | (sizes == 0)).all(axis=0) & (has_bytes | (field == "is_readable")))
            else:
                nothing = np.full(num_columns, _OF_NOTHING.get(field, 0))
                rows[field].append(values[largest, np.arange(num_columns)] if last > first else nothing)
    groups = np.searchsorted(starts, np.arange(len(facts.rows)), "right") - 1
    is_dictionary = owners.kinds == ByteKind.DICTIONARY
    chunks = owners.chunks[is_dictionary]
    numbers = groups[chunks // num_columns] * num_columns + chunks % num_columns
    claims = [
        Claim(start, length, ByteKind.DICTIONARY, number)
        for start, length, number in zip(
            owners.starts[is_dictionary].tolist(), owners.lengths[is_dictionary].tolist(), numbers.tolist(), strict=True
        )
    ]
    file_rows = np.array([facts.rows[first:last].sum() for first, last in pairwise(starts.tolist())], np.int64)
    arrays: dict[str, Any] = {field: np.stack(each) for field, each in rows.items()}
    return facts._replace(**arrays, rows=file_rows, claims=claims)


def _pruning(parts: Sequence[DatasetMember], places: list[list[int]], stored_sizes: NDArray[np.int64]) -> FilterPruning | None:
    """Return what the filter reads in each file, or None without a filter."""
    if any(part.shares is None for part in parts):
        return None
    bytes_read = np.zeros(stored_sizes.shape)
    for number, (part, own_places) in enumerate(zip(parts, places, strict=True)):
        assert part.shares is not None
        bytes_read[number, own_places] = (part.shares * part.facts.stored_sizes).sum(axis=0)
    names = list(dict.fromkeys(column.name for part in parts for column in part.columns))
    filtered_columns = [names.index(name) for name in dict.fromkeys(name for part in parts for name in part.filtered_names)]
    return FilterPruning(
        bytes_read / np.maximum(stored_sizes, 1),
        [part.reason for part in parts],
        [part.kind for part in parts],
        {},
        filtered_columns,
        round(float(bytes_read.sum())),
        int(stored_sizes.sum()),
        next((part.filter_text for part in parts if part.filter_text), "partition values"),
    )


def _bars(
    parts: Sequence[DatasetMember], columns: list[ColumnDescriptor], facts: ChunkFacts, pruning: FilterPruning | None
) -> Iterator[ColumnBars]:
    """Yield the bars of some columns: one for each row group, in file order.

    Files in which a column has another type than in the first one count as files without bounds.
    """
    filtered_columns = [] if pruning is None else pruning.filtered_columns
    by_size = np.argsort(-facts.stored_sizes.sum(axis=0), kind="stable").tolist()
    with_bounds = [number for number in by_size if any(part.bounds.get(columns[number].name) for part in parts)]
    for number in [*dict.fromkeys([*filtered_columns, *with_bounds])][:MOST_COLUMNS]:
        column, bounds, are_read, without_bounds = columns[number], list[RowBound](), list[bool](), 0
        for file, part in enumerate(parts):
            own = next((each for each in part.columns if each.name == column.name), None)
            pairs = part.bounds.get(column.name, []) if own is not None and own.type == column.type else []
            bounds += [bound._replace(group=file) for bound, _ in pairs]
            are_read += [is_read for _, is_read in pairs]
            without_bounds += len(part.facts.rows) - len(pairs)
        bars = bars_of_bounds(column, "row group", bounds, are_read, without_bounds)
        if bars is not None:
            yield bars


def _numbers(
    parts: Sequence[DatasetMember],
    columns: list[ColumnDescriptor],
    facts: ChunkFacts,
    owners: ByteMap,
    properties: ReaderProperties,
    pruning: FilterPruning | None,
) -> Iterator[PlainNumber]:
    num_rows, num_columns = counted(int(facts.rows.sum()), "row"), counted(len(columns), "column")
    groups = counted(len(facts.rows), "row group")
    yield PlainNumber("files", f"{len(parts):,}: {of_bytes(owners.size)}, {num_rows}, {num_columns}, {groups}")
    sizes = np.array([part.owners.size for part in parts])
    yield PlainNumber("bytes in a file", spread_of([of_bytes(size) for size in quartiles(sizes)]))
    rows = np.array([int(part.facts.rows.sum()) for part in parts])
    yield PlainNumber("rows in a file", spread_of([f"{count:,}" for count in quartiles(rows)]))
    footers = np.array([int(part.owners.lengths[part.owners.kinds == ByteKind.FOOTER].sum()) for part in parts])
    large = int((footers + TAIL_BYTES > DEFAULT_TAIL_READ).sum())
    text = f"{counted(len(parts) + large, 'request')}, {of_bytes(int(np.minimum(sizes, DEFAULT_TAIL_READ).sum()))} or more"
    yield PlainNumber("open every file", text)
    partial = [column.name for column in columns if not all(column.name in part.bounds for part in parts)]
    if partial:
        yield PlainNumber("columns that some files lack", f"{len(partial):,}: {', '.join(partial[:MOST_NAMES])}", True)
    own = ("file", NETWORK_NAME)
    num_chunks = sum(part.facts.stored_sizes.size for part in parts)
    yield from (each for each in plain_numbers(owners, facts, columns, properties, num_chunks) if each.name not in own)
    if pruning is not None:
        share = f"{of_bytes(pruning.bytes_read)} of {of_bytes(pruning.num_bytes)}"
        yield PlainNumber("read by the filter", f"{pruning.groups_read:,} of {len(parts):,} files, at most {share}")
