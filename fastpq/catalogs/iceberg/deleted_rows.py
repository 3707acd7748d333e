"""Rows of a data file that delete files remove: by position (Parquet or Puffin), and by equal values."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpq.api.file import ParquetFile
from fastpq.arrays.table import AnyColumn, Column
from fastpq.catalogs.iceberg.deletion_vectors import Positions, positions_in_puffin
from fastpq.catalogs.iceberg.file_columns import TableField, nodes_by_id
from fastpq.catalogs.iceberg.table_files import TableFiles
from fastpq.errors import SchemaError, UnsupportedError

PATH_ID, POSITION_ID = 2147483546, 2147483545       # reserved field ids in positional delete files
PATH_NAME, POSITION_NAME = "file_path", "pos"

FieldById = Callable[[int], TableField]


def deleted_positions(files: TableFiles, data_file: Any, delete_files: Iterable[Any]) -> Positions:
    """Return the positions of rows that delete files remove from a data file, in ascending order and without repeats.

    Args:
        files: opens the delete files.
        data_file: a PyIceberg DataFile.
        delete_files: the DataFiles of positional deletes and of deletion vectors.

    Raises:
        UnsupportedError: a delete file is neither Parquet nor Puffin.
        ParquetError: a delete file is malformed, or cannot be decrypted.
    """
    parts = [np.empty(0, np.int64)]
    for delete_file in delete_files:
        match delete_file.file_format.value.upper():
            case "PARQUET":
                with files.parquet(delete_file) as file:
                    parts.append(_positions_in_parquet(file, data_file.file_path))
            case "PUFFIN":
                with files.stream(delete_file) as stream:
                    parts.append(positions_in_puffin(stream, data_file.file_path))
            case other:
                raise UnsupportedError(f"a delete file in the format {other}", path=delete_file.file_path)
    return np.unique(np.concatenate(parts))


def _positions_in_parquet(file: ParquetFile, data_file: str) -> Positions:
    nodes = {node.element.field_id: node.element.name for node in file.schema.root.children}
    path_name, position_name = nodes.get(PATH_ID, PATH_NAME), nodes.get(POSITION_ID, POSITION_NAME)
    table = file.read([position_name], filters=[(path_name, "==", data_file)])
    column = table.flat(position_name)
    if column.null_count or not np.issubdtype(np.asarray(column.values).dtype, np.integer):
        raise SchemaError("positions in a delete file are not whole numbers", column=position_name)
    positions = column.to_numpy().astype(np.int64)
    if len(positions) and positions.min() < 0:
        raise SchemaError("a delete file has a negative position", column=position_name)
    return np.asarray(positions)


class EqualityDeletes:
    """Rows that equality delete files remove, for one set of columns.

    Nulls are equal to each other, and so are NaNs.

    Args:
        field_ids: ids of the compared columns.

    Attributes:
        field_ids: the ids.
    """

    def __init__(self, field_ids: Sequence[int]) -> None:
        self.field_ids = tuple(field_ids)
        self._keys: set[Any] = set()

    def add(self, file: ParquetFile, field_of: FieldById) -> None:
        """Add the rows of a delete file.

        Args:
            file: the open delete file.
            field_of: returns the table's field for an id.

        Raises:
            SchemaError: the file lacks a column.
        """
        nodes = nodes_by_id(file, None)
        if missing_ids := [field_id for field_id in self.field_ids if field_id not in nodes]:
            raise SchemaError(f"an equality delete file lacks the columns with the field ids {missing_ids}")
        names = [nodes[field_id].element.name for field_id in self.field_ids]
        table = file.read(names)
        columns = [field_of(field_id).fitted(table[name]) for field_id, name in zip(self.field_ids, names, strict=True)]
        self._keys.update(_row_keys(columns))

    def keeps(self, columns: Sequence[AnyColumn]) -> NDArray[np.bool_]:
        """Return which rows stay.

        Args:
            columns: the data file's columns, in the same order as the ids.
        """
        only_column = columns[0] if len(columns) == 1 else None
        if isinstance(only_column, Column) and _is_integer(only_column) and None not in self._keys:
            return ~np.isin(np.asarray(only_column.values), np.fromiter(self._keys, np.int64, len(self._keys)))
        return np.fromiter((key not in self._keys for key in _row_keys(columns)), np.bool_)


def _is_integer(column: Column) -> bool:
    is_plain = column.type.logical is None and isinstance(column.values, np.ndarray)
    return is_plain and not column.null_count and np.asarray(column.values).dtype in (np.int32, np.int64)


def _row_keys(columns: Sequence[AnyColumn]) -> Iterable[Any]:
    """Return a hashable key for each row. Keys of one column are its values."""
    for column in columns:
        if column.is_nested:
            raise UnsupportedError("equality deletes on a nested column")
    values = [map(_key, column.to_pylist()) for column in columns]
    return values[0] if len(values) == 1 else zip(*values, strict=True)


def _key(value: Any) -> Any:
    if isinstance(value, float):        # as Java compares: NaN equals NaN, and -0.0 differs from 0.0
        return "NaN" if math.isnan(value) else struct.pack(">d", value)
    return value
