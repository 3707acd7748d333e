"""Dask: a DataFrame with a partition for each file of a dataset (``dask.dataframe.from_map``)."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from fastpq.adapters.dataset_tasks import DatasetTask, dataset_task
from fastpq.adapters.task_keys import TaskDecryption
from fastpq.common.lazy import package
from fastpq.encryption.tracebacks import hides_arguments

if TYPE_CHECKING:
    import pandas


DtypeBackend: TypeAlias = Literal["pyarrow", "numpy_nullable"]


@hides_arguments
def read_dask(
    where: Any,
    columns: Iterable[Any] | None = None,
    *,
    filters: Any = None,
    dtype_backend: DtypeBackend = "pyarrow",
    decryption_properties: TaskDecryption = None,
    **options: Any,
) -> Any:
    """Return a Dask DataFrame that reads a dataset, with a partition for each file.

    Columns that the computation does not use are not read. Dask does not hand filters down, so they are an argument here. They
    rule out files, row groups and pages, and the result has the matching rows alone. Dask's threads take any keys. Processes and
    clusters need the name of a function: other keys are refused when Dask pickles the tasks.

    Args:
        where: as for ParquetDataset.
        columns: as for ``ParquetDataset.to_pandas``.
        filters: as for ``ParquetDataset.read``.
        dtype_backend: dtypes, as for pandas. They do not depend on the values, so that all partitions have the same.
        decryption_properties: as for ParquetDataset, or the name of a function, ``"package.module:function"``, that takes a
            file's path and returns its keys.
        **options: other arguments of ParquetDataset.

    Raises:
        UnsupportedError: Dask or pandas is not installed.
        ParquetError: as ParquetDataset.
    """
    if dtype_backend not in ("pyarrow", "numpy_nullable"):
        raise ValueError(f'dtype_backend must be "pyarrow" or "numpy_nullable", not {dtype_backend!r}')
    frames = package("dask.dataframe", "read_dask", "dask[dataframe]")
    whole = dataset_task(where, decryption_properties, options)
    names = None if columns is None else list(columns)
    reader = _Partition(filters, dtype_backend)
    empty = whole.without_rows().to_pandas(names, dtype_backend=dtype_backend)
    return frames.from_map(reader, whole.split(), columns=names, meta=empty, label="read-fastpq")


class _Partition:
    """Reads one partition. Its name for Dask is random: no key or filter is hashed, and two frames never share results."""

    def __init__(self, filters: Any, dtype_backend: DtypeBackend, token: str | None = None) -> None:
        self._filters, self._dtype_backend = filters, dtype_backend
        self._token = token or uuid.uuid4().hex

    def __reduce__(self) -> tuple[Any, ...]:
        return (_Partition, (self._filters, self._dtype_backend, self._token))

    def __dask_tokenize__(self) -> str:
        return self._token

    def __call__(self, task: DatasetTask, columns: Sequence[Any]) -> pandas.DataFrame:
        """Return some columns of a task's rows. Dask always gives the columns, because the argument has no default."""
        return task.dataset().to_pandas(columns, filters=self._filters, dtype_backend=self._dtype_backend)
