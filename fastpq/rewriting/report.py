"""RewritingReport: what functions that rewrite files copied and decoded, and what they did not take from their sources."""

from __future__ import annotations

from dataclasses import dataclass

from fastpq.common.display import LINE_WIDTH, Grid, Heading, View, counted, more, shorten, to_html

HTML_ROWS = 100     # parts that are shown


@dataclass(frozen=True, slots=True)
class DroppedIndex:
    """An index that a column chunk does not have in the new file, because it is broken or cannot be made.

    The chunk's values are complete.

    Attributes:
        source: the source's name.
        row_group: row group index in the source.
        column: the leaf's dotted path.
        kind: ``"offset index"``, ``"column index"``, ``"bloom filter"`` or ``"statistics"``.
        reason: the error that reading or making the index raised.
    """

    source: str
    row_group: int
    column: str
    kind: str
    reason: str

    def __str__(self) -> str:
        return f"{self.source}: {self.kind} of column {self.column}, row group {self.row_group}: {self.reason}"


@dataclass(frozen=True, slots=True)
class DroppedMetadata:
    """A key-value entry, or a part of one, that is not in an encrypted file's footer, because it shows column values.

    Attributes:
        key: the entry's key.
        part: the part that was left out. Empty for the whole entry.
    """

    key: str
    part: str

    def __str__(self) -> str:
        return f"key-value metadata {self.key}: {self.part or 'the whole entry'}"


@dataclass(frozen=True, slots=True, repr=False)
class RewritingReport:
    """What is missing in a new file that was made from others without decoding values.

    Attributes:
        dropped_indexes: page indexes and bloom filters that are broken or cannot be made. Readers can do without them.
        dropped_metadata: key-value entries that hold values from encrypted columns, or do not fit the new columns.
        copied_pages: pages that were copied without a change of their values or levels. Encryption may have changed.
        changed_pages: pages that were compressed again, or whose headers changed. Their values were not decoded.
        decoded_pages: pages whose values were decoded. Most verbs encode these values again. ``add_indexes`` copies the pages
            too.
        deleted_rows: number of rows that the new file does not have.
    """

    dropped_indexes: tuple[DroppedIndex, ...] = ()
    dropped_metadata: tuple[DroppedMetadata, ...] = ()
    copied_pages: int = 0
    changed_pages: int = 0
    decoded_pages: int = 0
    deleted_rows: int = 0

    def __str__(self) -> str:
        return "\n".join(map(str, (*self.dropped_indexes, *self.dropped_metadata))) or "nothing was left out"

    def __repr__(self) -> str:
        indexes, entries = len(self.dropped_indexes), len(self.dropped_metadata)
        return f"<RewritingReport: {counted(indexes, 'broken index')}, {counted(entries, 'part')} of the metadata left out>"

    def _repr_html_(self) -> str:
        """Return the page counts, and a table of what was left out."""
        pages = [("copied", self.copied_pages), ("changed", self.changed_pages), ("decoded", self.decoded_pages)]
        facts = [f"{counted(count, 'page')} {what}" for what, count in pages if count]
        indexes = [
            (each.kind, each.column, f"{each.row_group:,}", each.reason, shorten(each.source, LINE_WIDTH))
            for each in self.dropped_indexes
        ]
        entries = [("metadata", each.key, "", each.part or "the whole entry", "") for each in self.dropped_metadata]
        rows = [*indexes, *entries]
        headings = [
            Heading("left out"), Heading("column or key"), Heading("row group", is_number=True), Heading("reason", is_prose=True),
            Heading("source"),
        ]
        grid = Grid(headings, rows[:HTML_ROWS], more(len(rows), min(len(rows), HTML_ROWS), "part")) if rows else None
        return to_html(View("RewritingReport", facts if rows else [*facts, "nothing was left out"], grid))
