"""Export of columns and tables as Arrow schemas, arrays and streams.

The format of an exported column is the one requested by the consumer, else the column's earlier Arrow format in
``column.arrow``, else the format of the column's own layout. The format of the own layout also serves values too large for the
other formats, and dictionaries with more entries than their indices can count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

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
from fastpq.arrow.export_layouts import with_layout
from fastpq.arrow.formats import VARIANT_METADATA, exported_metadata, extension_metadata, fixed_list_size, index_dtype
from fastpq.arrow.hints import stored_texts
from fastpq.arrow.restoring import restoring
from fastpq.common.extensions import registered
from fastpq.common.parallel import resolve_threads, run_parallel
from fastpq.errors import ParquetError, SchemaError
from fastpq.schema.nested_types import element_of
from fastpq.schema.types import Decimal, Type, Unknown

Item = TypeVar("Item")
Result = TypeVar("Result")

_INT32_MAX = 2**31 - 1
# Ends of decimal formats exported only on request: Polars misreads decimals of 32 and 64 bits as decimals of 128 bits.
NARROW_DECIMALS = (",32", ",64")
# Least values of a table whose columns are exported by several threads.
LEAST_PARALLEL = 1 << 22
# Most elements of an exported fixed-size list column, null lists included, as a multiple of the elements of its other lists;
# up to _MOST_FILLING squared elements are always allowed.
_MOST_FILLING = 1000
# Offsets by list format.
_LISTS = {"+l": np.int32, "+L": np.int64, "+vl": np.int32, "+vL": np.int64}


@dataclass(frozen=True, slots=True)
class Form:
    """The Arrow form of a column to be exported.

    Attributes:
        node: schema of the form.
        array: makes the form's array.
    """

    node: FieldNode
    array: Callable[[], ArrayNode]


def export_schema(data: Table | AnyColumn) -> Any:
    """The schema of a table (a struct) or of a column.

    Returns:
        A PyCapsule "arrow_schema".
    """
    if isinstance(data, Table):
        return schema_capsule(table_schema(data))
    return schema_capsule(_form("", data, None).node)


def export_array(column: AnyColumn, requested_schema: Any = None) -> tuple[Any, Any]:
    """A column as an Arrow array.

    Args:
        column: the column. Its memory is shared with the consumer where the layouts agree: of all types but booleans,
            exported as bits, and decimals of 4 or 8 bytes, exported as decimal128.
        requested_schema: a PyCapsule "arrow_schema" or None. Requests for layouts and for types without a Parquet type
            (``fastpq.arrow.restoring``) are met. Other casts are left to the consumer, as the PyCapsule interface allows.

    Returns:
        PyCapsules "arrow_schema" and "arrow_array".

    Raises:
        SchemaError: values and type of the column disagree, or the capsule was consumed already.
    """
    request = None if requested_schema is None else take_schema(requested_schema)
    form = _form("", column, request)
    return schema_capsule(form.node), array_capsule(form.array())


def export_stream(table: Table, requested_schema: Any = None) -> Any:
    """A table as an Arrow stream of one struct array; arguments and errors as in export_array.

    Returns:
        A PyCapsule "arrow_array_stream".

    Raises:
        SchemaError: also, ``requested_schema`` is no struct of as many fields as the table has columns.
    """
    request = None if requested_schema is None else take_schema(requested_schema)
    forms = _forms(table, request)
    return stream_capsule(_table_schema(forms, table.metadata), [_batch(forms, table.num_rows)])


def export_batches(tables: Iterator[Table], empty: Callable[[], Table], requested_schema: Any = None) -> Any:
    """Tables of equal columns as an Arrow stream of a struct array each; a Table is made when the consumer asks for it.

    Args:
        tables: the tables.
        empty: makes a table of the columns without rows, used if there is no table.
        requested_schema: as for ``export_stream``.

    Returns:
        A PyCapsule "arrow_array_stream". Errors of the tables, and tables of another Arrow schema than the first, are errors
        of the stream.

    Raises:
        SchemaError: as ``export_stream``, for the first table.
    """
    first = next(tables, None)
    start = empty() if first is None else first
    forms = _forms(start, None if requested_schema is None else take_schema(requested_schema))
    schema = _table_schema(forms, start.metadata)

    def batches() -> Iterator[ArrayNode]:
        if first is not None:
            yield _batch(forms, first.num_rows)
        for table in tables:
            more = _forms(table, schema)
            for form, wanted in zip(more, schema.children, strict=True):
                if form.node.format != wanted.format:
                    raise SchemaError(f"a batch of Arrow format {form.node.format!r} after {wanted.format!r}", column=wanted.name)
            yield _batch(more, table.num_rows)

    return stream_capsule(schema, batches())


def _batch(forms: list[Form], num_rows: int) -> ArrayNode:
    children = tuple(_each(lambda form: _named(form.array, form.node.name), forms, num_rows))
    for form, child in zip(forms, children, strict=True):
        if child.length != num_rows:
            raise SchemaError(f"a column of {child.length} values in a table of {num_rows} rows", column=form.node.name)
    return ArrayNode(num_rows, 0, (None,), children)


def _forms(table: Table, request: FieldNode | None) -> list[Form]:
    fields: list[FieldNode | None] = [None] * len(table.names)
    if request is not None:
        if request.format != "+s" or len(request.children) != len(fields):
            raise SchemaError(
                f"the requested Arrow schema (format {request.format!r}, {len(request.children)} fields) "
                f"is not that of a table of {len(fields)} columns"
            )
        fields = list(request.children)
    wanted = [(name, column, field) for (name, column), field in zip(table.items(), fields, strict=True)]
    return [*_each(lambda each: _named(_form, each[0], *each), wanted, table.num_rows)]


def _each(work: Callable[[Item], Result], items: Sequence[Item], num_rows: int) -> Sequence[Result]:
    """The result for each column of a table: texts are copied and decimals widened on all cores."""
    return run_parallel(work, items, resolve_threads(None) if num_rows * len(items) >= LEAST_PARALLEL else 1)


def table_schema(table: Table) -> FieldNode:
    """The Arrow schema of a table, a struct."""
    return _table_schema(_forms(table, None), table.metadata)


def _table_schema(forms: list[Form], metadata: Mapping[str, str]) -> FieldNode:
    return FieldNode("+s", flags=0, metadata=stored_texts(metadata) or None, children=tuple(form.node for form in forms))


def _named(export: Any, name: str, *arguments: Any) -> Any:
    try:
        return export(*arguments)
    except ParquetError as error:
        raise error.at(column=name) from None


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
    wanted = request.children if request is not None and len(request.children) == len(column.children) else ()
    fields = enumerate(zip(column.type.fields, column.children, strict=True))
    forms = [_form(field.name, child, wanted[number] if wanted else None) for number, (field, child) in fields]
    metadata = exported_metadata(column, "+s", VARIANT_METADATA if column.type.annotation == "VARIANT" else None)
    node = FieldNode("+s", name, flags, metadata, tuple(form.node for form in forms))

    def array() -> ArrayNode:
        buffers = (_validity(column, len(column)),)
        return ArrayNode(len(column), column.null_count, buffers, tuple(form.array() for form in forms))

    return Form(node, array)


def _list_form(name: str, flags: int, column: ListColumn, request: FieldNode | None) -> Form:
    wanted = request or column.arrow
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
    text = own if wanted is None else wanted.format
    if text.startswith("+w:") and (sized := _of_one_size(column, fixed_list_size(text))) is not None:
        elements = _form(element_name, sized, inner)
        node = FieldNode(text, name, flags, exported_metadata(column, text), (elements.node,))
        return Form(node, lambda: _list_node(column, None, elements))
    if text not in _LISTS or (_LISTS[text] is np.int32 and int(column.offsets[-1]) > _INT32_MAX):
        text = own
    elements = _form(element_name, column.elements, inner)
    node = FieldNode(text, name, flags, exported_metadata(column, text), (elements.node,))
    return Form(node, lambda: _list_node(column, _LISTS[text], elements, views=text.startswith("+v")))


def _of_one_size(column: ListColumn, size: int) -> AnyColumn | None:
    """Elements of a fixed-size list array: those of all lists, with some elements repeated under null lists.

    None where a list has another size, where all lists are null and hold nested values, or where null lists would take too many
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
    if not mask.any():      # there are no elements to repeat under null lists
        elements, make = column.elements, registered("column_of")
        if elements.is_nested or make is None:
            return None
        value = make(np.array([None], object), type=elements.type)
        value = value._with(validity=None, null_count=0, nullable=elements.nullable, arrow=elements.arrow)
        return cast(AnyColumn, value.take(np.zeros(size * len(column), np.int64)))
    starts = np.where(mask, column.offsets[:-1], column.offsets[:-1][mask][0]).astype(np.int64)
    return column.elements.take((starts[:, None] + np.arange(size)).reshape(-1))


def _leaf_form(name: str, flags: int, column: Column, request: FieldNode | None) -> Form:
    given, column = column, with_layout(column, request)
    if isinstance(column.values, DictionaryValues):
        wanted = request if request is not None and request.dictionary is not None else column.arrow
        index = _index_format(wanted, len(column.values.dictionary))
        entries = _leaf_form("", NULLABLE, column.values.dictionary, None)
        if column.values.is_ordered:
            flags |= ORDERED
        own = None if isinstance(given.values, DictionaryValues) else extension_metadata(given.type)
        metadata = exported_metadata(given, index, own, is_dictionary=True)
        node = FieldNode(index, name, flags, metadata, dictionary=replace(entries.node, metadata=None))
        return Form(node, lambda: _dictionary_node(column, index, entries))
    wanted = request or column.arrow
    text, values = _format(column), None
    if wanted is not None and wanted.dictionary is None and isinstance(column.values, np.ndarray):
        narrow = request is None and wanted.format.endswith(NARROW_DECIMALS)
        restore = None if narrow or wanted.format == text else restoring(column, wanted.format)
        values = None if restore is None else restore(column.values)
        text = text if values is None else wanted.format
    metadata = exported_metadata(given, text, extension_metadata(given.type))
    return Form(FieldNode(text, name, flags, metadata), lambda: _leaf_node(column, values))


def _index_format(wanted: FieldNode | None, entries: int) -> str:
    """The format of a dictionary's indices: the wanted one where it can count the entries, else int32."""
    if wanted is None or wanted.dictionary is None or entries - 1 > np.iinfo(index_dtype(wanted)).max:
        return "i"
    return wanted.format


def _with_required_key(entry: FieldNode) -> FieldNode:
    """The schema of a map's entries, with required keys: a file may declare keys optional."""
    key, value = entry.children
    return replace(entry, flags=0, children=(replace(key, flags=key.flags & ~NULLABLE), value))


def _without_null_keys(column: ListColumn, pairs: StructColumn) -> ListColumn:
    """A map column without null pairs and null keys: Arrow has neither, and a consumer may abort the process at one.

    Raises:
        SchemaError: a pair or a key of a map is null. Every key of the type UNKNOWN is null.
    """
    if not _null_keys(pairs):
        return column
    used = column.used_elements()
    assert isinstance(used, StructColumn)
    if _null_keys(used):
        raise SchemaError("a map with null keys, which Arrow does not have")
    return column._with(offsets=column.offsets - column.offsets[0], elements=used)


def _null_keys(pairs: StructColumn) -> int:
    """Number of null pairs and null keys."""
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
    """The array of a list column: offsets of a dtype, views (offsets and sizes), or a fixed-size list (dtype is None)."""
    validity = _validity(column, len(column))
    if dtype is None:
        return ArrayNode(len(column), column.null_count, (validity,), (elements.array(),))
    if int(column.offsets[-1]) > np.iinfo(dtype).max:      # Arrow has no large maps
        raise SchemaError(f"a map column of {column.offsets[-1]} pairs, more than Arrow's 32-bit offsets reach")
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


def _leaf_node(column: Column, restored: NDArray[Any] | None) -> ArrayNode:
    """The array of a column without dictionary; ``restored`` values, if any, take the place of the column's."""
    length, values = len(column), column.values
    if isinstance(column.type.logical, Unknown):
        return ArrayNode(length, length)
    validity = _validity(column, length)
    if restored is not None:
        return ArrayNode(length, column.null_count, (validity, _buffer(restored, restored.dtype, alignment=8)))
    if isinstance(values, BinaryOffsets):
        offsets = _buffer(values.offsets, np.dtype(np.int64 if values.offsets.dtype == np.int64 else np.int32))
        if int(offsets[-1]) > values.data.nbytes:
            raise SchemaError(f"offsets end at {offsets[-1]} in {values.data.nbytes} bytes of data")
        return ArrayNode(length, column.null_count, (validity, offsets, _buffer(values.data, np.dtype(np.uint8))))
    if isinstance(values, BinaryViews):
        return ArrayNode(length, column.null_count, (validity, *_view_buffers(values)))
    assert isinstance(values, np.ndarray)
    return ArrayNode(length, column.null_count, (validity, _fixed_values(column, values)))


def _validity(column: AnyColumn, length: int) -> NDArray[np.uint8] | None:
    if column.null_count == 0:
        return None
    if column.validity is None or column.validity.nbytes < (length + 7) // 8:
        raise SchemaError(f"{column.null_count} nulls among {length} values, and no validity bitmap of that length")
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
    """``array``, or a contiguous and aligned copy; consumers expect both.

    Raises:
        SchemaError: the array has another dtype.
    """
    if array.dtype != dtype:
        raise SchemaError(f"a column holds {array.dtype} where its type asks for {dtype}")
    array = np.ascontiguousarray(array)
    is_aligned = array.flags.aligned if alignment is None else array.ctypes.data % alignment == 0
    return array if is_aligned else array.copy()
