"""Filtered reads against DuckDB's WHERE and against a full read filtered with NumPy: random tables, predicates and pages.

Each file is written by fastpq (encrypted or not), pyarrow, DuckDB or DataFusion (parquet-rs), with row groups and pages of random
sizes.
"""

from __future__ import annotations

import datetime as dt
import decimal
import functools
import io
import random
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.arrays.table import Column
from fastpq.filters.combinations import And, Or
from fastpq.filters.filtering import mask_of
from fastpq.filters.predicate import bind_filters
from fastpq.read.chunk_plan import ChunkPlan
from fastpq.read.filtered.dictionary_evidence import read_dictionaries
from fastpq.read.opener import ChunkOpener
from tests.interop.comparison import assert_same
from tests.requirements import peer

duckdb = peer("duckdb")

ROWS = 3000
PREDICATES = 40         # for each file
SEEDS = range(3)
DAY = dt.date(2020, 1, 1)
NOON = dt.datetime(2020, 1, 1, 12)


def floats(random_: random.Random, i: int) -> float:
    return random_.choice([float("nan"), 0.0, -0.0, float("inf"), i / 8, -i / 8, random_.uniform(-50, 50)])


# name: (Arrow type, value of row i; values ascend by and large, so that pages differ)
COLUMNS: dict[str, tuple[pa.DataType, Callable[[random.Random, int], Any]]] = {
    "int8": (pa.int8(), lambda r, i: i * 250 // ROWS - 125),
    "uint8": (pa.uint8(), lambda r, i: r.randrange(256)),
    "int16": (pa.int16(), lambda r, i: i + r.randrange(20)),
    "uint16": (pa.uint16(), lambda r, i: i * 65_000 // ROWS),
    "int32": (pa.int32(), lambda r, i: (i - ROWS // 2) << 16),
    "uint32": (pa.uint32(), lambda r, i: i << 20),
    "int64": (pa.int64(), lambda r, i: r.randrange(-500, 500)),
    "uint64": (pa.uint64(), lambda r, i: i << 52),
    "float": (pa.float32(), lambda r, i: floats(r, i)),
    "double": (pa.float64(), lambda r, i: floats(r, i // 100)),
    "number": (pa.float64(), lambda r, i: float(i // 3)),
    "boolean": (pa.bool_(), lambda r, i: i % 900 < 450),
    "string": (pa.string(), lambda r, i: f"{'é' if i % 5 else 'z'}{i // 40:04}{'x' * (i % 3 * 40)}"),
    "word": (pa.string(), lambda r, i: r.choice(["", "a", "ab", "abc", "b", "ü", "\U0010ffff"])),
    "binary": (pa.binary(), lambda r, i: bytes([i * 255 // ROWS]) * (i % 4)),
    "date": (pa.date32(), lambda r, i: DAY + dt.timedelta(i - 500)),
    "timestamp_ms": (pa.timestamp("ms"), lambda r, i: NOON + dt.timedelta(milliseconds=i * 7)),
    "timestamp_us": (pa.timestamp("us"), lambda r, i: NOON + dt.timedelta(microseconds=i // 2)),
    "timestamp_ns": (pa.timestamp("ns"), lambda r, i: NOON + dt.timedelta(microseconds=i // 2)),
    "timestamp_utc": (pa.timestamp("us", "UTC"), lambda r, i: (NOON + dt.timedelta(seconds=i // 7)).replace(tzinfo=dt.UTC)),
    "time_ms": (pa.time32("ms"), lambda r, i: (NOON + dt.timedelta(milliseconds=i * 11)).time()),
    "time": (pa.time64("us"), lambda r, i: (NOON + dt.timedelta(seconds=i)).time()),
    "fixed": (pa.binary(5), lambda r, i: (i << 20).to_bytes(5, "big")),
    "decimal4": (pa.decimal128(4, 1), lambda r, i: decimal.Decimal(r.randrange(-9999, 9999)).scaleb(-1)),
    "decimal9": (pa.decimal128(9, 2), lambda r, i: decimal.Decimal(i - 1500).scaleb(-2)),
    "decimal30": (pa.decimal128(30, 3), lambda r, i: decimal.Decimal((i - 1500) * 10**15).scaleb(-3)),
    "uuid": (pa.uuid(), lambda r, i: uuid.UUID(int=i << 100).bytes),
}
NULL_EVERY = 11


@functools.cache
def table(seed: int) -> pa.Table:
    chance = random.Random(seed)
    columns = {}
    for number, (name, (kind, value)) in enumerate(COLUMNS.items()):
        nullable = (number + seed) % 3
        items = [None if nullable and chance.randrange(NULL_EVERY) == 0 else value(chance, i) for i in range(ROWS)]
        if nullable:    # a page of nothing but nulls
            items[700:1100] = [None] * 400
        columns[name] = pa.array(items, kind)
    columns["row"] = pa.array(range(ROWS))
    columns["list"] = pa.array([None if row % 7 == 0 else [str(row)] * (row % 4) for row in range(ROWS)])
    columns["struct"] = pa.array([None if row % 9 == 0 else {"a": row, "b": f"{row} in a struct"} for row in range(ROWS)])
    return pa.table(columns)


def write_pyarrow(data: pa.Table, path: Path, chance: random.Random) -> None:
    blooms = {name: {"fpp": 0.05, "ndv": ROWS} for name, (kind, _) in COLUMNS.items() if not pa.types.is_boolean(kind)}
    pq.write_table(
        data,
        path,
        row_group_size=chance.randrange(300, ROWS + 1),
        max_rows_per_page=chance.randrange(20, 600),
        write_batch_size=16,
        write_page_index=True,
        use_dictionary=chance.random() < 0.5,
        data_page_version=chance.choice(["1.0", "2.0"]),
        compression=chance.choice(["none", "zstd"]),
        bloom_filter_options=blooms if chance.random() < 0.7 else None,
    )


def write_duckdb(data: pa.Table, path: Path, chance: random.Random) -> None:
    size = chance.choice([2048, 4096])
    with duckdb.connect() as connection:
        connection.register("data", data)
        connection.execute(f"COPY (SELECT * FROM data) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE {size})")


def write_datafusion(data: pa.Table, path: Path, chance: random.Random) -> None:
    datafusion = peer("datafusion")
    context = datafusion.SessionContext()
    frame = context.create_dataframe([data.combine_chunks().to_batches()])
    frame.write_parquet_with_options(
        str(path),
        datafusion.ParquetWriterOptions(
            max_row_group_size=chance.randrange(300, ROWS + 1),
            data_page_row_count_limit=chance.randrange(20, 600),
            write_batch_size=16,
            dictionary_enabled=chance.random() < 0.5,
            bloom_filter_on_write=True,
            bloom_filter_fpp=0.05,
            bloom_filter_ndv=ROWS,
            statistics_truncate_length=8,
            column_index_truncate_length=8,
        ),
    )


FOOTER_KEY, COLUMN_KEY = b"0123456789012345", b"1234567890123450"
SECRETS = ["int64", "string", "double", "struct", "outer"]
# plaintext and encrypted files, and files of some of the columns, are read with the same keys
DECRYPTION = fastpq.FileDecryptionProperties(
    FOOTER_KEY, column_keys=dict.fromkeys(SECRETS, COLUMN_KEY), allow_missing_columns=True
)


def write_fastpq(
    data: pa.Table, path: Path, chance: random.Random, encryption: fastpq.FileEncryptionProperties | None = None
) -> None:
    names = [name for name, (kind, _) in COLUMNS.items() if kind != pa.bool_()]
    blooms: dict[str, Any] = {name: chance.choice([True, {"fpp": 0.2}, {"ndv": 100}]) for name in names}
    sortable = [name for name in COLUMNS if name in data.column_names]
    fastpq.write_table(
        data,
        path,
        row_group_size=chance.randrange(300, ROWS + 1),
        data_page_rows=chance.randrange(20, 600),
        data_page_size=chance.choice([500, 1 << 20]),
        use_dictionary=chance.random() < 0.5,
        dictionary_page_size=chance.choice([200, 1 << 20]),
        data_page_version=chance.choice(["1.0", "2.0"]),
        compression=chance.choice([None, "zstd"]),
        statistics_truncation=chance.choice([2, 64]),
        bloom_filter={name: option for name, option in blooms.items() if name in data.column_names},
        sort_by=[chance.choice(sortable)] if sortable and chance.random() < 0.3 else [],
        encryption_properties=encryption,
    )


def write_encrypted(data: pa.Table, path: Path, chance: random.Random) -> None:
    column_keys = {name: COLUMN_KEY for name in SECRETS if name in data.column_names}
    write_fastpq(data, path, chance, fastpq.FileEncryptionProperties(FOOTER_KEY, column_keys))


WRITERS = {
    "fastpq": write_fastpq,
    "encrypted": write_encrypted,
    "pyarrow": write_pyarrow,
    "duckdb": write_duckdb,
    "datafusion": write_datafusion,
}


def sql(value: Any) -> str:
    """A Python value as DuckDB spells it, of the type that our semantics give it."""
    match value:
        case bool():
            return str(value).upper()
        case float():
            return f"'{value}'::DOUBLE"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case bytes():
            return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::BLOB"
        case dt.datetime():
            return f"{'TIMESTAMPTZ' if value.tzinfo else 'TIMESTAMP'} '{value}'"
        case dt.date():
            return f"DATE '{value}'"
        case dt.time():
            return f"TIME '{value}'"
        case uuid.UUID():
            return f"'{value}'::UUID"
        case decimal.Decimal():
            return f"{value:f}"
    return str(value)


def literal(name: str, chance: random.Random) -> Any:
    """A value of the column, or one between or beyond its values."""
    kind, value = COLUMNS[name]
    item = value(chance, chance.randrange(ROWS))
    if pa.types.is_integer(kind) and chance.random() < 0.3:
        return decimal.Decimal(item) + decimal.Decimal(chance.choice(["0.5", "0", "300", "-300"]))
    if pa.types.is_decimal(kind) and chance.random() < 0.3:
        return item + decimal.Decimal("0.0001")
    if name == "float":
        return float(np.float32(item))
    return uuid.UUID(bytes=item) if name == "uuid" else item


def condition(chance: random.Random, names: list[str]) -> tuple[Any, str]:
    """A random condition and the same in SQL."""
    name = chance.choice(names)
    op = chance.choice(["==", "!=", "<", "<=", ">", ">=", "in", "not in", "is null", "is not null", "starts with"])
    if op in ("is null", "is not null"):
        return (name, op), f'"{name}" {op}'
    if op in ("in", "not in"):
        values = [literal(name, chance) for _ in range(chance.randrange(1, 5))]
        return (name, op, values), f'"{name}" {op} ({", ".join(map(sql, values))})'
    if op == "starts with":
        prefix = chance.choice(["", "é", "é00", "z001", "a", "ab", "zz"])
        name = chance.choice(["string", "word"])
        return (name, op, prefix), f"starts_with({name}, {sql(prefix)})"
    value = literal(name, chance)
    return (name, op, value), f'"{name}" {"=" if op == "==" else op} {sql(value)}'


def predicate(chance: random.Random, names: list[str], depth: int = 2) -> tuple[Any, str]:
    """A random tree of conditions, and the same in SQL."""
    if depth == 0 or chance.random() < 0.3:
        return condition(chance, names)
    children = [predicate(chance, names, depth - 1) for _ in range(chance.randrange(2, 4))]
    kind, word = chance.choice([(And, " AND "), (Or, " OR ")])
    return kind(*(child for child, _ in children)), "(" + word.join(text for _, text in children) + ")"


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("writer", WRITERS)
def test_rows_are_those_of_duckdb_and_numpy(writer: str, seed: int, tmp_path: Path) -> None:
    chance = random.Random(f"{writer} {seed}")
    path = tmp_path / "data.parquet"
    names = [name for name in COLUMNS if (writer, name) != ("datafusion", "uuid")]      # which it does not annotate
    WRITERS[writer](table(seed).select([*names, "row", "list", "struct"]), path, chance)
    pruned = 0
    decryption = DECRYPTION if writer == "encrypted" else None
    with fastpq.ParquetFile(path, decryption_properties=decryption) as file, duckdb.connect() as connection:
        whole = file.read()
        connection.register("data", pa.table(whole))
        for _ in range(PREDICATES):
            filters, where = predicate(chance, names)
            got = file.read(filters=filters)
            truth = connection.sql(f"SELECT row FROM data WHERE {where} ORDER BY row").fetchnumpy()["row"]
            assert np.array_equal(np.sort(got["row"].to_numpy()), truth), (filters, where)
            mask = mask_of(bind_filters(filters, file.schema), lambda leaf: whole.flat(leaf.column.name))
            expected = fastpq.Table({name: column.take(np.flatnonzero(mask)) for name, column in whole.items()})
            assert got.equals(expected), filters
            assert file.count(filters) == len(truth), filters
            explanation = file.explain(filters)
            assert explanation.bytes_read <= explanation.num_bytes
            pruned += explanation.bytes_read < explanation.num_bytes
        assert file.explain([("row", ">=", ROWS)]).bytes_read == 0
    # most random predicates keep a row of every page, and DuckDB has one page a chunk
    assert writer == "duckdb" or pruned > PREDICATES // 10


def test_repeated_columns_are_no_filters(tmp_path: Path) -> None:
    write_pyarrow(table(0), tmp_path / "data.parquet", random.Random(0))
    with pytest.raises(fastpq.UnsupportedError, match="repeated"):
        fastpq.read_table(tmp_path / "data.parquet", filters=[("list.list.element", "==", "1")])


@pytest.mark.parametrize("writer", WRITERS)
def test_leaves_of_structs(writer: str, tmp_path: Path) -> None:
    chance = random.Random(writer)
    data = table(0).select(["row", "struct", "list"])
    inner = pa.StructArray.from_arrays([data["row"].combine_chunks()], ["x"], mask=pa.array([i % 5 == 0 for i in range(ROWS)]))
    outer = pa.StructArray.from_arrays([inner], ["inner"], mask=pa.array([i % 3 == 0 for i in range(ROWS)]))
    data = data.append_column("outer", outer)
    WRITERS[writer](data, tmp_path / "data.parquet", chance)
    rows = data.to_pylist()

    def x_of(row: dict[str, Any]) -> int | None:
        return None if row["outer"] is None or row["outer"]["inner"] is None else row["outer"]["inner"]["x"]

    decryption = DECRYPTION if writer == "encrypted" else None
    with fastpq.ParquetFile(tmp_path / "data.parquet", decryption_properties=decryption) as file:
        cases: list[tuple[Any, Callable[[dict[str, Any]], bool]]] = [
            ([("struct.a", "==", 1001)], lambda row: row["struct"] is not None and row["struct"]["a"] == 1001),
            ([("struct.a", "<", 40)], lambda row: row["struct"] is not None and row["struct"]["a"] < 40),
            ([("outer.inner.x", "is null"), ("row", "<", 100)], lambda row: row["row"] < 100 and x_of(row) is None),
            ([("outer.inner.x", "!=", 7), ("row", "<", 50)], lambda row: row["row"] < 50 and x_of(row) not in (None, 7)),
            ([[("struct.b", "starts with", "12")], [("outer.inner.x", ">", 2990)]],
             lambda row: (row["struct"] is not None and row["struct"]["b"].startswith("12")) or (x_of(row) or 0) > 2990),
        ]
        for filters, holds in cases:
            expected = [row for row in rows if holds(row)]
            assert file.read(filters=filters).to_pylist() == expected, filters
            assert file.count(filters) == len(expected)
            assert [row for batch in file.iter_batches(13, filters=filters) for row in batch.to_pylist()] == expected
        if writer != "duckdb":
            explanation = file.explain([("struct.a", "==", 1001)])
            assert explanation.bytes_read < explanation.num_bytes / 2


def test_batches_and_layouts(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    chance = random.Random(0)
    write_pyarrow(table(0), path, chance)
    names = list(COLUMNS)
    for _ in range(10):
        filters, where = predicate(chance, names)
        truth = fastpq.read_table(path, filters=filters)
        for strings in ("views", "offsets", "dictionary"):
            with fastpq.ParquetFile(path, strings=strings, threads=2) as file:
                batches = list(file.iter_batches(77, filters=filters))
                assert sum(batch.num_rows for batch in batches) == truth.num_rows, where
                assert all(batch.num_rows == 77 for batch in batches[:-1])
                assert_same(pa.table(file.read(filters=filters)), pa.table(truth))
                if batches:
                    assert_same(pa.concat_tables([pa.table(batch) for batch in batches]), pa.table(truth))


# ---- dictionary pages


def test_dictionary_pages_are_evidence(tmp_path: Path) -> None:
    """Values between the bounds that are not in the dictionary: no data page is read, whoever wrote the file."""
    rows = np.arange(20_000)
    half = pa.array(rows % 8 / 2, mask=rows % 3 == 0)
    data = pa.table({"id": rows % 50 * 2, "name": np.char.mod("name %d", rows % 17), "half": half})
    duckdb.sql("SELECT * FROM data").write_parquet(str(tmp_path / "duckdb.parquet"))
    pq.write_table(data, tmp_path / "pyarrow.parquet", row_group_size=7000)
    fastpq.write_table(data, tmp_path / "fastpq.parquet", row_group_size=7000)
    secret = fastpq.FileEncryptionProperties(FOOTER_KEY, column_keys={"id": FOOTER_KEY})
    fastpq.write_table(data, tmp_path / "secret.parquet", row_group_size=7000, encryption_properties=secret)
    keys = fastpq.FileDecryptionProperties(FOOTER_KEY, column_keys={"id": FOOTER_KEY}, allow_plaintext_files=True)
    for path in tmp_path.glob("*.parquet"):
        with fastpq.ParquetFile(path, decryption_properties=keys) as file:
            for filters in ([("id", "==", 77)], [("name", "starts with", "name 5x")], [("half", "in", [0.25, 1.75])]):
                explanation = file.explain(filters)
                assert explanation.bytes_read == 0, (path, explanation)
                assert "by dictionary" in str(explanation) or "by bloom filter" in str(explanation)
                assert file.count(filters) == 0
            found = file.read(filters=[("id", "==", 76), ("half", "is not null")])
            assert found["name"].to_pylist() == [f"name {row % 17}" for row in rows if row % 50 == 38 and row % 3]


def test_dictionaries_that_rule_out_nothing_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The smallest or the largest value of a chunk meets the condition, and is in the dictionary."""
    asked: list[str] = []

    def noted(opener: ChunkOpener, chunks: Sequence[ChunkPlan]) -> list[Column | str]:
        asked.extend(chunk.column.name for chunk in chunks)
        return read_dictionaries(opener, chunks)

    monkeypatch.setattr("fastpq.read.filtered.dictionary_evidence.read_dictionaries", noted)
    rows, target = np.arange(20_000), io.BytesIO()
    numbers, halves = rows % 50 * 2, np.where(rows % 7, rows % 8 / 2, np.nan)
    pq.write_table(pa.table({"id": numbers, "name": np.char.mod("name %d", rows % 17), "half": halves}), target)
    met = [("id", "<", 50), ("id", "==", 0), ("id", "in", [3, 98]), ("id", "!=", 7), ("half", "<", 1.0), ("name", ">", "name 3")]
    with fastpq.ParquetFile(target) as file:
        for condition in met:
            file.count(condition)
            assert not asked, condition
        for condition, count in ((("id", "==", 76), 400), (("half", ">", 3.5), int((~(halves <= 3.5)).sum()))):
            assert file.count(condition) == count
            assert asked == [condition[0]]
            asked.clear()


def test_a_dictionary_of_some_pages_is_no_evidence(tmp_path: Path) -> None:
    """Where the dictionary grew too large, later pages hold other values."""
    rows = np.arange(20_000)
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"id": rows * 7 % 20_011}), path, dictionary_pagesize_limit=1000, data_page_size=1000)
    with fastpq.ParquetFile(path) as file:
        assert file.metadata.row_group(0).column(0).dictionary_page_offset is not None
        for row in (3, 10_000, 19_999):
            assert file.read(filters=[("id", "==", row * 7 % 20_011)]).num_rows == 1
