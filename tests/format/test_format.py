"""The compact protocol and the tables of parquet.thrift: against bytes made by hand and footers that others wrote."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import re
import struct
import tracemalloc
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastpq import format as fmt
from fastpq._kernel_calls import parse_page_header
from fastpq.errors import FormatError
from fastpq.format import parquet
from fastpq.format.page_header import PAGE_TYPES
from fastpq.format.slots import place_of
from fastpq.format.struct import Struct, ThriftField, Union, WireKind


def footer_of(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    stored = sink.getvalue()
    return stored[-8 - int.from_bytes(stored[-8:-4], "little") : -8]


FOOTER = footer_of(
    pa.table({"a": [1, None, 3], "b": ["x", "y", None], "c": [1.5, 2.5, 3.5], "d": [[1], [], None]}),
    row_group_size=2,
    write_page_index=True,
    sorting_columns=[pq.SortingColumn(0)],
)


def structs() -> list[type[Struct]]:
    kinds = [kind for kind in vars(parquet).values() if isinstance(kind, type) and issubclass(kind, Struct)]
    return [kind for kind in kinds if kind not in (Struct, Union)]


def values(kind: WireKind, argument: Any) -> st.SearchStrategy[Any]:
    match kind:
        case WireKind.BOOL:
            return st.booleans()
        case WireKind.I8 | WireKind.I16 | WireKind.I32 | WireKind.I64:
            bits = {WireKind.I8: 7, WireKind.I16: 15, WireKind.I32: 31, WireKind.I64: 63}[kind]
            return st.integers(-(2**bits), 2**bits - 1)
        case WireKind.DOUBLE:
            return st.floats(allow_nan=False)
        case WireKind.BINARY:
            return st.binary(max_size=20)
        case WireKind.STRING:
            return st.text(max_size=20)
        case WireKind.ENUM:
            return st.sampled_from(list(argument)) | st.integers(1_000, 2_000)
        case WireKind.LIST:
            return st.lists(values(argument.kind, argument.argument), max_size=18)
    return st.deferred(lambda: of_struct(argument))


def of_struct(cls: type[Struct]) -> st.SearchStrategy[Struct]:
    def strategy(field: ThriftField) -> st.SearchStrategy[Any]:
        return values(field.type.kind, field.type.argument)

    def member(name: str, value: Any) -> Any:
        return cls(**{name: value})

    if issubclass(cls, Union):
        return st.one_of([strategy(field).map(partial(member, name)) for name, field in cls.ORDERED])
    required = {name: strategy(field) for name, field in cls.ORDERED if field.required}
    optional = {name: st.none() | strategy(field) for name, field in cls.ORDERED if not field.required}
    return st.builds(lambda given: cls(**given), st.fixed_dictionaries(required | optional))


@pytest.mark.parametrize("cls", structs(), ids=lambda cls: cls.__name__)
def test_every_struct_survives(cls: type[Struct]) -> None:
    @settings(max_examples=15)
    @given(of_struct(cls))
    def check(value: Struct) -> None:
        encoded = fmt.encode(value)
        assert fmt.decode(cls, encoded + b"behind") == (value, len(encoded))

    check()


def test_a_foreign_footer_is_encoded_to_its_own_bytes() -> None:
    footer, size = fmt.decode(fmt.FileMetaData, FOOTER)
    assert size == len(FOOTER)
    assert fmt.encode(footer) == FOOTER
    assert footer.num_rows == 3
    assert [element.name for element in footer.schema][:3] == ["schema", "a", "b"]
    assert footer.row_groups[0].sorting_columns == [fmt.SortingColumn(column_idx=0, descending=False, nulls_first=False)]


def test_numbers_by_hand() -> None:
    box = b"".join(b"\x17" + struct.pack("<d", number) for number in (1.5, -2.5, 0.0, 1e300)) + b"\x00"
    decoded, size = fmt.decode(fmt.BoundingBox, box)
    assert (decoded.xmin, decoded.xmax, decoded.ymin, decoded.ymax) == (1.5, -2.5, 0.0, 1e300)
    assert size == len(box) == 37
    assert fmt.encode(decoded) == box
    integer, _ = fmt.decode(fmt.IntType, b"\x13\xf8\x11\x00")
    assert (integer.bitWidth, integer.isSigned) == (-8, True)
    index = fmt.ColumnIndex(null_pages=[True, False], min_values=[], max_values=[], boundary_order=fmt.BoundaryOrder.ASCENDING)
    assert fmt.encode(index) == b"\x19\x21\x01\x02" + b"\x19\x08" * 2 + b"\x15\x02\x00"
    assert fmt.decode(fmt.ColumnIndex, b"\x19\x22\x01\x00" + b"\x19\x08" * 2 + b"\x15\x02\x00")[0] == index


def test_what_is_unknown_survives() -> None:
    known = fmt.encode(fmt.KeyValue(key="k", value="v"))
    unknown = known[:-1] + b"\x05\xd0\x0f\x0e" + b"\x1c\x15\x02\x00" + b"\x00"     # field 1000 after a jump, then a struct
    decoded, _ = fmt.decode(fmt.KeyValue, unknown)
    assert (decoded.key, decoded.value, len(decoded.unknown_fields)) == ("k", "v", 2)
    assert fmt.encode(decoded) == unknown
    union, _ = fmt.decode(fmt.LogicalType, b"\x0c\xc8\x01\x00\x00")
    assert union.unknown_fields
    assert all(getattr(union, name) is None for name, _ in union.ORDERED)
    assert fmt.encode(union) == b"\x0c\xc8\x01\x00\x00"
    assert fmt.decode(fmt.PageEncodingStats, b"\x15\x00\x15\xc8\x01\x15\x02\x00")[0].encoding == 100


def test_a_field_of_another_type_is_of_another_version() -> None:
    decoded, _ = fmt.decode(fmt.KeyValue, b"\x18\x01k\x15\x02\x00")
    assert decoded.value is None
    assert fmt.encode(decoded) == b"\x18\x01k\x15\x02\x00"


@pytest.mark.parametrize(
    ("cls", "data"),
    [
        (fmt.KeyValue, b""),
        (fmt.KeyValue, b"\x18\x05ab"),
        (fmt.KeyValue, b"\x00"),
        (fmt.KeyValue, b"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        (fmt.SizeStatistics, b"\x29\xf6\xff\xff\xff\xff\x0f"),
        (fmt.SchemaElement, b"\x15\xff\xff\xff\xff\x7f\x48\x00\x00"),
        (fmt.LogicalType, b"\x00"),
        (fmt.LogicalType, b"\x1c\x00\x1c\x00\x00"),
        (fmt.KeyValue, b"\x1e\x00"),
        (fmt.KeyValue, b"\x18\x01k" + b"\x2c\x1c" + b"\x1c" * 200),
        (fmt.SizeStatistics, b"\x29\x18\x00"),
    ],
    ids=[
        "nothing", "string cut", "no key", "varint", "huge list", "i32 range", "no member", "two members", "wire type",
        "nesting", "element type",
    ],
)
def test_bad_bytes(cls: type[Struct], data: bytes) -> None:
    with pytest.raises(FormatError):
        fmt.decode(cls, data)


@given(st.data())
@settings(max_examples=300)
def test_mutated_footers_decode_or_raise(data: st.DataObject) -> None:
    footer = bytearray(FOOTER)
    for _ in range(data.draw(st.integers(1, 5))):
        footer[data.draw(st.integers(0, len(footer) - 1))] = data.draw(st.integers(0, 255))
    try:
        decoded, _ = fmt.decode(fmt.FileMetaData, footer[: data.draw(st.integers(0, len(footer)))])
    except FormatError:
        return
    assert fmt.decode(fmt.FileMetaData, fmt.encode(decoded))[0] == decoded


@pytest.mark.parametrize("value", [fmt.KeyValue(value="v"), fmt.LogicalType(), fmt.IntType(bitWidth=300, isSigned=True)])
def test_what_cannot_be_encoded(value: Struct) -> None:
    with pytest.raises(ValueError, match=r"has no key|0 members|300 does not fit 8 bits"):
        fmt.encode(value)


PAGE_HEADERS = [
    fmt.PageHeader(
        type=fmt.PageType.DATA_PAGE,
        uncompressed_page_size=1_000,
        compressed_page_size=70_000,
        crc=-5,
        data_page_header=fmt.DataPageHeader(
            num_values=12,
            encoding=fmt.Encoding.RLE_DICTIONARY,
            definition_level_encoding=fmt.Encoding.RLE,
            repetition_level_encoding=fmt.Encoding.BIT_PACKED,
            statistics=fmt.Statistics(max=b"z", null_count=3),
        ),
    ),
    fmt.PageHeader(
        type=fmt.PageType.DATA_PAGE_V2,
        uncompressed_page_size=1,
        compressed_page_size=2,
        data_page_header_v2=fmt.DataPageHeaderV2(
            num_values=3,
            num_nulls=4,
            num_rows=5,
            encoding=fmt.Encoding.PLAIN,
            definition_levels_byte_length=6,
            repetition_levels_byte_length=7,
            is_compressed=False,
        ),
    ),
    fmt.PageHeader(
        type=fmt.PageType.DICTIONARY_PAGE,
        uncompressed_page_size=1,
        compressed_page_size=2,
        dictionary_page_header=fmt.DictionaryPageHeader(num_values=9, encoding=fmt.Encoding.PLAIN, is_sorted=True),
    ),
]


@pytest.mark.parametrize("header", PAGE_HEADERS, ids=lambda header: header.type.name)
def test_page_headers_are_those_of_the_tables(header: fmt.PageHeader) -> None:
    encoded = fmt.encode(header)
    parsed, size = parse_page_header(encoded + b"page")
    assert size == len(encoded)
    inner = header.data_page_header or header.data_page_header_v2 or header.dictionary_page_header
    assert inner is not None
    for source in (header, inner):
        for name, _ in source.ORDERED:
            if name in parsed and getattr(source, name) is not None:
                assert parsed[name] == getattr(source, name), name
    for cut in range(len(encoded)):
        with pytest.raises(ValueError, match=r"truncated|invalid"):
            parse_page_header(encoded[:cut])


def test_page_types_are_those_of_the_tables() -> None:
    assert {kind.name: kind.value for kind in fmt.PageType} == PAGE_TYPES


def test_the_tables_are_complete() -> None:
    """Each struct has ascending ids without doubles, and names that Thrift allows."""
    assert len(structs()) > 55
    for cls in structs():
        ids = [field.id for _, field in cls.ORDERED]
        assert ids == sorted(set(ids))
        assert all(re.fullmatch(r"[A-Za-z_0-9]+", name) for name, _ in cls.ORDERED)


def test_structs_are_no_work_for_the_garbage_collector() -> None:
    """Of a footer of 200 chunks no object is visited by a collection."""
    columns = [fmt.ColumnChunk(file_offset=number, meta_data=column_metadata(f"c{number}")) for number in range(200)]
    group = fmt.RowGroup(columns=columns, total_byte_size=0, num_rows=0)
    encoded = fmt.encode(group)
    gc.collect()
    before = len(gc.get_objects())
    decoded = fmt.decode(fmt.RowGroup, encoded)[0]
    assert len(gc.get_objects()) - before < 20
    chunk = decoded.columns[7]
    assert chunk.meta_data is not None
    assert not any(map(gc.is_tracked, (group, decoded, decoded.columns, chunk, chunk.meta_data, chunk.meta_data.encodings)))
    assert decoded == group


def column_metadata(name: str) -> fmt.ColumnMetaData:
    return fmt.ColumnMetaData(
        type=1, encodings=[0], path_in_schema=[name], codec=0, num_values=0, total_uncompressed_size=0, total_compressed_size=0,
        data_page_offset=4,
    )


def test_a_decoded_struct_frees_its_values() -> None:
    """A field that occurs twice, with its first value, and every value with its struct."""
    element = b"\x48\x05first" + b"\x08\x08\x06second" + b"\x00"       # field 4, the name, with a short and a long header
    decoded, size = fmt.decode(fmt.SchemaElement, element)
    assert (decoded.name, size) == ("second", len(element))
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(3000):
            fmt.decode(fmt.SchemaElement, element)
            fmt.SchemaElement(name="x" * 100)
        assert tracemalloc.get_traced_memory()[0] - before < 50_000
    finally:
        tracemalloc.stop()


def test_a_struct_has_its_fields_alone() -> None:
    element = fmt.SchemaElement(name="a", num_children=2)
    for twin in (copy.copy(element), copy.deepcopy(element), pickle.loads(pickle.dumps(element))):
        assert twin == element
        assert (twin.name, twin.num_children, twin.type, twin.unknown_fields) == ("a", 2, None, ())
    element.unknown_fields = ((99, 5, b"x"),)
    assert copy.copy(element).unknown_fields == element.unknown_fields
    element.name, element.unknown_fields = "b", ()
    assert element == fmt.SchemaElement(name="b", num_children=2)
    with pytest.raises(AttributeError, match="nam"):
        element.nam = "c"       # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="SchemaElement has no field nam, size"):
        fmt.SchemaElement(name="a", size=1, nam="b")


def test_only_slots_have_places() -> None:
    assert place_of(fmt.SchemaElement.name) > 0
    for other in (fmt.SchemaElement.__init__, 7, "name"):
        with pytest.raises(TypeError, match="is not a slot"):
            place_of(other)


def test_row_groups_that_hold_nothing_take_little_memory() -> None:
    """Each is three bytes: an empty list of columns, the first field, and the end of the struct."""
    count = 100_000
    element = fmt.encode(fmt.SchemaElement(name="root", num_children=0))
    head = b"\x15\x02\x19\x1c" + element + b"\x16\x00\x19\xfc\xa0\x8d\x06"
    footer = memoryview(head + b"\x19\x0c\x00" * count + b"\x00")
    tracemalloc.start()
    _, listed = fmt.decode_listed(fmt.FileMetaData, footer, 0, {2: 0, 4: 1, 7: 0})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * len(footer)
    assert len(listed[4].offsets) == count
    found = listed[4].inner(count - 1)
    assert found is not None
    assert (found[0].tolist(), found[1]) == ([], len(footer) - 2)


def test_structs_in_older_pickles_load() -> None:
    """Before 0.1 was released, ``unknown_fields`` was called ``unknown``."""
    pair = fmt.KeyValue.__new__(fmt.KeyValue)
    pair.__setstate__((None, {"key": "k", "value": None, "unknown": ((9, 5, b"\x02"),)}))
    assert (pair.key, pair.value, pair.unknown_fields) == ("k", None, ((9, 5, b"\x02"),))
    assert pickle.loads(pickle.dumps(pair)) == pair
