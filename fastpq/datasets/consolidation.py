"""consolidate: makes one file of several. Large row groups are copied byte for byte, small ones are joined."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from fastpq.api.file import ParquetFile
from fastpq.api.writer_input import WriterInput
from fastpq.common.progress import Meter
from fastpq.encryption.properties import FileDecryptionProperties, FileEncryptionProperties
from fastpq.errors import SchemaError
from fastpq.io.sink_opening import open_sink
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.options import ReaderProperties, with_options
from fastpq.rewriting.files import MergedFile, durations_of
from fastpq.rewriting.similar_file import settings_like
from fastpq.stats.writer_bugs import bugs_of
from fastpq.version import VERSION
from fastpq.write.file_writer import FileWriter
from fastpq.write.spec import column_specs

_BATCH_ROWS = 100_000       # rows that are decoded at once, to limit memory


class Consolidation(NamedTuple):
    """How the row groups of a new file were made.

    Attributes:
        rows: number of rows.
        copied_row_groups: row groups whose pages were copied without decoding.
        rewritten_row_groups: row groups of the sources whose rows were decoded and joined.
    """

    rows: int
    copied_row_groups: int
    rewritten_row_groups: int


def consolidate(
    sources: Sequence[Any],
    target: Any,
    *,
    least_bytes: int,
    keys: FileEncryptionProperties | None,
    keys_of: Callable[[Any], FileDecryptionProperties | None],
    options: Mapping[str, Any],
    threads: int | None,
    meter: Meter,
) -> Consolidation:
    """Write the rows of several files with the same schema as one file.

    The large row groups come first, in the order of the sources. The rows of the small ones follow, in row groups of the size
    that the options say. Row groups are decoded too if their writer has known bugs, since a file names only one writer. INT96
    columns are always copied, because a decoded value may be outside the range of ``datetime64[ns]``.

    Args:
        sources: files with the same schema, Arrow types and calendar.
        target: the new file, as for ``open_sink``.
        least_bytes: stored size from which on a row group is copied.
        keys: keys for the new file, or None.
        keys_of: returns the keys for a source.
        options: writer properties that differ from those of the first source.
        threads: how many columns are decoded and encoded at the same time.
        meter: receives the number of rows.

    Raises:
        SchemaError: a source has another schema, other Arrow types or another calendar than the first. No new file appears.
        ParquetError: a source cannot be read, or the new file cannot be written.
    """
    open_file = partial(_opened, keys_of=keys_of, threads=threads)
    with open_file(sources[0]) as file:
        first = file.metadata
    first_kind = joined_kind(first)
    properties = with_options(None, {**settings_like(first), **options})
    specs = column_specs(first.schema, properties)
    orders = [spec.column_order for spec in specs]
    with open_sink(target, durable=properties.durable) as sink:
        merged = MergedFile(sink, first, keys, ReaderProperties(), (), Meter(None))
        rows = WriterInput(first.schema, properties, None, None)
        writer = FileWriter(
            sink, first.schema, properties, specs, merged.row_groups, threads=threads, meter=None, description=rows)
        num_rows = copied = 0
        small_numbers: list[list[int]] = []
        writers: set[str | None] = set()
        for source in sources:      # one at a time: there may be more than a process can have open
            with open_file(source) as file:
                check_kind(file.metadata, first_kind, source)
                numbers = _small_numbers(file.metadata, least_bytes, properties.row_group_size, orders)
                _copy_others(file, numbers, merged, meter)
                small_numbers.append(numbers)
                writers.add(file.metadata.created_by)
                copied += file.num_row_groups - len(numbers)
                num_rows += file.metadata.num_rows
        for source, numbers in zip(sources, small_numbers, strict=True):
            if numbers:
                with open_file(source) as file:
                    _join(file, numbers, rows, writer, meter)
        writer.flush()
        rewritten = sum(map(len, small_numbers))
        row_count = num_rows if len(sources) > 1 else None
        if rewritten or len(writers) > 1:
            merged.finish(created_by=f"fastpq version {VERSION}", column_orders=orders, num_rows=row_count)
        else:
            merged.finish(num_rows=row_count)
    return Consolidation(num_rows, copied, rewritten)


def joined_kind(metadata: FileMetaData) -> tuple[Any, ...]:
    """Return what files share if they can be joined: the schema, the Arrow types that it does not tell, and the calendar."""
    return repr(metadata.schema_elements), repr(durations_of(metadata)), metadata.calendar.kinds


def check_kind(metadata: FileMetaData, first_kind: tuple[Any, ...], source: Any) -> None:
    """Refuse a file that cannot be joined with the first one. Its pages would be read with the types of the first.

    Args:
        metadata: the file's footer.
        first_kind: ``joined_kind`` of the first file.
        source: the file, for the message.

    Raises:
        SchemaError: the file is of another kind.
    """
    names = ("schema", "units of durations or sizes of lists", "calendar")
    pairs = zip(names, first_kind, joined_kind(metadata), strict=True)
    if different := [name for name, first, other in pairs if first != other]:
        message = f"the files cannot be joined: this one differs from the first in its {' and '.join(different)}"
        raise SchemaError(message, path=source if isinstance(source, str) else None)


def _opened(
    source: Any, keys_of: Callable[[Any], FileDecryptionProperties | None], threads: int | None
) -> ParquetFile:
    return ParquetFile(source, threads=threads, arrow_schema=False, decryption_properties=keys_of(source))


def _small_numbers(metadata: FileMetaData, least_bytes: int, row_group_size: int, orders: Sequence[Any]) -> list[int]:
    """Return the row groups that are decoded, by number. The other arguments are as for ``small_row_groups``.

    Args:
        orders: the new file's column orders.
    """
    if not (may_copy(metadata, orders) or metadata.schema.has_int96):
        return [*range(metadata.num_row_groups)]
    return small_row_groups(metadata, least_bytes, row_group_size)


def _copy_others(file: ParquetFile, small_numbers: Sequence[int], merged: MergedFile, meter: Meter) -> None:
    """Copy the row groups that are not small."""
    for number in sorted({*range(file.num_row_groups)} - {*small_numbers}):
        group = file.metadata.row_group(number)
        merged.add_row_group(file._source, file.metadata, group)
        meter.add(group.num_rows)


def _join(file: ParquetFile, small_numbers: Sequence[int], rows: WriterInput, writer: FileWriter, meter: Meter) -> None:
    """Decode the small row groups, and add their rows to those that wait in the writer."""
    for batch in file.iter_batches(_BATCH_ROWS, row_groups=small_numbers):
        for table in rows.tables(batch):
            writer.check(table, table.schema)
            writer.add(table)
        meter.add(batch.num_rows)


def small_row_groups(metadata: FileMetaData, least_bytes: int, row_group_size: int) -> list[int]:
    """Return the numbers of the row groups that are joined with others when the file is consolidated.

    Args:
        metadata: the file's footer.
        least_bytes: as for ``consolidate``.
        row_group_size: number of rows of a full row group, which is never small.
    """
    if metadata.schema.has_int96:
        return []
    sizes = zip(stored_sizes(metadata), metadata.row_counts, strict=True)
    return [number for number, (size, rows) in enumerate(sizes) if size < least_bytes and rows < row_group_size]


def may_copy(metadata: FileMetaData, orders: Sequence[Any]) -> bool:
    """Return whether a file's row groups may be in a file that fastpq is the writer of.

    Args:
        metadata: the file's footer.
        orders: the column orders of that file.
    """
    return not bugs_of(metadata.created_by) and metadata.column_orders == [*orders]


def stored_sizes(metadata: FileMetaData) -> Iterator[int]:
    """Yield the stored size of each row group in bytes."""
    for group in metadata.row_groups:
        size = group.total_compressed_size
        yield sum(group.column(index).total_compressed_size for index in range(group.num_columns)) if size is None else size
