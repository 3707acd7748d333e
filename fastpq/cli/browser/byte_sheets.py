"""Sheets about bytes: how many each kind has, and all parts in file order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fastpq.cli.amounts import count_text, share_text, size_text
from fastpq.cli.browser.browsed_file import BrowsedFile
from fastpq.cli.browser.sheet import RowSheet, Sheet, SheetColumn
from fastpq.cli.terminal import Part
from fastpq.picture.byte_owners import KIND_TEXTS, NO_CHUNK, ByteKind

if TYPE_CHECKING:
    from collections.abc import Callable

BAR_WIDTH = 24      # terminal columns of a bar for the largest part
_EIGHTHS = " ▏▎▍▌▋▊▉"


def bar(share: float) -> str:
    """Return a bar for a share from 0 to 1, exact to an eighth character. A share above 0 can always be seen."""
    eighths = max(round(share * BAR_WIDTH * 8), int(share > 0))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


class ByteKindSheet(RowSheet):
    """How many bytes each kind has. Their sum is the file size.

    Args:
        viewed_file: the file.
        chunk_opener: returns a column chunk's sheet, by row group and column.
    """

    title = "bytes"
    columns = (SheetColumn("part"), SheetColumn("bytes", True), SheetColumn("share", True), SheetColumn("", widest=BAR_WIDTH))

    def __init__(self, viewed_file: BrowsedFile, chunk_opener: Callable[[int, int], Sheet]) -> None:
        super().__init__()
        self._viewed_file, self._chunk_opener = viewed_file, chunk_opener
        self._sizes = list(viewed_file.byte_map.bytes_by_kind().items())
        self.note = f"{viewed_file.byte_map.size:,} bytes, {count_text(len(viewed_file.byte_map.starts), 'part')}"

    def __len__(self) -> int:
        return len(self._sizes) + 1

    def make_row(self, row: int) -> Sequence[Part]:
        """Return a kind with its size. The last row is the whole file."""
        whole = self._viewed_file.byte_map.size
        if row == len(self._sizes):
            return "the whole file, in its order", f"{whole:,}", "", ""
        kind, size = self._sizes[row]
        return KIND_TEXTS[kind], f"{size:,}", share_text(size, whole), bar(size / max(whole, 1))

    def opens(self, row: int, column: int) -> bool:
        """Every kind opens."""
        return 0 <= row < len(self)

    def open(self, row: int, column: int) -> Sheet:
        """Return the parts that have one kind, or all parts."""
        kind = None if row == len(self._sizes) else self._sizes[row][0]
        return ByteSpanSheet(self._viewed_file, kind, self._chunk_opener)


class ByteSpanSheet(RowSheet):
    """Parts in file order, one a row.

    Args:
        viewed_file: the file.
        kind: the parts' kind, or None for all parts.
        chunk_opener: returns a column chunk's sheet, by row group and column.
    """

    can_go = True
    columns = (
        SheetColumn("offset", True),
        SheetColumn("bytes", True),
        SheetColumn("part"),
        SheetColumn("row group", True),
        SheetColumn("column"),
        SheetColumn("", widest=BAR_WIDTH),
    )

    def __init__(self, viewed_file: BrowsedFile, kind: ByteKind | None, chunk_opener: Callable[[int, int], Sheet]) -> None:
        super().__init__()
        self._viewed_file, self._chunk_opener = viewed_file, chunk_opener
        owners = viewed_file.byte_map
        self._spans = np.arange(len(owners.starts)) if kind is None else np.flatnonzero(owners.kinds == kind)
        self._largest = int(owners.lengths[self._spans].max(initial=1))
        self.title = "all parts" if kind is None else KIND_TEXTS[kind].partition(":")[0]
        self.note = f"{count_text(len(self), 'part')}, the largest has {size_text(self._largest)}"

    def __len__(self) -> int:
        return len(self._spans)

    def _chunk_of(self, row: int) -> tuple[int, int] | None:
        number = int(self._viewed_file.byte_map.chunks[self._spans[row]])
        return None if number == NO_CHUNK else divmod(number, len(self._viewed_file.columns))

    def make_row(self, row: int) -> Sequence[Part]:
        """Return where a part is, and what it belongs to."""
        owners, span = self._viewed_file.byte_map, int(self._spans[row])
        chunk, size = self._chunk_of(row), int(owners.lengths[span])
        place = ("", "") if chunk is None else (str(chunk[0]), self._viewed_file.columns[chunk[1]].name)
        name = KIND_TEXTS[ByteKind(int(owners.kinds[span]))]
        return f"{int(owners.starts[span]):,}", f"{size:,}", name, *place, bar(size / self._largest)

    def opens(self, row: int, column: int) -> bool:
        """A part that belongs to a column chunk opens the chunk."""
        return 0 <= row < len(self) and self._chunk_of(row) is not None

    def open(self, row: int, column: int) -> Sheet:
        """Return the column chunk."""
        chunk = self._chunk_of(row)
        assert chunk is not None
        return self._chunk_opener(*chunk)
