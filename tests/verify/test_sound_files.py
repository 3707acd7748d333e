"""Sound files of other writers have no violation that does harm; the files that have one break the specification indeed."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from tests.requirements import DATA, needs_data, peer

arro3 = peer("arro3.io", "arro3-io")
ALGORITHMS: list[Literal["AES_GCM_V1", "AES_GCM_CTR_V1"]] = ["AES_GCM_V1", "AES_GCM_CTR_V1"]

# Files that others read, and that break the specification: a part of the message. Each was looked at.
BROKEN_INDEED = {
    # a fuzzer's files, and files that were damaged by hand for a test
    "clusterfuzz-testcase-minimized-parquet-arrow-fuzz-5068991573000192": "precision 45 is more than the 14 digits",
    "clusterfuzz-testcase-minimized-parquet-arrow-fuzz-5382863341289472": "null pages in a required column",
    "crash-649c71a618ae2fd80cec177a9676eb3e280fc1fa": "of another column",
    "alltypes_empty_pages.parquet": "no valid page header",
    "bad_column_metadata.parquet": "the entry claims 50 values, and the pages have 100",
    "datapage_v1-corrupt-checksum.parquet": "the CRC-32 of the page does not match",
    "rle-dict-uncompressed-corrupt-checksum.parquet": "the CRC-32 of the page does not match",
    # parquet-mr 1.2 left the dictionary page's header out of the sizes (PARQUET-816)
    "repeated_values.parquet": "stored bytes, and the pages have",
    "nation.dict-malformed.parquet": "stored bytes, and the pages have",
    "repeated_primitive_no_list_no_nest.parquet": "an offset index of 10 bytes at 656 in a file of 546",
    "nested-unsigned-malformed.parquet": "another number of values than rows",
    "zero_offset_row_group.parquet": "2 distinct values, and the chunk has 1",
    "_flow.parquet": "a decimal with more than the 10 digits",
    # segmentio/parquet-go cut maxima without increasing the last byte
    "geojson-big.parquet": "a maximum below a value of the page",
    # parquet-rs takes a page of a list with as many nulls as rows for a page of nulls
    "nested_tiny_pages_parquet_1_0.parquet": "a null page, and 14 values are not null",
    "nested_tiny_pages_parquet_2_0.parquet": "a null page, and 14 values are not null",
    # written for a test of checksums, with an index that was not filled
    "datapage_v1-snappy-compressed-checksum.parquet": "null pages in a required column",
    "datapage_v1-uncompressed-checksum.parquet": "null pages in a required column",
}
# Files of which a part cannot be checked.
NOT_CHECKED = {"delta_encoding.parquet": "encoding 15", "large_string_map.brotli.parquet": "over max_dictionary_size"}


def files() -> Iterator[Any]:
    """The files of parquet-testing and of the wild that are not bad."""
    root, manifest = DATA / "parquet-testing", DATA / "wild/manifest.json"
    for folder in ("data", "shredded_variant"):
        for path in sorted((root / folder).rglob("*.parquet")):
            yield pytest.param(path, path.name, id=str(path.relative_to(DATA)))
    for entry in json.loads(manifest.read_text()) if manifest.exists() else []:
        path = DATA / "wild" / entry["file"]
        if entry["class"] != "bad":
            yield pytest.param(path, path.name.partition("-")[2], id=str(path.relative_to(DATA)))


@pytest.mark.parametrize(("path", "name"), [*files()])
def test_file_of_others(path: Path, name: str) -> None:
    report = fastpq.verify_file(path)
    if name in NOT_CHECKED:
        assert NOT_CHECKED[name] in str(report.unchecked[0])
    elif name in BROKEN_INDEED:
        assert BROKEN_INDEED[name] in str(report)
        assert not report.is_sound
    else:
        assert report.is_sound, str(report)
        assert report.is_complete, str(report)


@needs_data
def test_every_broken_file_is_there() -> None:
    assert {*BROKEN_INDEED, *NOT_CHECKED} <= {parameter.values[1] for parameter in files()}


@needs_data
def test_bad_files_end_in_a_report() -> None:
    """Corrupt files, most of them fuzzers' findings: each ends in a report, and nearly all have a violation."""
    entries = json.loads((DATA / "wild/manifest.json").read_text())
    paths = [DATA / "wild" / entry["file"] for entry in entries if entry["class"] == "bad"]
    paths += [path for path in (DATA / "parquet-testing/bad_data").rglob("*.parquet") if path.name != "ARROW-GH-43605.parquet"]
    sound = [path.name for path in paths if fastpq.verify_file(path).is_sound]
    assert not sound


def encrypted(folder: str) -> list[dict[str, Any]]:
    path = DATA / "encryption" / folder / "manifest.json"
    entries = json.loads(path.read_text()) if path.exists() else []
    return entries["files"] if isinstance(entries, dict) else entries


@pytest.mark.parametrize("entry", encrypted("fixtures"), ids=lambda entry: entry["name"])
@pytest.mark.parametrize("quick", [False, True])
def test_encrypted_file_of_others(entry: dict[str, Any], quick: bool) -> None:
    """Files of pyarrow, Spark, parquet-java, Polars and DuckDB in all modes: every module opens, and nothing is wrong."""
    keys = fastpq.FileDecryptionProperties(
        bytes.fromhex(entry["keys"]["footer"]),
        {path: bytes.fromhex(key) for path, key in entry["keys"]["columns"].items()},
        aad_prefix=entry["aad_prefix"].encode() if entry["aad_prefix"] else None,
        allowed_algorithms=ALGORITHMS,
        allow_duckdb_dialect=entry.get("duckdb_dialect", False),
    )
    report = fastpq.verify_file(DATA / "encryption/fixtures" / entry["file"], quick=quick, decryption_properties=keys)
    assert not report.violations, str(report)
    assert report.is_complete


@needs_data
def test_forged_files_are_found() -> None:
    """An altered page under AES-CTR has no tag. Statistics still tell where the reader cannot."""
    found = set()
    for entry in encrypted("forged"):
        if entry["kms"] or len(entry["footer_key"]) != 32 or "policy" in entry["verdict"]:
            continue
        keys = fastpq.FileDecryptionProperties(
            bytes.fromhex(entry["footer_key"]),
            {path: bytes.fromhex(key) for path, key in entry["column_keys"].items()},
            aad_prefix=entry["aad_prefix"].encode() if entry["aad_prefix"] else None,
            allowed_algorithms=ALGORITHMS,
            verify_footer_signature=entry["verify_footer_signature"],
        )
        try:
            is_sound = fastpq.verify_file(DATA / "encryption/forged" / entry["file"], decryption_properties=keys).is_sound
        except fastpq.ParquetError:
            is_sound = False
        if entry["verdict"] == "accept":
            assert is_sound, entry["name"]
        elif entry["verdict"] != "undetectable":
            assert not is_sound, entry["name"]
        elif not is_sound:
            found.add(entry["name"])
    assert {"ctr:swap_page_bodies_between_columns", "ctr:page_body_from_other_file_same_key"} <= found


# ---- files made here


def table() -> pa.Table:
    """Columns of many types, with nulls, lists, structs and maps."""
    rows = range(5000)

    def every(step: int, values: Callable[[int], Any]) -> list[Any]:
        return [None if row % step == 0 else values(row) for row in rows]

    return pa.table({
        "int8": pa.array([row % 100 - 50 for row in rows], pa.int8()),
        "uint32": pa.array(every(7, lambda row: row * 800_000), pa.uint32()),
        "int64": pa.array(rows, pa.int64()),
        "double": pa.array(every(5, lambda row: float("nan") if row % 11 == 0 else row / 7)),
        "flag": pa.array(every(3, lambda row: row % 2 == 0)),
        "text": pa.array(every(4, lambda row: f"tëxt {row * 7919 % 5000}" + "x" * (row % 90))),
        "coded": pa.array(every(6, lambda row: f"value {row % 13}")),
        "bytes": pa.array([bytes([row % 256, 255]) for row in rows], pa.binary()),
        "day": pa.array([date(2000, 1, 1) + timedelta(row) for row in rows]),
        "moment": pa.array([datetime(2000, 1, 1) + timedelta(seconds=row * 977) for row in rows], pa.timestamp("us", "UTC")),
        "money": pa.array([Decimal(row - 2500) / 100 for row in rows], pa.decimal128(9, 2)),
        "large": pa.array([Decimal(row - 2500) * 10**20 for row in rows], pa.decimal128(38, 0)),
        "list": pa.array(every(8, lambda row: [None if item == 2 else item for item in range(row % 4)]), pa.list_(pa.int32())),
        "struct": pa.array(every(9, lambda row: {"a": row, "b": None if row % 2 else {"c": f"c{row % 3}"}})),
        "map": pa.array(every(10, lambda row: [(f"k{item}", item) for item in range(row % 3)]), pa.map_(pa.string(), pa.int64())),
        "nested": pa.array(every(11, lambda row: [[{"x": item}] * (item % 3 + 1) for item in range(row % 4)])),
    })


def of_pyarrow(**options: Any) -> Callable[[pa.Table], bytes]:
    def write(data: pa.Table) -> bytes:
        sink = io.BytesIO()
        pq.write_table(data, sink, **options)
        return sink.getvalue()

    return write


def of_polars(**options: Any) -> Callable[[pa.Table], bytes]:
    def write(data: pa.Table) -> bytes:
        sink = io.BytesIO()
        frame = pl.DataFrame(pl.from_arrow(data))
        frame.write_parquet(sink, **options)
        return sink.getvalue()

    return write


def of_duckdb(options: str = "") -> Callable[[pa.Table, Path], bytes]:
    def write(data: pa.Table, folder: Path) -> bytes:
        path = folder / "duck.parquet"
        with duckdb.connect() as connection:
            connection.register("data", data)
            connection.execute(f"COPY data TO '{path}' (FORMAT parquet{options})")
        return path.read_bytes()

    return write


def of_arrow_rs(data: pa.Table) -> bytes:
    sink = io.BytesIO()
    arro3.write_parquet(data, sink, max_row_group_size=2000)
    return sink.getvalue()


def of_arrow_rs_v2(data: pa.Table) -> bytes:
    sink = io.BytesIO()
    arro3.write_parquet(data, sink, writer_version="parquet_2_0", dictionary_enabled=False, compression="zstd(3)")
    return sink.getvalue()


def of_fastpq(**options: Any) -> Callable[[pa.Table], bytes]:
    def write(data: pa.Table) -> bytes:
        sink = io.BytesIO()
        fastpq.write_table(data, sink, **options)
        return sink.getvalue()

    return write


DELTA = {"column_encoding": {"int64": "DELTA_BINARY_PACKED", "text": "DELTA_BYTE_ARRAY", "bytes": "DELTA_LENGTH_BYTE_ARRAY"}}
WRITERS: dict[str, Any] = {
    "pyarrow": of_pyarrow(row_group_size=1500, write_page_index=True, write_page_checksum=True),
    "pyarrow 2.0": of_pyarrow(data_page_version="2.0", compression="zstd", data_page_size=4000, write_page_index=True),
    "pyarrow delta": of_pyarrow(use_dictionary=False, write_page_index=True, max_rows_per_page=100, **DELTA),
    "pyarrow int96": of_pyarrow(use_deprecated_int96_timestamps=True, compression="gzip", version="1.0"),
    "pyarrow sorted": of_pyarrow(sorting_columns=[pq.SortingColumn(2)], compression="none"),
    "pyarrow filters": of_pyarrow(bloom_filter_options={name: {"ndv": 5000, "fpp": 0.01} for name in ("int64", "text", "coded")}),
    "pyarrow no rows": lambda data: of_pyarrow(write_page_index=True)(data.slice(0, 0)),
    "Polars": of_polars(),
    "Polars small pages": of_polars(row_group_size=1000, data_page_size=2000, compression="snappy"),
    "Polars statistics": of_polars(statistics="full", compression="lz4"),
    "DuckDB": of_duckdb(),
    "DuckDB V2": of_duckdb(", PARQUET_VERSION V2, ROW_GROUP_SIZE 2048, CODEC 'zstd'"),
    "arrow-rs": of_arrow_rs,
    "arrow-rs V2": of_arrow_rs_v2,
    "fastpq": of_fastpq(),
    "fastpq auto": of_fastpq(encoding="auto", sort_by=["coded"], row_group_size=1200, bloom_filter={"text": True, "int64": True}),
    "fastpq V2": of_fastpq(data_page_version="2.0", float_order="total", data_page_size=3000, compression="brotli"),
}


def test_null_pages_of_arrow_rs() -> None:
    """parquet-rs 59 takes a page for a page of nulls if it has as many nulls as rows, though a row of a list has many values."""
    data = of_arrow_rs(pa.table({"list": pa.array([[None, 1]] * 100, pa.list_(pa.int64()))}))
    (violation,) = fastpq.verify_file(data).violations
    assert violation.message == "a null page, and 100 values are not null"
    assert violation.section == "PageIndex.md"


@pytest.mark.parametrize("writer", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("quick", [False, True])
def test_file_of_writer(writer: Any, quick: bool, tmp_path: Path) -> None:
    data = writer(table(), tmp_path) if writer.__qualname__.startswith("of_duckdb") else writer(table())
    report = fastpq.verify_file(data, quick=quick)
    assert report.is_sound, str(report)
    assert report.is_complete
