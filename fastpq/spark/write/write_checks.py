"""Checks before a write starts: does it fit its schema, and can it reach its key service?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from pyspark.sql import types as st

from fastpq.spark.core import SchemaError, UnsupportedError
from fastpq.spark.keyservice import Encryption
from fastpq.spark.options import WriteOptions
from fastpq.spark.versions import GeographyType, GeometryType

MOST_NAMES = 20     # largest number of column names in a message
_PARTITION_TYPES = (
    st.BooleanType, st.IntegralType, st.FractionalType, st.StringType, st.DateType, st.TimestampType, st.TimestampNTZType,
)


def check_overwrite(options: WriteOptions, overwrite: bool, has_files: Callable[[], bool]) -> None:
    """Refuse to overwrite a partitioned dataset unless the options say which partitions.

    Args:
        options: write options.
        overwrite: whether present files are replaced.
        has_files: returns whether there are any.

    Raises:
        SchemaError: the options do not say which partitions to replace.
    """
    if overwrite and options.partition_by and options.dynamic_overwrite is None and has_files():
        raise SchemaError(
            "overwriting a partitioned dataset: the option partitionOverwriteMode is static, to replace all partitions, or "
            "dynamic, to replace the partitions of the new rows (a Python source does not see the session's setting)"
        )


def check_write(schema: st.StructType, options: WriteOptions) -> None:
    """Before a task starts, refuse a write that does not fit its schema or has no usable key service.

    Raises:
        SchemaError: the rows do not have a partition column or a column to encrypt, or have no column besides partition columns.
        UnsupportedError: fastpq does not write one of the types from Spark.
        KeyAccessError: a Python worker on the driver's machine cannot make the key service client.
    """
    check_schema(schema, options)
    check_encryption(schema, options)


def check_encryption(schema: st.StructType, options: WriteOptions) -> None:
    """Refuse keys for columns that the files will not have, and a key service that this machine cannot reach.

    Raises:
        SchemaError: the files will not have a column to encrypt, or would have columns without a key, and the options do not say
            what happens to them.
        KeyAccessError: a Python worker on the driver's machine cannot make the key service client.
    """
    if options.service is not None:
        options.service.check()
    if options.encryption is None:
        return
    names = [part.name for part in schema.fields]
    for path in (path for _, paths in options.encryption.column_keys for path in paths):
        owner = next((name for name in names if path == name or path.startswith(f"{name}.")), None)
        if owner is None:
            raise SchemaError(f"parquet.encryption.column.keys names {path!r}; the columns are {', '.join(names)}")
        if owner in options.partition_by:
            raise SchemaError(
                f"parquet.encryption.column.keys names {path!r}, a column of partitionBy: its values are in the names of "
                "folders, which nothing encrypts. Leave the column out of partitionBy, or out of the keys"
            )
    _check_unlisted(schema, options.encryption, options.partition_by)


def _check_unlisted(schema: st.StructType, encryption: Encryption, partition_by: Sequence[str]) -> None:
    """Refuse columns without a key of their own, if the options do not say what happens to them."""
    configuration = encryption.resolved(timedelta(0))
    refuses = configuration.unlisted == "raise" or (configuration.unlisted is None and configuration.plaintext_footer)
    if not refuses or configuration.uniform_encryption:
        return
    listed_paths = [f"{path}." for _, paths in encryption.column_keys for path in paths]
    listed_paths += [f"{path}." for path in encryption.options.get("plaintext_columns", ())]
    leaves = [leaf for part in schema.fields if part.name not in partition_by for leaf in _leaves(part.dataType, part.name)]
    names = [leaf for leaf in leaves if not any(f"{leaf}.".startswith(path) for path in listed_paths)]
    if names:
        listed_names = ", ".join(names[:MOST_NAMES]) + (", ..." if len(names) > MOST_NAMES else "")
        raise SchemaError(
            f"columns without a key of their own: {listed_names}. Say what happens to them: parquet.encryption.unlisted is "
            "footer_key to encrypt them with the footer key, or plaintext to leave them readable to everybody. "
            "parquet.encryption.plaintext.columns names single columns"
        )


def _leaves(type_: st.DataType, path: str) -> list[str]:
    """Return the dotted paths of the leaf columns that a Spark column has in a file."""
    inner: list[tuple[st.DataType, str]] = []
    if isinstance(type_, st.StructType):
        inner = [(part.dataType, part.name) for part in type_.fields]
    elif isinstance(type_, st.ArrayType):
        inner = [(type_.elementType, "list.element")]
    elif isinstance(type_, st.MapType):
        inner = [(type_.keyType, "key_value.key"), (type_.valueType, "key_value.value")]
    elif isinstance(type_, st.VariantType):
        return [f"{path}.metadata", f"{path}.value"]
    return [leaf for part, names in inner for leaf in _leaves(part, f"{path}.{names}")] if inner else [path]


def check_schema(schema: st.StructType, options: WriteOptions) -> None:
    """Refuse schemas that cannot be written. Raises the same SchemaError and UnsupportedError as check_write."""
    names = [part.name for part in schema.fields]
    if missing_names := [name for name in options.partition_by if name not in names]:
        raise SchemaError(f"partitionBy names columns that the rows have not: {', '.join(missing_names)}")
    if names and len(options.partition_by) == len(names):
        raise SchemaError("partitionBy names all columns: files need one of their own")
    for name in options.partition_by:
        if not isinstance(schema[name].dataType, _PARTITION_TYPES):
            raise UnsupportedError(f"folders for values of {schema[name].dataType.simpleString()}", column=name)
    for part in schema.fields:
        if (type_ := _unwritable(part.dataType)) is not None:
            raise UnsupportedError(f"writing {type_.simpleString()} from Spark{_mend(type_)}", column=part.name)


def _unwritable(type_: st.DataType, is_column: bool = True) -> st.DataType | None:
    """Return the first part of a type that fastpq does not write. None if it can write the whole type."""
    if isinstance(type_, (GeometryType, GeographyType)):
        is_mixed = type_.srid in (GeometryType.MIXED_SRID, GeographyType.MIXED_SRID)      # a column in a file has one CRS
        return type_ if is_mixed or not is_column else None
    if isinstance(type_, st.CalendarIntervalType | st.YearMonthIntervalType):
        return type_
    inner: list[st.DataType] = []
    if isinstance(type_, st.StructType):
        inner = [part.dataType for part in type_.fields]
    elif isinstance(type_, st.ArrayType):
        inner = [type_.elementType]
    elif isinstance(type_, st.MapType):
        inner = [type_.keyType, type_.valueType]
    if not isinstance(type_, st.StructType) and any(isinstance(part, st.NullType) for part in inner):
        return type_        # PySpark has no Arrow type for it
    return next((unwritable_part for part in inner if (unwritable_part := _unwritable(part, False)) is not None), None)


def _mend(type_: st.DataType) -> str:
    """Return advice on how to write values that have an unwritable type."""
    match type_:
        case st.ArrayType() | st.MapType():
            castable_type = type_.simpleString().replace("void", "string")
            return f": void has no values; cast the column to a type with values, for example cast(... as {castable_type})"
        case st.YearMonthIntervalType():
            return ": PySpark has no Arrow type for it; write a number of months, for example extract(year from x) * 12 + ..."
    return ""
