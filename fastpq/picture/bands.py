"""Bands and cells: the chunks of a file as rectangles whose areas are bytes. What is too thin to see is merged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fastpq.picture.chunk_facts import ChunkFacts

Floats: TypeAlias = NDArray[np.float64]
Int64s: TypeAlias = NDArray[np.int64]

THINNEST_BAND = 5.0     # in units of the drawing
THINNEST_CELL = 3.0
MOST_CELLS = 1000


class Band(NamedTuple):
    """One column, or some columns that are too thin to be drawn alone.

    Attributes:
        columns: numbers of the columns.
        top, height: place in the drawing.
        size: stored bytes.
    """

    columns: list[int]
    top: float
    height: float
    size: int


class Cell(NamedTuple):
    """One chunk, or some chunks of neighbouring row groups in a band.

    Attributes:
        band: the band.
        left, width: place in the drawing.
        first_group, last_group: the row groups. last_group is one more than the last.
        size: stored bytes.
    """

    band: Band
    left: float
    width: float
    first_group: int
    last_group: int
    size: int

    def of(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return what the cell covers in an array with a value for each chunk, shape (row groups, columns)."""
        part: NDArray[Any] = values[self.first_group : self.last_group, self.band.columns]
        return part


def bands_of(facts: ChunkFacts, height: float) -> list[Band]:
    """Return the columns as bands, the largest first. Their heights are in proportion to their bytes.

    Args:
        facts: the column chunks.
        height: height of all bands together.
    """
    sizes = facts.stored_sizes.sum(axis=0)
    total = int(sizes.sum())
    bands: list[Band] = []
    columns: list[int] = []
    top, size = 0.0, 0
    order = np.argsort(-sizes, kind="stable").tolist()
    if not total:
        return []
    for place, column in enumerate(order):
        columns.append(column)
        size += int(sizes[column])
        own_height = height * size / total
        rest = height - top - own_height
        if (own_height >= THINNEST_BAND and rest >= THINNEST_BAND) or place == len(order) - 1:
            bands.append(Band(columns, top, own_height, size))
            top, columns, size = top + own_height, [], 0
    return bands


def cells_of(facts: ChunkFacts, bands: list[Band], width: float) -> Iterator[Cell]:
    """Yield the cells of each band, in file order. Their widths are in proportion to their bytes.

    Args:
        facts: the column chunks.
        bands: the bands.
        width: width of a band.
    """
    thinnest = max(THINNEST_CELL, width * len(bands) / MOST_CELLS)
    for band in bands:
        if not band.size:
            continue
        sizes = facts.stored_sizes[:, band.columns].sum(axis=1)
        ends = np.cumsum(sizes)
        first, start = 0, 0
        for last, end in enumerate(ends.tolist(), 1):
            own_width, rest = width * (end - start) / band.size, width * (band.size - end) / band.size
            if (own_width >= thinnest and rest >= thinnest) or last == len(ends):
                yield Cell(band, width * start / band.size, own_width, first, last, end - start)
                first, start = last, end
