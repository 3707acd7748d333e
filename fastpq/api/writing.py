"""write_table: a file opened, written and closed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from fastpq.api.writer import ParquetWriter
from fastpq.api.writer_options import WriterOptions
from fastpq.common.progress import Progress
from fastpq.encryption.properties import FileEncryptionProperties
from fastpq.options import WriterProperties, spelled_out
from fastpq.schema.parquet_schema import ParquetSchema
from fastpq.variant.shredding_choice import Shredding


@spelled_out
def write_table(
    data: Any,
    where: Any,
    *,
    schema: Mapping[str, Any] | ParquetSchema | Any = None,
    properties: WriterProperties | None = None,
    threads: int | None = None,
    encryption_properties: FileEncryptionProperties | None = None,
    shred: Mapping[str, Shredding] | None = None,
    progress: Progress | None = None,
    if_none_match: str | None = None,
    if_match: str | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    index: bool | None = None,
    **options: Unpack[WriterOptions],
) -> None:
    """Write columns as a Parquet file; the target is replaced whole, or not at all.

    Args:
        data: a Table, a dict of NumPy arrays, a structured array, a pandas DataFrame, anything with the Arrow C data interface,
            or an iterator of these. An Arrow stream or an iterator is read batch by batch, in bounded memory.
        where: a path, a writable binary file object or an fsspec URL.
        schema: types by name, an Arrow schema or a ParquetSchema; columns without a type here keep the type of their values. A
            type is a ColumnType, a NumPy, pandas or Arrow type, a Python class, or a name such as ``"timestamp[ms]"``.
        properties: how to write; options go before properties.
        threads: number of columns encoded at the same time; None for one a core.
        encryption_properties: keys; None writes a plaintext file.
        shred: how variant columns are shredded, by name, as for ParquetWriter.
        progress: called as ``progress(done, total)``, in rows; the last call is ``(total, total)``. An
            exception from progress leaves the target unchanged.
        if_none_match: ``"*"`` refuses a target that is there when the file is complete: a local file, or an object in S3.
        if_match: ETag of the object in S3 to replace; an object replaced meanwhile stays.
        filesystem: filesystem of the path, of fsspec or of pyarrow.fs; None finds one by the URL.
        storage_options: options of the fsspec filesystem of a URL, as for pandas and Polars.
        timeout: most seconds without a byte from a server, for URLs of S3.
        index: whether the index of a pandas DataFrame is kept as columns, as pandas has it. None keeps a RangeIndex in the
            metadata alone, True keeps any index as columns, False leaves the index out.
        **options: any of the fields of WriterProperties:

    Raises:
        SchemaError: no columns of equal length, or columns of another schema.
        UnsupportedError: a codec, an encoding or a type without a writer.
        TypeError: an unknown option.
    """
    writer = ParquetWriter(
        where,
        schema,
        properties=properties,
        threads=threads,
        encryption_properties=encryption_properties,
        shred=shred,
        progress=progress,
        if_none_match=if_none_match,
        if_match=if_match,
        filesystem=filesystem,
        storage_options=storage_options,
        timeout=timeout,
        index=index,
        **options,
    )
    writer._write_whole(data)
