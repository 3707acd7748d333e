"""Functions and classes in pandas, Polars, pyarrow and fastparquet that have another name in fastpq."""

from __future__ import annotations

_READING = "read_table(where), and read_pandas(where) for a DataFrame"
_WRITING = "write_table(data, path)"
_LAZY = "ParquetFile(where) and ParquetDataset(where), which read chosen columns, rows and batches"
_DATASETS = "ParquetDataset(where) or read_dataset(where)"
_APPENDING = "write_dataset(data, root, partition_by=[...])"
_NAMES = {
    "DataFrame": "Table, and Table.to_pandas()",
    "Dataset": _DATASETS,
    "FileSystemDataset": _DATASETS,
    "dataset": _DATASETS,
    "concat": "Table.concat(tables)",
    "concat_tables": "Table.concat(tables)",
    "col": "filters=[(column, op, value)], or expressions of Polars and pyarrow.compute",
    "field": "filters=[(column, op, value)], or expressions of Polars and pyarrow.compute",
    "from_arrow": _WRITING,
    "from_pandas": _WRITING,
    "load": _READING,
    "merge": "merge_files(files, target), and write_dataset_metadata(root)",
    "open": "ParquetFile(where)",
    "open_file": "ParquetFile(where)",
    "parquet_dataset": _DATASETS,
    "read_parquet": _READING,
    "read_parquet_metadata": "read_metadata(where)",
    "read_parquet_schema": "read_schema(where)",
    "save": _WRITING,
    "scan_parquet": _LAZY,
    "sink_parquet": "write_table(iterator, path)",
    "table": "Table({name: values})",
    "to_pandas": "Table.to_pandas(), and read_pandas(where)",
    "to_parquet": _WRITING,
    "write_metadata": "write_dataset_metadata(root)",
    "write_pandas": _WRITING,
    "write_parquet": _WRITING,
    "write_to_dataset": _APPENDING,
}
_MODULES = {"read": _READING, "write": f"{_WRITING} or {_APPENDING}"}


def advice(name: str) -> str:
    """Return a text to append to an error message: which fastpq function to use in place of one from another library.

    Args:
        name: a function or class of another library. For an unknown name the text is empty.
    """
    return f"; fastpq has {_NAMES[name]}" if name in _NAMES else ""


def advice_for_call(module: str) -> str:
    """Return a text to append to an error message: which functions to call in place of a module that is not callable.

    Args:
        module: module name, ``"read"`` or ``"write"``.
    """
    return f"; fastpq has {_MODULES[module]}"
