"""redact_file: nothing is left of redacted values, and all other columns are the same bytes."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from tests.narrowing import present

ROWS = 1000
KEY = b"0" * 16
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("name", pa.string()),
        pa.field("s", pa.struct([pa.field("x", pa.string(), nullable=False), pa.field("y", pa.string())]), nullable=False),
        pa.field("l", pa.list_(pa.struct([pa.field("p", pa.string()), pa.field("q", pa.int64())]))),
        pa.field("m", pa.map_(pa.string(), pa.string())),
    ]
)


def rows() -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "id": 1_000_000_007 + row,
                "name": None if row % 3 == 0 else f"SECRET-NAME {row % 40}",
                "s": {"x": f"SECRET-XX {row}", "y": f"SECRET-YY {row % 7}"},
                "l": None if row % 10 == 0 else [{"p": f"SECRET-PP {row}", "q": row}, None] * (row % 3),
                "m": [("key", f"SECRET-MM {row}")] * (row % 2),
            }
            for row in range(ROWS)
        ],
        schema=SCHEMA,
    )


def redacted(names: list[str]) -> list[dict[str, Any]]:
    """The rows as they should be."""
    expected: list[dict[str, Any]] = rows().to_pylist()
    for row in expected:
        for name in names:
            top, *rest = name.split(".")
            if not rest:
                row[top] = None
            elif top == "s":
                row["s"][rest[0]] = None
            elif top == "l":
                row["l"] = None if row["l"] is None else [each and {**each, rest[-1]: None} for each in row["l"]]
            else:
                row["m"] = [(key, None) for key, _ in row["m"]]
    return expected


def files(folder: Path) -> list[Path]:
    paths = [folder / f"{number}.parquet" for number in range(3)]
    pq.write_table(rows(), paths[0], row_group_size=300, compression="none", write_page_index=True)
    pq.write_table(rows(), paths[1], data_page_version="2.0", compression="none", row_group_size=400)
    options: dict[str, Any] = {"bloom_filter": {"name": True}, "sorting_columns": ["id"]}
    fastpq.write_table(rows(), paths[2], row_group_size=300, compression="none", **options)
    return paths


@pytest.mark.parametrize(
    ("names", "secrets"),
    [
        (["name"], [b"SECRET-NAME"]),
        (["id", "s"], [(1_000_000_007).to_bytes(8, "little"), b"SECRET-XX", b"SECRET-YY"]),
        (["s.x", "name"], [b"SECRET-XX", b"SECRET-NAME"]),
        (["l"], [b"SECRET-PP"]),
        (["l.list.element.p"], [b"SECRET-PP"]),
        (["m", "s.y"], [b"SECRET-MM", b"SECRET-YY"]),
        (["m.key_value.value"], [b"SECRET-MM"]),
    ],
)
def test_nothing_is_left(tmp_path: Path, names: list[str], secrets: list[bytes]) -> None:
    target = tmp_path / "target.parquet"
    for source in files(tmp_path):
        report = fastpq.redact_file(source, target, names)
        assert report.copied_pages > 10
        assert (report.decoded_pages == 0) == all("." not in name for name in names)
        data = target.read_bytes()
        assert not any(secret in data for secret in secrets), source
        expected = redacted(names)
        assert pq.read_table(target).to_pylist() == expected
        assert str(pl.read_parquet(target).height) == str(ROWS)
        assert pa.table(fastpq.read_table(target)).to_pylist() == expected
        column = names[0].split(".")[0]
        nulls = sum(row[column] is None for row in expected)
        assert present(duckdb.sql(f"select count(*) - count({column}) from '{target}'")).fetchall() == [(nulls,)]
        assert fastpq.verify_file(target).is_sound
        if "id" in names:
            assert fastpq.read_metadata(target).row_group(0).sorting_columns == []


def test_other_columns_are_the_same_bytes(tmp_path: Path) -> None:
    for source in files(tmp_path):
        fastpq.redact_file(source, tmp_path / "target.parquet", ["name", "l.list.element.p"])
        old, new = source.read_bytes(), (tmp_path / "target.parquet").read_bytes()
        metadata = [fastpq.read_metadata(data) for data in (old, new)]
        for group in range(metadata[0].num_row_groups):
            for column in metadata[0].schema.columns:
                if column.name in ("name", "l.list.element.p"):
                    continue
                chunks = [each.row_group(group).column(column.index).byte_range for each in metadata]
                assert old[chunks[0][0] : sum(chunks[0])] == new[chunks[1][0] : sum(chunks[1])]


@pytest.mark.parametrize("options", [{}, {"column_keys": {"name": KEY[::-1]}}, {"plaintext_footer": True}])
def test_encrypted_files(tmp_path: Path, options: dict[str, Any]) -> None:
    path, out = tmp_path / "a.parquet", io.BytesIO()
    keys = fastpq.FileEncryptionProperties(KEY, **options)
    fastpq.write_table(rows(), path, row_group_size=300, encryption_properties=keys, compression="none")
    opening = fastpq.FileDecryptionProperties(KEY, options.get("column_keys"))
    fastpq.redact_file(path, path, ["name"], decryption_properties=opening)
    assert pa.table(fastpq.read_table(path, decryption_properties=opening)).to_pylist() == redacted(["name"])
    fastpq.decrypt_file(path, out, opening)
    assert b"SECRET-NAME" not in out.getvalue()
    assert pq.read_table(io.BytesIO(out.getvalue())).to_pylist() == redacted(["name"])


def test_metadata_and_refusals(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pandas = {"columns": [{"name": "name", "metadata": {"categories": ["NAME 1"]}}], "index_columns": []}
    fastpq.write_table(rows(), path, key_value_metadata={"pandas": json.dumps(pandas), "hoodie_max_record_key": "NAME 9"})
    report = fastpq.redact_file(path, tmp_path / "b.parquet", ["name"])
    assert {entry.key for entry in report.dropped_metadata} >= {"pandas", "hoodie_max_record_key"}
    before = path.read_bytes()
    for wrong in (["nope"], ["m.key_value.key"], ["l.list"], ["m.key_value"]):
        with pytest.raises(fastpq.SchemaError):
            fastpq.redact_file(path, path, wrong)
    with pytest.raises(TypeError):
        fastpq.redact_file(path, path, "name")
    assert path.read_bytes() == before


def test_a_name_that_two_columns_have_is_refused() -> None:
    """The second column would keep its values."""
    source, target = io.BytesIO(), io.BytesIO()
    pq.write_table(pa.Table.from_arrays([pa.array(["one"]), pa.array(["two"]), pa.array([1])], ["a", "a", "b"]), source)
    with pytest.raises(fastpq.SchemaError, match="2 columns have this name"):
        fastpq.redact_file(source.getvalue(), target, ["a"])
    assert not target.getvalue()
    fastpq.redact_file(source.getvalue(), target, ["b"])
    assert pq.ParquetFile(target).read().column(2).null_count == 1
