"""Export of columns and tables as Arrow schemas, arrays and streams.

A column is exported in the format that the consumer requested, else in the format in ``column.arrow``, else in its own layout's
format. Its own layout's format is also used if values are too large for the other format, or if a dictionary has more entries
than the other format's indices can count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from fastpq.arrays.flat_column import fixed_values
from fastpq.arrays.nodes import KEYS_SORTED, NULLABLE, ORDERED, ArrayNode, FieldNode
from fastpq.arrays.table import (
    AnyColumn,
    BinaryOffsets,
    BinaryViews,
    Column,
    DictionaryValues,
    ListColumn,
    StructColumn,
    Table,
)
from fastpq.arrow.capsules_in import take_schema
from fastpq.arrow.capsules_out import array_capsule, schema_capsule, stream_capsule
from fastpq.arrow.casts import widen_decimals
from fastpq.arrow.formats import VARIANT_METADATA, exported_metadata, extension_metadata, fixed_size, index_dtype
from fastpq.arrow.hints import UNION_FORMAT, stored_texts
from fastpq.arrow.plain_forms import PlainForm, PlainForms
from fastpq.arrow.restoring import dictionary_of_numbers, restoring, union_codes, union_format, with_zone_of
from fastpq.common.extensions import registered
from fastpq.common.parallel import resolve_threads, run_parallel
from fastpq.common.stack import too_deep
from fastpq.errors import ParquetError, SchemaError
from fastpq.schema.nested_types import element_of
from fastpq.schema.types import Decimal, Type, Unknown

Item = TypeVar("Item")
Result = TypeVar("Result")

_INT32_MAX = 2**31 - 1
# Suffixes of decimal formats that are exported only on request, because Polars reads 32-bit and 64-bit decimals as 128-bit ones.
NARROW_DECIMALS = (",32", ",64")
# A table with at least this many values is exported by several threads.
LEAST_PARALLEL = 1 << 22
# Limit on the elements in an exported fixed-size list column, where null lists have elements too. It is a multiple of the element
# count in valid lists. Up to the square of this number is always allowed.
_MOST_FILLING = 1000
_BINARY_LAYOUTS = frozenset(("u", "z", "U", "Z", "vu", "vz"))
# Offset dtype, by list format.
_LISTS = {"+l": np.int32, "+L": np.int64, "+vl": np.int32, "+vL": np.int64}


@dataclass(frozen=True, slots=True)
class Form:
    """The Arrow form in which a column is exported.

    Attributes:
        node: the Arrow schema.
        array: a function that makes the Arrow array.
    """

    node: FieldNode
    array: Callable[[], ArrayNode]


AnyForm: TypeAlias = Form | PlainForm


def export_schema(data: Table | AnyColumn) -> Any:
    """Return a column's Arrow schema, or a table's Arrow schema, which is a struct.

    Returns:
        A PyCapsule "arrow_schema".
    """
    if isinstance(data, Table):
        return schema_capsule(table_schema(data))
    return schema_capsule(_guarded(_form, "", data, None).node)


def export_array(column: AnyColumn, requested_schema: Any = None) -> tuple[Any, Any]:
    """Return a column as an Arrow array.

    Args:
        column: the column. The consumer shares its memory where the layouts agree. This is true for all types except booleans,
            which are exported as bits, and decimals of 4 or 8 bytes, which are exported as decimal128.
        requested_schema: a PyCapsule "arrow_schema" or None. It may request layouts, and types that Parquet does not have
            (``fastpq.arrow.restoring``). The consumer must do other casts itself, as the PyCapsule interface allows.

    Returns:
        PyCapsules "arrow_schema" and "arrow_array".

    Raises:
        SchemaError: the column's values do not fit its type, or the capsule was consumed already.
    """
    request = None if requested_schema is None else take_schema(requested_schema)
    form = _guarded(_form, "", column, request)
    return schema_capsule(form.node), array_capsule(_guarded(form.array))


def export_stream(table: Table, requested_schema: Any = None) -> Any:
    """Return a table as an Arrow stream of one struct array. Arguments and errors are as in export_array.

    Returns:
        A PyCapsule "arrow_array_stream".

    Raises:
        SchemaError: ``requested_schema`` is not a struct with one field for each column, or as in export_array.
    """
    request = None if requested_schema is None else take_schema(requested_schema)
    forms = _forms(table, request)
    return stream_capsule(_table_schema(forms, table.metadata), [_batch(forms, table.num_rows)])


def export_batches(tables: Iterator[Table], empty: Callable[[], Table], requested_schema: Any = None) -> Any:
    """Return tables with equal columns as an Arrow stream, which asks for each table when the consumer needs it.

    Args:
        tables: the tables. Each becomes one struct array.
        empty: a function that makes a table with these columns and no rows. It is used if there is no table.
        requested_schema: as for ``export_stream``.

    Returns:
        A PyCapsule "arrow_array_stream". If a table fails, or has another Arrow schema than the first, the stream fails.

    Raises:
        SchemaError: as in ``export_stream``, for the first table.
    """
    first = next(tables, None)
    start = empty() if first is None else first
    forms = _forms(start, None if requested_schema is None else take_schema(requested_schema))
    schema = _table_schema(forms, start.metadata)

    def batches() -> Iterator[ArrayNode]:
        if first is not None:
            yield _batch(forms, first.num_rows)
        for table in tables:
            next_forms = _forms(table, schema)
            for form, field in zip(next_forms, schema.children, strict=True):
                if form.node.format != field.format:
                    message = f"a batch has the Arrow format {form.node.format!r}, but the first one has {field.format!r}"
                    raise SchemaError(message, column=field.name)
            yield _batch(next_forms, table.num_rows)

    return stream_capsule(schema, batches())


def _batch(forms: list[AnyForm], num_rows: int) -> ArrayNode:
    def array(form: AnyForm) -> ArrayNode:
        if isinstance(form, PlainForm):
            return form.array_node
        node: ArrayNode = _named(form.array, form.node.name)
        return node

    children = tuple(_each(array, forms, num_rows))
    for form, child in zip(forms, children, strict=True):
        if child.length != num_rows:
            raise SchemaError(f"a column has {child.length} values, but the table has {num_rows} rows", column=form.node.name)
    return ArrayNode(num_rows, 0, (None,), children)


def _forms(table: Table, request: FieldNode | None) -> list[AnyForm]:
    fields: list[FieldNode | None] = [None] * len(table.names)
    if request is not None:
        if request.format != "+s" or len(request.children) != len(fields):
            raise SchemaError(
                f"the requested Arrow schema (format {request.format!r}, {len(request.children)} fields) "
                f"is not that of a table of {len(fields)} columns"
            )
        fields = list(request.children)
    plain_forms = PlainForms()

    def form(each: tuple[str, AnyColumn, FieldNode | None]) -> AnyForm:
        name, column, field = each
        plain = plain_forms.form(name, column) if field is None else None
        if plain is not None:
            return plain
        other: Form = _named(_form, name, *each)
        return other

    return [*_each(form, [*zip(table.names, table.columns, fields, strict=True)], table.num_rows)]


def _each(work: Callable[[Item], Result], items: Sequence[Item], num_rows: int) -> Sequence[Result]:
    """Return the result for each column in a table. Large tables use all cores to copy texts and widen decimals."""
    return run_parallel(work, items, resolve_threads(None) if num_rows * len(items) >= LEAST_PARALLEL else 1)


def table_schema(table: Table) -> FieldNode:
    """Return a table's Arrow schema, which is a struct."""
    return _table_schema(_forms(table, None), table.metadata)


def _table_schema(forms: list[AnyForm], metadata: Mapping[str, str]) -> FieldNode:
    return FieldNode("+s", flags=0, metadata=stored_texts(metadata) or None, children=tuple(form.node for form in forms))


def _named(export: Any, name: str, *arguments: Any) -> Any:
    try:
        return _guarded(export, *arguments)
    except ParquetError as error:
        raise error.at(column=name) from None


def _guarded(export: Callable[..., Result], *arguments: Any) -> Result:
    """Return the result of a function. Raise LimitError if a type is nested too deep for the stack."""
    try:
        return export(*arguments)
    except RecursionError:
        raise too_deep() from None


# ---- forms


def _form(name: str, column: AnyColumn, request: FieldNode | None) -> Form:
    flags = NULLABLE if column.nullable or column.null_count else 0
    match column:
        case StructColumn():
            return _struct_form(name, flags, column, request)
        case ListColumn():
            return _list_form(name, flags, column, request)
    return _leaf_form(name, flags, column, request)


def _struct_form(name: str, flags: int, column: StructColumn, request: FieldNode | None) -> Form:
    union = union_format(column)
    if union is not None and request is not None and request.format == union:
        return _union_form(name, flags, column, request, union)
    requests = request.children if request is not None and len(request.children) == len(column.children) else ()
    pairs = zip(column.type.fields, column.children, strict=True)
    forms: list[AnyForm]
    if requests:
        forms = [_form(field.name, child, each) for (field, child), each in zip(pairs, requests, strict=True)]
    else:
        plain_forms = PlainForms()
        forms = [plain_forms.form(field.name, child) or _form(field.name, child, None) for field, child in pairs]
    metadata = exported_metadata(column, "+s", VARIANT_METADATA if column.type.annotation == "VARIANT" else None)
    node = FieldNode("+s", name, flags, metadata, tuple(form.node for form in forms))

    def array() -> ArrayNode:
        buffers = (_validity(column, len(column)),)
        return ArrayNode(len(column), column.null_count, buffers, tuple(form.array() for form in forms))

    return Form(node, array)


def _union_form(name: str, flags: int, column: StructColumn, request: FieldNode, text: str) -> Form:
    """Return the form of a union, from the struct that holds its type codes and its members.

    Unions are exported only on request, because few consumers can read them: Polars has none, and DuckDB has fixed type codes.
    """
    codes, members = fixed_values(cast(Column, column.children[0])).astype(np.int8), [*column.children[1:]]
    buffers: tuple[NDArray[Any], ...] = (codes,)
    if text.startswith("+ud"):
        places = np.zeros(len(codes), np.int32)
        for number, code in enumerate(union_codes(text)):
            rows = np.flatnonzero(codes == code)
            places[rows] = np.arange(len(rows))
            members[number] = members[number].take(rows)
        buffers = (codes, places)
    requests = request.children if len(request.children) == len(members) else [None] * len(members)
    fields = zip(column.type.fields[1:], members, requests, strict=True)
    forms = [_form(field.name, member, each) for field, member, each in fields]
    metadata = {key: value for key, value in (exported_metadata(column, "+s") or {}).items() if key != UNION_FORMAT}
    node = FieldNode(text, name, flags, metadata or None, tuple(form.node for form in forms))
    return Form(node, lambda: ArrayNode(len(column), 0, buffers, tuple(form.array() for form in forms)))


def _list_form(name: str, flags: int, column: ListColumn, request: FieldNode | None) -> Form:
    field = request or column.arrow
    inner = request.children[0] if request is not None and len(request.children) == 1 else None
    element_name = element_of(column.type).name if column.elements.arrow is None else column.elements.arrow.name
    if column.pairs is not None:
        column = _without_null_keys(column, column.pairs)
        elements = _form(element_name, column.elements, inner)
        flags |= 0 if column.arrow is None else column.arrow.flags & KEYS_SORTED
        children = (_with_required_key(elements.node),)
        node = FieldNode("+m", name, flags, exported_metadata(column, "+m"), children)
        return Form(node, lambda: _list_node(column, np.int32, elements))
    own = "+L" if column.offsets.dtype == np.int64 else "+l"
    text = own if field is None else field.format
    if text.startswith("+w:") and (sized_elements := _of_one_size(column, fixed_size(text))) is not None:
        elements = _form(element_name, sized_elements, inner)
        node = FieldNode(text, name, flags, exported_metadata(column, text), (elements.node,))
        return Form(node, lambda: _list_node(column, None, elements))
    if text not in _LISTS or (_LISTS[text] is np.int32 and int(column.offsets[-1]) > _INT32_MAX):
        text = own
    elements = _form(element_name, column.elements, inner)
    node = FieldNode(text, name, flags, exported_metadata(column, text), (elements.node,))
    return Form(node, lambda: _list_node(column, _LISTS[text], elements, views=text.startswith("+v")))


def _of_one_size(column: ListColumn, size: int) -> AnyColumn | None:
    """Return the elements for a fixed-size list array: every list's elements, and arbitrary elements for null lists.

    Returns:
        None if a list has another size, if all lists are null and have nested elements, or if null lists would need too many
        elements.
    """
    lengths = np.diff(column.offsets)
    mask = column.validity_mask()
    if bool((lengths[mask] != size).any()):
        return None
    if bool((lengths == size).all()):
        return column.used_elements()
    if size * len(column) > _MOST_FILLING * max(int(lengths[mask].sum()), _MOST_FILLING):
        return None
    if not mask.any():      # there are no elements that null lists could repeat
        elements, make = column.elements, registered("column_of")
        if elements.is_nested or make is None:
            return None
        value = make(np.array([None], object), type=elements.type)
        value = value._with(validity=None, null_count=0, nullable=elements.nullable, arrow=elements.arrow)
        return cast(AnyColumn, value.take(np.zeros(size * len(column), np.int64)))
    starts = np.where(mask, column.offsets[:-1], column.offsets[:-1][mask][0]).astype(np.int64)
    return column.elements.take((starts[:, None] + np.arange(size)).reshape(-1))


def _leaf_form(name: str, flags: int, column: Column, request: FieldNode | None) -> Form:
    original, column = column, _with_layout(column, request)
    if isinstance(column.values, DictionaryValues):
        field = request if request is not None and request.dictionary is not None else column.arrow
        index = _index_format(field, len(column.values.dictionary))
        entries = _leaf_form("", NULLABLE, column.values.dictionary, None)
        if column.values.is_ordered:
            flags |= ORDERED
        metadata = exported_metadata(original, index, is_dictionary=True)      # no own type of a column may be a dictionary
        node = FieldNode(index, name, flags, metadata, dictionary=replace(entries.node, metadata=None))
        return Form(node, lambda: _dictionary_node(column, index, entries))
    field = request or column.arrow
    text, values = _format(column), None
    if field is not None and field.dictionary is None and isinstance(column.values, np.ndarray):
        is_narrow = request is None and field.format.endswith(NARROW_DECIMALS)
        restore = None if is_narrow or field.format == text else restoring(column, field.format)
        values = None if restore is None else restore(column.values)
        if values is not None:
            text = field.format
        elif request is None:
            text = with_zone_of(text, field.format)
    metadata = exported_metadata(original, text, extension_metadata(original.type))
    return Form(FieldNode(text, name, flags, metadata), lambda: _leaf_node(column, values))


def _index_format(field: FieldNode | None, entries: int) -> str:
    """Return the dictionary index format: the field's format if it can count the entries, else int32."""
    if field is None or field.dictionary is None or entries - 1 > np.iinfo(index_dtype(field)).max:
        return "i"
    return field.format


def _with_required_key(entry: FieldNode) -> FieldNode:
    """Return the schema of map entries, with required keys. A file may declare the keys optional."""
    key, value = entry.children
    return replace(entry, flags=0, children=(replace(key, flags=key.flags & ~NULLABLE), value))


def _without_null_keys(column: ListColumn, pairs: StructColumn) -> ListColumn:
    """Return a map column that has no null pairs and no null keys.

    Arrow has neither, and a consumer may abort the process if it meets one.

    Raises:
        SchemaError: a map has a null pair or a null key. Keys whose type is UNKNOWN are always null.
    """
    if not _null_keys(pairs):
        return column
    used_pairs = column.used_elements()
    assert isinstance(used_pairs, StructColumn)
    if _null_keys(used_pairs):
        raise SchemaError("a map has null keys, which Arrow does not allow")
    return column._with(offsets=column.offsets - column.offsets[0], elements=used_pairs)


def _null_keys(pairs: StructColumn) -> int:
    """Return the number of null pairs and null keys."""
    key = pairs.children[0]
    is_unknown = isinstance(key, Column) and isinstance(key.type.logical, Unknown)
    return pairs.null_count + (len(key) if is_unknown else key.null_count)


def _format(column: Column) -> str:
    text = column.type.arrow_format
    if isinstance(column.values, BinaryOffsets) and text in ("vu", "vz"):
        kind = text[-1]
        return kind.upper() if column.values.offsets.dtype == np.int64 else kind
    return text


# ---- arrays


def _list_node(column: ListColumn, dtype: Any, elements: Form, *, views: bool = False) -> ArrayNode:
    """Return a list column's array. Lists have offsets with a dtype, views (offsets and sizes), or a fixed size (dtype None)."""
    validity = _validity(column, len(column))
    if dtype is None:
        return ArrayNode(len(column), column.null_count, (validity,), (elements.array(),))
    if int(column.offsets[-1]) > np.iinfo(dtype).max:      # Arrow has no maps with 64-bit offsets
        raise SchemaError(f"a map column has {column.offsets[-1]} pairs, too many for the 32-bit offsets of Arrow's maps")
    offsets = _buffer(column.offsets.astype(dtype, copy=False), np.dtype(dtype))
    buffers = (validity, *((offsets[:-1], np.diff(offsets)) if views else (offsets,)))
    return ArrayNode(len(column), column.null_count, buffers, (elements.array(),))


def _dictionary_node(column: Column, index: str, entries: Form) -> ArrayNode:
    values = column.values
    assert isinstance(values, DictionaryValues)
    dtype = index_dtype(FieldNode(index))
    codes = _buffer(values.codes, np.dtype(np.int32)).astype(dtype, copy=False)
    buffers = (_validity(column, len(column)), codes)
    return ArrayNode(len(column), column.null_count, buffers, dictionary=entries.array())


def _leaf_node(column: Column, restored_values: NDArray[Any] | None) -> ArrayNode:
    """Return the array for a column without a dictionary. ``restored_values`` replace the column's values."""
    length, values = len(column), column.values
    if isinstance(column.type.logical, Unknown):
        return ArrayNode(length, length)
    validity = _validity(column, length)
    if restored_values is not None:
        return ArrayNode(length, column.null_count, (validity, _buffer(restored_values, restored_values.dtype, alignment=8)))
    if isinstance(values, BinaryOffsets):
        offsets = _buffer(values.offsets, np.dtype(np.int64 if values.offsets.dtype == np.int64 else np.int32))
        if int(offsets[-1]) > values.data.nbytes:
            raise SchemaError(f"the offsets end at {offsets[-1]}, but there are {values.data.nbytes} bytes of data")
        return ArrayNode(length, column.null_count, (validity, offsets, _buffer(values.data, np.dtype(np.uint8))))
    if isinstance(values, BinaryViews):
        return ArrayNode(length, column.null_count, (validity, *_view_buffers(values)))
    assert isinstance(values, np.ndarray)
    return ArrayNode(length, column.null_count, (validity, _fixed_values(column, values)))


def _validity(column: AnyColumn, length: int) -> NDArray[np.uint8] | None:
    if column.null_count == 0:
        return None
    if column.validity is None or column.validity.nbytes < (length + 7) // 8:
        raise SchemaError(f"there is no validity bitmap of {length} bits for {column.null_count} nulls")
    return _buffer(column.validity, np.dtype(np.uint8))


def _view_buffers(values: BinaryViews) -> list[NDArray[Any]]:
    buffers = [_buffer(buffer, np.dtype(np.uint8)) for buffer in values.buffers]
    sizes = np.array([buffer.nbytes for buffer in buffers], dtype=np.int64)
    return [_buffer(values.views, np.dtype("V16"), alignment=8), *buffers, sizes]


def _fixed_values(column: Column, values: NDArray[Any]) -> NDArray[Any]:
    dtype = column.type.dtype
    assert dtype is not None
    if isinstance(column.type.logical, Decimal):
        if column.type.physical in (Type.INT32, Type.INT64):
            return widen_decimals(_buffer(values, dtype))
        return _buffer(values, dtype, alignment=16)
    if dtype == np.bool_:
        return np.packbits(_buffer(values, dtype), bitorder="little")
    return _buffer(values, dtype)


def _buffer(array: NDArray[Any], dtype: np.dtype[Any], alignment: int | None = None) -> NDArray[Any]:
    """Return the array, or a copy that is contiguous and aligned, as consumers expect it.

    Raises:
        SchemaError: the array has another dtype.
    """
    if array.dtype != dtype:
        raise SchemaError(f"a column has values of the dtype {array.dtype}, but its type needs {dtype}")
    array = np.ascontiguousarray(array)
    is_aligned = array.flags.aligned if alignment is None else array.ctypes.data % alignment == 0
    return array if is_aligned else array.copy()


def _with_layout(column: Column, request: FieldNode | None) -> Column:
    """Return a column in the requested layout.

    Without a request, offsets and dictionaries stay as they are, and other values get the layout of their Arrow field.
    """
    field = request
    if request is None and not isinstance(column.values, BinaryOffsets | DictionaryValues):
        field = column.arrow
    if field is not None and field.dictionary is not None and not isinstance(column.values, DictionaryValues):
        column = _as_dictionary(column, field)
    elif field is not None and column.type.arrow_format in ("vu", "vz"):
        column = _with_binary_layout(column, field.format)
    if isinstance(column.values, DictionaryValues):
        # All consumers accept a dictionary whose strings have offsets, but few accept one with views. A dictionary is small,
        # so it is converted.
        dictionary = column.values.dictionary
        if dictionary.type.is_variable:
            own_field = field if field is not None and field.dictionary is not None else column.arrow
            text = "u" if own_field is None or own_field.dictionary is None else own_field.dictionary.format
            entries = _with_binary_layout(dictionary, text if text in _BINARY_LAYOUTS else "u")
            column = column._with(values=DictionaryValues(column.values.codes, entries, column.values.is_ordered))
    return column


def _as_dictionary(column: Column, field: FieldNode) -> Column:
    if column.type.is_variable:
        return column.as_dictionary()
    values = column.values
    if not isinstance(values, np.ndarray) or values.dtype.itemsize not in (1, 2, 4, 8):
        return column
    coded_column = dictionary_of_numbers(column, np.iinfo(index_dtype(field)).max)
    return column if coded_column is None else coded_column


def _with_binary_layout(column: Column, text: str) -> Column:
    """Return a column in a format's layout. A format for other types than strings and binary values changes nothing."""
    if text in ("vu", "vz"):
        return column if isinstance(column.values, BinaryViews) else column.as_views()
    return _with_offsets(column, wide=text in "UZ") if text in _BINARY_LAYOUTS else column


def _with_offsets(column: Column, *, wide: bool) -> Column:
    """Return a column with int64 offsets (``wide``), or with int32 offsets unless its data is too large for them."""
    if not isinstance(column.values, BinaryOffsets):
        column = column.as_offsets(wide=True) if wide else column.as_offsets()
    values = column.values
    assert isinstance(values, BinaryOffsets)
    if not wide and int(values.offsets[-1]) > _INT32_MAX:
        return column
    offsets = values.offsets.astype(np.int64 if wide else np.int32, copy=False)
    return column._with(values=BinaryOffsets(offsets, values.data))
