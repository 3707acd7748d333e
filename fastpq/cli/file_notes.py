"""Notes: what stands out in a file, from its footer alone. A healthy file has none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fastpq.cli.amounts import count_text, share_text, size_text
from fastpq.cli.file_facts import FileFacts, file_facts, protection_of

if TYPE_CHECKING:
    from fastpq.api.encryption_inspection import FileProtection
    from fastpq.api.file import ParquetFile
    from fastpq.cli.column_facts import ColumnFacts
    from fastpq.options import ReaderProperties

LARGE_FOOTER = 0.05  # of the file
LARGEST_QUIET_FOOTER = 1 << 20  # bytes
FEW_ROWS = 20_000  # in a row group of a file with several
MANY_ROW_GROUPS = 5
LARGE_ROW_GROUP = 1 << 30  # decoded bytes
LARGE_COLUMN = 0.5  # of the stored bytes
LARGE_CHUNK = 1 << 20  # stored bytes of a column that compression would help
SEVERAL = 3  # names that a note lists


def facts_with_notes(file: ParquetFile, name: str, source: Any, properties: ReaderProperties | None = None) -> FileFacts:
    """Return all facts about an open file, and what stands out.

    Args:
        file: the file.
        name: how messages call it.
        source: its place or its bytes.
        properties: limits and checks for reading.
    """
    from fastpq.cli.column_facts import column_facts

    columns = [column_facts(file.metadata, column) for column in file.schema.columns]
    protection = protection_of(source, properties, file)
    facts = file_facts(file, name, columns, protection)
    facts["notes"] = notes_on(facts, columns, protection)
    return facts


def notes_on(facts: FileFacts, columns: list[ColumnFacts], protection: FileProtection) -> list[str]:
    """Return what stands out, one sentence each."""
    return [*_structure_notes(facts), *_column_notes(facts, columns), *_encryption_notes(columns, protection)]


def _structure_notes(facts: FileFacts) -> Iterator[str]:
    size, footer = facts["size"] or 0, facts["footer_bytes"]
    if footer > LARGEST_QUIET_FOOTER and footer > LARGE_FOOTER * size:
        yield f"The footer takes {size_text(footer)}, {share_text(footer, size)} of the file. Every reader fetches it first."
    if facts["row_groups"] >= MANY_ROW_GROUPS and facts["rows_per_row_group"][1] < FEW_ROWS:
        yield (
            f"The row groups are small: {count_text(facts['rows_per_row_group'][1], 'row')} in the median. "
            "Larger ones compress better and need fewer requests."
        )
    if facts["row_groups"] and facts["decoded_bytes"] / facts["row_groups"] > LARGE_ROW_GROUP:
        yield f"The row groups are large: {size_text(facts['decoded_bytes'] // facts['row_groups'])} of decoded data on average."
    if facts["rows"] == 0:
        yield "The file has no rows."
    if facts["created_by"] is None:
        yield "The file does not say who wrote it, so that readers cannot work around the writer's mistakes."
    else:
        from fastpq.stats.writer_bugs import bugs_of

        if bugs_of(facts["created_by"]):
            yield "The writer of this file is known for mistakes, which fastpq works around."


def _column_notes(facts: FileFacts, columns: list[ColumnFacts]) -> Iterator[str]:
    largest = max(columns, key=lambda each: each["stored_bytes"], default=None)
    total = facts["stored_bytes"]
    if largest is not None and len(columns) > 1 and largest["stored_bytes"] > max(LARGE_COLUMN * total, LARGE_CHUNK):
        yield f"The column {largest['column']} takes {share_text(largest['stored_bytes'], total)} of the data."
    plain = [each for each in columns if each["codecs"] == ["UNCOMPRESSED"] and each["stored_bytes"] > LARGE_CHUNK]
    if plain:
        yield f"Not compressed: {_names(plain)}."
    blind = [each for each in columns if each["readable"] and not each["chunks_with_statistics"] and _is_ordered(each)]
    if facts["rows"] and len(blind) == len(columns):
        yield "No column has statistics, so that filters cannot leave out row groups."
    elif facts["rows"] and blind and len(blind) <= len(columns) // 2:
        yield f"Without statistics: {_names(blind)}."
    without_dictionary = [each for each in columns if each["dictionary"] == "given up" and each["stored_bytes"] > LARGE_CHUNK]
    if without_dictionary:
        yield f"The writer gave up the dictionary of {_names(without_dictionary)}."


def _is_ordered(facts: ColumnFacts) -> bool:
    """Return whether a column has an order and a value, so that statistics are to be expected."""
    has_order = not any(word in facts["type"] for word in ("INT96", "INTERVAL", "GEOMETRY", "GEOGRAPHY", "UNKNOWN", "VARIANT"))
    return has_order and facts["values"] > 0 and facts["nulls"] != facts["values"]


def _encryption_notes(columns: list[ColumnFacts], protection: FileProtection) -> Iterator[str]:
    if protection.algorithm is None:
        return
    if protection.algorithm == "AES_GCM_CTR_V1":
        yield "AES_GCM_CTR_V1 does not authenticate pages: altered values may go unnoticed."
    if protection.aad_prefix is None and not protection.needs_aad_prefix:
        yield "There is no AAD prefix, so that one file can be put in the place of another with the same keys."
    clear = [each for each in columns if not each["encrypted"]]
    if clear:
        yield f"In the clear: {_names(clear)}."
    closed = [each for each in columns if not each["readable"]]
    if closed:
        yield f"No key for {_names(closed)}."


def _names(columns: list[ColumnFacts]) -> str:
    names = [each["column"] for each in columns[:SEVERAL]]
    return ", ".join(names) + (f" and {len(columns) - SEVERAL} more" if len(columns) > SEVERAL else "")
