"""Ray Data: a Datasource whose tasks read files of a dataset, with columns and filters that reach the files."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from fastpq.adapters.dataset_tasks import DatasetTask, arrow_task, part_of_schema
from fastpq.common.lazy import package
from fastpq.encryption.tracebacks import hides_arguments
from fastpq.filters.pushed_filters import columns_of_expression, pushed_filter_of

pyarrow: Any = package("pyarrow", "read_ray")
ray_data: Any = package("ray.data", "read_ray", "ray[data]")
ray_blocks: Any = package("ray.data.block", "read_ray", "ray[data]")


@hides_arguments
def read_ray(where: Any, *, decryption_properties: str | None = None, **options: Any) -> Any:
    """Return a Ray Dataset that reads a dataset, with a task for one or more files (``ray.data.read_datasource``).

    Columns that the pipeline does not use are not read. Filters that are expressions (``filter(expr=...)``) rule out files, row
    groups and pages. A condition has the meaning that it has in pyarrow: NaN equals nothing. The tasks run in other processes:
    these get keys from the function that decryption_properties names, and the module of the function must be there.

    Args:
        where: as for ParquetDataset.
        decryption_properties: name of a function, ``"package.module:function"``, that takes a file's path and returns its keys.
            Other keys are refused.
        **options: other arguments of ParquetDataset.

    Raises:
        UnsupportedError: Ray or pyarrow is not installed, or decryption_properties is not a name.
        ParquetError: as ParquetDataset.
    """
    task = arrow_task(where, decryption_properties, options)
    task.check_portable()
    return ray_data.read_datasource(_RaySource(task))


class _RaySource(ray_data.Datasource):      # type: ignore[misc]
    """The files of a dataset, for Ray's planner."""

    def __init__(self, task: DatasetTask) -> None:
        super().__init__()
        self._projection_map: dict[str, str] | None = None
        self._schema = task.schema()
        self._tasks = task.split()
        self._column_types = task.dataset().schema

    def get_name(self) -> str:
        """Return the name in plans."""
        return "Fastpq"

    def supports_projection_pushdown(self) -> bool:
        """Return True: Ray hands over the columns that the pipeline uses."""
        return True

    def supports_predicate_pushdown(self) -> bool:
        """Return True: Ray hands over filters. They are applied completely, so Ray need not apply them again."""
        return True

    def estimate_inmemory_data_size(self) -> int | None:
        """Return None: the size in memory is unknown."""
        return None

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[Any]:
        """Return at most ``parallelism`` tasks of Ray, which read consecutive files."""
        predicate = self.get_current_predicate()
        expression = None if predicate is None else predicate.to_pyarrow()
        # without a column Ray counts no rows
        columns = None if self._projection_map is None else list(self._projection_map) or self._schema.names[:1]
        schema = part_of_schema(self._schema, columns)
        filters, is_exact = pushed_filter_of(expression, self._column_types)
        rest = None if is_exact else expression
        number = max(1, min(parallelism, len(self._tasks)))
        ends = [len(self._tasks) * (place + 1) // number for place in range(number)]
        groups = [self._tasks[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]
        used_columns = [] if rest is None else columns_of_expression(rest)
        names = None if used_columns is None else list(dict.fromkeys([*schema.names, *used_columns]))
        read_schema = part_of_schema(self._schema, names)
        return [
            ray_data.ReadTask(
                partial(_blocks, tasks, read_schema, filters, rest, schema.names),
                _description(tasks, has_all_rows=expression is None),
                schema=schema,
                per_task_row_limit=per_task_row_limit,
            )
            for tasks in groups
        ]


def _description(tasks: list[DatasetTask], *, has_all_rows: bool) -> Any:
    """Return what Ray wants to know of some files before they are read."""
    rows = [task.num_rows for task in tasks]
    num_rows = sum(count for count in rows if count is not None) if has_all_rows and None not in rows else None
    paths = [path for task in tasks for path in task.paths]
    return ray_blocks.BlockMetadata(num_rows=num_rows, size_bytes=None, input_files=paths, exec_stats=None)


def _blocks(tasks: list[DatasetTask], schema: Any, filters: Any, rest: Any, names: list[str]) -> Iterator[Any]:
    """Yield the matching rows of some files as pyarrow tables.

    Args:
        tasks: the files.
        schema: columns to read.
        filters: what fastpq applies.
        rest: the expression that pyarrow applies to the rows, or None.
        names: columns of the result.
    """
    for task in tasks:
        for batch in task.batches(schema, filters):
            rows = pyarrow.Table.from_batches([batch])
            yield rows if rest is None else rows.filter(rest).select(names)
