"""The diagrams of the documentation: steps as boxes, in order, with what passes from one to the next on the arrows.

python -m tools.diagrams            write docs/pages/*.svg
python -m tools.diagrams --check    fail if a diagram is not what would be written
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

PAGES = Path(__file__).resolve().parent.parent / "docs" / "pages"

BOX_WIDTH, BOX_HEIGHT, GAP, ROW_GAP, MARGIN = 196, 74, 64, 34, 12
WIDEST_ARROW = 9        # characters beside an arrow
STYLE = (
    "text{fill:#1f2328;font:12px system-ui,-apple-system,'Segoe UI',sans-serif}.t{font-weight:600;font-size:13px}.m{fill:#59636e}"
    ".p{text-anchor:middle;font-size:11px;fill:#59636e}rect{fill:#f4f6f8;stroke:#afb8c1}.k{fill:#fdf3d8;stroke:#c99a1e}"
    ".o{fill:#dcebf9;stroke:#3f7fb8}path{stroke:#59636e;fill:none;stroke-width:1.4}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.m,.p{fill:#9198a1}rect{fill:#1b2027;stroke:#3d444d}"
    ".k{fill:#3a2f12;stroke:#c99a1e}.o{fill:#16283a;stroke:#3f7fb8}path{stroke:#9198a1}}"
)


class Step(NamedTuple):
    """One box.

    Attributes:
        title: what happens, or what it is.
        lines: one or two lines below the title.
        passes: what passes to the next box of the row, or an empty text.
        kind: ``""``, ``"k"`` for what needs a key, or ``"o"`` for what the user has.
    """

    title: str
    lines: Sequence[str]
    passes: str = ""
    kind: str = ""


class Diagram(NamedTuple):
    """Rows of boxes. An arrow leads from the end of a row to the start of the next one.

    Attributes:
        name: file name without its ending.
        text: what screen readers say.
        rows: the boxes.
        is_way: whether the rows are one way. Otherwise each row stands alone.
    """

    name: str
    text: str
    rows: Sequence[Sequence[Step]]
    is_way: bool = True


DIAGRAMS = (
    Diagram(
        "overview",
        "What fastpq connects: arrays and DataFrames, Parquet files on disks and in object stores, keys, Spark and the command",
        [
            [
                Step("Your data", ["NumPy, pandas, Polars,", "DuckDB, pyarrow, Arrow"], "write_table", "o"),
                Step("fastpq", ["Cython and C, all cores,", "no pyarrow, no Java"], "pages"),
                Step("Parquet files", ["disks, S3, Azure, Google,", "HTTP"], "", "o"),
            ],
            [
                Step("Your program", ["arrays without a copy,", "only the rows you need"], "read_table", "o"),
                Step("Keys", ["your own, or from a", "key service"], "decrypt", "k"),
                Step("Others' files", ["pyarrow, Spark, Polars,", "DuckDB, parquet-java"], "", "o"),
            ],
            [
                Step("A shell", ["fastpq inspect, verify,", "doctor, layout, rewrite"], "look, repair", "o"),
                Step("The same codec", ["on one machine, and on", "executors"], "partitions"),
                Step("Spark", ["batch, streams, jobs", "over datasets"], "", "o"),
            ],
        ],
        is_way=False,
    ),
    Diagram(
        "reading",
        "The way of a byte when fastpq reads: file, footer, plan, byte ranges, pages, values, table",
        [
            [
                Step("File", ["path, URL, bytes", "io/source"], "last 64 KiB", "o"),
                Step("Footer", ["schema, row groups", "metadata/footer"], "evidence"),
                Step("Plan", ["row groups, pages, ranges", "read/plan"], "byte ranges"),
                Step("Fetch", ["together, in parallel", "read/fetch"]),
            ],
            [
                Step("Page", ["CRC, decrypt, decompress", "column/page"], "levels, values"),
                Step("Decode", ["no interpreter per value", "column/value_reader"], "into place"),
                Step("Column", ["one array for all pages", "read/flat"], "views"),
                Step("Table", ["NumPy, Arrow, pandas", "arrays/table"], "", "o"),
            ],
        ],
    ),
    Diagram(
        "encrypting",
        "The way of a page when fastpq encrypts: values, compressed page, sealed module, file; master keys wrap data keys",
        [
            [
                Step("Values", ["one page of a column", "column/chunk_writer"], "encode"),
                Step("Compressed page", ["the codec works first", "column/page_writer"], "plaintext"),
                Step("Sealed module", ["nonce + ciphertext + tag", "encryption/modules"], "AES-GCM", "k"),
                Step("File", ["footer sealed, or signed", "write/row_groups"], "", "o"),
            ],
            [
                Step("Master key", ["stays in the service", "encryption/keys"], "wraps", "k"),
                Step("Data keys", ["footer, and each column", "encryption/properties"], "seal", "k"),
                Step("AAD", ["binds a module to its place", "encryption/modules"], "checked"),
                Step("Reader", ["releases nothing before", "the tag is right"], "", "o"),
            ],
        ],
        is_way=False,
    ),
)


def svg_of(diagram: Diagram) -> str:
    """Return a diagram as SVG, in the colours of the page that shows it."""
    most = max(map(len, diagram.rows))
    width = MARGIN * 2 + most * BOX_WIDTH + (most - 1) * GAP
    height = MARGIN * 2 + len(diagram.rows) * BOX_HEIGHT + (len(diagram.rows) - 1) * ROW_GAP
    body = "\n".join(_shapes(diagram))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(diagram.text)}">\n'
        f"<style>{STYLE}</style>\n"
        '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M1 1L7 4L1 7"/></marker></defs>\n{body}\n</svg>\n'
    )


def _shapes(diagram: Diagram) -> Iterator[str]:
    for row, steps in enumerate(diagram.rows):
        top = MARGIN + row * (BOX_HEIGHT + ROW_GAP)
        for place, step in enumerate(steps):
            left = MARGIN + place * (BOX_WIDTH + GAP)
            css_class = f' class="{step.kind}"' if step.kind else ""
            yield f'<rect{css_class} x="{left}" y="{top}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6"/>'
            yield f'<text class="t" x="{left + 12}" y="{top + 23}">{escape(step.title)}</text>'
            for number, line in enumerate(step.lines):
                yield f'<text class="m" x="{left + 12}" y="{top + 43 + 17 * number}">{escape(line)}</text>'
            if step.passes:
                middle, start = top + BOX_HEIGHT // 2, left + BOX_WIDTH
                yield f'<path d="M{start + 3} {middle}H{start + GAP - 3}" marker-end="url(#a)"/>'
                height = top - 2 if len(step.passes) > WIDEST_ARROW else middle - 8      # a long text stands above the boxes
                yield f'<text class="p" x="{start + GAP // 2}" y="{height}">{escape(step.passes)}</text>'
        if diagram.is_way and row + 1 < len(diagram.rows):
            end = MARGIN + (len(steps) - 1) * (BOX_WIDTH + GAP) + BOX_WIDTH // 2
            bottom, turn = top + BOX_HEIGHT, top + BOX_HEIGHT + ROW_GAP // 2
            target = MARGIN + BOX_WIDTH // 2
            yield f'<path d="M{end} {bottom + 3}V{turn}H{target}V{bottom + ROW_GAP - 3}" marker-end="url(#a)"/>'


def main() -> int:
    """Write or check the diagrams."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="fail if a diagram is not what would be written")
    is_check = parser.parse_args().check
    stale = []
    for diagram in DIAGRAMS:
        path = PAGES / f"{diagram.name}.svg"
        text = svg_of(diagram)
        if is_check and (not path.exists() or path.read_text() != text):
            stale.append(path.name)
        elif not is_check:
            path.write_text(text)
    for name in stale:
        print(f"docs/pages/{name} is stale: run python -m tools.diagrams")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
