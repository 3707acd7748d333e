"""Options of pyarrow, pandas and fastparquet that fastpq spells in another way, or does not need."""

from __future__ import annotations

# For writing, by name of the option; a sentence for the error of an unknown option.
WRITING = {
    "allow_truncated_timestamps": "schema={name: 'timestamp[us]'} converts timestamps, and refuses those that would lose digits",
    "append": "write_dataset adds files to a directory; a written file stays as it is",
    "coerce_timestamps": "schema={name: 'timestamp[us]'} converts timestamps",
    "custom_metadata": "key_value_metadata is the name",
    "dictionary_pagesize_limit": "dictionary_page_size is the name",
    "engine": "there is one engine",
    "file_scheme": "write_table writes one file, write_dataset a directory",
    "filesystem": "pass a URL, or an object with the attributes fs and path, as fsspec.open returns",
    "fixed_text": "schema={name: 'S8'} makes values of fixed length",
    "flavor": "column names are kept as they are",
    "has_nulls": "schema=ParquetSchema.of(...) makes columns required",
    "index": "the index of a DataFrame is written unless it is a plain range: frame.reset_index(drop=True) leaves it out",
    "object_encoding": "objects become the type of their values; schema={name: 'string'} asks for another",
    "open_with": "pass a URL, or an object with the attributes fs and path, as fsspec.open returns",
    "partition_cols": "write_dataset(data, root, partition_by=[...]) makes partitions",
    "partition_on": "write_dataset(data, root, partition_by=[...]) makes partitions",
    "row_group_offsets": "row_group_size is the number of rows of a row group",
    "stats": "write_statistics is the name",
    "storage_options": "pass an object with the attributes fs and path, as fsspec.open(url, **storage_options) returns",
    "store_schema": "arrow_schema is the name",
    "times": "INT96 timestamps are read and not written; schema={name: 'timestamp[us]'} chooses a unit",
    "use_byte_stream_split": "column_encoding={name: 'BYTE_STREAM_SPLIT'} chooses encodings",
    "use_compliant_nested_type": "lists always have the three levels of the specification",
    "use_deprecated_int96_timestamps": "INT96 timestamps are read, and written only from INT96 columns",
    "version": "there is one version: all logical types are written as the specification asks",
    "write_batch_size": "data_page_size and data_page_rows bound pages",
    "write_index": "the index of a DataFrame is written unless it is a plain range: frame.reset_index(drop=True) leaves it out",
}
