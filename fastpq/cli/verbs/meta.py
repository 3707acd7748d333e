"""Print the footer: schema, row groups and key-value metadata.

Section: Look at a file
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

import click

from fastpq.cli.amounts import count_text, size_text
from fastpq.cli.places import name_of_place, source_of
from fastpq.cli.terminal import Part, Screen, Styled
from fastpq.cli.verb import Session, verb
from fastpq.errors import KeyAccessError, ParquetError
from fastpq.io.source_opening import open_source
from fastpq.metadata.footer import read_finished
from fastpq.options import ReaderProperties

if TYPE_CHECKING:
    from fastpq.cli.file_facts import EncryptionFacts
    from fastpq.encryption.properties import FileDecryptionProperties
    from fastpq.metadata.file_metadata import FileMetaData

MOST_ROW_GROUPS = 20
LONGEST_VALUE = 200  # characters


class RowGroupFacts(TypedDict):
    """One row group.

    Attributes:
        row_group: index.
        rows: row count.
        stored_bytes: bytes of its pages in the file, or null if the footer does not say it.
        decoded_bytes: bytes of its pages after decompression.
        sorted_by: sorting columns.
    """

    row_group: int
    rows: int
    stored_bytes: int | None
    decoded_bytes: int
    sorted_by: list[str]


class MetaFacts(TypedDict):
    """A footer. If it is encrypted and there is no key, only file and encryption are there.

    Attributes:
        file: the file.
        rows: row count.
        columns: leaf column count.
        created_by: the writer, or null.
        format_version: version of the format.
        key_values: key-value metadata.
        row_groups: the row groups.
        encryption: what is known without the key of an encrypted footer.
    """

    file: str
    rows: NotRequired[int]
    columns: NotRequired[int]
    created_by: NotRequired[str | None]
    format_version: NotRequired[int]
    key_values: NotRequired[dict[str, str | None]]
    row_groups: NotRequired[list[RowGroupFacts]]
    encryption: NotRequired[EncryptionFacts]


@verb(
    examples=[
        ("fastpq meta items.parquet", "The footer."),
        ("fastpq meta items.parquet --json", "All row groups and all key-value metadata, for a program."),
        ("fastpq meta items.parquet --key-value owner", "One value of the key-value metadata, whole."),
    ],
    facts=MetaFacts,
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--key-value", metavar="KEY", help="Print the value of one key of the key-value metadata, and nothing else.")
@click.option("--all", "is_whole", is_flag=True, help="Show all row groups and whole values.")
def command(session: Session, files: tuple[str, ...], key_value: str | None, is_whole: bool) -> None:
    """Print what the footer says: rows, writer, key-value metadata and row groups."""
    for number, place in enumerate(session.files(files)):
        source = source_of(place)
        try:
            metadata = footer_of(source, session.keys.decryption_of(place), session.chunk_order)
        except KeyAccessError:
            if not session.keys.is_empty:
                raise
            _tell_sealed(session, place, source)
            continue
        if key_value is not None:
            _print_value(session, metadata, key_value)
        elif session.as_json:
            session.screen.json(_facts(metadata, name_of_place(place)))
        else:
            session.headline(name_of_place(place), number)
            _show(session.screen, metadata, is_whole)


def _tell_sealed(session: Session, place: str, source: object) -> None:
    from fastpq.cli.encryption_report import show_encryption
    from fastpq.cli.file_facts import encryption_facts, protection_of

    facts = encryption_facts(protection_of(source))
    if session.as_json:
        session.screen.json(MetaFacts(file=name_of_place(place), encryption=facts))
    else:
        session.headline(name_of_place(place), 0)
        show_encryption(session.screen, facts)


def _print_value(session: Session, metadata: FileMetaData, key: str) -> None:
    from fastpq.cli.failures import DIFFERENT, CommandFailure

    values = metadata.key_value_metadata
    if key not in values:
        raise CommandFailure(f"there is no key {key!r}", DIFFERENT, f"the file has {', '.join(values) or 'none'}")
    session.screen.data((values[key] or "") + "\n")


def _facts(metadata: FileMetaData, name: str) -> MetaFacts:
    names = [column.name for column in metadata.schema.columns]
    groups = [
        RowGroupFacts(
            row_group=group.index,
            rows=group.num_rows,
            stored_bytes=group.total_compressed_size,
            decoded_bytes=group.total_byte_size,
            sorted_by=[names[each.column_idx] for each in group.sorting_columns],
        )
        for group in metadata.row_groups
    ]
    return MetaFacts(
        file=name,
        rows=metadata.num_rows,
        columns=len(names),
        created_by=metadata.created_by,
        format_version=metadata.version,
        key_values=metadata.key_value_metadata,
        row_groups=groups,
    )


def _show(screen: Screen, metadata: FileMetaData, is_whole: bool) -> None:
    rows: list[tuple[str, Part]] = [
        ("rows", f"{metadata.num_rows:,}"),
        ("columns", f"{metadata.num_columns:,}"),
        ("row groups", f"{metadata.num_row_groups:,}"),
        ("written by", metadata.created_by or "not said"),
        ("version", str(metadata.version)),
    ]
    for key, value in metadata.key_value_metadata.items():
        text = value or ""
        is_cut = len(text) > LONGEST_VALUE and not is_whole
        rows.append((key, f"{text[:60]}… ({size_text(len(text))}: --key-value {key} prints it)" if is_cut else text))
    screen.facts(rows, indent=2)
    _show_row_groups(screen, metadata, metadata.num_row_groups if is_whole else MOST_ROW_GROUPS)


def _show_row_groups(screen: Screen, metadata: FileMetaData, most: int) -> None:
    if not metadata.num_row_groups:
        return
    from fastpq.cli.text_table import number, print_table, text

    names = [column.name for column in metadata.schema.columns]
    rows = []
    for index in range(min(most, metadata.num_row_groups)):
        group = metadata.row_group(index)
        stored_size = group.total_compressed_size
        sorting = ", ".join(names[each.column_idx] for each in group.sorting_columns)
        size = "" if stored_size is None else size_text(stored_size)
        rows.append((str(index), f"{group.num_rows:,}", size, size_text(group.total_byte_size), sorting))
    screen.blank()
    print_table(
        screen, [number("row group"), number("rows"), number("stored"), number("decoded"), text("sorted by")], rows, indent=2
    )
    more_groups = metadata.num_row_groups - most
    if more_groups > 0:
        screen.line("  ", Styled(f"and {count_text(more_groups, 'more row group')}: --all shows them", "dim"))


def footer_of(
    where: Any, keys: FileDecryptionProperties | None, chunk_order: Literal["path", "position"] | None = None
) -> FileMetaData:
    """Return a file's footer, like ``fastpq.read_metadata``, but without importing the reader of values.

    That import takes as long as NumPy's, and ``fastpq meta`` has to start quickly.

    Args:
        where: a path, a URL or bytes.
        keys: keys, or None.
        chunk_order: the option of ReaderProperties.
    """
    properties = ReaderProperties(chunk_order=chunk_order)
    with open_source(where, memory_map=False, properties=properties) as source:
        try:
            return read_finished(source, properties, keys)
        except ParquetError as error:
            error.at(path=source.name)
            raise
