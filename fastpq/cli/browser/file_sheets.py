"""Sheets about a whole file: the first one with the ways to all others, key-value metadata, indexes and encryption."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from fastpq.cli.amounts import count_text, exact_size_text, size_text
from fastpq.cli.browser.browsed_file import BrowsedFile
from fastpq.cli.browser.byte_sheets import ByteKindSheet
from fastpq.cli.browser.chunk_sheets import RowGroupSheet, chunk_sheet
from fastpq.cli.browser.column_sheets import ColumnSheet, SchemaSheet
from fastpq.cli.browser.page_sheets import PageIndexSheet
from fastpq.cli.browser.pruning_sheets import probe_sheet
from fastpq.cli.browser.sheet import Fact, FactSheet, LoadedSheet, RowSheet, Sheet, SheetColumn, TextSheet
from fastpq.cli.browser.value_sheets import RowSet, ValueSheet
from fastpq.cli.failures import failure_of
from fastpq.cli.file_facts import EncryptionFacts, KeyFacts, encryption_facts
from fastpq.cli.terminal import Part, Styled
from fastpq.errors import ParquetError

LONGEST_JSON = 1 << 16      # characters. A longer key-value is not laid out as JSON


def file_sheet(viewed_file: BrowsedFile) -> Sheet:
    """Return the first sheet: what the file is, and the ways to its parts."""
    name = viewed_file.name.rpartition("/")[2]
    if viewed_file.is_sealed:
        return _sealed_sheet(viewed_file, name)
    metadata = viewed_file.file.metadata
    key_values = metadata.key_value_metadata
    rows = RowSet("values", 0, viewed_file.file.num_rows)
    groups = count_text(metadata.num_row_groups, "row group")
    facts = [
        Fact("values", count_text(rows.stop, "row"), partial(ValueSheet, viewed_file, rows)),
        Fact("schema", count_text(len(viewed_file.columns), "column"), partial(SchemaSheet, viewed_file)),
        Fact("columns", "sizes, encodings, bounds", partial(ColumnSheet, viewed_file)),
        Fact("row groups", groups, partial(RowGroupSheet, viewed_file)),
        Fact("indexes", "page indexes and bloom filters", partial(IndexSheet, viewed_file)),
        Fact("key-values", count_text(len(key_values), "key"), partial(KeyValueSheet, viewed_file) if key_values else None),
        _encryption_fact(viewed_file),
        Fact("bytes", "who owns each byte", partial(_bytes, viewed_file)),
        Fact("notes", "what stands out", partial(notes_sheet, viewed_file)),
        Fact("", ""),
        Fact("file", viewed_file.name),
        Fact("size", exact_size_text(viewed_file.file._file.source.size)),
        Fact("written by", metadata.created_by or Styled("not said", "dim")),
        Fact("version", str(metadata.version)),
    ]
    return FactSheet(name, facts)


def _encryption_fact(viewed_file: BrowsedFile) -> Fact:
    """Return the line that opens the encryption, or that says why it is unknown."""
    if viewed_file.file.metadata.encryption_algorithm is None and not viewed_file.file.metadata.footer_signing_key_metadata:
        return Fact("encryption", "none")
    try:
        algorithm = viewed_file.protection.algorithm
    except ParquetError as error:
        return Fact("encryption", Styled(failure_of(error).message, "error"))
    return Fact("encryption", algorithm or "none", partial(encryption_sheet, viewed_file) if algorithm else None)


def _sealed_sheet(viewed_file: BrowsedFile, name: str) -> Sheet:
    """Return the first sheet for a file whose encrypted footer has no key."""
    protection = viewed_file.protection
    facts = [
        Fact("encryption", protection.algorithm or "unknown", partial(encryption_sheet, viewed_file)),
        Fact("bytes", "who owns each byte", partial(_bytes, viewed_file)),
        Fact("", ""),
        Fact("file", viewed_file.name),
        Fact("size", exact_size_text(protection.size)),
        Fact("footer", f"{size_text(protection.footer_size)}, encrypted"),
        Fact("hidden", "schema, rows and values: there is no key for the footer"),
        Fact("keys", "come from --keyring, --kms, --keys-fd or FASTPQ_KEYS: fastpq browse --help"),
    ]
    return FactSheet(name, facts)


def _bytes(viewed_file: BrowsedFile) -> Sheet:
    return ByteKindSheet(viewed_file, partial(chunk_sheet, viewed_file))


def notes_sheet(viewed_file: BrowsedFile) -> Sheet:
    """Return what stands out in the file, as ``fastpq inspect`` tells it."""
    from fastpq.cli.column_facts import column_facts
    from fastpq.cli.file_facts import file_facts
    from fastpq.cli.file_notes import notes_on

    columns = [column_facts(viewed_file.file.metadata, column) for column in viewed_file.columns]
    protection = viewed_file.protection
    notes = notes_on(file_facts(viewed_file.file, viewed_file.name, columns, protection), columns, protection)
    facts = [Fact("!", Styled(note, "warning")) for note in notes] or [Fact("", "nothing stands out")]
    return FactSheet("notes", facts)


class KeyValueSheet(RowSheet):
    """The key-value metadata in the footer.

    Args:
        viewed_file: the file.
    """

    title = "key-values"
    columns = (SheetColumn("key", widest=60), SheetColumn("size", True), SheetColumn("value", widest=1000))

    def __init__(self, viewed_file: BrowsedFile) -> None:
        super().__init__()
        self._pairs = list(viewed_file.file.metadata.key_value_metadata.items())

    def __len__(self) -> int:
        return len(self._pairs)

    def make_row(self, row: int) -> Sequence[Part]:
        """Return a key with the beginning of its value."""
        key, value = self._pairs[row]
        return key, size_text(len((value or "").encode("utf-8", "replace"))), (value or "")[:1000]

    def opens(self, row: int, column: int) -> bool:
        """Every value opens."""
        return 0 <= row < len(self)

    def open(self, row: int, column: int) -> Sheet:
        """Return a whole value. JSON is laid out in lines."""
        key, value = self._pairs[row]
        return TextSheet(key, _laid_out(value or ""))


def _laid_out(text: str) -> str:
    """Return JSON in lines, and every other text as it is."""
    import json

    if not text.startswith(("{", "[")) or len(text) > LONGEST_JSON:
        return text
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return text


class IndexSheet(LoadedSheet):
    """The page indexes and bloom filters that column chunks have.

    Args:
        viewed_file: the file.
    """

    title = "indexes"
    can_probe = True
    columns = (
        SheetColumn("row group", True),
        SheetColumn("column"),
        SheetColumn("pages", True),
        SheetColumn("offset index", True),
        SheetColumn("column index", True),
        SheetColumn("order"),
        SheetColumn("bloom filter", True),
        SheetColumn("false positives", True),
    )

    def __init__(self, viewed_file: BrowsedFile) -> None:
        super().__init__()
        self._viewed_file = viewed_file
        self._problems: dict[int, str] = {}
        self.note = f"{count_text(len(self), 'column chunk')}; p asks the indexes of a column for a value"

    def __len__(self) -> int:
        return self._viewed_file.file.num_row_groups * len(self._viewed_file.columns)

    def _chunk_of(self, row: int) -> tuple[int, int]:
        return divmod(row, max(len(self._viewed_file.columns), 1))

    def label(self, row: int) -> Part:
        """Return the row group's number."""
        return str(self._chunk_of(row)[0])

    def make_row(self, row: int) -> Sequence[Part]:
        """Return which indexes a chunk has."""
        group, column = self._chunk_of(row)
        file = self._viewed_file.file
        cells: list[Part] = [str(group), self._viewed_file.columns[column].name]
        try:
            chunk = self._viewed_file.chunk(group, column).chunk
            offset_index, column_index = file.offset_index(group, column), file.column_index(group, column)
            bloom_filter = file.bloom_filter(group, column)
        except ParquetError as error:
            self._problems[row] = failure_of(error).message
            return *cells, Styled("error", "error"), *[""] * (len(self.columns) - 3)
        return (
            *cells,
            "" if offset_index is None else f"{offset_index.num_pages:,}",
            *(Styled("none", "dim") if size is None else size_text(size) for size in (
                None if offset_index is None else chunk.offset_index_length or 0,
                None if column_index is None else chunk.column_index_length or 0,
            )),
            "" if column_index is None else column_index.boundary_order.name.lower(),
            Styled("none", "dim") if bloom_filter is None else size_text(bloom_filter.num_bytes),
            "" if bloom_filter is None else f"{100 * bloom_filter.false_positive_rate:.2g} %",
        )

    def message(self, row: int, column: int) -> str:
        """Return why an index cannot be used."""
        return self._problems.get(row, "")

    def opens(self, row: int, column: int) -> bool:
        """A chunk with a page index opens it."""
        if not 0 <= row < len(self):
            return False
        try:
            chunk = self._viewed_file.chunk(*self._chunk_of(row))
        except ParquetError:
            return False
        return chunk.has_column_index or chunk.has_offset_index

    def open(self, row: int, column: int) -> Sheet:
        """Return a chunk's page index."""
        group, leaf = self._chunk_of(row)
        return PageIndexSheet(self._viewed_file, group, self._viewed_file.columns[leaf])

    def probed(self, text: str, row: int) -> Sheet:
        """Return which row groups and pages are read to look up a value in the column under the cursor."""
        return probe_sheet(self._viewed_file, self._chunk_of(row)[1], text)


def encryption_sheet(viewed_file: BrowsedFile) -> Sheet:
    """Return how the file is encrypted. All this is known without keys, except for the columns in an encrypted footer."""
    facts = encryption_facts(viewed_file.protection)
    columns = "hidden in the encrypted footer" if facts["columns_hidden"] else "listed in the footer"
    note = "known without any key, and not authenticated"
    if viewed_file.protection.is_footer_open:
        columns, note = "listed in the encrypted footer, which a key has opened", f"{note}, except for the columns"
    lines = [
        Fact("keys", count_text(len(facts["keys"]), "key"), partial(KeySheet, facts)),
        Fact("", ""),
        Fact("algorithm", facts["algorithm"] or "none"),
        Fact("footer", {"signed": "readable without a key, and signed"}.get(facts["footer"], facts["footer"])),
        Fact("columns", columns),
        Fact("master keys", ", ".join(facts["master_key_ids"]) or "none named"),
        Fact("AAD prefix", _prefix_text(facts)),
    ]
    if facts["material_file"] is not None:
        lines.append(Fact("key material", facts["material_file"]))
    return FactSheet("encryption", lines, note)


def _prefix_text(facts: EncryptionFacts) -> str:
    if facts["needs_aad_prefix"]:
        return "not stored: the reader supplies it (--aad-prefix)"
    return "none" if facts["aad_prefix"] is None else f"stored: 0x{facts['aad_prefix']}"


class KeySheet(RowSheet):
    """A file's keys, and what each key opens.

    Args:
        facts: how the file is encrypted.
    """

    title = "keys"
    columns = (
        SheetColumn("opens"),
        SheetColumn("key"),
        SheetColumn("master key"),
        SheetColumn("wrapping"),
        SheetColumn("problem", widest=60),
    )

    def __init__(self, facts: EncryptionFacts) -> None:
        super().__init__()
        self._keys: list[KeyFacts] = facts["keys"]

    def __len__(self) -> int:
        return len(self._keys)

    def make_row(self, row: int) -> Sequence[Part]:
        """Return what a key opens, and who wraps it."""
        key: Any = self._keys[row]
        kind: Part = Styled("in the clear", "warning") if key["key"] == "none" else _KINDS[key["key"]]
        wrapping = "" if key["wrapping"] is None else key["wrapping"] + (" (external)" if key["external"] else "")
        return key["column"], kind, key["master_key_id"] or key["key_name"] or "", wrapping, key["problem"] or ""


_KINDS = {"footer": "footer key", "column": "own key"}
