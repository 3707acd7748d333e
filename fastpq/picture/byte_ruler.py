"""The ruler: every byte of a file on one line, in file order, and below it what is not data pages, enlarged."""

from __future__ import annotations

import numpy as np

from fastpq.common.display import of_bytes
from fastpq.picture.byte_owners import ByteKind, ByteMap
from fastpq.picture.colours import KIND_SWATCHES
from fastpq.picture.shapes import label, legend, percent, rectangle

BINS = 500      # parts of the ruler. A part has the colour of the kind with the most bytes in it.
STRIP_HEIGHT = 16
# The enlarged line is drawn if data pages have at least this share of the bytes.
WORTH_ENLARGING = 0.5


def ruler(owners: ByteMap, width: float, whole: str = "the file") -> tuple[str, float]:
    """Return the ruler with its legend, and its height.

    Args:
        owners: the owner of each byte.
        width: width of the drawing.
        whole: what the bytes belong to.
    """
    sizes = owners.bytes_by_kind()
    parts = [label(0, 11, f"Every byte of {whole}: {owners.size:,} bytes", "h"), _strip(owners, 18, width)]
    parts.append(label(0, 47, "0", "m") + label(width, 47, f"{owners.size:,}", "m e"))
    top = 56.0
    data = sizes.get(ByteKind.DATA, 0)
    if owners.size > data >= WORTH_ENLARGING * owners.size:
        parts.append(label(0, top + 9, f"Without data pages: {owners.size - data:,} bytes, in the same order", "m"))
        parts.append(_strip(_without_data(owners), top + 15, width))
        top += 42
    entries = [
        (KIND_SWATCHES[kind], f"{KIND_SWATCHES[kind].text} {of_bytes(size)}, {percent(size, owners.size)}")
        for kind, size in sizes.items()
    ]
    markup, bottom = legend(entries, top, width)
    return "".join([*parts, markup]), bottom


def _without_data(owners: ByteMap) -> ByteMap:
    is_other = owners.kinds != ByteKind.DATA
    lengths = owners.lengths[is_other]
    starts = np.cumsum(lengths) - lengths
    return ByteMap(starts, lengths, owners.kinds[is_other], owners.chunks[is_other], int(lengths.sum()), 0, 0)


def _strip(owners: ByteMap, top: float, width: float) -> str:
    """Return the spans as rectangles. Neighbouring parts of the same kind are one rectangle."""
    if not owners.size:
        return ""
    edges = np.linspace(0, owners.size, min(BINS, max(1, owners.size)) + 1)
    boundaries = np.concatenate([owners.starts, [owners.size]]).astype(np.float64)
    shares = np.empty((len(ByteKind), len(edges) - 1))
    for kind in ByteKind:
        lengths = np.where(owners.kinds == kind, owners.lengths, 0)
        shares[kind] = np.diff(np.interp(edges, boundaries, np.concatenate([[0], np.cumsum(lengths)])))
    main_kinds = shares.argmax(axis=0)
    changes = np.flatnonzero(np.diff(main_kinds)) + 1
    parts = []
    for first, last in zip([0, *changes], [*changes, len(main_kinds)], strict=True):
        sizes = shares[:, first:last].sum(axis=1)
        lines = [f"bytes {int(edges[first]):,} to {int(edges[last]):,}"]
        lines += [f"{KIND_SWATCHES[kind].text}: {of_bytes(round(sizes[kind]))}" for kind in ByteKind if sizes[kind] >= 0.5]
        x, right = width * first / len(main_kinds), width * last / len(main_kinds)
        parts.append(rectangle(x, top, right - x, STRIP_HEIGHT, f"k{int(main_kinds[first])}", lines))
    return "".join(parts)
