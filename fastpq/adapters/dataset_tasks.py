"""DatasetTask: the reading of some files of a dataset, in this process or in another one, for engines that plan tasks."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from fastpq.adapters.task_keys import TaskDecryption, TaskKeys
from fastpq.api.file import DEFAULT_BATCH_SIZE
from fastpq.common.lazy import LazyModule
from fastpq.datasets.dataset import ParquetDataset
from fastpq.datasets.keys_of_files import DatasetDecryption

pyarrow: Any = LazyModule("pyarrow")


class DatasetTask:
    """Reads some files of a dataset. A pickle of it has paths, column types and options, and the name of a function for keys.

    Args:
        part: the files, as a dataset without keys.
        keys: the keys.
        open_dataset: the same files as a dataset with keys, if there is one already.
        token: a name by which Dask knows the task. None makes a random one, so that no key or option is hashed.
    """

    def __init__(
        self, part: ParquetDataset, keys: TaskKeys, open_dataset: ParquetDataset | None = None, token: str | None = None
    ) -> None:
        self._part, self._keys, self._open_dataset = part, keys, open_dataset
        self._token = token or uuid.uuid4().hex

    def __reduce__(self) -> tuple[Any, ...]:
        return (DatasetTask, (self._part, self._keys, None, self._token))

    def __dask_tokenize__(self) -> str:
        return self._token

    def __repr__(self) -> str:
        return f"<DatasetTask of {len(self.paths)} files>"

    @property
    def paths(self) -> list[str]:
        """The files' paths."""
        return self._part.files

    @property
    def num_rows(self) -> int | None:
        """Number of rows in the files, or None if their footers were not read."""
        return None if None in self._part._open_files.columns else sum(self._part._open_files.rows)

    def check_portable(self) -> None:
        """Refuse keys that cannot reach another process.

        Raises:
            UnsupportedError: there are such keys.
        """
        self._keys.__reduce__()

    def dataset(self) -> ParquetDataset:
        """Return the files as a dataset with keys.

        Raises:
            KeyAccessError: this process cannot import the function that returns the keys.
        """
        if self._open_dataset is None:
            self._open_dataset = part_of_dataset(self._part, range(len(self.paths)), self._keys.decryption)
        return self._open_dataset

    def without_rows(self) -> ParquetDataset:
        """Return a dataset with the columns of the files, and no rows."""
        return part_of_dataset(self._part, [0], self._keys.decryption, has_rows=False)

    def split(self) -> list[DatasetTask]:
        """Return a task for each file."""
        return [DatasetTask(part_of_dataset(self._part, [number], None), self._keys) for number in range(len(self.paths))]

    def schema(self) -> Any:
        """Return the columns as a pyarrow schema. Its fields have no metadata: these may hold what an encrypted file hides."""
        return pyarrow.schema([field.remove_metadata() for field in pyarrow.schema(self.dataset())])

    def batches(self, schema: Any, filters: Any = None, batch_size: int | None = None) -> Iterator[Any]:
        """Yield the matching rows as pyarrow RecordBatches.

        Args:
            schema: columns and their types, a part of ``schema`` of the whole dataset.
            filters: as for ``ParquetDataset.read``.
            batch_size: most rows of a batch.
        """
        for table in self.dataset().iter_batches(batch_size or DEFAULT_BATCH_SIZE, schema.names, filters=filters):
            if not schema.names:
                yield pyarrow.RecordBatch.from_struct_array(pyarrow.nulls(table.num_rows, pyarrow.struct([])))
                continue
            rows = pyarrow.table(table).replace_schema_metadata()
            yield from (rows if rows.schema.equals(schema, check_metadata=True) else rows.cast(schema)).to_batches()


def dataset_task(where: Any, decryption: TaskDecryption, options: dict[str, Any]) -> DatasetTask:
    """Open a dataset, and return the task that reads all of it.

    Args:
        where: as for ParquetDataset.
        decryption: as for TaskKeys.
        options: options of ParquetDataset.
    """
    keys = TaskKeys(decryption)
    dataset = ParquetDataset(where, decryption_properties=keys.decryption, **options)
    return DatasetTask(part_of_dataset(dataset, range(len(dataset.files)), None), keys, dataset)


def arrow_task(where: Any, decryption: TaskDecryption, options: dict[str, Any]) -> DatasetTask:
    """Return a ``dataset_task`` for engines that use pyarrow's kernels, which know few operations on views."""
    return dataset_task(where, decryption, {"strings": "offsets", "decimals": "decimal128", **options})


def part_of_schema(schema: Any, columns: Sequence[str] | None) -> Any:
    """Return the fields of some columns of a pyarrow schema, in the order of the names. None for all."""
    return schema if columns is None else pyarrow.schema([schema.field(name) for name in columns])


def part_of_dataset(
    dataset: ParquetDataset, numbers: Sequence[int], decryption: DatasetDecryption, *, has_rows: bool = True
) -> ParquetDataset:
    """Return a dataset of some files. It has the columns and types of the whole dataset. No file is opened.

    Args:
        dataset: the whole dataset.
        numbers: numbers of the files, in reading order.
        decryption: keys of the part. The part has none of the keys that the whole dataset has.
        has_rows: whether the files' rows belong to the part. If not, only the first file's columns do.
    """
    part = object.__new__(ParquetDataset)
    part.__dict__.update(dataset.__dict__)
    part._files = [dataset._files[number] for number in numbers]
    part._values = [dataset._values[number] for number in numbers]
    part._cached_keys = None
    part._has_rows = dataset._has_rows and has_rows
    part._open_files = part._opener(decryption)
    part._open_files.columns = [dataset._open_files.columns[number] for number in numbers]
    part._open_files.rows = [dataset._open_files.rows[number] if has_rows else 0 for number in numbers]
    return part
