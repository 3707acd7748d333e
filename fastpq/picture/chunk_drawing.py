"""The drawing of row groups and columns: an area for each chunk, in colours for bytes, time and pruning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fastpq import format as fmt
from fastpq.common.display import of_bytes
from fastpq.picture.bands import Band, Cell, bands_of, cells_of
from fastpq.picture.byte_owners import ByteKind
from fastpq.picture.chunk_facts import ENCODING_TEXTS, NO_KEY, ChunkFacts, EncodingClass
from fastpq.picture.colours import (
    ENCODING_SWATCHES,
    EVIDENCE_SWATCHES,
    READING_SWATCHES,
    TIME_LIMITS,
    TIME_SWATCHES,
    Swatch,
)
from fastpq.picture.filter_pruning import FilterPruning
from fastpq.picture.shapes import coordinate, label, legend, outline, percent, rectangle
from fastpq.schema.parquet_schema import ColumnDescriptor

Floats: TypeAlias = NDArray[np.float64]

LABELS_WIDTH, SIZES_WIDTH = 168.0, 132.0
LABEL_HEIGHT = 12.0         # a band has a label if there is so much room
LONGEST_LABEL = 25          # characters
BAND_HEIGHT, LEAST_HEIGHT, MOST_HEIGHT = 34.0, 150.0, 560.0
MOST_HATCHES = 4            # keys with hatches of their own
MOST_TITLE_REASONS = 3


class DrawnFile(NamedTuple):
    """What the drawing shows.

    Attributes:
        columns: the leaf columns.
        facts: their chunks.
        costs: seconds to decode each chunk, shape (row groups, columns).
        is_measured: whether the costs were measured here. Otherwise they are estimates.
        pruning: what a filter reads, or None.
        unit: what stands from left to right: ``row group``, or ``file`` for a dataset, whose arrays have a row for each file.
        names: the files' names in a dataset.
    """

    columns: list[ColumnDescriptor]
    facts: ChunkFacts
    costs: Floats
    is_measured: bool
    pruning: FilterPruning | None
    unit: str = "row group"
    names: Sequence[str] = ()


class ChunkDrawing:
    """Draws the chunks of a file.

    Args:
        file: what to draw.
        width: width of the drawing.
    """

    def __init__(self, file: DrawnFile, width: float) -> None:
        self._file, self._width = file, width
        self._facts, self._pruning = file.facts, file.pruning
        self._cells_width = width - LABELS_WIDTH - SIZES_WIDTH
        height = min(MOST_HEIGHT, max(LEAST_HEIGHT, BAND_HEIGHT * len(file.columns)))
        self._bands = bands_of(file.facts, height)
        self._height = height if self._bands else 20.0
        sizes = np.zeros(self._facts.stored_sizes.size, np.int64)
        for claim in self._facts.claims:
            if claim.kind == ByteKind.DICTIONARY:
                sizes[claim.chunk] += max(0, claim.length)
        self._dictionaries = sizes.reshape(self._facts.stored_sizes.shape)

    def draw(self, top: float) -> tuple[str, float]:
        """Return the legends and the chunks, and the place below them.

        Args:
            top: where the drawing begins.
        """
        facts = self._facts
        unit = self._file.unit
        groups = f"{len(facts.rows):,} {unit}s from left to right" if len(facts.rows) != 1 else f"1 {unit}"
        heading = f"{unit.capitalize()}s and columns: an area is bytes. {groups}, the largest column on top"
        parts = [label(0, top + 11, heading, "h")]
        bottom = top + 20
        for lens, entries in self._legends():
            markup, below = legend(entries, top + 20, self._width)
            parts.append(f'<g class="o-{lens}">{markup}</g>')
            bottom = max(bottom, below)
        if not self._bands:
            text = f"The {'files have' if self._file.names else 'file has'} no bytes in column chunks."
            return "".join([*parts, label(0, bottom + 12, text, "m")]), bottom + 20
        bottom += 4
        cells = list(cells_of(facts, self._bands, self._cells_width))
        parts += [self._cell(cell, bottom) for cell in cells]
        parts += self._overlays(cells, bottom)
        parts += self._labels(bottom)
        return "".join(parts), bottom + self._height + 6

    def _legends(self) -> Iterator[tuple[str, list[tuple[Swatch, str]]]]:
        encodings = {int(each) for each in np.unique(self._facts.encodings[self._facts.stored_sizes > 0])}
        entries = [(ENCODING_SWATCHES[each], ENCODING_SWATCHES[each].text) for each in EncodingClass if each in encodings]
        note = "Paler: less compressed. Dark edge: dictionary page."
        if self._facts.key_names:
            note += " Hatch: " + ", ".join(self._facts.key_names[:MOST_HATCHES]) + "."
        yield "bytes", [*entries, (ENCODING_SWATCHES[EncodingClass.OTHER]._replace(name="n"), note)]
        source = "measured here" if self._file.is_measured else "estimated from a table"
        total = f"decoding on one thread takes {self._file.costs.sum():.3g} s, {source}"
        yield "time", [*((each, each.text) for each in TIME_SWATCHES), (TIME_SWATCHES[0]._replace(name="n"), total)]
        swatches = EVIDENCE_SWATCHES if self._pruning is None else READING_SWATCHES
        note = "--where shows what a filter reads" if self._pruning is None else f"filter: {self._pruning.text}"
        yield "pruning", [*((each, each.text) for each in swatches), (swatches[0]._replace(name="n"), note)]

    def _cell(self, cell: Cell, top: float) -> str:
        stored_size, decoded_size = int(cell.of(self._facts.stored_sizes).sum()), int(cell.of(self._facts.decoded_sizes).sum())
        ratio = decoded_size / max(stored_size, 1)
        density = 0 if ratio < 1.2 else 1 if ratio < 3 else 2
        classes = f"c b{self._encoding_of(cell)} r{density} t{self._time_class(cell)} p{self._pruning_class(cell)}"
        x, upper = LABELS_WIDTH + cell.left, top + cell.band.top
        markup = rectangle(x, upper, cell.width, cell.band.height, classes, list(self._title(cell, stored_size, decoded_size)))
        if cell.width >= 40 and cell.band.height >= LABEL_HEIGHT and cell.of(self._facts.is_readable).all():
            text_top = upper + cell.band.height / 2 + 3.5
            markup += f'<g class="o-bytes">{label(x + cell.width / 2, text_top, f"{ratio:.1f}×", "g")}</g>'
        return markup

    def _encoding_of(self, cell: Cell) -> int:
        encodings, sizes = cell.of(self._facts.encodings), cell.of(self._facts.stored_sizes)
        return int(np.bincount(encodings.ravel(), weights=sizes.ravel()).argmax())

    def _time_class(self, cell: Cell) -> int:
        total = self._file.costs.sum()
        share = cell.of(self._file.costs).sum() / total if total else 0.0
        bytes_share = cell.size / max(int(self._facts.stored_sizes.sum()), 1)
        return int(np.searchsorted(TIME_LIMITS, share / max(bytes_share, 1e-30), "right"))

    def _pruning_class(self, cell: Cell) -> int:
        sizes = cell.of(self._facts.stored_sizes)
        if self._pruning is not None:
            share = (cell.of(self._pruning.shares) * sizes).sum() / max(sizes.sum(), 1)
            return 4 if share <= 0 else 5 if share < 0.95 else 6
        level = (
            cell.of(self._facts.has_statistics).astype(np.int64) * (1 + cell.of(self._facts.has_column_index))
        )
        level = np.where(cell.of(self._facts.has_bloom_filter), 3, level)
        return int(np.bincount(level.ravel(), weights=sizes.ravel()).argmax())

    def _title(self, cell: Cell, stored_size: int, decoded_size: int) -> Iterator[str]:
        facts, names = self._facts, [self._file.columns[column].name for column in cell.band.columns]
        groups = range(cell.first_group, cell.last_group)
        unit = self._file.unit
        where = f"{unit} {groups[0]:,}" if len(groups) == 1 else f"{unit}s {groups[0]:,} to {groups[-1]:,}"
        if self._file.names:
            where += f": {self._file.names[groups[0]]}" + (" ..." if len(groups) > 1 else "")
        yield f"{_names(names)}, {where}"
        if not cell.of(facts.is_readable).any():
            yield f"{of_bytes(stored_size)} stored, which cannot be read"
        else:
            yield f"{of_bytes(stored_size)} stored, {of_bytes(decoded_size)} decoded ({decoded_size / max(stored_size, 1):.1f}×)"
        codecs = ", ".join(_codec_name(number) for number in np.unique(cell.of(facts.codecs)).tolist())
        encodings = ", ".join(ENCODING_TEXTS[EncodingClass(each)] for each in np.unique(cell.of(facts.encodings)).tolist())
        yield f"{encodings}; {codecs}; {int(cell.of(facts.values).sum()):,} values in {facts.rows[groups].sum():,} rows"
        keys = [facts.key_names[key] for key in np.unique(cell.of(facts.keys)).tolist() if key != NO_KEY]
        if keys:
            yield "encrypted with " + ", ".join(keys)
        yield "; ".join(_share_of(cell, flags, name) for flags, name in (
            (facts.has_statistics, "statistics"),
            (facts.has_column_index, "page index"),
            (facts.has_bloom_filter, "bloom filter"),
        ))
        seconds, total = float(cell.of(self._file.costs).sum()), float(self._file.costs.sum())
        shares = percent(seconds, total), percent(cell.size, int(facts.stored_sizes.sum()))
        yield f"{1000 * seconds:.3g} ms, {shares[0]} of the time for {shares[1]} of the bytes"
        if self._pruning is not None:
            yield from self._reasons(cell, self._pruning)

    def _reasons(self, cell: Cell, pruning: FilterPruning) -> Iterator[str]:
        sizes = cell.of(self._facts.stored_sizes)
        read = float((cell.of(pruning.shares) * sizes).sum())
        yield f"the filter reads {of_bytes(round(read))} of {of_bytes(cell.size)}"
        reasons = pruning.reasons[cell.first_group : cell.last_group]
        if len(reasons) == 1:
            if reasons[0]:
                yield f"{self._file.unit} left out: {reasons[0]}"
            return
        kinds = Counter(kind for kind in pruning.kinds[cell.first_group : cell.last_group] if kind)
        for kind, count in kinds.most_common(MOST_TITLE_REASONS):
            yield f"{count:,} of {len(reasons):,} {self._file.unit}s left out by {kind}"

    def _overlays(self, cells: list[Cell], top: float) -> Iterator[str]:
        """Yield hatches for encrypted cells, and dictionary pages as edges on their cells."""
        hatches: dict[int, list[str]] = {}
        edges = []
        for cell in cells:
            place = LABELS_WIDTH + cell.left, top + cell.band.top
            key = int(cell.of(self._facts.keys).max())
            if key != NO_KEY:
                hatches.setdefault(min(key, MOST_HATCHES - 1), []).append(outline(*place, cell.width, cell.band.height))
            width = cell.width * int(cell.of(self._dictionaries).sum()) / max(cell.size, 1)
            if width >= 1:
                edges.append(outline(*place, min(width, cell.width), cell.band.height))
        for key, paths in hatches.items():
            path = f'<path fill="url(#fq-h{key})" pointer-events="none" d="{"".join(paths)}"/>'
            yield f'<g class="o-bytes">{hatch_pattern(key)}{path}</g>'
        if edges:
            yield f'<g class="o-bytes"><path class="s" d="{"".join(edges)}"/></g>'

    def _labels(self, top: float) -> Iterator[str]:
        """Yield names on the left and figures on the right. Bands that stand too close to the last label have none."""
        total, seconds = max(int(self._facts.stored_sizes.sum()), 1), max(float(self._file.costs.sum()), 1e-30)
        last = -LABEL_HEIGHT
        for band in self._bands:
            middle = band.top + band.height / 2
            if middle - last < LABEL_HEIGHT:
                continue
            last = middle
            place = top + middle + 4
            yield label(0, place, _names([self._file.columns[column].name for column in band.columns], LONGEST_LABEL))
            time = float(self._file.costs[:, band.columns].sum())
            texts = {
                "bytes": f"{of_bytes(band.size)}, {percent(band.size, total)}",
                "time": f"{percent(time, seconds)} of the time",
                "pruning": self._pruning_text(band),
            }
            for lens, text in texts.items():
                yield f'<g class="o-{lens}">{label(self._width, place, text, "m e")}</g>'

    def _pruning_text(self, band: Band) -> str:
        if self._pruning is not None:
            read = (self._pruning.shares[:, band.columns] * self._facts.stored_sizes[:, band.columns]).sum()
            return f"{of_bytes(round(float(read)))} read" if read else "not read"
        has_bounds = self._facts.has_statistics[:, band.columns]
        return f"bounds {int(has_bounds.sum()):,} of {has_bounds.size:,}"


def hatch_pattern(key: int) -> str:
    """Return the pattern for the chunks under one key. Each key has its own angle."""
    angle = coordinate(45 + 180 * key / MOST_HATCHES)
    return (
        f'<defs><pattern id="fq-h{key}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate({angle})">'
        '<path class="x" d="M0 0v6"/></pattern></defs>'
    )


def _names(names: list[str], most: int = 80) -> str:
    if len(names) == 1:
        return names[0]
    rest = f" +{len(names) - 1:,} more"
    return names[0][: max(4, most - len(rest))] + rest


def _codec_name(codec: int) -> str:
    try:
        return fmt.CompressionCodec(codec).name.lower()
    except ValueError:
        return f"unknown codec {codec}"


def _share_of(cell: Cell, flags: NDArray[np.bool_], name: str) -> str:
    part = cell.of(flags)
    count = int(part.sum())
    return f"no {name}" if not count else name if count == part.size else f"{name} in {count:,} of {part.size:,}"
