"""Hugging Face datasets: an IterableDataset that reads a dataset as it is iterated over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from fastpq.adapters.dataset_tasks import DatasetTask, arrow_task, part_of_schema
from fastpq.adapters.task_keys import TaskDecryption
from fastpq.common.lazy import package
from fastpq.encryption.tracebacks import hides_arguments

pyarrow: Any = package("pyarrow", "read_hugging_face")
hf_datasets: Any = package("datasets", "read_hugging_face")
hf_iterables: Any = package("datasets.iterable_dataset", "read_hugging_face", "datasets")


@hides_arguments
def read_hugging_face(
    where: Any,
    columns: Iterable[str] | None = None,
    *,
    filters: Any = None,
    decryption_properties: TaskDecryption = None,
    **options: Any,
) -> Any:
    """Return a ``datasets.IterableDataset`` of a dataset's rows, with a shard for each file.

    Nothing is written to the cache of Hugging Face, which would hold the rows of encrypted files in plaintext. The library hands
    neither columns nor filters down, so they are arguments here. Other columns are not read, and filters rule out files, row
    groups and pages. Processes that get the dataset in a pickle (a DataLoader with the start method "spawn") need the name of a
    function: other keys are refused then.

    Args:
        where: as for ParquetDataset.
        columns, filters: as for ``ParquetDataset.read``.
        decryption_properties: as for ParquetDataset, or the name of a function, ``"package.module:function"``, that takes a
            file's path and returns its keys.
        **options: other arguments of ParquetDataset.

    Raises:
        UnsupportedError: datasets or pyarrow is not installed.
        ParquetError: as ParquetDataset.
    """
    whole = arrow_task(where, decryption_properties, options)
    schema = part_of_schema(whole.schema(), None if columns is None else list(columns))
    features = hf_datasets.Features.from_arrow_schema(schema)
    # the library divides the only list among the arguments into shards
    arguments = {"tasks": whole.split(), "schema": schema, "filters": _Filters(filters)}
    rows = hf_iterables.ArrowExamplesIterable(_tables, arguments)
    return hf_datasets.IterableDataset(rows, info=hf_datasets.DatasetInfo(features=features))


class _Filters:
    """Filters in an object, because a list of conditions would be divided into shards."""

    def __init__(self, filters: Any) -> None:
        self.filters = filters


def _tables(tasks: list[DatasetTask], schema: Any, filters: _Filters) -> Iterator[tuple[str, Any]]:
    """Yield the matching rows of some files as pyarrow tables, each with a key that is unique in the dataset."""
    for task in tasks:
        for number, batch in enumerate(task.batches(schema, filters.filters)):
            yield f"{task.paths[0]}:{number}", pyarrow.Table.from_batches([batch])
