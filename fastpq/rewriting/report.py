"""RewritingReport: parts of the sources that encrypt_file, decrypt_file and merge_files left out of the new file."""

from __future__ import annotations

from dataclasses import dataclass

from fastpq.common.display import counted


@dataclass(frozen=True, slots=True)
class DroppedIndex:
    """A broken index of a column chunk, left out of the new file; values and statistics of the chunk are whole.

    Attributes:
        source: name of the source.
        row_group: number of the row group in the source.
        column: dotted path of the leaf.
        kind: ``"offset index"``, ``"column index"`` or ``"bloom filter"``.
        reason: error of the index.
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
    """A key-value entry, or a part of one, left out of the footer of an encrypted file, where it would show values of columns.

    Attributes:
        key: key of the entry.
        part: the part left out; empty for the whole entry.
    """

    key: str
    part: str

    def __str__(self) -> str:
        return f"key-value metadata {self.key}: {self.part or 'the whole entry'}"


@dataclass(frozen=True, slots=True, repr=False)
class RewritingReport:
    """Parts of the sources left out of a new file made without decoding values.

    Attributes:
        dropped_indexes: broken page indexes and bloom filters. Readers of the new file do without them.
        dropped_metadata: key-value metadata with values of encrypted columns.
    """

    dropped_indexes: tuple[DroppedIndex, ...] = ()
    dropped_metadata: tuple[DroppedMetadata, ...] = ()

    def __str__(self) -> str:
        return "\n".join(map(str, (*self.dropped_indexes, *self.dropped_metadata))) or "nothing was left out"

    def __repr__(self) -> str:
        indexes, entries = len(self.dropped_indexes), len(self.dropped_metadata)
        return f"<RewritingReport: {counted(indexes, 'broken index')}, {counted(entries, 'part')} of the metadata left out>"
