"""add_indexes: the indexes that a writer would have written, on pages that are the same bytes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq import format as fmt
from fastpq.metadata.file_metadata import decoded_footer
from tests.narrowing import present
from tests.requirements import needs_data
from tests.rewriting.verbs import assert_rows, real_files

ROWS = 3000
KEY = b"0" * 16


def rows() -> pa.Table:
    random = np.random.default_rng(1)
    return pa.table(
        {
            "id": np.arange(ROWS),
            "maybe": [None if row % 5 == 0 or 500 < row < 900 else row % 11 for row in range(ROWS)],
            "text": [f"text {row // 100} " + "x" * (row % 90) for row in range(ROWS)],
            "list": [[{"a": row % 7, "b": None if row % 4 else f"b {row % 13}"}] * (row % 3) for row in range(ROWS)],
            "price": np.where(random.random(ROWS) < 0.1, np.nan, random.random(ROWS)),
            "flag": random.random(ROWS) > 0.5,
            "day": (np.arange(ROWS) % 40).astype("M8[D]"),
        }
    )


def plaintext(data: bytes) -> bytes:
    out = io.BytesIO()
    fastpq.decrypt_file(data, out, fastpq.FileDecryptionProperties(KEY))
    return out.getvalue()


def described(data: bytes) -> list[Any]:
    """What a file says about each chunk, without the places of the chunk and its indexes."""
    chunks: list[Any] = []
    footer = decoded_footer(fastpq.read_metadata(data))
    with fastpq.ParquetFile(data) as file:
        for group, row_group in enumerate(footer.row_groups):
            for column, chunk in zip(file.schema.columns, row_group.columns, strict=True):
                metadata = present(chunk.meta_data)
                statistics = metadata.statistics
                if statistics is not None:
                    statistics.distinct_count = None
                offsets, bounds = file.offset_index(group, column.name), file.column_index(group, column.name)
                chunks.append(
                    (
                        statistics,
                        metadata.size_statistics,
                        None if offsets is None else (offsets.offsets - offsets.offsets[0]).tolist(),
                        None if offsets is None else offsets.row_counts.tolist(),
                        None
                        if offsets is None or offsets.unencoded_byte_array_data_bytes is None
                        else offsets.unencoded_byte_array_data_bytes.tolist(),
                        None
                        if bounds is None
                        else [
                            (each.tolist() if isinstance(each, np.ndarray) else each)
                            for each in (
                                bounds.null_pages,
                                bounds.min_values,
                                bounds.max_values,
                                bounds.boundary_order,
                                bounds.null_counts,
                                bounds.nan_counts,
                                bounds.repetition_level_histograms,
                                bounds.definition_level_histograms,
                            )
                        ],
                    )
                )
    return chunks


@pytest.mark.parametrize(
    "options",
    [{}, {"data_page_version": "2.0"}, {"float_order": "total"}, {"use_dictionary": False, "encoding": "auto"}],
)
@pytest.mark.parametrize("is_encrypted", [False, True])
def test_what_was_stripped_comes_back(options: dict[str, Any], is_encrypted: bool) -> None:
    whole, bare, target = io.BytesIO(), io.BytesIO(), io.BytesIO()
    keys: dict[str, Any] = {"encryption_properties": fastpq.FileEncryptionProperties(KEY)} if is_encrypted else {}
    opening: dict[str, Any] = {"decryption_properties": fastpq.FileDecryptionProperties(KEY)} if is_encrypted else {}
    fastpq.write_table(rows(), whole, row_group_size=1000, data_page_rows=100, **options, **keys)
    fastpq.strip_file(whole.getvalue(), bare, **opening)
    report = fastpq.add_indexes(bare.getvalue(), target, **opening)
    assert report.dropped_indexes == ()
    data = plaintext(target.getvalue()) if is_encrypted else target.getvalue()
    original = plaintext(whole.getvalue()) if is_encrypted else whole.getvalue()
    for one, other in zip(described(data), described(original), strict=True):
        assert (one[:2], one[3:]) == (other[:2], other[3:])     # page headers without statistics move the pages
    assert fastpq.verify_file(data).is_sound
    again = io.BytesIO()
    report = fastpq.add_indexes(target.getvalue(), again, **opening)
    assert report.decoded_pages == 0        # nothing is missing
    assert report.copied_pages > 100


@pytest.mark.parametrize(
    "options",
    [
        {"write_statistics": False},
        {"data_page_version": "2.0", "compression": "zstd"},
        {"use_dictionary": False, "compression": "gzip", "write_statistics": ["id"]},
    ],
)
def test_files_of_pyarrow(tmp_path: Path, options: dict[str, Any]) -> None:
    source, target, indexed = (tmp_path / f"{name}.parquet" for name in "abc")
    settings: dict[str, Any] = {"row_group_size": 1000, "max_rows_per_page": 100}
    pq.write_table(rows(), source, **settings, **options)
    pq.write_table(rows(), indexed, **settings, **{**options, "write_statistics": True}, write_page_index=True)
    report = fastpq.add_indexes(source, target, bloom_filter={"text": True, "list": True})
    assert report.copied_pages >= report.decoded_pages > 100
    old, new = source.read_bytes(), target.read_bytes()
    with fastpq.ParquetFile(target) as file, fastpq.ParquetFile(indexed) as theirs, fastpq.ParquetFile(source) as bare:
        for group in range(3):
            for number, column in enumerate(file.schema.columns):
                chunks = [each.metadata.row_group(group).column(number).byte_range for each in (bare, file)]
                assert old[chunks[0][0] : sum(chunks[0])] == new[chunks[1][0] : sum(chunks[1])]
                offsets, other_offsets = (present(each.offset_index(group, column.name)) for each in (file, theirs))
                assert offsets.row_counts.tolist() == other_offsets.row_counts.tolist()
                bounds, other = file.column_index(group, column.name), theirs.column_index(group, column.name)
                if bounds is not None and other is not None and column.name != "price":
                    assert bounds.null_pages.tolist() == other.null_pages.tolist()
                    assert present(bounds.null_counts).tolist() == present(other.null_counts).tolist()
                    if column.name != "text":       # pyarrow does not truncate
                        assert list(bounds.min_values) == list(other.min_values)
                        assert list(bounds.max_values) == list(other.max_values)
            assert present(file.bloom_filter(group, "text")).might_contain(f"text {group * 10} ".encode())
            assert file.bloom_filter(group, "id") is None
    assert fastpq.verify_file(target).is_sound
    expected = rows().to_pylist()
    assert str(pq.read_table(target).to_pylist()) == str(expected)
    assert str(pl.read_parquet(target).to_arrow().to_pylist()) == str(expected)
    assert pq.read_table(target, filters=[("id", "==", 1234)])["text"].to_pylist() == [expected[1234]["text"]]
    query = f"select text from '{target}' where id = 1234 or text = '{expected[77]['text']}'"
    assert {text for text, in present(duckdb.sql(query)).fetchall()} >= {expected[77]["text"], expected[1234]["text"]}
    assert fastpq.read_table(target, filters=[("day", "==", np.datetime64(7, "D"))]).num_rows == ROWS // 40
    statistics = pq.ParquetFile(target).metadata.row_group(1).column(0).statistics
    assert (statistics.min, statistics.max, statistics.null_count) == (1000, 1999, 0)


def test_options(tmp_path: Path) -> None:
    source, target = tmp_path / "a", tmp_path / "b"
    pq.write_table(rows(), source, write_statistics=False)
    report = fastpq.add_indexes(source, target, write_statistics=["id"], write_page_index=False)
    chunks = decoded_footer(fastpq.read_metadata(target)).row_groups[0].columns
    assert [present(chunk.meta_data).statistics is not None for chunk in chunks] == [True] + [False] * 7
    assert all(chunk.offset_index_offset is None for chunk in chunks)
    assert report.decoded_pages == 1
    report = fastpq.add_indexes(source, target, write_statistics=False)
    assert report.decoded_pages == 2        # of the list, whose rows only levels tell
    chunks = decoded_footer(fastpq.read_metadata(target)).row_groups[0].columns
    assert all(chunk.offset_index_offset is not None and chunk.column_index_offset is None for chunk in chunks)
    wrong: dict[str, Any]
    for wrong in ({"write_statistics": ["nope"]}, {"bloom_filter": {"nope": True}}, {"bloom_filter": {"flag": True}}):
        with pytest.raises(fastpq.SchemaError):
            fastpq.add_indexes(source, target, **wrong)


def test_pages_that_begin_within_rows(tmp_path: Path) -> None:
    """Old writers cut V1 pages of lists anywhere. Such a chunk cannot have a page index, but gets its statistics."""
    values = pa.table({"l": [list(range(1000)) for _ in range(20)], "id": list(range(20))})
    path, target = tmp_path / "source", tmp_path / "target"
    pl.from_arrow(values).write_parquet(path, data_page_size=1000, statistics=False)     # type: ignore[union-attr]
    report = fastpq.add_indexes(path, target)
    assert fastpq.verify_file(target).is_sound
    assert pq.read_table(target).to_pylist() == values.to_pylist()
    with fastpq.ParquetFile(target) as file:
        left_out = {index.column for index in report.dropped_indexes}
        for column in file.schema.columns:
            assert (file.offset_index(0, column.name) is None) == (column.name in left_out)
    assert pq.ParquetFile(target).metadata.row_group(0).column(0).statistics.max == 999


def test_a_footer_without_orders(tmp_path: Path) -> None:
    """Bounds of a file that does not state its orders mean nothing, so all of them are made again."""
    out, target = io.BytesIO(), tmp_path / "target"
    fastpq.write_table(rows(), out)
    data = out.getvalue()
    size = int.from_bytes(data[-8:-4], "little")
    footer, _ = fmt.decode(fmt.FileMetaData, data[-8 - size : -8])
    footer.column_orders = None
    for chunk in footer.row_groups[0].columns:
        present(present(chunk.meta_data).statistics).min_value = b"wrong"
    encoded = fmt.encode(footer)
    old = data[: -8 - size] + encoded + len(encoded).to_bytes(4, "little") + b"PAR1"
    fastpq.add_indexes(old, target)
    assert fastpq.verify_file(target).is_sound
    assert pq.ParquetFile(target).metadata.row_group(0).column(0).statistics.min == 0


@needs_data
def test_real_files(tmp_path: Path) -> None:
    compared = 0
    for path, theirs in real_files():
        target = tmp_path / path.name
        fastpq.add_indexes(path, target)
        assert_rows(target, theirs)
        was_sound = fastpq.verify_file(path).is_sound
        assert fastpq.verify_file(target).is_sound or not was_sound, path.name
        compared += 1
    assert compared > 40
