"""TableExports: a table as the tables of other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from fastpq.arrays.layouts import Array
from fastpq.common.extensions import export, registered
from fastpq.common.lazy import LazyModule, package
from fastpq.errors import SchemaError

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
else:       # types of annotations, for typing.get_type_hints
    pandas, polars, pyarrow = LazyModule("pandas"), LazyModule("polars"), LazyModule("pyarrow")


class TableExports:
    """The base class of Table: pandas, pyarrow, Polars and the Arrow interface."""

    __slots__ = ()

    def to_pandas(self, dtype_backend: Any = None) -> pandas.DataFrame:
        """The table as a DataFrame, with the index, labels and dtypes of pandas' metadata (``read_pandas``).

        Args:
            dtype_backend: as for ``read_pandas``.

        Raises:
            UnsupportedError: pandas is not installed.
            SchemaError: an unknown dtype_backend.
        """
        function = registered("to_pandas")
        assert function is not None, "fastpq registers the functions of fastpq.convert"
        return cast("pandas.DataFrame", function(self, dtype_backend))

    def to_arrow(self) -> pyarrow.Table:
        """The table as a pyarrow.Table; memory is shared where the layouts agree, decimals have the width of the Arrow schema.

        Raises:
            UnsupportedError: pyarrow is not installed.
        """
        return package("pyarrow", "Table.to_arrow").table(_Requested(self))

    def to_polars(self) -> polars.DataFrame:
        """The table as a polars.DataFrame.

        Raises:
            UnsupportedError: Polars is not installed.
        """
        return cast("polars.DataFrame", package("polars", "Table.to_polars").DataFrame(self))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Refuses: NumPy and pandas would take the names of the columns for values otherwise.

        Raises:
            SchemaError: always.
        """
        raise SchemaError(
            "a Table is no array: Table.to_numpy() gives an array of each column by name, Table.to_numpy(structured=True) one "
            "array, Table.to_pandas() a DataFrame"
        )

    def __arrow_c_schema__(self) -> object:
        """Arrow PyCapsule interface: a struct of the columns' types."""
        return export("schema", self)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Arrow PyCapsule interface: the rows as a stream of one record batch."""
        return export("stream", self, requested_schema)


class _Requested:
    """A table whose decimals pyarrow takes in the width of the Arrow schema (fastpq.arrow.narrow_decimals)."""

    def __init__(self, table: TableExports) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return export("stream", self._table, export("request", self._table) or requested_schema)
