"""The schema tree: levels against pyarrow and the Dremel example, names, text, and broken element lists."""

from __future__ import annotations

import pickle
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq import format as fmt
from fastpq.errors import FormatError, LimitError, SchemaError, UnsupportedError
from fastpq.metadata.file_metadata import _parsed_or_kept
from fastpq.schema.logical import logical_to_thrift
from fastpq.schema.parquet_schema import MAX_SCHEMA_DEPTH, GroupNode, ParquetSchema
from fastpq.schema.types import ColumnType, Decimal, Integer, LogicalType, String, Time, Timestamp, Type, Uuid

REQUIRED, OPTIONAL, REPEATED = fmt.FieldRepetitionType


def root(children: int) -> fmt.SchemaElement:
    return fmt.SchemaElement(name="schema", num_children=children)


def group(name: str, children: int, repetition: Any = OPTIONAL, **members: Any) -> fmt.SchemaElement:
    return fmt.SchemaElement(name=name, num_children=children, repetition_type=repetition, **members)


def leaf(name: str, repetition: Any = REQUIRED, physical: Any = Type.INT64, **members: Any) -> fmt.SchemaElement:
    return fmt.SchemaElement(name=name, type=physical, repetition_type=repetition, **members)


def utf8() -> dict[str, Any]:
    logical, converted, _, _ = logical_to_thrift(String())
    return {"physical": Type.BYTE_ARRAY, "logicalType": logical, "converted_type": converted}


LIST = fmt.ConvertedType.LIST
NESTED = [
    root(4),
    leaf("id"),
    group("tags", 1, converted_type=LIST),
    group("list", 1, REPEATED),
    leaf("element", OPTIONAL, **utf8()),
    group("place", 2, REQUIRED),
    leaf("name", OPTIONAL, **utf8()),
    group("position", 2),
    leaf("x", REQUIRED, Type.DOUBLE),
    leaf("y", OPTIONAL, Type.DOUBLE),
    leaf("when", OPTIONAL, Type.INT96, field_id=7),
]


def test_levels_are_those_of_pyarrow(tmp_path: Path) -> None:
    position = pa.struct([pa.field("x", pa.float64(), nullable=False), pa.field("y", pa.float64())])
    place = pa.struct([pa.field("name", pa.string()), pa.field("position", position)])
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            pa.field("tags", pa.list_(pa.string())),
            pa.field("place", place, nullable=False),
            pa.field("when", pa.timestamp("ns")),
        ]
    )
    pq.write_table(schema.empty_table(), tmp_path / "x.parquet", use_deprecated_int96_timestamps=True)
    theirs = pq.ParquetFile(tmp_path / "x.parquet").schema
    ours = ParquetSchema.from_thrift(NESTED)
    assert len(ours) == len(theirs.names)
    for i, column in enumerate(ours):
        other = theirs.column(i)
        assert column.name == other.path
        assert column.physical_type.name == other.physical_type
        assert column.max_definition_level == other.max_definition_level
        assert column.max_repetition_level == other.max_repetition_level
        assert column.index == i


def test_levels_of_the_dremel_paper() -> None:
    # Dremel: Interactive Analysis of Web-Scale Datasets, figure 2 and 3
    elements = [
        root(3),
        leaf("DocId"),
        group("Links", 2),
        leaf("Backward", REPEATED),
        leaf("Forward", REPEATED),
        group("Name", 2, REPEATED),
        group("Language", 2, REPEATED),
        leaf("Code", REQUIRED, **utf8()),
        leaf("Country", OPTIONAL, **utf8()),
        leaf("Url", OPTIONAL, **utf8()),
    ]
    levels = {c.name: (c.max_repetition_level, c.max_definition_level) for c in ParquetSchema.from_thrift(elements)}
    assert levels == {
        "DocId": (0, 0),
        "Links.Backward": (1, 2),
        "Links.Forward": (1, 2),
        "Name.Language.Code": (2, 2),
        "Name.Language.Country": (2, 3),
        "Name.Url": (1, 2),
    }


def test_text() -> None:
    assert str(ParquetSchema.from_thrift(NESTED)) == (
        "message schema {\n"
        "  required int64 id;\n"
        "  optional group tags (LIST) {\n"
        "    repeated group list {\n"
        "      optional binary element (STRING);\n"
        "    }\n"
        "  }\n"
        "  required group place {\n"
        "    optional binary name (STRING);\n"
        "    optional group position {\n"
        "      required double x;\n"
        "      optional double y;\n"
        "    }\n"
        "  }\n"
        "  optional int96 when = 7;\n"
        "}"
    )


def test_text_of_annotations() -> None:
    types: list[LogicalType] = [Integer(64, True), Time("us", True), Timestamp("ns", False), Decimal(18, 3)]
    columns = [(f"c{i}", ColumnType(Type.INT64, None, logical), i % 2 == 1) for i, logical in enumerate(types)]
    columns.append(("u", ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 16, Uuid()), False))
    assert str(ParquetSchema.of(columns)).splitlines()[1:-1] == [
        "  required int64 c0 (INTEGER(64,true));",
        "  optional int64 c1 (TIME(MICROS,true));",
        "  required int64 c2 (TIMESTAMP(NANOS,false));",
        "  optional int64 c3 (DECIMAL(18,3));",
        "  required fixed_len_byte_array(16) u (UUID);",
    ]


def test_names_paths_and_groups() -> None:
    schema = ParquetSchema.from_thrift(NESTED)
    assert schema.names == ("id", "tags", "place", "when")
    assert schema.column("tags.list.element").path == ("tags", "list", "element")
    assert schema[("place", "position", "y")].index == 4
    assert [column.name for column in schema.select(["when", "place"])] == [
        "when", "place.name", "place.position.x", "place.position.y",
    ]
    assert [column.index for column in schema.select(["place.position", 0, "place"])] == [3, 4, 0, 2]
    assert [column.index for column in schema.select(None)] == list(range(6))
    assert schema[0].is_flat
    assert schema["when"].is_flat
    assert not schema["place.name"].is_flat
    assert schema["when"].field_id == 7
    assert schema["when"].nullable
    assert schema["when"].repetition == OPTIONAL
    assert schema[-1] is schema.columns[5]
    assert schema[1:3] == schema.columns[1:3]


def test_names_with_dots() -> None:
    schema = ParquetSchema.from_thrift([root(3), leaf("a.b"), group("a", 1), leaf("c.d"), leaf("e.")])
    assert schema.column("a.b").index == 0
    assert schema.column("a.c.d").index == 1
    assert schema.column("e.").index == 2
    with pytest.raises(SchemaError, match=r"no column \('a', 'b'\)"):
        schema.column(("a", "b"))


def test_missing_names_are_answered_with_near_ones() -> None:
    schema = ParquetSchema.of([(name, ColumnType(Type.INT32), False) for name in ("l_orderkey", "l_partkey", "Total")])
    with pytest.raises(SchemaError, match=r"no column 'l_oderkey'; did you mean 'l_orderkey'"):
        schema.select(["l_oderkey"])
    with pytest.raises(SchemaError, match="did you mean 'Total'"):
        schema.select(["total"])
    with pytest.raises(SchemaError, match="the schema has 'l_orderkey', 'l_partkey', 'Total'"):
        schema.select(["zzz"])
    with pytest.raises(SchemaError, match="list of names"):
        schema.select("Total")
    with pytest.raises(SchemaError, match="no column 3"):
        schema.select([3])
    with pytest.raises(SchemaError, match="means 2 columns"):
        ParquetSchema.from_thrift([root(1), group("g", 2), leaf("a"), leaf("b")]).column("g")


def test_duplicates_are_read_and_written() -> None:
    schema = ParquetSchema.from_thrift([root(2), leaf("a"), leaf("a")])
    assert len(schema) == 2
    with pytest.raises(SchemaError, match="2 columns are named 'a'"):
        schema.select(["a"])
    assert schema.select([1])[0].index == 1
    assert ParquetSchema.of([("a", ColumnType(Type.INT32), False)] * 2).names == ("a", "a")
    with pytest.raises(SchemaError, match="must be a str"):
        ParquetSchema.of([(5, ColumnType(Type.INT32), False)])  # type: ignore[list-item]


def test_elements_come_back() -> None:
    assert ParquetSchema.from_thrift(NESTED).to_thrift() == NESTED
    assert ParquetSchema.from_thrift(NESTED) == ParquetSchema.from_thrift(list(NESTED))
    assert ParquetSchema.from_thrift(NESTED) != ParquetSchema.from_thrift(NESTED[:1] and [root(0)])


def test_no_columns() -> None:
    for element in (root(0), fmt.SchemaElement(name="schema")):
        schema = ParquetSchema.from_thrift([element])
        assert len(schema) == 0
        assert str(schema) == "message schema {\n}"
    assert len(ParquetSchema.from_thrift([root(1), group("empty", 0)])) == 0


@pytest.mark.parametrize(
    ("elements", "message"),
    [
        ([], "no root"),
        ([root(2), leaf("a")], "2 children, but only 1 elements"),
        ([root(-1)], "-1 children"),
        ([root(1 << 30)], "children, but only 0"),
        ([root(1), leaf("a"), leaf("b")], "continues with 'b' after the last child"),
        ([root(2), group("g", 1), leaf("a")], "ends before the last child of 'schema'"),
        ([root(1), leaf("a", 3)], "repetition type 3"),
        ([root(1), leaf("a", num_children=1)], "has 1 children"),
        ([root(1), fmt.SchemaElement(name="a", repetition_type=REQUIRED)], "neither a type nor children"),
    ],
)
def test_broken_trees(elements: list[fmt.SchemaElement], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        ParquetSchema.from_thrift(elements)


def test_depth_is_bounded() -> None:
    def nested(depth: int) -> list[fmt.SchemaElement]:
        return [root(1), *(group("g", 1) for _ in range(depth)), leaf("a")]

    schema = ParquetSchema.from_thrift(nested(MAX_SCHEMA_DEPTH - 1))
    assert schema[0].max_definition_level == MAX_SCHEMA_DEPTH - 1
    assert str(schema).count("{") == MAX_SCHEMA_DEPTH
    assert schema.column(schema[0].name) is schema[0]
    with pytest.raises(LimitError, match="nested deeper"):
        ParquetSchema.from_thrift(nested(MAX_SCHEMA_DEPTH))


def test_a_bad_column_spoils_no_other() -> None:
    unit = fmt.LogicalType(TIMESTAMP=fmt.TimestampType(isAdjustedToUTC=True, unit=fmt.TimeUnit()))
    elements = [
        root(4),
        leaf("fine"),
        leaf("length", physical=Type.FIXED_LEN_BYTE_ARRAY),
        leaf("unit", logicalType=unit),
        leaf("physical", physical=42),
    ]
    schema = ParquetSchema.from_thrift(elements)
    assert schema["fine"].type == ColumnType(Type.INT64)
    with pytest.raises(FormatError, match="cannot have the length None"):
        _ = schema["length"].type
    with pytest.raises(UnsupportedError, match="time unit"):
        _ = schema["unit"].type
    with pytest.raises(UnsupportedError, match="physical type 42"):
        _ = schema["physical"].type
    assert "not understood" in str(schema)


def test_ten_thousand_columns_are_fast() -> None:
    elements = [root(10_000), *(leaf(f"column_{i}", OPTIONAL) for i in range(10_000))]
    started = time.process_time()
    schema = ParquetSchema.from_thrift(elements)
    assert schema.select(reversed(schema.names))[0].index == 9_999
    with pytest.raises(SchemaError, match="did you mean"):
        schema.select(["colum_17"])
    assert time.process_time() - started < 4  # measured: 0.04 s; what is quadratic takes a minute


def test_files_of_one_schema_share_it_among_threads(tmp_path: Path) -> None:
    names = [f"column{number}" for number in range(400)]
    for rows in (1, 2):
        fastpq.write_table({name: np.arange(rows) for name in names}, tmp_path / f"{rows}.parquet")
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(20):
            _parsed_or_kept.cache_clear()
            files = [fastpq.ParquetFile(tmp_path / f"{rows}.parquet") for rows in (1, 2, 1, 2)]
            assert files[0].schema is files[1].schema
            assert [file.metadata.num_rows for file in files[:2]] == [1, 2]
            with ThreadPoolExecutor(4) as threads:      # nobody has asked for a name yet
                assert [column.index for column in threads.map(lambda file: file.schema.column(names[-1]), files)] == [399] * 4
            for file in files:
                file.close()
    finally:
        sys.setswitchinterval(interval)


def test_nodes_in_older_pickles_load() -> None:
    """Before 0.1 was released, a group's cached shape had another name. What is made on first use is made again."""
    schema = ParquetSchema.from_thrift([root(1), group("g", 1), leaf("x")])
    state: Any = schema.root.__getstate__()
    values = {name: value for name, value in state[1].items() if not name.startswith("cached_")}
    node = GroupNode.__new__(GroupNode)
    node.__setstate__((None, {**values, "kept": None}))
    assert node.children is schema.root.children
    assert (node.cached_shape, node.cached_depth) == (None, 0)
    assert pickle.loads(pickle.dumps(schema)) == schema
