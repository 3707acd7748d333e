"""FilePicture: a picture of one file, as HTML, as SVG, and inline in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from fastpq.common.display import of_bytes
from fastpq.common.lazy import package
from fastpq.errors import UnsupportedError
from fastpq.io.source import Source
from fastpq.picture.bar_drawing import bar_drawing
from fastpq.picture.byte_owners import KIND_TEXTS, ByteKind, ByteMap
from fastpq.picture.byte_ruler import ruler
from fastpq.picture.chunk_drawing import ChunkDrawing, DrawnFile
from fastpq.picture.chunk_facts import chunk_facts
from fastpq.picture.colours import LENSES, Lens, common_rules, rules, stylesheet
from fastpq.picture.decoding_costs import estimated_costs, measured_costs
from fastpq.picture.filter_pruning import FilterPruning, pruning_of
from fastpq.picture.page_bars import ColumnBars, column_bars
from fastpq.picture.page_frame import fragment, page, svg
from fastpq.picture.plain_numbers import PlainNumber, plain_numbers
from fastpq.picture.shapes import label
from fastpq.picture.stored_parts import file_bytes, sealed_bytes
from fastpq.read.file_reader import FileReader
from fastpq.read.filtered.filtered_scan import FilteredScan
from fastpq.read.open_file import OpenFile, ReadRequest
from fastpq.schema.parquet_schema import ColumnDescriptor

_FAMILIES = ("DejaVu Sans", "Liberation Sans", "Noto Sans", "Helvetica", "Arial")
_TEXT = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 20"><text y="15" font-family="sans-serif">{}</text></svg>'
WIDTH = 1000.0      # units of the drawings
LINE_HEIGHT = 16.0
PNG_WIDTH = 2048    # pixels: two for each unit


class FilePicture:
    """A picture that shows one file, or a dataset's files. A notebook shows it inline.

    Args:
        name: the file or the dataset.
        owners: the owner of each byte.
        numbers: the plain numbers.
        drawing: the chunks, or None if an encrypted footer hides them.
        bars: bounds of some columns.

    Attributes:
        name, owners, numbers: as the arguments.
        pruning: what a filter reads, or None without a filter.
    """

    def __init__(
        self,
        name: str,
        owners: ByteMap,
        numbers: Sequence[PlainNumber],
        drawing: DrawnFile | None = None,
        bars: Sequence[ColumnBars] = (),
    ) -> None:
        self.name, self.owners, self.numbers = name, owners, list(numbers)
        self.pruning: FilterPruning | None = None if drawing is None else drawing.pruning
        self._drawing, self._bars = drawing, list(bars)

    @property
    def bytes_by_part(self) -> dict[str, int]:
        """Bytes by kind, such as ``data pages`` and ``footer``. The sum is the file size."""
        return {KIND_TEXTS[kind]: size for kind, size in self.owners.bytes_by_kind().items()}

    def to_html(self, lens: Lens = "bytes") -> str:
        """Return a whole HTML page, which loads nothing from elsewhere.

        Args:
            lens: what the page shows first: ``"bytes"``, ``"time"`` or ``"pruning"``.
        """
        return page(f"Layout of {self.name}", self._fragment(lens))

    def to_svg(self, lens: Lens = "bytes") -> str:
        """Return one SVG with the numbers and the drawing under one lens.

        Args:
            lens: ``"bytes"``, ``"time"`` or ``"pruning"``.

        Raises:
            ValueError: another lens.
        """
        _check(lens)
        parts, top = [label(0, 14, self.name, "h")], 36.0
        for place, each in enumerate(self.numbers):
            x = (place % 2) * WIDTH / 2
            parts.append(label(x, top, each.name, "m"))
            parts.append(label(x + 160, top, each.text, "w" if each.is_notable else "", 56))
            top += LINE_HEIGHT * (place % 2 or place == len(self.numbers) - 1)
        chunks, height = self._chunks()
        parts.append(f'<g transform="translate(0,{top + 6:.0f})">{chunks}</g>')
        top += 6 + height
        if lens == "pruning" and self._drawing is not None:
            bars, top = bar_drawing(self._bars, self.pruning, top + 8, WIDTH)
            parts.append(bars)
        style = stylesheet([(".d", "background:#fff", "background:#0d1117"), *common_rules(), *rules(lens, ".d")])
        frame = svg("".join(parts), WIDTH + 24, top + 16, f"Layout of {self.name}", style)
        return frame.replace('viewBox="0 0', 'viewBox="-12 -6', 1)

    def to_png(self, lens: Lens = "bytes", width: int = PNG_WIDTH) -> bytes:
        """Return ``to_svg`` as a PNG image on a white page. It needs the package resvg-py and a font.

        Args:
            lens: ``"bytes"``, ``"time"`` or ``"pruning"``.
            width: the image's width in pixels.

        Raises:
            ValueError: another lens, or a width that is not positive.
            UnsupportedError: the package or a font is missing.
        """
        return png_of(self.to_svg(lens), width, "a layout as PNG")

    def _fragment(self, lens: Lens) -> str:
        _check(lens)
        chunks, height = self._chunks()
        bars = ""
        if self._drawing is not None:
            markup, bottom = bar_drawing(self._bars, self.pruning, 0, WIDTH)
            bars = svg(markup, WIDTH, bottom, "Bounds of pages")
        return fragment(self.name, self.numbers, svg(chunks, WIDTH, height, "Bytes and columns"), bars, lens)

    def _chunks(self) -> tuple[str, float]:
        is_dataset = self._drawing is not None and bool(self._drawing.names)
        markup, bottom = ruler(self.owners, WIDTH, "the files" if is_dataset else "the file")
        if self._drawing is None:
            return markup, bottom + 4
        chunks, below = ChunkDrawing(self._drawing, WIDTH).draw(bottom + 12)
        return markup + chunks, below

    def _repr_html_(self) -> str:
        return self._fragment("bytes" if self.pruning is None else "pruning")

    def __repr__(self) -> str:
        lines = [f"<FilePicture of {self.name}>", *(f"  {each.name}: {each.text}" for each in self.numbers)]
        return "\n".join(lines)


def picture_of(
    file: OpenFile, request: ReadRequest | None = None, scan: FilteredScan | None = None, *, is_measured: bool
) -> FilePicture:
    """Return the picture of an open file. The footer and some indexes are read, and data pages only to measure.

    Args:
        file: the file.
        request: the columns and the filter, or None without a filter.
        scan: the scan that would read them, or None without a filter.
        is_measured: whether to measure how long chunks take to decode. Otherwise the times are estimates.
    """
    facts = chunk_facts(file.metadata)
    columns = list(file.metadata.schema.columns)
    owners = file_bytes(file.source, facts)
    numbers = plain_numbers(owners, facts, columns, file.properties)
    pruning = None if scan is None or request is None else pruning_of(scan, request, len(facts.rows), facts.stored_sizes)
    if pruning is not None:
        share = f"{of_bytes(pruning.bytes_read)} of {of_bytes(pruning.num_bytes)}"
        numbers.append(
            PlainNumber("read by the filter", f"{pruning.groups_read:,} of {len(facts.rows):,} row groups, at most {share}")
        )
    if is_measured:
        reader = FileReader(file._replace(threads=1))

        def decode(group: int, column: ColumnDescriptor) -> object:
            return reader.read(ReadRequest([column], [(group, None)]), None, None)

        costs, count = measured_costs(facts, columns, decode)
        numbers.append(PlainNumber("chunks measured", f"{count:,} of {facts.stored_sizes.size:,}"))
    else:
        costs = estimated_costs(facts, columns)
    drawing = DrawnFile(columns, facts, costs, is_measured, pruning)
    return FilePicture(file.source.name, owners, numbers, drawing, column_bars(file, facts, pruning))


def sealed_picture(source: Source, facts: Sequence[tuple[str, str]]) -> FilePicture:
    """Return the picture of a file whose encrypted footer cannot be opened: the ruler, and what can be known.

    Args:
        source: the file.
        facts: names and texts, such as the algorithm and the keys.
    """
    owners = sealed_bytes(source)
    sealed_size = owners.bytes_by_kind().get(ByteKind.SEALED, 0)
    numbers = [PlainNumber("file", of_bytes(owners.size)), PlainNumber("sealed", of_bytes(sealed_size))]
    return FilePicture(source.name, owners, [*numbers, *(PlainNumber(*fact) for fact in facts)])


def _check(lens: Lens) -> None:
    if lens not in LENSES:
        raise ValueError(f'lens must be "bytes", "time" or "pruning", not {lens!r}')


def png_of(svg: str, width: int, purpose: str) -> bytes:
    """Return a drawing as a PNG image on a white page, which the package resvg-py makes.

    Args:
        svg: the drawing.
        width: the image's width in pixels.
        purpose: what needs the image, for errors.

    Raises:
        UnsupportedError: resvg-py is not installed, or the machine has no font for the drawing's text.
        ValueError: the width is not positive.
    """
    if width < 1:
        raise ValueError(f"the width of an image must be positive, not {width}")
    resvg = package("resvg_py", purpose, "resvg-py")
    font = _font(resvg)
    if font is None:
        raise UnsupportedError(f"{purpose} needs a font, and this machine has none (Debian: apt-get install fonts-dejavu-core)")
    image: bytes = resvg.svg_to_bytes(svg_string=svg, background="#ffffff", width=width, **font)
    return image


@cache
def _font(resvg: Any) -> dict[str, str] | None:
    """Return resvg's options for a font that draws text, or None without a font. Then resvg leaves text out.

    resvg asks fontconfig what sans-serif means. On a machine whose fontconfig cannot tell, the families are tried by name.
    """
    empty = resvg.svg_to_bytes(svg_string=_TEXT.format(""))
    choices: list[dict[str, str]] = [{}, *({"sans_serif_family": family} for family in _FAMILIES)]
    return next((font for font in choices if resvg.svg_to_bytes(svg_string=_TEXT.format("x"), **font) != empty), None)
