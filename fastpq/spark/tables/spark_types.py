"""Convert Parquet types to Spark types, and Arrow arrays to the exact Arrow types that Spark demands.

All columns are nullable, as in Spark's own reader, because another file may have nulls where the first has none. Unsigned
integers become the next wider type. FLOAT16 becomes float. FIXED_LEN_BYTE_ARRAY and UUID become binary. All kinds of text become
string.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as st
from pyspark.sql.pandas.types import is_variant as is_variant_struct

from fastpq.spark.core import (
    GEOARROW_WKB,
    AnyColumn,
    DataType,
    ListType,
    MapType,
    ParquetSchema,
    SchemaError,
    StructType,
    UnsupportedError,
    geospatial_metadata,
    pt,
    shape_of,
)
from fastpq.spark.versions import GeographyType, GeometryType, MissingType, TimeType, is_geography, is_geometry, to_arrow_schema

MAX_SPARK_PRECISION = 38
MAX_INT32_DIGITS, MAX_INT64_DIGITS = 9, 18      # for decimals that are stored in 4 and 8 bytes
_VARIANT = {"ARROW:extension:name": "arrow.parquet.variant", "ARROW:extension:metadata": ""}
_PHYSICAL = {
    pt.Type.BOOLEAN: st.BooleanType(),
    pt.Type.INT32: st.IntegerType(),
    pt.Type.INT64: st.LongType(),
    pt.Type.INT96: st.TimestampType(),
    pt.Type.FLOAT: st.FloatType(),
    pt.Type.DOUBLE: st.DoubleType(),
    pt.Type.BYTE_ARRAY: st.BinaryType(),
    pt.Type.FIXED_LEN_BYTE_ARRAY: st.BinaryType(),
}
_INTEGERS: dict[tuple[int, bool], st.DataType] = {
    (8, True): st.ByteType(), (16, True): st.ShortType(), (32, True): st.IntegerType(), (64, True): st.LongType(),
    (8, False): st.ShortType(), (16, False): st.IntegerType(), (32, False): st.LongType(), (64, False): st.DecimalType(20, 0),
}


def spark_schema(schema: ParquetSchema) -> st.StructType:
    """Return the Spark schema for a Parquet file's schema.

    Raises:
        UnsupportedError: Spark does not have a type: decimals with more than 38 digits, INTERVAL.
    """
    fields = []
    for node in schema.root.children:
        shape = shape_of(node, range(len(schema.columns)))
        try:
            fields.append(st.StructField(shape.name, spark_type(shape.type), True))
        except UnsupportedError as error:
            raise error.at(column=shape.name) from None
    return st.StructType(fields)


def spark_type(type_: DataType) -> st.DataType:
    """Return the Spark type for a column type. Raises the same errors as spark_schema."""
    if isinstance(type_, ListType):
        return st.ArrayType(spark_type(type_.element.type), True)
    if isinstance(type_, MapType):
        return st.MapType(spark_type(type_.key.type), spark_type(type_.value.type), True)
    if isinstance(type_, StructType):
        if type_.annotation == "VARIANT":
            return st.VariantType()
        return st.StructType([st.StructField(part.name, spark_type(part.type), True) for part in type_.fields])
    match type_.logical:
        case pt.Integer(width, signed):
            return _INTEGERS[width, signed]
        case pt.Decimal(precision, scale):
            if precision > MAX_SPARK_PRECISION:
                raise UnsupportedError(f"a decimal of {precision} digits: Spark has {MAX_SPARK_PRECISION}")
            return st.DecimalType(precision, scale)
        case pt.String() | pt.Enum() | pt.Json():
            return st.StringType()
        case pt.Date():
            return st.DateType()
        case pt.Timestamp(_, utc):
            return st.TimestampType() if utc else st.TimestampNTZType()
        case pt.Time():
            if issubclass(TimeType, MissingType):
                raise UnsupportedError("TIME columns: PySpark has a type for them from 4.1 on")
            return TimeType()
        case pt.Float16():
            return st.FloatType()
        case pt.Unknown():
            return st.NullType()
        case pt.Interval():
            raise UnsupportedError("INTERVAL columns: Spark has no type of months, days and milliseconds")
    return _PHYSICAL[type_.physical]


def merged_schema(schemas: list[st.StructType]) -> st.StructType:
    """Merge schemas into one that has all fields, in order of first appearance. If types differ, the wider one is taken.

    Raises:
        SchemaError: a field's types have no common wider type.
    """
    fields: dict[str, st.StructField] = {}
    for schema in schemas:
        for part in schema.fields:
            field = fields.setdefault(part.name, part)
            if field.dataType != part.dataType:
                wider = _merged_type(field.dataType, part.dataType, part.name)
                fields[part.name] = st.StructField(part.name, wider, True)
    return st.StructType(list(fields.values()))


def _merged_type(one: st.DataType, other: st.DataType, name: str) -> st.DataType:
    if isinstance(one, st.StructType) and isinstance(other, st.StructType):
        return merged_schema([one, other])
    if isinstance(one, st.ArrayType) and isinstance(other, st.ArrayType):
        return st.ArrayType(_merged_type(one.elementType, other.elementType, name), True)
    order: list[st.DataType] = [st.ByteType(), st.ShortType(), st.IntegerType(), st.LongType()]
    if one in order and other in order:
        return max(one, other, key=order.index)
    if {type(one), type(other)} == {st.FloatType, st.DoubleType}:
        return st.DoubleType()
    if one == other:
        return one
    raise SchemaError(f"files differ in its type: {one.simpleString()} and {other.simpleString()}", column=name)


def reader_schema(schema: st.StructType) -> pa.Schema:
    """Return the Arrow schema that Spark demands for the batches of a reader."""
    return to_arrow_schema(schema)


def is_spark_variant(type_: pa.DataType) -> bool:
    """Whether an Arrow type is Spark's struct for variants."""
    return bool(pa.types.is_struct(type_) and is_variant_struct(type_))


def geospatial_of(type_: pa.DataType) -> GeometryType | GeographyType | None:
    """Return the Spark type for an Arrow struct with WKB and SRID. None for any other Arrow type."""
    if not pa.types.is_struct(type_):
        return None
    kind = GeometryType if is_geometry(type_) else GeographyType if is_geography(type_) else None
    return None if kind is None else kind(int(type_.field("wkb").metadata[b"srid"]))


def stored_column(column: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    """Convert a column from Spark to its type in stored_schema.

    Raises:
        pyarrow.ArrowInvalid: values do not fit the type.
    """
    if pa.types.is_binary(type_) and geospatial_of(column.type) is not None:
        return pc.struct_field(column, "wkb")
    return column if column.type == type_ else column.cast(type_)


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """Return a file's Arrow schema for an Arrow schema from Spark.

    The types are the same as from Spark's own writer: TIME in microseconds, intervals as INT64, variants and geospatial values as
    Arrow extension types.
    """
    return pa.schema([_stored_field(part) for part in schema])


def _stored_field(part: pa.Field) -> pa.Field:
    if is_spark_variant(part.type):
        binary = [pa.field(name, pa.binary(), nullable=False) for name in ("metadata", "value")]
        return pa.field(part.name, pa.struct(binary), part.nullable, metadata=_VARIANT)
    if (geospatial := geospatial_of(part.type)) is not None:
        kind = pt.Geometry if isinstance(geospatial, GeometryType) else pt.Geography
        crs = re.sub(r".*\((.*)\)", r"\1", str(geospatial.jsonValue())).split(", ")[0]
        metadata = {"ARROW:extension:name": GEOARROW_WKB, "ARROW:extension:metadata": geospatial_metadata(kind(crs))}
        return pa.field(part.name, pa.binary(), part.nullable, metadata=metadata)
    return part.with_type(_stored_type(part.type)).remove_metadata()


def _stored_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_time64(type_):
        return pa.time64("us")
    if pa.types.is_duration(type_):
        return pa.int64()
    if pa.types.is_decimal128(type_):
        return small_decimals(type_)
    return _with_inner(type_, _stored_field)


def small_decimals(type_: pa.DataType) -> pa.DataType:
    """Return a type whose decimals have 4 or 8 bytes if their digits fit: INT32 or INT64, as from Spark's own writer."""
    if pa.types.is_decimal128(type_) and type_.precision <= MAX_INT64_DIGITS:
        kind = pa.decimal32 if type_.precision <= MAX_INT32_DIGITS else pa.decimal64
        return kind(type_.precision, type_.scale)
    return _with_inner(type_, lambda part: part.with_type(small_decimals(part.type)))


def _with_inner(type_: pa.DataType, change: Callable[[pa.Field], pa.Field]) -> pa.DataType:
    """Return a nested type with changed fields. Any other type stays as it is."""
    if pa.types.is_map(type_):
        return pa.map_(change(type_.key_field), change(type_.item_field))
    if pa.types.is_list(type_):
        return pa.list_(change(type_.value_field))
    if pa.types.is_struct(type_):
        return pa.struct([change(type_.field(number)) for number in range(type_.num_fields)])
    return type_


def as_arrow(column: AnyColumn) -> pa.Array:
    """Return a column as one Arrow array."""
    chunks = pa.chunked_array(column)
    return chunks.chunk(0) if chunks.num_chunks == 1 else chunks.combine_chunks()


def nulls_of(field: pa.Field, length: int) -> pa.Array:
    """Return a null column for a field that the file does not have.

    Raises:
        SchemaError: the requested schema declares the field NOT NULL.
    """
    if not field.nullable and length:
        raise SchemaError("the file has no such column, and the schema that was asked for says NOT NULL", column=field.name)
    return pa.nulls(length, field.type)


def conform_array(array: pa.Array, field: pa.Field) -> pa.Array:
    """Convert an array to the Arrow type that Spark demands. Memory is shared wherever the layouts agree.

    Args:
        array: a column's values.
        field: Arrow field that Spark demands.

    Raises:
        SchemaError: values do not fit, or a NOT NULL field has nulls.
    """
    if not field.nullable and array.null_count:
        raise SchemaError("nulls in a column that the schema which was asked for says is NOT NULL", column=field.name)
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage       # for UUID and JSON
    if array.type == field.type:
        return array
    if _is_bytes(array.type) and (geospatial := geospatial_of(field.type)) is not None:
        srids = pa.repeat(pa.scalar(geospatial.srid, pa.int32()), len(array))
        return pa.StructArray.from_arrays([srids, array.cast(pa.binary())], fields=list(field.type), mask=array.is_null())
    if pa.types.is_struct(field.type) and pa.types.is_struct(array.type):
        return _conform_struct(array, field)
    if pa.types.is_map(field.type) and pa.types.is_map(array.type):
        return _conform_list(array, field)
    if pa.types.is_list(field.type) and (pa.types.is_list(array.type) or pa.types.is_large_list(array.type)):
        return _conform_list(array, field)
    if not _castable(array.type, field.type):
        raise SchemaError(f"{array.type} values, where {field.type} was asked for", column=field.name)
    try:
        return array.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaError(f"{array.type} values do not fit {field.type}: {error}", column=field.name) from None


def _conform_struct(array: pa.Array, field: pa.Field) -> pa.Array:
    names = {array.type.field(number).name: number for number in range(array.type.num_fields)}
    nulls = array.is_null() if array.null_count else None
    children = []
    for part in field.type:
        number = names.get(part.name)
        if number is None:
            children.append(nulls_of(part, len(array)))
            continue
        child = array.field(number)
        if not part.nullable and child.null_count:
            own_nulls = pc.and_not(child.is_null(), nulls) if nulls is not None else child.is_null()
            if pc.any(own_nulls).as_py():
                raise SchemaError(f"nulls in the field {part.name}, which was asked for as NOT NULL", column=field.name)
            children.append(conform_array(child, part.with_nullable(True)))
        else:
            children.append(conform_array(child, part))
    return pa.StructArray.from_arrays(children, fields=list(field.type), mask=nulls)


def _conform_list(array: pa.Array, field: pa.Field) -> pa.Array:
    if pa.types.is_large_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    if array.offset:
        array = pa.concat_arrays([array])
    if pa.types.is_map(field.type):
        entries = pa.StructArray.from_arrays(
            [
                conform_array(array.keys, field.type.key_field),
                conform_array(array.items, field.type.item_field),
            ],
            fields=[field.type.key_field, field.type.item_field],
        )
        return pa.Array.from_buffers(field.type, len(array), array.buffers()[:2], array.null_count, children=[entries])
    values = conform_array(array.values, field.type.value_field)
    return pa.Array.from_buffers(field.type, len(array), array.buffers()[:2], array.null_count, children=[values])


def _castable(have: pa.DataType, target: pa.DataType) -> bool:
    """Whether a cast keeps the values' meaning. Arrow's cast would also parse text and turn dates into numbers."""
    kinds = pa.types
    if kinds.is_null(have):
        return True
    if kinds.is_integer(have):
        wider = (kinds.is_integer, kinds.is_floating, kinds.is_decimal, kinds.is_duration, kinds.is_date32)
        return any(kind(target) for kind in wider)
    if kinds.is_timestamp(have):
        return bool(kinds.is_timestamp(target))     # instants and clock times have the same number, as in Spark's own source
    if kinds.is_date(have) and kinds.is_timestamp(target):
        return target.tz is None
    for same in (kinds.is_floating, kinds.is_decimal, kinds.is_time, kinds.is_date):
        if same(have):
            return bool(same(target))
    if _is_text(have):
        return bool(_is_text(target) or _is_bytes(target))
    return bool(_is_bytes(have) and (_is_bytes(target) or kinds.is_string(target)))


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_))


def _is_bytes(type_: pa.DataType) -> bool:
    kinds = pa.types
    return bool(
        kinds.is_binary(type_) or kinds.is_large_binary(type_) or kinds.is_binary_view(type_) or kinds.is_fixed_size_binary(type_)
    )


__all__ = [
    "conform_array",
    "merged_schema",
    "nulls_of",
    "reader_schema",
    "spark_schema",
    "spark_type",
    "stored_column",
    "stored_schema",
]
