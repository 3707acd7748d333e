"""verify_file: keys, limits, memory, progress, places, and what is shown of a report."""

from __future__ import annotations

import io
import tracemalloc
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.verify.measured_pages import MeasuredChunk
from tests.requirements import DATA, needs_data

FOOTER_KEY, PRICE_KEY = b"0123456789012345", b"1234567890123450"


def written(table: Any, **options: Any) -> bytes:
    sink = io.BytesIO()
    fastpq.write_table(table, sink, **options)
    return sink.getvalue()


def items(rows: int = 10_000) -> dict[str, Any]:
    return {"id": np.arange(rows), "price": np.arange(rows) / 7, "name": [f"name {row % 30}" for row in range(rows)]}


def flipped(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def test_a_flipped_bit_is_found_anywhere_in_the_pages(tmp_path: Path) -> None:
    data = written(items(2000), row_group_size=500, compression="zstd")
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    with fastpq.ParquetFile(data) as file:
        ranges = [group.column(column).byte_range for group in file.metadata.row_groups for column in range(3)]
    for start, size in ranges:
        for place in range(start, start + size, 97):
            report = fastpq.verify_file(flipped(data, place))
            assert report.num_violations, place
            assert report.violations[0].place.row_group is not None
    assert fastpq.verify_file(data).is_sound
    assert end > 0


def test_columns_without_their_key_are_not_checked() -> None:
    keys = fastpq.FileEncryptionProperties(FOOTER_KEY, {"price": PRICE_KEY}, plaintext_footer=True, unlisted="plaintext")
    data = written(items(), encryption_properties=keys, row_group_size=5000)
    report = fastpq.verify_file(data, decryption_properties=fastpq.FileDecryptionProperties(FOOTER_KEY))
    assert report.is_sound
    assert not report.is_complete
    assert {(part.place.row_group, part.place.column, part.needs_key) for part in report.unchecked} == {
        (0, "price", True), (1, "price", True)}
    assert report.num_chunks == 4
    both = fastpq.FileDecryptionProperties(FOOTER_KEY, {"price": PRICE_KEY})
    assert fastpq.verify_file(data, decryption_properties=both).is_complete


def test_without_the_footer_key_nothing_is_told() -> None:
    data = written(items(), encryption_properties=fastpq.FileEncryptionProperties(FOOTER_KEY))
    with pytest.raises(fastpq.KeyAccessError):
        fastpq.verify_file(data)
    other = fastpq.FileDecryptionProperties(PRICE_KEY)
    (violation,) = fastpq.verify_file(data, decryption_properties=other).violations
    assert violation.part == "encryption"


def test_messages_show_no_values_of_encrypted_files() -> None:
    keys = fastpq.FileEncryptionProperties(FOOTER_KEY, plaintext_footer=True)
    data = written({"secret": ["password 1", "password 2"]}, encryption_properties=keys)
    for place in range(4, len(data), 5):
        try:
            result: Any = fastpq.verify_file(
                flipped(data, place), decryption_properties=fastpq.FileDecryptionProperties(FOOTER_KEY))
        except fastpq.ParquetError as error:
            result = error
        assert "password" not in str(result)


def test_values_beyond_bounds_are_shown_unless_the_column_is_encrypted(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {"day": np.arange(500), "name": [f"name {row:03}" for row in range(500)]}
    own_extremes = MeasuredChunk.extremes.fget  # type: ignore[attr-defined]

    def wrong_extremes(chunk: MeasuredChunk) -> tuple[bytes | None, bytes | None]:
        low, high = own_extremes(chunk)
        return low, high + b"x" if chunk.column.name == "name" else (10**6).to_bytes(8, "little")

    monkeypatch.setattr(MeasuredChunk, "extremes", property(wrong_extremes))
    plain = written(table)
    footer = len(plain) - 8 - int.from_bytes(plain[-8:-4], "little")
    messages = {}
    for violation in fastpq.verify_file(plain).violations:
        if violation.part == "statistics" and "below" in violation.message:
            assert violation.place.offset == footer
            messages[violation.place.column] = violation.message.partition(": ")[2]
    assert messages["day"] == "the maximum is 499, but the chunk holds 1000000"
    assert messages["name"] == "the maximum is 'name 499', but the chunk holds 'name 499x'"
    keys = fastpq.FileEncryptionProperties(FOOTER_KEY, plaintext_footer=True)
    report = fastpq.verify_file(
        written(table, encryption_properties=keys), decryption_properties=fastpq.FileDecryptionProperties(FOOTER_KEY))
    hidden = [each.message for each in report.violations if "below" in each.message]
    assert len(hidden) >= 2
    assert not any("499" in message or "1000000" in message for message in hidden)


def test_quick_does_not_decode() -> None:
    """A statistic that the values refute is not seen, one that the schema refutes is."""
    data = written(items(), compression="zstd")
    report = fastpq.verify_file(data, quick=True)
    assert report.is_quick
    assert report.is_sound
    assert report.num_pages == fastpq.verify_file(data).num_pages > 0


def test_violations_beyond_the_limit_are_counted() -> None:
    data = bytearray(written(items(), row_group_size=100, compression="none"))
    with fastpq.ParquetFile(bytes(data)) as file:
        starts = [group.column(0).byte_range for group in file.metadata.row_groups]
    for start, size in starts:
        data[start + size - 1] ^= 1
    report = fastpq.verify_file(bytes(data), most_violations=7)
    assert len(report.violations) == 7
    assert report.num_violations == 100
    assert "93 violations more" in str(report)


def test_progress_counts_rows() -> None:
    calls: list[tuple[int, int]] = []
    fastpq.verify_file(written(items(), row_group_size=2500), progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (10_000, 10_000)
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)
    assert len(calls) >= 4


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """One page, one dictionary and the indexes of one chunk are in memory at a time."""

    def peak(groups: int) -> int:
        path = tmp_path / f"{groups}.parquet"
        with fastpq.ParquetWriter(path, row_group_size=100_000, data_page_size=1 << 16) as writer:
            for _ in range(groups):
                writer.write_batch({"number": np.random.default_rng(1).random(100_000)})
        fastpq.verify_file(path)
        tracemalloc.start()
        fastpq.verify_file(path)
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    assert peak(20) < 1.3 * peak(2)


def test_places(tmp_path: Path) -> None:
    data = written(items())
    path = tmp_path / "items.parquet"
    path.write_bytes(data)
    for where in (path, str(path), data, io.BytesIO(data), path.as_uri()):
        assert fastpq.verify_file(where).is_sound
    fastpq.write_table(items(), "memory://verified.parquet")
    assert fastpq.verify_file("memory://verified.parquet").is_sound
    with pytest.raises(FileNotFoundError):
        fastpq.verify_file(tmp_path / "nothing.parquet")


def test_what_is_no_parquet_file_has_one_violation() -> None:
    for data in (b"", b"a,b\n1,2\n" * 10, b"PAR1", b"PAR1" * 3):
        report = fastpq.verify_file(data)
        assert report.num_violations == 1
        assert report.violations[0].part == "footer"


def test_report_is_shown(tmp_path: Path) -> None:
    data = written({"<b>id</b>": np.arange(1000)}, compression="none")
    report = fastpq.verify_file(flipped(data, 100))
    text, html = repr(report), report._repr_html_()
    assert "1 violation" in text
    assert "CRC-32" in text
    assert "&lt;b&gt;id" in html
    assert "<b>id" not in html
    assert "README.md, Checksumming" in html
    assert "sound" in repr(fastpq.verify_file(data))
    assert str(report.violations[0]).startswith("page: the CRC-32 of the page does not match [row group 0, column <b>id</b>")


@needs_data
@pytest.mark.parametrize(
    ("name", "column", "reader"),
    [
        ("strangers/alltypes_agg_bitpacked_def_levels.parquet", "id", "pyarrow reads them from the lowest bit"),
        ("strangers/spark_legacy_dates.parquet", "d", "pyarrow, DuckDB and Polars read other days"),
        ("parquet-testing/data/int96_from_spark.parquet", "a", "pyarrow reads another time"),
    ],
)
def test_legal_cases_name_the_readers_that_differ(name: str, column: str, reader: str) -> None:
    report = fastpq.verify_file(DATA / name)
    differences = {difference.place.column: difference for difference in report.differences}
    assert reader in differences[column].readers
    assert report.is_sound


def test_metadata_file_of_a_dataset(tmp_path: Path) -> None:
    """The chunks are in other files, whose ordinals the row groups keep."""
    fastpq.write_dataset({"id": np.arange(900), "part": np.arange(900) % 3}, tmp_path, partition_by=["part"])
    fastpq.write_dataset_metadata(tmp_path)
    report = fastpq.verify_file(tmp_path / "_metadata")
    assert not report.violations
    assert report.num_pages == report.num_chunks == 3
    (first, *_) = tmp_path.rglob("*.parquet")
    data = bytearray(first.read_bytes())
    data[50] ^= 1
    first.write_bytes(data)
    assert "CRC-32" in str(fastpq.verify_file(tmp_path / "_metadata"))


def test_unfinished_file_differs(tmp_path: Path) -> None:
    writer = fastpq.ParquetWriter(tmp_path / "x.parquet", row_group_size=100, checkpoint_every=1)
    for _ in range(3):
        writer.write_batch({"id": np.arange(100)})
    (unfinished,) = fastpq.unfinished_files(tmp_path)
    report = fastpq.verify_file(unfinished)
    (difference,) = report.differences
    assert report.is_sound
    assert "checkpoint" in difference.case
    for peer_rows in (pq.read_table(unfinished).num_rows, pl.read_parquet(unfinished).height):
        assert peer_rows == report.num_rows
    with duckdb.connect() as connection:
        rows = connection.execute(f"SELECT count(*) FROM read_parquet('{unfinished}')").fetchall()
    assert rows == [(report.num_rows,)]
    writer.abort()


def test_repeated_names_differ() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table([pa.array([1]), pa.array([2])], ["a", "a"]), sink)
    (difference,) = fastpq.verify_file(sink).differences
    assert difference.case == "2 columns with the same name"
    assert "pyarrow: an error" in difference.readers


@needs_data
@pytest.mark.parametrize(
    ("name", "readers"),
    [
        ("strangers/compat_chunk_path_swapped.parquet", "by their positions"),
        ("strangers/zero_rows_one_row_group.parquet", "the rows of the row groups"),
        ("parquet-testing/data/datapage_v1-corrupt-checksum.parquet", "on request"),
        ("parquet-testing/bad_data/ARROW-GH-45185.parquet", "an error"),
    ],
)
def test_violations_name_the_readers_that_differ(name: str, readers: str) -> None:
    violations = fastpq.verify_file(DATA / name).violations
    assert any(readers in (violation.readers or "") for violation in violations)


def test_text_that_is_not_utf8_names_the_readers_that_differ() -> None:
    sink = io.BytesIO()
    buffers = [None, pa.py_buffer(np.array([0, 1], np.int32).tobytes()), pa.py_buffer(b"\xff")]
    pq.write_table(pa.table({"text": pa.Array.from_buffers(pa.string(), 1, buffers)}), sink)
    (violation,) = fastpq.verify_file(sink).violations
    assert violation.section == "LogicalTypes.md, STRING"
    assert violation.readers == "pyarrow reads the bytes as text; Polars and DuckDB: an error"


@needs_data
def test_path_order_is_chosen_by_the_option() -> None:
    by_path = fastpq.ReaderProperties(chunk_order="path")
    path = DATA / "strangers/compat_chunk_path_swapped.parquet"
    assert fastpq.verify_file(path, properties=by_path).is_sound
    by_position = fastpq.ReaderProperties(chunk_order="position")
    assert "of another column" in str(fastpq.verify_file(path, properties=by_position))


@pytest.mark.parametrize("seed", range(3))
def test_altered_footers_end_in_a_report(seed: int) -> None:
    """A footer has no checksum. Whatever its bytes say, there is a report, and no error."""
    random = np.random.default_rng(seed)
    lists = pa.array([[row, None] for row in range(300)])
    tables = [items(300), pa.table({"list": lists, "number": pa.array(range(300))})]
    sources = [written(table, row_group_size=100, bloom_filter={"id": True} if table is tables[0] else None) for table in tables]
    for _ in range(150):
        data = bytearray(sources[random.integers(2)])
        size = int.from_bytes(data[-8:-4], "little")
        for place in len(data) - 8 - random.integers(1, size + 1, random.integers(1, 4)):
            data[place] = random.integers(256)
        assert fastpq.verify_file(bytes(data), quick=bool(random.integers(2))).size == len(data)
