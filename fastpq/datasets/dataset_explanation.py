"""DatasetExplanation: which files, row groups and bytes a filtered dataset read needs, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fastpq.common.display import Cell, Grid, Heading, Share, View, counted, more, of_bytes, to_html, to_text
from fastpq.filters.predicate import Outcome
from fastpq.read.filtered.explain import Explanation

# Number of files that are shown as text and as HTML.
TEXT_FILES, HTML_FILES = 8, 50


@dataclass(frozen=True, slots=True)
class DatasetExplanation:
    """Files, row groups and bytes that a filtered dataset read needs. ``str`` returns all of them as text.

    Attributes:
        files: an explanation for each file to open, by path.
        left_out: paths of the files that partition values and missing columns rule out. They are not opened.
    """

    files: Mapping[str, Explanation]
    left_out: Sequence[str]

    @property
    def bytes_read(self) -> int:
        """Upper bound of the stored bytes that the read takes from all files."""
        return sum(file.bytes_read for file in self.files.values())

    @property
    def num_bytes(self) -> int:
        """Stored bytes of all chunks in the files to open, for the result columns and the columns in the filters.

        Row groups and pages that the filters leave out count too.
        """
        return sum(file.num_bytes for file in self.files.values())

    def __str__(self) -> str:
        count = len(self.files) + len(self.left_out)
        lines = [f"{len(self.files)} of {count} files, {self.bytes_read} of {self.num_bytes} bytes in these"]
        for path, file in self.files.items():
            lines += [f"{path}: {line}" if not number else f"  {line}" for number, line in enumerate(str(file).split("\n"))]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return to_text(self._view(TEXT_FILES))

    def _repr_html_(self) -> str:
        return to_html(self._view(HTML_FILES))

    def _view(self, most: int) -> View:
        """Return what the repr shows: how many files and bytes are read, and the first ``most`` files to open."""
        count = len(self.files) + len(self.left_out)
        facts = [f"{len(self.files):,} of {counted(count, 'file')}", f"{of_bytes(self.bytes_read)} of {of_bytes(self.num_bytes)}"]
        headings = [Heading("file"), Heading("row groups"), Heading("bytes")]
        rows = [_cells(path, file) for path, file in list(self.files.items())[:most]]
        return View("DatasetExplanation", facts, Grid(headings, rows, more(len(self.files), len(rows), "file")) if rows else None)


def _cells(path: str, file: Explanation) -> tuple[Cell, ...]:
    groups_to_read = sum(group.outcome is not Outcome.NONE for group in file.row_groups)
    share = Share(f"{of_bytes(file.bytes_read)} of {of_bytes(file.num_bytes)}", file.bytes_read / max(file.num_bytes, 1))
    return path.rpartition("/")[2], f"{groups_to_read:,} of {len(file.row_groups):,}", share
