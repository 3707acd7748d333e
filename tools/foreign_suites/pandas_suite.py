"""Plugin of pytest: the engine "pyarrow" of pandas reads and writes with fastpq. The tests of the engine "fastparquet" too."""

from __future__ import annotations

import os
from typing import Any

import pandas as pd
from pandas._libs import lib
from pandas.io import parquet

import fastpq


def place(path: Any, storage_options: Any, filesystem: Any) -> tuple[Any, dict[str, Any]]:
    """The place and the options of it, with the refusals of pandas."""
    if isinstance(path, str | os.PathLike):
        path = os.path.expanduser(os.fspath(path))
    if filesystem is not None and storage_options:
        raise NotImplementedError("storage_options not supported with a pyarrow FileSystem.")
    if storage_options and (not isinstance(path, str) or "://" not in path):
        raise ValueError("storage_options passed with buffer, or non-supported URL")
    return path, {"filesystem": filesystem, "storage_options": storage_options}


def refuse_filesystem(engine: Any, filesystem: Any) -> None:
    if filesystem is not None and isinstance(engine, parquet.FastParquetImpl):
        raise NotImplementedError("filesystem is not implemented for the fastparquet engine.")
    if filesystem is not None and not hasattr(filesystem, "open_input_file") and not hasattr(filesystem, "protocol"):
        raise ValueError(f"filesystem must be a pyarrow or fsspec FileSystem, not a {type(filesystem).__name__}")


class Engine:
    """What pandas asks of an engine."""

    def write(self, df: Any, path: Any, compression: Any = "snappy", index: bool | None = None, storage_options: Any = None,
              partition_cols: Any = None, filesystem: Any = None, **options: Any) -> None:
        parquet.BaseImpl.validate_dataframe(df)
        refuse_filesystem(self, filesystem)
        if partition_cols is not None and "partition_on" in options:
            raise ValueError("Cannot use both partition_on and partition_cols. Use partition_cols for partitioning data")
        partitions = options.pop("partition_on", None) or partition_cols
        if isinstance(self, parquet.FastParquetImpl) and not isinstance(df.index, pd.RangeIndex) and df.index.names == [None]:
            df = df.rename_axis("index")        # fastparquet's name of an index without one
        where, more = place(path, storage_options, filesystem)
        schema = options.pop("schema", None)
        options.pop("version", None)        # fastpq writes one version
        if "row_group_offsets" in options:
            options["row_group_size"] = options.pop("row_group_offsets")
        if partitions is not None:
            names = [partitions] if isinstance(partitions, str) else partitions
            fastpq.write_dataset(
                df, where, partition_by=names, compression=compression, index=index, schema=schema, **more, **options)
        else:
            fastpq.write_table(df, where, compression=compression, index=index, schema=schema, **more, **options)

    def read(self, path: Any, columns: Any = None, filters: Any = None, dtype_backend: Any = lib.no_default,
             storage_options: Any = None, filesystem: Any = None, to_pandas_kwargs: Any = None, **options: Any) -> Any:
        refuse_filesystem(self, filesystem)
        options.pop("row_filter" if isinstance(self, parquet.FastParquetImpl) else "use_threads", None)
        where, more = place(path, storage_options, filesystem)
        wishes = dict(to_pandas_kwargs or {})
        wishes.pop("self_destruct", None)       # about memory alone
        maps = wishes.pop("maps_as_pydicts", None)
        if wishes:
            raise NotImplementedError(f"the shim has no to_pandas_kwargs {wishes}")
        backend = None if dtype_backend is lib.no_default else dtype_backend
        frame = fastpq.read_pandas(where, columns, filters=filters, dtype_backend=backend, **more, **options)
        return frame if maps is None else frame.map(lambda value: dict(value) if isinstance(value, list) else value)


for engine in (parquet.PyArrowImpl, parquet.FastParquetImpl):
    engine.write, engine.read = Engine.write, Engine.read
