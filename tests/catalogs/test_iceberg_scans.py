"""Scans of PyIceberg: what fastpq reads is what PyIceberg reads, also encrypted, with deletes and after changes of the schema."""

from __future__ import annotations

import datetime as dt
import io
import json
import math
import random
import shutil
import struct
import traceback
import tracemalloc
import zlib
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.api.file import ParquetFile
from fastpq.catalogs.iceberg import GcmStreamWriter, StandardKeyMetadata, file_properties, iter_scan, read_scan, write_data_file
from fastpq.catalogs.iceberg.deletion_vectors import VECTOR_MAGIC, decode_vector, positions_in_puffin
from fastpq.catalogs.iceberg.file_columns import TableField
from fastpq.catalogs.iceberg.scan_filters import ScanFilter
from fastpq.encryption import AuditLog
from tests.own_code import is_own_code
from tests.requirements import peer

ROWS = 3000
START = dt.datetime(2020, 1, 1)
COLUMNS = {
    "id": pa.array(range(ROWS), pa.int64()),
    "text": pa.array([None if i % 11 == 0 else f"text {i % 100}" for i in range(ROWS)]),
    "real": pa.array([float("nan") if i % 500 == 0 else i / 3 for i in range(ROWS)], pa.float32()),
    "money": pa.array([Decimal(i) / 100 for i in range(ROWS)], pa.decimal128(12, 2)),
    "moment": pa.array([START + dt.timedelta(hours=i) for i in range(ROWS)], pa.timestamp("us")),
    "utc": pa.array([START + dt.timedelta(hours=i) for i in range(ROWS)], pa.timestamp("us", "UTC")),
    "day": pa.array([START.date() + dt.timedelta(days=i % 30) for i in range(ROWS)]),
    "flag": pa.array([i % 2 == 0 for i in range(ROWS)]),
    "raw": pa.array([bytes([i % 256]) * 20 for i in range(ROWS)]),
    "list": pa.array([[i, None] for i in range(ROWS)], pa.list_(pa.int64())),
    "struct": pa.array([{"a": i, "b": str(i)} for i in range(ROWS)], pa.struct({"a": pa.int32(), "b": pa.string()})),
    "map": pa.array([[("k", i)] for i in range(ROWS)], pa.map_(pa.string(), pa.int64())),
}
DATA = pa.table(COLUMNS)


def same(ours: fastpq.Table, theirs: pa.Table) -> bool:
    table = pa.table(ours)
    return repr(table.to_pydict()) == repr(theirs.cast(table.schema).to_pydict())     # NaN is not equal to itself


def append(table: Any, *data_files: Any) -> None:
    """Add data files to a table; version 2 takes key metadata, in manifests that are not encrypted."""
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as snapshot:
        for data_file in data_files:
            snapshot.append_data_file(data_file)


def with_deletes(scan: Any, *delete_files: Any) -> list[Any]:
    """Return the tasks of a scan with delete files, as other engines plan them."""
    from pyiceberg.table import FileScanTask

    return [FileScanTask(task.file, set(delete_files) | task.delete_files, task.residual) for task in scan.plan_files()]


def delete_file(content: int, path: Path, *, format_: str = "PARQUET", key_metadata: bytes | None = None, ids: Any = None) -> Any:
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    return DataFile.from_args(
        content=DataFileContent(content), file_path=str(path), file_format=FileFormat[format_], partition=Record(),
        record_count=1, file_size_in_bytes=path.stat().st_size, key_metadata=key_metadata, equality_ids=ids,
    )


def write_positions(path: Path, data_file: str, positions: Iterable[int], keys: Any = None) -> None:
    names = [data_file, "another file"]
    rows = {
        "file_path": pa.array([name for name in names for _ in positions], pa.string()),
        "pos": pa.array([position + number for number in (0, 1) for position in positions], pa.int64()),
    }
    fastpq.write_table(pa.table(rows), path, field_ids={"file_path": 2147483546, "pos": 2147483545}, encryption_properties=keys)


def vector_of(positions: Iterable[int], *, has_runs: bool = False) -> bytes:
    """Return a deletion-vector-v1 blob with the roaring bitmaps of the package pyroaring."""
    bit_map = peer("pyroaring").BitMap
    parts: dict[int, list[int]] = {}
    for position in positions:
        parts.setdefault(position >> 32, []).append(position & 0xFFFFFFFF)
    body = len(parts).to_bytes(8, "little")
    for key in sorted(parts):
        bitmap = bit_map(parts[key])
        if has_runs:
            bitmap.run_optimize()
        body += key.to_bytes(4, "little") + bitmap.serialize()
    content = VECTOR_MAGIC + body
    return len(content).to_bytes(4, "big") + content + zlib.crc32(content).to_bytes(4, "big")


def puffin_of(vectors: dict[str, bytes], **changes: Any) -> bytes:
    out, blobs = b"PFA1", []
    for data_file, vector in vectors.items():
        blobs.append({
            "type": "deletion-vector-v1", "fields": [], "snapshot-id": -1, "sequence-number": -1, "offset": len(out),
            "length": len(vector), "properties": {"referenced-data-file": data_file}, **changes,
        })
        out += vector
    payload = json.dumps({"blobs": blobs, "properties": {}}).encode()
    return out + b"PFA1" + payload + len(payload).to_bytes(4, "little") + bytes(4) + b"PFA1"


# ---- plaintext tables, beside PyIceberg

FILTERS = [
    "id < 10", "text is null and id < 100", "text is not null", "text != 'text 3'", "text not in ('text 3', 'text 4')",
    "text in ('text 3', 'text 4')", "real > 100.5 or text = 'text 7'", "real is nan", "real is not nan and id < 600",
    "money = 3.50", "moment >= '2020-02-01T00:00:00'", "day = '2020-01-05'",
    "text like 'text 1%'", "text not like 'text 1%'", "not (id > 5)",
    "struct.a < 7", "flag = true and id <= 20", "id < 0", "id >= 0", "raw = 'x'",
]


@pytest.fixture
def table(catalog: Any) -> Any:
    table = catalog.create_table("db.plain", schema=DATA.schema)
    table.append(DATA)
    table.append(DATA.slice(100, 50))
    return table


def test_a_scan_is_that_of_pyiceberg(table: Any) -> None:
    assert same(read_scan(table.scan()), table.scan().to_arrow())
    some = ("money", "id", "map")
    assert same(read_scan(table.scan(selected_fields=some)), table.scan(selected_fields=some).to_arrow())
    assert read_scan(table.scan(limit=3020)).num_rows == 3020
    assert [part.num_rows for part in iter_scan(table.scan())] == [50, ROWS]
    first = table.history()[0].snapshot_id
    assert read_scan(table.scan(snapshot_id=first)).num_rows == ROWS
    task = next(iter(table.scan().plan_files()))
    assert read_scan(table.scan(), [task]).num_rows == task.file.record_count
    nothing = read_scan(table.scan(), [])
    assert nothing.num_rows == 0
    assert pa.table(nothing).schema.names == DATA.column_names


@pytest.mark.parametrize("row_filter", FILTERS)
def test_filters_keep_the_rows_that_pyiceberg_keeps(row_filter: str, table: Any) -> None:
    if "raw" in row_filter:
        from pyiceberg.expressions import EqualTo

        scan = table.scan(row_filter=EqualTo("raw", bytes([7]) * 20))
    else:
        scan = table.scan(row_filter=row_filter)
    assert same(read_scan(scan), scan.to_arrow())


def test_columns_are_found_by_their_ids(table: Any) -> None:
    from pyiceberg.types import DoubleType, LongType

    old = read_scan(table.scan())
    with table.update_schema() as update:
        update.rename_column("text", "day of old")
        update.rename_column("day", "text")
        update.add_column("added", LongType())
        update.update_column("real", DoubleType())
        update.delete_column("moment")
        update.move_first("money")
    assert same(read_scan(table.scan()), table.scan().to_arrow())
    assert read_scan(table.scan(selected_fields=("day of old",)))["day of old"].to_pylist() == old["text"].to_pylist()
    for row_filter in ("added is null and id < 9", "added > 3", "text = '2020-01-05'", "real > 100.5"):
        scan = table.scan(row_filter=row_filter)
        assert same(read_scan(scan), scan.to_arrow())
    # floats that became doubles are compared as doubles
    assert read_scan(table.scan(row_filter="real = 0.3333333432674408")).num_rows == 1
    assert read_scan(table.scan(row_filter="real = 0.3333333333333333")).num_rows == 0


def test_changed_nested_columns_are_refused_or_right(table: Any) -> None:
    from pyiceberg.types import StringType

    with table.update_schema() as update:
        update.add_column(("struct", "c"), StringType())
    first = read_scan(table.scan(selected_fields=("struct",), limit=1))
    assert first.to_pylist() == [{"struct": {"a": 100, "b": "100", "c": None}}]
    with table.update_schema() as update:
        update.rename_column(("struct", "a"), "renamed")
    with pytest.raises(fastpq.UnsupportedError, match="renamed or dropped"):
        read_scan(table.scan())
    assert read_scan(table.scan(selected_fields=("id",))).num_rows == ROWS + 50


def test_a_file_without_ids(catalog: Any, tmp_path: Path) -> None:
    table = catalog.create_table("db.old", schema=DATA.select(["id", "text"]).schema)
    pq.write_table(DATA.select(["id", "text"]), tmp_path / "old.parquet")
    table.add_files([str(tmp_path / "old.parquet")])
    assert same(read_scan(table.scan()), table.scan().to_arrow())
    with table.transaction() as transaction:
        transaction.remove_properties("schema.name-mapping.default")
    with pytest.raises(fastpq.SchemaError, match="name mapping"):
        read_scan(table.scan())


def test_partition_values_that_a_file_lacks(catalog: Any, tmp_path: Path) -> None:
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import IdentityTransform
    from pyiceberg.typedef import Record
    from pyiceberg.types import LongType, NestedField, StringType

    spec = PartitionSpec(PartitionField(source_id=2, field_id=1000, transform=IdentityTransform(), name="text"))
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "text", StringType()))
    table = catalog.create_table("db.hive", schema=schema, partition_spec=spec)
    path = tmp_path / "part.parquet"
    fastpq.write_table(DATA.select(["id"]), path, field_ids={"id": 1})
    data_file = delete_file(0, path)
    data_file[3], data_file[4] = Record("hive"), ROWS
    data_file.spec_id = 0
    append(table, data_file)
    assert same(read_scan(table.scan()), table.scan().to_arrow())
    assert set(read_scan(table.scan())["text"].to_pylist()) == {"hive"}
    assert read_scan(table.scan(row_filter="text = 'hive' and id < 3")).num_rows == 3


def test_a_filter_reads_fewer_bytes(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    close = ParquetFile.close

    def counting_close(file: ParquetFile) -> None:
        counts.append(file.io.bytes_read)
        close(file)

    monkeypatch.setattr(ParquetFile, "close", counting_close)
    table.delete("id >= 0")
    big = pa.concat_tables([DATA.set_column(0, "id", pa.array(range(n * ROWS, (n + 1) * ROWS))) for n in range(20)])
    append(table, write_data_file(big, table, row_group_size=ROWS))
    counts.clear()
    assert read_scan(table.scan()).num_rows == 20 * ROWS
    every = sum(counts)
    counts.clear()
    assert read_scan(table.scan(row_filter=f"id >= {5 * ROWS} and id < {5 * ROWS + 10}")).num_rows == 10
    assert sum(counts) < every / 5
    counts.clear()
    assert read_scan(table.scan(row_filter="id < 10 and text not like 'text 1%'")).num_rows == 8
    assert sum(counts) < every / 5      # the first condition is pushed down, the second is not
    counts.clear()
    assert read_scan(table.scan(selected_fields=("id",))).num_rows == 20 * ROWS
    assert sum(counts) < every / 5


def test_a_filter_on_a_nested_field_is_pushed_down(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    late_filters = []
    matching_rows = ScanFilter.matching_rows

    def counting(*arguments: Any) -> Any:
        late_filters.append(arguments)
        return matching_rows(*arguments)

    monkeypatch.setattr(ScanFilter, "matching_rows", counting)
    for row_filter, is_late in (
        ("struct.a < 7 and id > 2", False), ("text not like 'text 1%'", True), ("id < 50 and text not like 'text 1%'", True),
        ("(id < 50 or text not like 'text 1%') and flag = true", True),
    ):
        late_filters.clear()
        scan = table.scan(row_filter=row_filter)
        assert same(read_scan(scan), scan.to_arrow())
        assert bool(late_filters) == is_late


# ---- encrypted tables


@pytest.fixture
def encrypted(catalog: Any) -> Any:
    """A table of version 2 whose data files are encrypted. The property only makes readers strict."""
    table = catalog.create_table("db.secret", schema=DATA.schema, properties={"encryption.key-id": "master"})
    append(table, write_data_file(DATA, table))
    append(table, write_data_file(DATA.slice(0, 10), table, key_metadata=StandardKeyMetadata.generate(key_bits=256)))
    return table


def test_encrypted_files(encrypted: Any) -> None:
    for data_file in (task.file for task in encrypted.scan().plan_files()):
        path = Path(data_file.file_path.removeprefix("file://"))
        assert path.read_bytes()[:4] == path.read_bytes()[-4:] == b"PARE"
        with pytest.raises(fastpq.CryptoError):
            fastpq.read_table(path)
        metadata = StandardKeyMetadata.from_bytes(data_file.key_metadata)
        assert metadata.file_length == data_file.file_size_in_bytes == path.stat().st_size
    expected = pa.concat_tables([DATA.slice(0, 10), DATA])
    assert same(read_scan(encrypted.scan()), expected)
    assert read_scan(encrypted.scan(row_filter="id < 5", selected_fields=("text",))).num_rows == 10
    records: list[Any] = []
    read_scan(encrypted.scan(), audit=AuditLog(records.append))
    assert len({record.file for record in records}) == 2


def test_files_without_key_metadata_are_refused(encrypted: Any, catalog: Any) -> None:
    plain = catalog.create_table("db.plain", schema=DATA.schema)
    plain.append(DATA.slice(0, 3))
    append(encrypted, *(task.file for task in plain.scan().plan_files()))
    with pytest.raises(fastpq.KeyAccessError, match="no key metadata"):
        read_scan(encrypted.scan())
    assert read_scan(encrypted.scan(), require_encryption=False).num_rows == ROWS + 13
    assert read_scan(plain.scan()).num_rows == 3
    with pytest.raises(fastpq.KeyAccessError, match="no key metadata"):
        read_scan(plain.scan(), require_encryption=True)
    with pytest.raises(ValueError, match="so must its files be"):
        write_data_file(DATA, encrypted, encrypt=False)


def test_exchanged_and_altered_files_are_refused(encrypted: Any) -> None:
    paths = [Path(task.file.file_path.removeprefix("file://")) for task in encrypted.scan().plan_files()]
    good = [path.read_bytes() for path in paths]
    shutil.copy(paths[0], paths[1])
    with pytest.raises(fastpq.CryptoError):
        read_scan(encrypted.scan())
    paths[1].write_bytes(good[1][:2000] + bytes([good[1][2000] ^ 1]) + good[1][2001:])
    with pytest.raises(fastpq.ParquetError):
        read_scan(encrypted.scan())
    paths[1].write_bytes(b"PARE" + good[1][4:] if good[1][:4] != b"PARE" else good[1] + b"")
    assert read_scan(encrypted.scan()).num_rows == ROWS + 10
    paths[1].write_bytes(good[1][:8] + bytes(16) + good[1][8:])        # another length
    with pytest.raises(fastpq.ParquetError):
        read_scan(encrypted.scan())


def test_errors_show_no_key(encrypted: Any) -> None:
    tasks = list(encrypted.scan().plan_files())
    secrets = [bytes(task.file.key_metadata[2:18]) for task in tasks]
    Path(tasks[0].file.file_path.removeprefix("file://")).write_bytes(b"PARE" * 100)
    for read in (lambda: read_scan(encrypted.scan(), tasks), lambda: list(iter_scan(encrypted.scan(), tasks))):
        with pytest.raises(fastpq.ParquetError) as raised:
            read()
        error: BaseException | None = raised.value
        while error is not None:
            for frame, _ in traceback.walk_tb(error.__traceback__):
                if is_own_code(frame.f_code.co_filename) and frame.f_locals:
                    shown = repr(frame.f_locals)
                    assert not any(repr(secret)[2:-1] in shown for secret in secrets), frame.f_code.co_name
            error = error.__cause__ or error.__context__


# ---- deletes


@pytest.mark.parametrize("is_encrypted", [False, True])
def test_deletes_by_position(is_encrypted: bool, table: Any, encrypted: Any, tmp_path: Path) -> None:
    scan = (encrypted if is_encrypted else table).scan()
    first = next(task.file for task in scan.plan_files() if task.file.record_count == ROWS)
    positions = [*sorted(random.Random(1).sample(range(ROWS), 700)), ROWS, ROWS + 5]
    metadata = StandardKeyMetadata.generate()
    path = tmp_path / "positions.parquet"
    write_positions(path, first.file_path, positions, file_properties(metadata).encryption if is_encrypted else None)
    deletes = delete_file(1, path, key_metadata=metadata.to_bytes() if is_encrypted else None)
    rows = read_scan(scan, with_deletes(scan, deletes))["id"].to_pylist()
    left = [row for row in range(ROWS) if row not in set(positions)]
    assert sorted(rows) == sorted(left + list(range(100, 150) if not is_encrypted else range(10)))
    if not is_encrypted:
        theirs = _to_arrow(scan, with_deletes(scan, deletes))
        assert same(read_scan(scan, with_deletes(scan, deletes)), theirs)
    else:
        forged = delete_file(1, path)
        with pytest.raises(fastpq.KeyAccessError, match="no key metadata"):
            read_scan(scan, with_deletes(scan, forged))
    filtered = scan.filter("id < 50")
    rows = read_scan(filtered, with_deletes(filtered, deletes))["id"].to_pylist()
    assert [row for row in rows if row >= 10] == [row for row in left if 10 <= row < 50]


def _to_arrow(scan: Any, tasks: list[Any]) -> pa.Table:
    from pyiceberg.io.pyarrow import ArrowScan

    return ArrowScan(scan.table_metadata, scan.io, scan.projection(), scan.row_filter, scan.case_sensitive).to_table(tasks)


@pytest.mark.parametrize("is_encrypted", [False, True])
def test_deletion_vectors(is_encrypted: bool, table: Any, encrypted: Any, tmp_path: Path) -> None:
    scan = (encrypted if is_encrypted else table).scan()
    first = next(task.file for task in scan.plan_files() if task.file.record_count == ROWS)
    positions = set(range(0, 1000, 3)) | set(range(1500, 1600)) | {2**33}
    puffin = puffin_of({"another file": vector_of([1]), first.file_path: vector_of(positions)})
    path, metadata = tmp_path / "deletes.puffin", StandardKeyMetadata.generate()
    if is_encrypted:
        with GcmStreamWriter(path, metadata) as writer:
            writer.write(puffin)
        deletes = delete_file(1, path, format_="PUFFIN", key_metadata=writer.key_metadata.to_bytes())
    else:
        path.write_bytes(puffin)
        deletes = delete_file(1, path, format_="PUFFIN")
    tasks = [task for task in with_deletes(scan, deletes) if task.file == first]
    rows = read_scan(scan, tasks)["id"].to_pylist()
    assert rows == [row for row in range(ROWS) if row not in positions]
    if is_encrypted:
        for encoded in (None, metadata.to_bytes()):
            wrong = delete_file(1, path, format_="PUFFIN", key_metadata=encoded)
            tasks = [task for task in with_deletes(scan, wrong) if task.file == first]
            with pytest.raises(fastpq.CryptoError, match=r"no key metadata|do not have the length"):
                read_scan(scan, tasks)
        assert read_scan(scan, tasks, require_length=False).num_rows == len(rows)
    else:
        assert same(read_scan(scan, tasks), _to_arrow(scan, tasks))


@pytest.mark.parametrize("has_runs", [False, True])
@pytest.mark.parametrize(
    "positions",
    [
        [], [0], [5, 7, 2**33 + 1], range(70_000), random.Random(1).sample(range(10**6), 20_000), [*range(0, 300_000, 2), 2**40],
        [*range(10), *range(100_000, 100_020), *range(10**6, 10**6 + 5000), 2**31, 2**32 - 1, 2**20],
    ],
    ids=lambda positions: str(len(positions)),
)
def test_vectors_of_another_library(positions: Any, has_runs: bool) -> None:
    assert decode_vector(vector_of(positions, has_runs=has_runs)).tolist() == sorted(positions)


def test_malformed_vectors_are_refused() -> None:
    """Every byte altered, with the checksum put right again: a typed error, or other positions."""
    payload = vector_of([*range(5), 70_000, 2**32 + 3], has_runs=True)
    for place in range(8, len(payload) - 4):
        for byte in (0, 1, 0x7F, 0xFF, payload[place] ^ 1):
            content = payload[4:place] + bytes([byte]) + payload[place + 1 : -4]
            altered = payload[:4] + content + zlib.crc32(content).to_bytes(4, "big")
            try:
                positions = decode_vector(altered)
            except fastpq.FormatError:
                continue
            assert (np.diff(positions) > 0).all()
    for size in range(len(payload)):
        with pytest.raises(fastpq.FormatError):
            decode_vector(payload[:size])
    with pytest.raises(fastpq.FormatError, match="checksum"):
        decode_vector(payload[:-1] + bytes([payload[-1] ^ 1]))


@pytest.mark.parametrize(
    ("puffin", "message"),
    [
        (b"", "cannot have 0 bytes"),
        (bytes(40), "PFA1"),
        (puffin_of({"x": b"abc"})[:-4] + b"PFA2", "PFA1"),
        (puffin_of({"x": b"abc"})[:-8] + b"\1\0\0\0PFA1", "compressed footer"),
        (puffin_of({"x": b"abc"})[:-12] + b"\xff\xff\0\0\0\0\0\0PFA1", "before the file"),
        (puffin_of({"x": b"abc"})[:-12] + b"\xff\xff\xff\xff\0\0\0\0PFA1", "more than"),
        (puffin_of({"x": b"abc"})[:-12] + b"\4\0\0\0\0\0\0\0PFA1", "does not begin"),
        (puffin_of({}), "0 deletion vectors"),
        (puffin_of({"y": b"abc"}), "0 deletion vectors"),
        (puffin_of({"x": b"abc"}), "length or another magic"),
        (puffin_of({"x": b"abc"}, offset=1 << 40), "outside"),
        (puffin_of({"x": b"abc"}, offset=math.inf), "not the JSON"),
        (puffin_of({"x": b"abc"}, properties=[]), "not the JSON"),
        (puffin_of({"x": b"abc"}, offset=-1), "outside"),
        (puffin_of({"x": b"abc"}, offset="a"), "JSON"),
        (puffin_of({"x": b"abc"}, properties={}), "JSON"),
        (puffin_of({"x": b"abc"}, **{"compression-codec": "zstd"}), "compressed with"),
    ],
)
def test_malformed_puffin_files_are_refused(puffin: bytes, message: str) -> None:
    with pytest.raises(fastpq.ParquetError, match=message):
        positions_in_puffin(io.BytesIO(puffin), "x")


def test_a_small_vector_of_many_positions_is_refused() -> None:
    """Fourteen bytes stand for 65,536 positions: without a limit, 64 KB would take 2 GB of memory."""
    count = 5000
    heads = b"".join(struct.pack("<HH", key, 0xFFFF) for key in range(count))
    runs = struct.pack("<HHH", 1, 0, 0xFFFF) * count
    is_run = bytes([0xFF] * (count // 8))
    bitmap = struct.pack("<qII", 1, 0, 12347 | (count - 1) << 16) + is_run + heads + bytes(4 * count) + runs
    body = VECTOR_MAGIC + bitmap
    payload = struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))
    tracemalloc.start()
    try:
        with pytest.raises(fastpq.LimitError, match="more than 268435456 positions"):
            decode_vector(payload)
        assert tracemalloc.get_traced_memory()[1] < 1 << 22
    finally:
        tracemalloc.stop()


def test_cardinality_of_a_vector() -> None:
    properties = {"referenced-data-file": "x", "cardinality": "3"}
    assert len(positions_in_puffin(io.BytesIO(puffin_of({"x": vector_of([1, 2, 3])}, properties=properties)), "x")) == 3
    with pytest.raises(fastpq.FormatError, match="has 2 positions"):
        positions_in_puffin(io.BytesIO(puffin_of({"x": vector_of([1, 2])}, properties=properties)), "x")


def test_deletes_by_equal_values(table: Any, tmp_path: Path) -> None:
    scan = table.scan()

    def rows_without(path: Path, ids: list[int], *, row_filter: str = "id >= 0") -> list[int]:
        deletes = delete_file(2, path, ids=ids)
        filtered = scan.filter(row_filter).select("id")
        rows: list[int] = read_scan(filtered, with_deletes(filtered, deletes))["id"].to_pylist()
        return rows

    every = [*range(100, 150), *range(ROWS)]
    path = tmp_path / "equal.parquet"
    fastpq.write_table({"id": np.array([3, 5, 120], np.int32)}, path, field_ids={"id": 1})     # before a promotion
    assert rows_without(path, [1]) == [row for row in every if row not in (3, 5, 120)]
    assert rows_without(path, [1], row_filter="id < 9") == [0, 1, 2, 4, 6, 7, 8]
    fastpq.write_table(pa.table({"text": ["text 3", None], "flag": [True, False]}), path, field_ids={"text": 2, "flag": 8})
    texts, flags = DATA["text"].to_pylist(), DATA["flag"].to_pylist()
    deleted = {("text 3", True), (None, False)}
    assert rows_without(path, [2, 8]) == [row for row in every if (texts[row], flags[row]) not in deleted]
    fastpq.write_table(pa.table({"real": pa.array([float("nan"), 1.0], pa.float32())}), path, field_ids={"real": 3})
    assert rows_without(path, [3]) == [row for row in every if row % 500 and row != 3]
    with pytest.raises(fastpq.SchemaError, match="lacks the columns"):
        rows_without(path, [1])
    with pytest.raises(fastpq.SchemaError, match="which columns"):
        rows_without(path, [])


def test_equality_deletes_of_an_encrypted_table(encrypted: Any, tmp_path: Path) -> None:
    path, metadata, scan = tmp_path / "equal.parquet", StandardKeyMetadata.generate(), encrypted.scan()
    keys = file_properties(metadata).encryption
    fastpq.write_table({"id": np.array([3, 5])}, path, field_ids={"id": 1}, encryption_properties=keys)
    deletes = delete_file(2, path, ids=[1], key_metadata=metadata.to_bytes())
    rows = read_scan(scan, with_deletes(scan, deletes))["id"].to_pylist()
    assert rows == [row for row in [*range(10), *range(ROWS)] if row not in (3, 5)]
    fastpq.write_table({"id": np.array([3, 5])}, path, field_ids={"id": 1})     # a forged one
    for encoded, message in ((None, "no key metadata"), (metadata.to_bytes(), "plaintext")):
        with pytest.raises(fastpq.CryptoError, match=message):
            read_scan(scan, with_deletes(scan, delete_file(2, path, ids=[1], key_metadata=encoded)))


def test_equality_deletes_on_a_column_that_was_dropped(table: Any, tmp_path: Path) -> None:
    path = tmp_path / "equal.parquet"
    fastpq.write_table({"day": np.array(["2020-01-05"], "M8[D]")}, path, field_ids={"day": 7})
    with table.update_schema() as update:
        update.delete_column("day")
    scan = table.scan()
    rows = read_scan(scan, with_deletes(scan, delete_file(2, path, ids=[7])))["id"].to_pylist()
    assert rows == [row for row in [*range(100, 150), *range(ROWS)] if row % 30 != 4]


def test_other_formats_are_refused(table: Any, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x")
    scan = table.scan()
    for content, ids in ((1, None), (2, [1])):
        with pytest.raises(fastpq.UnsupportedError, match="ORC"):
            read_scan(scan, with_deletes(scan, delete_file(content, path, format_="ORC", ids=ids)))
    data_file = delete_file(0, path, format_="ORC")
    from pyiceberg.table import FileScanTask

    with pytest.raises(fastpq.UnsupportedError, match="ORC"):
        read_scan(scan, [FileScanTask(data_file)])


@pytest.mark.parametrize(
    ("type_", "stored", "value"),
    [
        ("long", "7", 7), ("string", '"a"', "a"), ("double", "1.5", 1.5), ("boolean", "true", True), ("binary", '"6162"', b"ab"),
        ("date", '"2020-01-02"', dt.date(2020, 1, 2)), ("time", '"01:00:00"', dt.time(1)),
        ("decimal(9,2)", '"1.25"', Decimal("1.25")), ("timestamp", '"2020-01-02T00:00:00"', dt.datetime(2020, 1, 2)),
        ("timestamptz", '"2020-01-02T00:00:00+00:00"', dt.datetime(2020, 1, 2, tzinfo=dt.UTC)),
    ],
)
def test_defaults_of_columns_that_were_added(type_: str, stored: str, value: Any) -> None:
    types = peer("pyiceberg.types", "pyiceberg")
    text = f'{{"id": 1, "name": "x", "required": true, "type": "{type_}", "initial-default": {stored}}}'
    field = TableField(types.NestedField.model_validate_json(text))
    assert field.constant(field.default, 2).to_pylist() == [value, value]
    with pytest.raises(fastpq.SchemaError, match="no default"):
        field.constant(None, 2)
