"""The classes of shapes in a picture, and their colours on a light and on a dark page.

The hues follow the palette of Okabe and Ito, which people with colour-blindness tell apart. Orange marks what deserves a look.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from fastpq.picture.byte_owners import KIND_TEXTS, ByteKind
from fastpq.picture.chunk_facts import ENCODING_TEXTS, EncodingClass

Lens = Literal["bytes", "time", "pruning"]
LENSES: tuple[Lens, ...] = ("bytes", "time", "pruning")


class Swatch(NamedTuple):
    """A class of shapes.

    Attributes:
        name: the class in SVG and CSS.
        light, dark: fill colours.
        text: what the legend says, or an empty text.
    """

    name: str
    light: str
    dark: str
    text: str = ""


_ENCODING_FILLS = {
    EncodingClass.DICTIONARY: ("#8fbbe3", "#2f6ea6"),
    EncodingClass.PLAIN: ("#ecd08a", "#8f702c"),
    EncodingClass.DELTA: ("#84cdb2", "#27805f"),
    EncodingClass.BYTE_STREAM_SPLIT: ("#d9b0cc", "#a2709a"),
    EncodingClass.OTHER: ("#97a3b0", "#59636e"),
    EncodingClass.GIVEN_UP: ("#e8793f", "#e0662b"),
    EncodingClass.UNREADABLE: ("#dfe4e9", "#373e47"),
}
_KIND_FILLS = {
    ByteKind.MAGIC: ("#57606a", "#9198a1"),
    ByteKind.FOOTER: ("#8a6fc4", "#a890de"),
    ByteKind.DICTIONARY: ("#6ba3d6", "#3f7fb8"),
    ByteKind.DATA: ("#ccd6e0", "#414b57"),
    ByteKind.OFFSET_INDEX: ("#8fd3bb", "#2f8f6c"),
    ByteKind.COLUMN_INDEX: ("#3fae8a", "#4cc49c"),
    ByteKind.BLOOM_FILTER: ("#c983b3", "#a66f97"),
    ByteKind.METADATA_COPY: ("#d3c4f2", "#6a54a0"),
    ByteKind.SEALED: ("#a9b1ba", "#6b7580"),
    ByteKind.GAP: ("#e8793f", "#d2602a"),
}

KIND_SWATCHES = {
    kind: Swatch(f"k{int(kind)}", *fills, KIND_TEXTS[kind]) for kind, fills in _KIND_FILLS.items()
}
ENCODING_SWATCHES = {
    each: Swatch(f"b{int(each)}", *fills, ENCODING_TEXTS[each]) for each, fills in _ENCODING_FILLS.items()
}
# Limits between colours: a cell's share in the time divided by its share in the bytes.
TIME_LIMITS = (0.5, 0.8, 1.25, 2.0)
TIME_SWATCHES = (
    Swatch("t0", "#eaf1f8", "#24303d", "under half"),
    Swatch("t1", "#c6d9ec", "#2d4762", "less"),
    Swatch("t2", "#8fb5da", "#3d6a99", "as much time as bytes"),
    Swatch("t3", "#4f86c0", "#5e95cf", "more"),
    Swatch("t4", "#1f4e8c", "#a9d0f7", "over twice"),
)
EVIDENCE_SWATCHES = (
    Swatch("p0", "#dfe4e9", "#373e47", "no bounds"),
    Swatch("p1", "#c6d9ec", "#2d4762", "statistics"),
    Swatch("p2", "#8fb5da", "#3d6a99", "statistics and page index"),
    Swatch("p3", "#84cdb2", "#27805f", "and a bloom filter"),
)
READING_SWATCHES = (
    Swatch("p4", "#e8ecf0", "#262c33", "not read"),
    Swatch("p5", "#f5dd9a", "#7a6023", "read in part"),
    Swatch("p6", "#efb02e", "#d29922", "read"),
)
# Bars for pages that are read, and for the others.
BAR_SWATCHES = (Swatch("q0", "#c3ccd5", "#4a535e"), Swatch("q1", "#4f86c0", "#5e95cf"), Swatch("q2", "#efb02e", "#d29922"))

CELLS_BY_LENS: dict[Lens, Sequence[Swatch]] = {
    "bytes": tuple(ENCODING_SWATCHES.values()),
    "time": TIME_SWATCHES,
    "pruning": (*EVIDENCE_SWATCHES, *READING_SWATCHES),
}

# Properties that do not depend on the lens: selector, then properties on a light and on a dark page.
_COMMON = (
    (".d text", "fill:#1f2328;font:11px system-ui,-apple-system,'Segoe UI',sans-serif", "fill:#e6edf3"),
    (".d .m", "fill:#59636e", "fill:#9198a1"),
    (".d .w", "fill:#b3470c;font-weight:600", "fill:#f0883e"),
    (".d .h", "font-weight:600", ""),
    (".d .g", "font-size:10px;pointer-events:none;text-anchor:middle", ""),
    (".d .e", "text-anchor:end", ""),
    (".d .c", "stroke:#fff;stroke-width:.6", "stroke:#0d1117"),
    (".d .x", "stroke:#8c959f;fill:none;stroke-width:1.1;opacity:.75", "stroke:#c9d1d9;opacity:.6"),
    (".d .s", "fill:#1f4e8c;opacity:.35;pointer-events:none", "fill:#a9d0f7"),
    (".d .f", "fill:#f4f6f8", "fill:#1b2027"),
    (".d .n", "fill:none", ""),
    (".d .a", "stroke:#d0d7de;fill:none", "stroke:#3d444d"),
    (".d .r0", "opacity:.62", ""),
    (".d .r1", "opacity:.82", ""),
)


def rules(lens: Lens, prefix: str) -> Iterator[tuple[str, str, str]]:
    """Yield selector, light and dark properties for the cells under one lens.

    Args:
        lens: the lens.
        prefix: selector of a drawing that shows the lens.
    """
    for swatch in CELLS_BY_LENS[lens]:
        yield f"{prefix} .{swatch.name}", f"fill:{swatch.light}", f"fill:{swatch.dark}"
    for other in LENSES:
        if other != lens:
            yield f"{prefix} .o-{other}", "display:none", ""
    if lens != "bytes":
        yield f"{prefix} .r0,{prefix} .r1", "opacity:1", ""


def common_rules() -> Iterator[tuple[str, str, str]]:
    """Yield selector, light and dark properties that hold under each lens."""
    yield from _COMMON
    for swatch in (*KIND_SWATCHES.values(), *BAR_SWATCHES):
        yield f".d .{swatch.name}", f"fill:{swatch.light}", f"fill:{swatch.dark}"


def stylesheet(rows: Sequence[tuple[str, str, str]], scope: str = "") -> str:
    """Return CSS for a light page and, where the reader or a notebook prefers it, for a dark page.

    Args:
        rows: selector, light and dark properties. Selectors may have commas.
        scope: selector before each selector, or nothing. A dark notebook is recognized only with a scope.
    """

    def scoped(selector: str, before: str) -> str:
        return ",".join(f"{before} {part}".strip() for part in selector.split(","))

    light = "".join(f"{scoped(selector, scope)}{{{properties}}}" for selector, properties, _ in rows)
    dark = "".join(f"{scoped(selector, scope)}{{{properties}}}" for selector, _, properties in rows if properties)
    css = f"{light}@media(prefers-color-scheme:dark){{{dark}}}"
    if scope:
        # JupyterLab has its own switch, which may differ from the system's preference.
        night, day = (f"[data-jp-theme-light={value}] {scope}" for value in ("false", "true"))
        css += "".join(f"{scoped(selector, night)}{{{properties}}}" for selector, _, properties in rows if properties)
        css += "".join(
            f"{scoped(selector, day)}{{{properties}}}" for selector, properties, dark_properties in rows if dark_properties
        )
    return css
