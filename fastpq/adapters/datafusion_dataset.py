"""DataFusion: a dataset that it reads as it reads one of pyarrow, with columns and filters that reach the files.

DataFusion calls ``get_fragments`` for its partitions, and the method ``scanner`` of each. DuckDB calls ``scanner`` alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from fastpq.adapters.dataset_tasks import DatasetTask, arrow_task, part_of_schema
from fastpq.adapters.task_keys import TaskDecryption
from fastpq.common.lazy import package
from fastpq.encryption.tracebacks import hides_arguments
from fastpq.errors import UnsupportedError
from fastpq.filters.pushed_filters import columns_of_expression, pushed_filter_of

pyarrow: Any = package("pyarrow", "arrow_dataset")
arrow_datasets: Any = package("pyarrow.dataset", "arrow_dataset", "pyarrow")

# If code of pyarrow reads the dataset without its methods, it looks for this file, which cannot exist, and fails.
_NO_FILE = "/dev/null/this dataset is read by its methods alone, which call fastpq"


@hides_arguments
def arrow_dataset(
    where: Any, *, decryption_properties: TaskDecryption = None, **options: Any
) -> Any:
    """Return a ``pyarrow.dataset.Dataset`` for ``SessionContext.register_dataset`` of DataFusion, and for DuckDB.

    Columns that the query does not use are not read. Its filters rule out files, row groups and pages. Each file is a partition
    of DataFusion. A condition has the meaning that it has in pyarrow: NaN equals nothing.

    Args:
        where: as for ParquetDataset.
        decryption_properties: as for ParquetDataset, or the name of a function, ``"package.module:function"``, that takes a
            file's path and returns its keys.
        **options: other arguments of ParquetDataset.

    Raises:
        UnsupportedError: pyarrow is not installed.
        ParquetError: as ParquetDataset.
    """
    return _ArrowDataset(arrow_task(where, decryption_properties, options))


class _ArrowDataset(arrow_datasets.FileSystemDataset):      # type: ignore[misc]
    """A dataset whose rows come from a DatasetTask."""

    def __init__(self, task: DatasetTask) -> None:
        from pyarrow.fs import LocalFileSystem

        file_format, filesystem = arrow_datasets.ParquetFileFormat(), LocalFileSystem()
        super().__init__([file_format.make_fragment(_NO_FILE, filesystem)], task.schema(), file_format, filesystem)
        self._task = task

    def __repr__(self) -> str:
        return f"<dataset of {len(self._task.paths)} files, read by fastpq>"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_ArrowDataset, (self._task,))

    @property
    def files(self) -> list[str]:
        """The files' paths."""
        return self._task.paths

    def get_fragments(self, filter: Any = None) -> list[_Fragment]:
        """Return a fragment for each file. Filters rule files out when the fragments are read."""
        return [_Fragment(task, self.schema) for task in self._task.split()]

    def scanner(self, columns: Any = None, filter: Any = None, batch_size: int | None = None, **_: Any) -> Any:
        """Return a Scanner for some columns and rows of all files. Other options do not change the rows, and are ignored."""
        return _scanner(self._task, self.schema, columns, filter, batch_size)

    def filter(self, expression: Any) -> NoReturn:
        """Refuse a filter of the dataset, which pyarrow would apply to its own read."""
        raise UnsupportedError("a dataset of fastpq takes filters when it is read: to_table(filter=...), scanner(filter=...)")

    def replace_schema(self, schema: Any) -> NoReturn:
        """Refuse another schema, which pyarrow would apply to its own read."""
        raise UnsupportedError("a dataset of fastpq takes its schema when it is opened: arrow_dataset(where, schema=...)")


class _Fragment:
    """One file of a dataset, in the form in which DataFusion reads it."""

    def __init__(self, task: DatasetTask, schema: Any) -> None:
        self._task, self._schema = task, schema

    def scanner(
        self, schema: Any = None, columns: Any = None, filter: Any = None, batch_size: int | None = None, **_: Any
    ) -> Any:
        """Return a Scanner for some columns and rows. The schema is that of the dataset."""
        return _scanner(self._task, self._schema, columns, filter, batch_size)


def _scanner(task: DatasetTask, schema: Any, columns: Any, expression: Any, batch_size: int | None) -> Any:
    """Return a Scanner of pyarrow, which applies the whole expression to the rows that fastpq has not ruled out.

    Args:
        task: the files.
        schema: columns of the dataset.
        columns: names of columns, or expressions by name, or None for all.
        expression: condition on the rows, or None.
        batch_size: rows of a batch, or None.
    """
    filters, _ = pushed_filter_of(expression, task.dataset().schema)
    read_schema = part_of_schema(schema, _read_columns(columns, expression))
    batches = arrow_batches(task, read_schema, filters, batch_size)
    sizes = {} if batch_size is None else {"batch_size": batch_size}
    return arrow_datasets.Scanner.from_batches(batches, columns=columns, filter=expression, **sizes)


def arrow_batches(task: DatasetTask, schema: Any, filters: Any, batch_size: int | None) -> Any:
    """Return a RecordBatchReader of the matching rows."""
    return pyarrow.RecordBatchReader.from_batches(schema, task.batches(schema, filters, batch_size))


def _read_columns(columns: Mapping[str, Any] | Sequence[str] | None, expression: Any) -> list[str] | None:
    """Return the columns that a scan needs, or None for all."""
    if columns is None:
        return None
    expressions = [*([] if expression is None else [expression]), *(columns.values() if isinstance(columns, Mapping) else ())]
    names = {} if isinstance(columns, Mapping) else dict.fromkeys(columns)
    for part in expressions:
        if (used_columns := columns_of_expression(part)) is None:
            return None
        names.update(dict.fromkeys(used_columns))
    return list(names)
