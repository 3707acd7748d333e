"""Files with broken pages, headers, dictionaries and chunks: what is read is what was written, and what is lost is reported."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq import format as fmt
from tests.interop.comparison import assert_same
from tests.recovery.tables import FOOTER_KEY, GROUP, ROWS, SECRET_KEY, written

PAGE = 125
LEAVES = ["number", "text", "list.list.element", "pair.left", "pair.right", "real"]


def file_of(**options: Any) -> bytes:
    sink = io.BytesIO()
    options = {"row_group_size": GROUP, "data_page_rows": PAGE} | options
    fastpq.write_table(written(), sink, **options)
    return sink.getvalue()


def damaged(data: bytes, *positions: int) -> bytes:
    broken = bytearray(data)
    for position in positions:
        broken[position] ^= 0x5A
    return bytes(broken)


def check(data: bytes, losses: list[tuple[str, int, int]] | None = None, **options: Any) -> fastpq.RecoveryReport:
    """Compare what is left with what was written: outside of the reported losses nothing is missing, within all of it."""
    truth = written()
    table, report = fastpq.recover_table(data, **options)
    lost = {name: np.zeros(ROWS, bool) for name in truth.column_names}
    for loss in report.losses:
        assert loss.row_group == loss.start // GROUP == (loss.stop - 1) // GROUP
        lost[loss.column.split(".")[0]][loss.start : loss.stop] = True
    if losses is not None:
        assert [(loss.column, loss.start, loss.stop) for loss in report.losses] == losses
    nulled = {name: truth[name].take(pa.array(range(ROWS), mask=mask)) for name, mask in lost.items()}
    assert_same(pa.table(table), pa.table(nulled))
    kept = ~np.logical_or.reduce(list(lost.values()))
    assert_same(pa.table(fastpq.recover_table(data, on_error="skip", **options).table), truth.filter(pa.array(kept)))
    return report


def span(data: bytes, leaf: str, row_group: int = 1, **options: Any) -> tuple[int, int]:
    with fastpq.ParquetFile(data, **options) as file:
        return file.metadata.row_group(row_group).column(file.schema.column(leaf).index).byte_range


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("leaf", LEAVES)
def test_a_broken_page_costs_that_page(version: str, indexed: bool, leaf: str) -> None:
    data = file_of(data_page_version=version, write_page_index=indexed)
    start, length = span(data, leaf)
    report = check(damaged(data, start + length - 1))       # in the body of the last page
    (loss,) = report.losses
    # where pages of V1 are known by their headers alone, the row before a lost page may go on in it
    more = int(leaf.startswith("list") and version == "1.0" and not indexed)
    assert (loss.start, loss.stop) == (2 * GROUP - PAGE - more, 2 * GROUP)
    assert loss.column == leaf
    assert "CRC-32" in loss.reason


@pytest.mark.parametrize("leaf", LEAVES)
def test_a_broken_header_costs_the_rest_of_its_chunk_unless_an_index_tells_more(leaf: str) -> None:
    data = file_of()
    with fastpq.ParquetFile(data) as file:
        index = file.offset_index(1, leaf)
    assert index is not None
    page = index.page_locations[1]
    check(damaged(data, page.offset), [(leaf, GROUP + PAGE, GROUP + 2 * PAGE)])
    bare = file_of(write_page_index=False)
    more = int(leaf.startswith("list"))
    check(damaged(bare, page.offset), [(leaf, GROUP + PAGE - more, 2 * GROUP)])


def test_a_broken_dictionary_costs_the_pages_that_need_it() -> None:
    """The writer gave the dictionary up after some pages; the plain ones behind them are whole."""
    data = file_of(dictionary_page_size=1000, column_encoding={"number": "RLE_DICTIONARY"})
    start, _ = span(data, "number")
    (loss,) = check(damaged(data, start + 40)).losses
    assert (loss.start, loss.column) == (GROUP, "number")
    assert loss.stop < 2 * GROUP
    with fastpq.ParquetFile(data) as file:
        encodings = {fmt.Encoding(stats.encoding).name for stats in file.metadata.row_group(1).column(0).encoding_stats}
    assert encodings == {"PLAIN", "RLE_DICTIONARY"}


@pytest.mark.parametrize("options", [{}, {"write_page_index": False}, {"data_page_version": "2.0", "compression": "zstd"}])
def test_any_bytes_broken(options: dict[str, Any]) -> None:
    data = file_of(**options)
    end = len(data) - int.from_bytes(data[-8:-4], "little") - 8
    draw = random.Random(len(options))
    for count in (1, 1, 1, 2, 2, 3, 3, 9, 40):
        check(damaged(data, *(draw.randrange(4, end) for _ in range(count))))


def with_footer(data: bytes, change: Callable[[fmt.FileMetaData], None]) -> bytes:
    length = int.from_bytes(data[-8:-4], "little")
    footer = fmt.decode(fmt.FileMetaData, data[-8 - length : -8])[0]
    change(footer)
    stored = fmt.encode(footer)
    return data[: -8 - length] + stored + len(stored).to_bytes(4, "little") + b"PAR1"


def _metadata(footer: fmt.FileMetaData) -> fmt.ColumnMetaData:
    metadata = footer.row_groups[1].columns[1].meta_data
    assert metadata is not None
    return metadata


@pytest.mark.parametrize(
    ("field", "value"), [("total_compressed_size", -1), ("type", 3), ("codec", 77), ("codec", 6), ("num_values", 3)]
)
def test_broken_column_metadata_cost_that_chunk(field: str, value: int) -> None:
    data = with_footer(file_of(), lambda footer: setattr(_metadata(footer), field, value))
    check(data, [("text", GROUP, 2 * GROUP)])


def test_a_header_that_lies_about_its_values_puts_none_into_wrong_rows() -> None:
    """125 -> 65 values in the second page: the pages behind it would begin sixty rows early."""
    data = file_of(write_page_index=False, compression="none", use_dictionary=False)
    start, length = span(data, "number")
    body = bytes(data[start : start + length])
    place = body.index(b"\x15\xfa\x01", 300)     # DataPageHeader.num_values, zigzag
    lied = data[: start + place] + b"\x15\x82\x01" + data[start + place + 3 :]
    (loss,) = check(lied).losses
    assert loss.column == "number"
    assert (loss.start, loss.stop) == (GROUP, 2 * GROUP)


def test_rows_that_only_the_footer_tells_of_are_not_made_up() -> None:
    def claim(footer: fmt.FileMetaData) -> None:
        footer.row_groups[1].num_rows = 10**12

    with pytest.raises(fastpq.FormatError, match="lost, or were never there"):
        fastpq.recover_table(with_footer(file_of(), claim))


def test_encrypted_pages_that_do_not_authenticate_are_lost() -> None:
    keys: dict[str, Any] = {"footer_key": FOOTER_KEY, "column_keys": {"text": SECRET_KEY}}
    data = file_of(encryption_properties=fastpq.FileEncryptionProperties(**keys, encrypt_unlisted="footer_key"))
    opened: dict[str, Any] = {"decryption_properties": fastpq.FileDecryptionProperties(**keys)}
    for leaf in ("text", "list.list.element"):
        start, length = span(data, leaf, **opened)
        report = check(damaged(data, start + length - 1), [(leaf, 2 * GROUP - PAGE, 2 * GROUP)], **opened)
        assert "authenticate" in report.losses[0].reason or "tag" in report.losses[0].reason
    without: dict[str, Any] = {"decryption_properties": fastpq.FileDecryptionProperties(footer_key=FOOTER_KEY)}
    with pytest.raises(fastpq.KeyAccessError):
        fastpq.recover_table(data, **without)
    table, report = fastpq.recover_table(data, ["number"], **without)
    assert report.is_whole
    assert table.num_rows == ROWS


def test_many_broken_pages_are_read_a_few_times_each() -> None:
    sink = io.BytesIO()
    rows = np.arange(300)
    fastpq.write_table({"n": rows}, sink, data_page_rows=1, use_dictionary=False, compression="none")
    with fastpq.ParquetFile(sink.getvalue()) as file:
        index = file.offset_index(0, "n")
    assert index is not None
    lost = np.flatnonzero(rows % 3)     # a whole page now and then
    broken = damaged(sink.getvalue(), *(index.offsets + index.sizes - 1)[lost].tolist())
    with fastpq.ParquetFile(broken, on_error="null") as file:
        assert file.read()["n"].to_pylist() == [None if row % 3 else row for row in rows.tolist()]
        assert sum(loss.num_rows for loss in file.recovery.losses) == len(lost)
        assert file.io.requests < 10 * len(rows)


def test_pages_of_others() -> None:
    sink = io.BytesIO()
    pq.write_table(written(), sink, row_group_size=GROUP, data_page_size=1000, write_batch_size=50, write_page_checksum=True)
    data = sink.getvalue()
    for leaf in LEAVES:
        start, length = span(data, leaf)
        (loss,) = check(damaged(data, start + length - 1)).losses
        assert loss.column == leaf
        assert loss.num_rows < GROUP or leaf in ("text", "pair.right")     # one page of indices


def test_parquet_file_reads_on() -> None:
    data = file_of()
    start, length = span(data, "real")
    broken = damaged(data, start + length - 1)
    truth = written()
    gone = range(2 * GROUP - PAGE, 2 * GROUP)
    with fastpq.ParquetFile(broken, on_error="null") as file:
        batches = list(file.iter_batches(111, ["number", "real"]))
        assert {batch.num_rows for batch in batches[:-1]} == {111}
        reals = [value for batch in batches for value in batch["real"].to_pylist()]
        assert reals == [None if row in gone else value for row, value in enumerate(truth["real"].to_pylist())]
        assert [(loss.start, loss.stop) for loss in file.recovery.losses] == [(gone.start, gone.stop)]
        around = file.read(["number", "real"], row_ranges=[(gone.start - 1, gone.start + 1), (2000, 2001)])
        assert around["number"].to_pylist() == [gone.start - 1, gone.start, 2000]
        assert around["real"].to_pylist()[1] is None
        # what is lost is neither null nor not null
        assert file.read(["number"], filters=[("real", "is null")]).num_rows == 0
        found = file.read(["number"], filters=[("real", ">", 0.5)])["number"].to_pylist()
        assert found == [row for row, value in enumerate(truth["real"].to_pylist()) if value > 0.5 and row not in gone]
        assert file.count([("real", ">", 0.5)]) == len(found)
        assert file.take([gone.start, 0], ["number"])["number"].to_pylist() == [gone.start, 0]
        with pytest.raises(fastpq.SchemaError, match="on_error"):
            file.read(["number"], out={"number": np.empty(ROWS, np.int64)})
    with fastpq.ParquetFile(broken, on_error="skip") as file:
        assert file.read(["number"]).num_rows == ROWS
        assert file.recovery.is_whole
        assert file.read(["number", "real"])["number"].to_pylist() == [row for row in range(ROWS) if row not in gone]
    with pytest.raises(ValueError, match="on_error"):
        fastpq.ParquetFile(broken, on_error="ignore")  # type: ignore[arg-type]
