"""Options in pyarrow, pandas and fastparquet that have another name in fastpq, or that fastpq does not need."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

# Writer options: for each name, the text that the error for an unknown option shows.
WRITING = {
    "basename_template": "write_dataset has this option",
    "bloom_filter_options": "bloom_filter is the name",
    "append": "append_table adds rows to a file, and write_dataset adds files to a directory",
    "create_dir": "missing directories are made",
    "custom_metadata": "key_value_metadata is the name",
    "dictionary_pagesize_limit": "dictionary_page_size is the name",
    "engine": "there is one engine",
    "existing_data_behavior": "write_dataset has this option",
    "file_options": "the options of files are options of write_dataset",
    "file_scheme": "write_table writes one file, write_dataset a directory",
    "file_visitor": "write_dataset has this option",
    "format": "write_dataset writes Parquet",
    "fixed_text": "schema={name: 'S8'} makes values of fixed length",
    "flavor": "column names are kept as they are",
    "has_nulls": "schema=ParquetSchema.of(...) makes columns required",
    "max_open_files": "write_dataset keeps at most 128 files open",
    "max_partitions": "write_dataset takes any number of partitions",
    "max_rows_per_file": "write_dataset has this option",
    "max_rows_per_group": "row_group_size is the name",
    "max_rows_per_page": "data_page_rows is the name",
    "metadata_collector": "write_dataset(..., write_metadata_file=True) writes _metadata",
    "min_rows_per_group": "row_group_size is the number of rows of a row group",
    "mkdirs": "missing directories are made",
    "object_encoding": "objects become the type of their values; schema={name: 'string'} asks for another",
    "open_with": "filesystem=... takes a filesystem of fsspec or pyarrow",
    "preserve_index": "index=False leaves the index of a DataFrame out, index=True keeps a plain range as a column too",
    "partition_cols": "write_dataset(data, root, partition_by=[...]) makes partitions",
    "partition_on": "write_dataset(data, root, partition_by=[...]) makes partitions",
    "partitioning": "write_dataset has this option, and partition_by names the columns",
    "partitioning_flavor": "write_dataset(..., partitioning=\"directory\") leaves the names out",
    "row_group_offsets": "row_group_size is the number of rows of a row group",
    "stats": "write_statistics is the name",
    "store_schema": "arrow_schema is the name",
    "times": "schema={name: ColumnType(Type.INT96, None, Timestamp('ns'))} writes INT96, {name: 'timestamp[us]'} microseconds",
    "use_byte_stream_split": "column_encoding={name: 'BYTE_STREAM_SPLIT'} chooses encodings",
    "use_compliant_nested_type": "lists always have the three levels of the specification",
    "use_deprecated_int96_timestamps": "schema={name: ColumnType(Type.INT96, None, Timestamp('ns'))} writes INT96",
    "use_threads": "threads is the number of threads, 1 for none beside the caller's",
    "version": "there is one version: all logical types are written as the specification asks",
    "write_batch_size": "data_page_size and data_page_rows bound pages",
    "write_time_adjusted_to_utc": "schema={name: ColumnType(Type.INT64, None, Time('us', True))} writes times of UTC",
    "write_index": "index=False leaves the index of a DataFrame out, index=True keeps a plain range as a column too",
}

# Reader options, in the same way.
READING = {
    "categories": "strings=\"dictionary\" keeps dictionaries; categories of pandas come back without an option",
    "arrow_extensions_enabled": "arrow_schema=False leaves the types of ARROW:schema out",
    "binary_type": "strings= chooses the layout of text and binaries",
    "buffer_size": "properties=ReaderProperties(coalesce_size=...) bounds reads",
    "column": "read(columns) chooses columns",
    "columns": "read(columns) chooses columns",
    "common_metadata": "the file is found in the directory",
    "dtype_backend": "read_pandas has this option",
    "dtypes": "schema= of read_dataset gives columns other types",
    "engine": "there is one engine",
    "filter": "read(filters=...) chooses rows",
    "filters": "read(filters=...) chooses rows",
    "fs": "filesystem is the name",
    "hive_partitioning": "read_dataset(where, partitioning=\"hive\") is the default; None leaves partitions out",
    "ignore_prefixes": "names that begin with _ or . are passed over",
    "index": "read_pandas gives the index of the metadata: frame.reset_index() makes columns",
    "list_type": "lists have 64-bit offsets where they need them",
    "low_memory": "ParquetFile.iter_batches reads in bounded memory",
    "n_rows": "ParquetFile.head(n) gives the first rows",
    "open_with": "filesystem=... takes a filesystem of fsspec or pyarrow",
    "page_checksum_verification": "properties=ReaderProperties(verify_checksums=...) is the name; True is the default",
    "pandas_nulls": "read_pandas(where, dtype_backend=\"numpy_nullable\") gives nullable dtypes",
    "parallel": "threads is the number of threads",
    "partitioning": "read_dataset and ParquetDataset have this option",
    "pre_buffer": "properties=ReaderProperties(prefetch=...) is the name",
    "read_dictionary": "strings=\"dictionary\" keeps dictionaries",
    "root": "read_dataset(root) finds the files of a directory",
    "row_filter": "filters always choose rows",
    "rechunk": "columns are in one piece",
    "schema_depth_limit": "groups may be nested 512 deep",
    "schema": "read_dataset and ParquetDataset have this option",
    "sep": "paths are split at /",
    "source": "the first argument is the place",
    "thrift_container_size_limit": "properties=ReaderProperties(max_columns=..., max_row_groups=...) bounds footers",
    "thrift_string_size_limit": "properties=ReaderProperties(max_footer_size=...) bounds footers",
    "to_pandas_kwargs": "read_pandas has this option",
    "use_legacy_dataset": "there is one way to read datasets",
    "use_pandas_metadata": "read_pandas gives index, labels and dtypes of the metadata",
    "use_statistics": "filters use statistics always",
    "use_threads": "threads is the number of threads, 1 for none beside the caller's",
    "verify": "properties=ReaderProperties(verify_checksums=...) is the name; True is the default",
}


def unknown_options(unknown_names: Sequence[str], known_names: Collection[str], elsewhere: Mapping[str, str]) -> TypeError:
    """Return the error for unknown options. It says what to use instead, or which known names are similar.

    Args:
        unknown_names: names of the unknown options.
        known_names: names of the existing options.
        elsewhere: what to use in place of an option from another library, by option name.
    """
    from difflib import get_close_matches

    if advice := [f"{name}: {elsewhere[name]}" for name in unknown_names if name in elsewhere]:
        return TypeError(f"unknown options: {', '.join(unknown_names)}; {'; '.join(advice)}")
    near = list(dict.fromkeys(match for name in unknown_names for match in get_close_matches(name, known_names)))
    hint = f"; did you mean {', '.join(near)}?" if near else ""
    return TypeError(f"unknown options: {', '.join(unknown_names)}{hint}")
