"""Options by column: the name of a group stands for the leaves below it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq

ROWS = 100
TABLE = pa.table({
    "e": pa.array([[n % 4, n % 3] for n in range(ROWS)]),
    "s": pa.array([{"a": n % 7, "t": {"b": n % 5, "c": n % 3}} for n in range(ROWS)]),
    "n": np.arange(ROWS) % 4,
})
LEAVES = ["e.list.element", "s.a", "s.t.b", "s.t.c", "n"]


def chunks_of(**options: Any) -> dict[str, Any]:
    """Return pyarrow's metadata of each column chunk."""
    sink = io.BytesIO()
    fastpq.write_table(TABLE, sink, **options)
    assert pq.read_table(sink).equals(TABLE)
    row_group = pq.read_metadata(sink).row_group(0)
    return {column.path_in_schema: column for column in map(row_group.column, range(row_group.num_columns))}


def test_leaves() -> None:
    assert list(chunks_of()) == LEAVES


@pytest.mark.parametrize(
    ("names", "leaves"),
    [
        (["e"], ["e.list.element"]),
        (["e.list"], ["e.list.element"]),
        (["s"], ["s.a", "s.t.b", "s.t.c"]),
        (["s.t", "n"], ["n", "s.t.b", "s.t.c"]),
        (["s", "s.a"], ["s.a", "s.t.b", "s.t.c"]),
        ([], []),
    ],
    ids=str,
)
def test_groups(names: list[str], leaves: list[str]) -> None:
    def same(answers: dict[str, bool]) -> bool:
        return answers == {leaf: leaf in leaves for leaf in LEAVES}

    assert same({leaf: chunk.has_dictionary_page for leaf, chunk in chunks_of(use_dictionary=names).items()})
    assert same({leaf: chunk.is_stats_set for leaf, chunk in chunks_of(write_statistics=names).items()})
    compressed = chunks_of(compression=dict.fromkeys(names, "zstd") or {"n": None})
    assert same({leaf: chunk.compression == "ZSTD" for leaf, chunk in compressed.items()})
    encoded = chunks_of(column_encoding=dict.fromkeys(names, "DELTA_BINARY_PACKED"))
    assert same({leaf: "DELTA_BINARY_PACKED" in chunk.encodings for leaf, chunk in encoded.items()})
    sink = io.BytesIO()
    fastpq.write_table(TABLE, sink, bloom_filter=dict.fromkeys(names, True))
    with fastpq.ParquetFile(sink) as file:
        assert same({leaf: file.bloom_filter(0, leaf) is not None for leaf in LEAVES})


def test_a_group_with_a_boolean_can_have_bloom_filters() -> None:
    sink = io.BytesIO()
    table = pa.table({"s": pa.array([{"f": True, "n": 1}])})
    fastpq.write_table(table, sink, bloom_filter={"s": True})
    with fastpq.ParquetFile(sink) as file:
        assert [file.bloom_filter(0, leaf) is not None for leaf in ("s.f", "s.n")] == [False, True]
    with pytest.raises(fastpq.SchemaError, match="BOOLEAN"):
        fastpq.write_table(table, io.BytesIO(), bloom_filter={"s.f": True})


def test_an_inner_name_has_priority() -> None:
    for compression in ({"s": "gzip", "s.t": "zstd", "s.t.b": None}, {"s.t.b": None, "s.t": "zstd", "s": "gzip"}):
        chunks = chunks_of(compression=compression)
        assert [chunks[leaf].compression for leaf in LEAVES[1:4]] == ["GZIP", "UNCOMPRESSED", "ZSTD"]


def test_an_option_that_does_not_fit_a_leaf_names_the_leaf() -> None:
    with pytest.raises(fastpq.ParquetError, match=r"DELTA_BYTE_ARRAY.*column s\.t\.b"):
        chunks_of(column_encoding={"s.t": "DELTA_BYTE_ARRAY"})


@pytest.mark.parametrize("option", ["compression", "compression_level", "column_encoding", "bloom_filter", "use_dictionary"])
def test_an_error_names_the_leaves(option: str) -> None:
    value: Any = ["f", "s.x"] if option == "use_dictionary" else {"f": None, "s.x": None}
    names = ", ".join(LEAVES)
    with pytest.raises(fastpq.SchemaError, match=rf"{option} names unknown columns: f, s\.x; the columns are {names} \[path"):
        chunks_of(**{option: value})
    wide = {f"c{number}": [1] for number in range(30)}
    with pytest.raises(fastpq.SchemaError, match=r"the columns are c0, .*, c19, \.\.\. \[path"):
        fastpq.write_table(wide, io.BytesIO(), use_dictionary=["d"])


def test_a_name_of_two_columns_is_refused(tmp_path: Path) -> None:
    """A field a of a struct s and a column s.a have one dotted name, and would share the option."""
    table = pa.table({"s": pa.array([{"a": 1}]), "s.a": [2], "b": [3]})
    fastpq.write_table(table, tmp_path / "x.parquet", compression={"b": "zstd"})
    for options in ({"compression": {"s.a": "zstd"}}, {"use_dictionary": ["s.a"]}):
        with pytest.raises(fastpq.SchemaError, match=r"names 's\.a', and 2 columns have this dotted name"):
            fastpq.write_table(table, tmp_path / "x.parquet", **options)


@pytest.mark.parametrize(
    "options",
    [
        {"encoding": "auto"},
        {"column_encoding": {"n": "DELTA_BINARY_PACKED"}},
        {"data_page_version": "2.0"},
        {"float_order": "total"},
        {"write_path_in_schema": False},
    ],
)
def test_compatibility_refuses_what_old_readers_do_not_read(options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f'compatibility="v1" contradicts {next(iter(options))}'):
        fastpq.write_table(TABLE, tmp_path / "x.parquet", compatibility="v1", **options)
    assert not [*tmp_path.iterdir()]


def test_compatible_files_have_old_encodings_alone() -> None:
    chunks = chunks_of(compatibility="v1", column_encoding={"n": "PLAIN"})
    assert set().union(*(column.encodings for column in chunks.values())) <= {"PLAIN", "RLE", "RLE_DICTIONARY"}
    assert chunks["n"].encodings == ("PLAIN", "RLE")
