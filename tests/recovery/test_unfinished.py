"""Files of killed writers, and files that lost their footer."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from tests.interop.comparison import assert_same
from tests.interop.page_walk import Compact
from tests.recovery.tables import FOOTER_KEY, GROUP, ROWS, SECRET_KEY, written
from tests.requirements import peer

duckdb = peer("duckdb")

REPOSITORY = Path(__file__).parents[2]
KEYS: dict[str, Any] = {"footer_key": FOOTER_KEY, "column_keys": {"text": SECRET_KEY}}


@pytest.fixture(scope="module", params=["plaintext", "encrypted"])
def killed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    target = tmp_path_factory.mktemp("killed") / "items [1].parquet"
    command = [sys.executable, "-m", "tests.recovery.killed_writer", str(target), request.param]
    assert subprocess.run(command, cwd=REPOSITORY, check=False).returncode == -9
    assert not target.exists()
    opened = {"decryption_properties": fastpq.FileDecryptionProperties(**KEYS)} if request.param == "encrypted" else {}
    return target, opened


def test_a_killed_writer_leaves_its_last_checkpoint(killed: tuple[Path, dict[str, Any]]) -> None:
    target, opened = killed
    (left,) = fastpq.unfinished_files(target)
    table, report = fastpq.recover_table(left, **opened)
    # of an encrypted file what follows the checkpoint cannot be opened
    rows = 4 * GROUP if opened else ROWS
    assert_same(pa.table(table), written().slice(0, rows))
    assert (report.found_by, report.losses, report.is_whole) == ("checkpoint", (), False)
    assert report.reason is not None
    assert bool(report.unread)
    with pytest.raises(fastpq.FormatError, match="Parquet file is incomplete"):
        fastpq.ParquetFile(left, **opened)
    with fastpq.ParquetFile(left, on_error="skip", **opened) as file:
        assert file.metadata.num_row_groups == 4
        assert file.metadata.key_value_metadata["who"] == "killed"
        statistics = file.metadata.row_group(3).column(1).statistics
        assert statistics is not None
        assert statistics.null_count == written()["text"].slice(3 * GROUP, GROUP).null_count
        bloom_filter = file.bloom_filter(3, "number")
        assert bloom_filter is not None
        assert file.offset_index(1, "text") is not None
        assert_same(pa.table(file.read()), written().slice(0, 4 * GROUP))
        assert file.recovery.unread


def test_without_keys_a_killed_writers_file_stays_closed(killed: tuple[Path, dict[str, Any]]) -> None:
    target, opened = killed
    if opened:
        (left,) = fastpq.unfinished_files(target)
        with pytest.raises(fastpq.KeyAccessError):
            fastpq.recover_table(left)
        wrong = fastpq.FileDecryptionProperties(footer_key=SECRET_KEY)
        with pytest.raises(fastpq.FormatError, match="Parquet file is incomplete"):
            fastpq.recover_table(left, decryption_properties=wrong)


def checkpointed(**options: Any) -> bytes:
    sink = io.BytesIO()
    fastpq.write_table(written(), sink, row_group_size=GROUP, checkpoint_every=1, key_value_metadata={"a": "b"}, **options)
    return sink.getvalue()


def test_a_finished_file_is_an_ordinary_one(tmp_path: Path) -> None:
    path = tmp_path / "finished.parquet"
    path.write_bytes(checkpointed(bloom_filter={"number": True}))
    assert_same(pq.read_table(path), written())
    assert pq.read_metadata(path).metadata[b"a"] == b"b"
    found = duckdb.sql(f"SELECT count(*), sum(number) FROM '{path}' WHERE number >= 77").fetchall()
    assert found == [(ROWS - 77, sum(range(77, ROWS)))]
    with fastpq.ParquetFile(path) as file:
        assert file.read(["number"], filters=[("number", "==", GROUP + 1)])["number"].to_pylist() == [GROUP + 1]
        assert file.column_index(4, "number") is not None
    assert fastpq.unfinished_files(path) == []


def test_a_file_cut_off_behind_a_checkpoint_is_not_taken_for_a_finished_one(tmp_path: Path) -> None:
    """An attacker can cut it there; other readers cannot tell."""
    data = checkpointed()
    path = tmp_path / "cut.parquet"
    path.write_bytes(data[: data.index(b"PAR1", 4) + 4])
    assert pq.read_table(path).num_rows == GROUP
    with pytest.raises(fastpq.FormatError, match="not finished"):
        fastpq.read_table(path)
    table, report = fastpq.recover_table(path)
    assert (table.num_rows, report.found_by) == (GROUP, "checkpoint")
    assert "not finished" in str(report)
    with pytest.raises(ValueError, match="checkpoint"):
        fastpq.write_table(written(), path, key_value_metadata={"fastpq.checkpoint": "1"})


def test_every_checkpoint_of_an_encrypted_file_has_nonces_of_its_own() -> None:
    data = checkpointed(encryption_properties=fastpq.FileEncryptionProperties(**KEYS))
    nonces, end = set(), -1
    while (end := data.find(b"PARE", end + 1)) >= 0:
        if end:
            start = end - 4 - int.from_bytes(data[end - 4 : end], "little")
            crypto = Compact(data, start)
            crypto.struct()
            nonces.add(data[crypto.position + 4 : crypto.position + 16])
    assert len(nonces) == ROWS // GROUP + 1


@pytest.mark.parametrize("writer", ["fastpq", "fastpq-v2", "pyarrow"])
@pytest.mark.parametrize("hint", ["schema", "sibling"])
def test_a_lost_footer(writer: str, hint: str) -> None:
    sink = io.BytesIO()
    if writer == "pyarrow":
        pq.write_table(written(), sink, row_group_size=GROUP, data_page_size=2000, compression="zstd", data_page_version="2.0")
    else:
        version: Literal["1.0", "2.0"] = "2.0" if writer == "fastpq-v2" else "1.0"
        fastpq.write_table(written(), sink, row_group_size=GROUP, data_page_rows=100, data_page_version=version)
    data = sink.getvalue()
    known = {"schema": fastpq.read_schema(data)} if hint == "schema" else {"sibling": data}
    footer = int.from_bytes(data[-8:-4], "little") + 8
    with fastpq.ParquetFile(data) as file:
        ends = [sum(file.metadata.row_group(group).column(5).byte_range) for group in range(file.num_row_groups)]
    for size in (len(data) - 3, len(data) - footer, ends[3] + 500, ends[2], ends[0] + 10):
        table, report = fastpq.recover_table(data[:size], **known)
        rows = GROUP * sum(end <= size for end in ends)
        assert_same(pa.table(table), written().slice(0, rows))
        assert (report.found_by, report.losses) == ("pages", ())
        assert sum(length for _, length in report.unread) == size - (ends[rows // GROUP - 1])
    with pytest.raises(fastpq.FormatError, match="schema"):
        fastpq.recover_table(data[:-3])


def test_pages_that_fit_in_more_than_one_way_are_not_guessed_at() -> None:
    left, right = np.arange(400), np.arange(400) + 1000
    sink = io.BytesIO()
    fastpq.write_table({"left": left, "right": right}, sink, row_group_size=100, data_page_rows=50, use_dictionary=False)
    data = sink.getvalue()
    cut, schema = data[:-5], fastpq.read_schema(data)
    with pytest.raises(fastpq.FormatError, match="more than one way"):
        fastpq.recover_table(cut, schema=schema)
    for known in ({"schema": schema, "row_group_rows": 100}, {"sibling": data}):
        table, _ = fastpq.recover_table(cut, **known)
        assert table["left"].to_pylist() == left.tolist()
        assert table["right"].to_pylist() == right.tolist()
    # the fourth row group lacks its last page: a row group of 50 rows is not made of it
    table, _ = fastpq.recover_table(data[: data.index(b"PAR1", 4) - 2000], sibling=data)
    assert table["right"].to_pylist() == right[: table.num_rows].tolist()
    assert table.num_rows % 100 == 0


def test_a_footer_within_a_value_is_none() -> None:
    inner = io.BytesIO()
    fastpq.write_table({"secret": np.arange(10)}, inner)
    outer = io.BytesIO()
    fastpq.write_table({"file": np.array([inner.getvalue()] * 3, object), "n": np.arange(3)}, outer, compression="none")
    cut = outer.getvalue()[:-3]
    with pytest.raises(fastpq.FormatError, match="schema"):
        fastpq.recover_table(cut)
    table, _ = fastpq.recover_table(cut, sibling=outer.getvalue())
    assert table["file"].to_pylist() == [inner.getvalue()] * 3


def test_a_wrong_schema_gives_no_wrong_values() -> None:
    data = io.BytesIO()
    fastpq.write_table({"text": np.array(["a", "b"], object), "n": np.arange(2)}, data)
    other = io.BytesIO()
    fastpq.write_table({"n": np.arange(2, dtype=np.int32), "flag": np.array([True, False])}, other)
    table, report = fastpq.recover_table(data.getvalue()[:-3], schema=fastpq.read_schema(other.getvalue()))
    assert table.num_rows == 0
    assert not report.is_whole


def test_plaintext_pages_in_the_place_of_an_encrypted_file() -> None:
    """Whoever can replace a file can leave out its footer: that is no way around the policy."""
    out = io.BytesIO()
    fastpq.write_table({"id": np.arange(10)}, out)
    schema, pages = fastpq.read_schema(out.getvalue()), out.getvalue()[:-8]
    assert fastpq.recover_table(pages, schema=schema).table.num_rows == 10
    strict = fastpq.FileDecryptionProperties(bytes(16))
    with pytest.raises(fastpq.CryptoError, match="allow_plaintext_files"):
        fastpq.recover_table(pages, schema=schema, decryption_properties=strict)
    policies: list[dict[str, Any]] = [{}, {"verify_footer_signature": False}]
    for policy in policies:
        lax = fastpq.FileDecryptionProperties(bytes(16), allow_plaintext_files=True, **policy)
        assert fastpq.recover_table(pages, schema=schema, decryption_properties=lax).table.num_rows == 10


@pytest.mark.parametrize(("unit", "what"), [(b"\x01\0\0\0PAR1", "a footer"), (b"\x15\0", "pages")])
def test_what_looks_like_footers_or_headers_of_pages_everywhere_is_given_up(unit: bytes, what: str) -> None:
    data = b"PAR1" + unit * (160_000 // len(unit)) + b"cut!"
    schema = fastpq.read_schema(checkpointed())
    with pytest.raises(fastpq.LimitError, match=f"looks like {what}"):
        fastpq.recover_table(data, schema=schema) if what == "pages" else fastpq.ParquetFile(data, on_error="null")


def test_a_checkpoint_stands_whatever_is_behind_it() -> None:
    whole, tail = checkpointed(), b"\x15\0" * 80_000
    table, report = fastpq.recover_table(whole[:-8] + tail)
    assert report.found_by == "checkpoint"
    assert "looks like pages" in str(report.reason)
    assert table.num_rows
    assert sum(length for _, length in report.unread) >= len(tail)


def test_a_key_service_is_not_asked_for_each_of_many_footers() -> None:
    asked: list[bytes] = []

    def retrieve(key_metadata: bytes) -> bytes:
        asked.append(key_metadata)
        return bytes(16)

    out = io.BytesIO()
    keys = fastpq.FileEncryptionProperties(bytes(16), footer_key_metadata=b"k")
    fastpq.write_table({"id": np.arange(10)}, out, encryption_properties=keys)
    size = int.from_bytes(out.getvalue()[-8:-4], "little")
    footer = out.getvalue()[-8 - size :]
    forged = b"PARE" + (footer[:-9] + bytes([footer[-9] ^ 1]) + footer[-8:]) * 500 + b"cut!"
    with pytest.raises(fastpq.LimitError, match="looks like a footer"):
        fastpq.ParquetFile(
            forged, on_error="null", decryption_properties=fastpq.FileDecryptionProperties(key_retriever=retrieve)
        )
    assert 0 < len(asked) <= 64
