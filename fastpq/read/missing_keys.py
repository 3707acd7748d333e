"""Columns whose keys a reader does not have: which they are, and nulls in their place."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from fastpq.arrays.table import AnyColumn, Table
from fastpq.convert.nulls import null_column
from fastpq.errors import KeyAccessError
from fastpq.metadata.file_metadata import FileMetaData, decryptor_of
from fastpq.read.open_file import ReadRequest
from fastpq.schema.parquet_schema import ColumnDescriptor

# Key of a table's metadata with the names of the columns that are null because their keys are missing, as a JSON list.
MISSING_KEYS = "fastpq:missing_keys"


def locked_leaves(metadata: FileMetaData, leaves: Sequence[ColumnDescriptor], row_groups: Iterable[int]) -> set[int]:
    """Return the numbers of the leaves that the reader has no key for, in any of some row groups.

    Args:
        metadata: the file's footer.
        leaves: the leaves.
        row_groups: row group numbers.

    Raises:
        KeyAccessError: the key service did not say whether the reader may have a key.
        CryptoError, FormatError: a key, or its key metadata, is broken.
    """
    decryptor = decryptor_of(metadata)
    locked_numbers: set[int] = set()
    for number in row_groups:
        row_group = metadata.row_group(number)
        chunks = {leaf.index: row_group.column(leaf.index).chunk for leaf in leaves if leaf.index not in locked_numbers}
        decryptor.prefetch_keys(chunks.values())
        locked_numbers |= {index for index, chunk in chunks.items() if not decryptor.has_key(chunk)}
    return locked_numbers


def without_locked(request: ReadRequest, metadata: FileMetaData) -> ReadRequest:
    """Return a request without the columns that the reader has no key for. They are in its ``locked`` columns.

    Args:
        request: the request.
        metadata: the file's footer.

    Raises:
        KeyAccessError: a filter is on such a column. Its nulls would decide which rows match.
    """
    # A request without row groups gives the types, which are those of the whole file.
    groups = [group for group, _ in request.groups] or range(metadata.num_row_groups)
    leaves = {leaf.index: leaf for leaf in [*request.columns, *request.filtered_columns]}
    locked_numbers = locked_leaves(metadata, list(leaves.values()), groups)
    refuse_filters([leaf for leaf in request.filtered_columns if leaf.index in locked_numbers])
    if not locked_numbers:
        return request
    locked_tops = {leaf.top for leaf in request.columns if leaf.index in locked_numbers}
    return request._replace(
        columns=[leaf for leaf in request.columns if leaf.top not in locked_tops],
        locked_columns=[leaf for leaf in request.columns if leaf.top in locked_tops],
        all_columns=request.columns,
    )


def refuse_filters(locked_columns: Sequence[ColumnDescriptor]) -> None:
    """Refuse filters on columns that the reader has no key for.

    Args:
        locked_columns: columns of the filters without a key.

    Raises:
        KeyAccessError: there is such a column.
    """
    if locked_columns:
        raise KeyAccessError.denied(
            "there is no key for a column on whose values the answer depends", column=locked_columns[0].name
        )


def refuse_filters_on(metadata: FileMetaData, paths: Collection[tuple[str, ...]]) -> None:
    """Refuse filters on some leaves of a file if the reader lacks a key for one of them. A group's path means all its leaves.

    Raises:
        KeyAccessError: there is such a column.
    """
    leaves = [leaf for leaf in metadata.schema.columns if any(leaf.path[: len(path)] == path for path in paths)]
    locked_numbers = locked_leaves(metadata, leaves, range(metadata.num_row_groups))
    refuse_filters([leaf for leaf in leaves if leaf.index in locked_numbers])


def refuse_arrays(request: ReadRequest, out: Mapping[str, Any]) -> None:
    """Refuse arrays for columns whose keys are missing. The arrays would keep what they held before.

    Raises:
        KeyAccessError: there is such an array.
    """
    for leaf in request.locked_columns:
        if leaf.path[0] in out:
            raise KeyAccessError.denied("there is no key for the column, so that no array can take its values", column=leaf.name)


def readable_names(metadata: FileMetaData) -> list[str]:
    """Return the columns of a file that the reader has keys for. Parts of columns are dotted paths."""
    leaves = metadata.schema.columns
    locked_numbers = locked_leaves(metadata, leaves, range(metadata.num_row_groups))
    locked_tops = {leaf.top for leaf in leaves if leaf.index in locked_numbers}
    readable_leaves = [leaf for leaf in leaves if leaf.index not in locked_numbers]
    names = [leaf.name if leaf.top in locked_tops else leaf.top.element.name for leaf in readable_leaves]
    return list(dict.fromkeys(names))


def readable_in_all(names: Iterable[str], files: Iterable[tuple[Collection[str], Sequence[str]]]) -> list[str]:
    """Return the columns of a dataset that the reader has keys for in all files.

    Args:
        names: all columns, in result order.
        files: for each file the columns that it has, and what ``readable_names`` returns for it.
    """
    parts: dict[str, list[str] | None] = dict.fromkeys(names)       # readable parts of columns that are locked in a file
    for own, readable in files:
        for name in own:
            if name in parts and name not in readable:
                here, earlier = [path for path in readable if path.startswith(f"{name}.")], parts[name]
                parts[name] = here if earlier is None else [path for path in earlier if path in here]
    return [path for name, paths in parts.items() for path in ([name] if paths is None else paths)]


def with_nulls(table: Table, request: ReadRequest, empty: Table) -> Table:
    """Return a table with nulls in the place of the columns that the reader has no key for.

    Args:
        table: the readable columns.
        request: a request that ``without_locked`` returned.
        empty: the locked columns without rows, which have the columns' types.
    """
    readable_pairs, locked_pairs = iter(table.items()), iter(empty.items())
    locked_tops = {leaf.top for leaf in request.locked_columns}
    pairs: list[tuple[str, AnyColumn]] = []
    for top in dict.fromkeys(leaf.top for leaf in request.all_columns):
        if top in locked_tops:
            name, column = next(locked_pairs)
            pairs.append((name, null_column(column.type, table.num_rows)._with(nullable=True)))
        else:
            pairs.append(next(readable_pairs))
    whole = Table._made(pairs, table.num_rows)
    whole.metadata = table.metadata
    return whole


def with_report(table: Table, names: Iterable[str]) -> Table:
    """Return a table whose metadata name the columns that are null because their keys are missing.

    Args:
        table: the table.
        names: more such columns.
    """
    all_names = list(dict.fromkeys([*names_in_report(table), *names]))
    return table.with_metadata({**table.metadata, MISSING_KEYS: json.dumps(all_names)}) if all_names else table


def names_in_report(table: Table) -> list[str]:
    """Return the columns that a table's metadata report as null because their keys are missing."""
    try:
        names = json.loads(table.metadata.get(MISSING_KEYS, "[]"))
    except ValueError:      # somebody else's entry
        return []
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
