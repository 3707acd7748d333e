"""Tables of DuckLake, made and read by DuckDB's own extension."""

from __future__ import annotations

import base64
import io
import json
import os
import shutil
import subprocess
import traceback
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastpq
from fastpq.catalogs.ducklake import append_ducklake, ducklake_files, lake_appending, read_ducklake
from tests.catalogs.ducklake_referee import PACKAGES, in_lake
from tests.own_code import is_own_code
from tests.pinned import ROOT, pinned_python
from tests.requirements import needs, peer

duckdb = peer("duckdb")
needs(duckdb)

ROWS = 30_000
STATEMENTS = (
    "CREATE TABLE t(id BIGINT, name VARCHAR, price DOUBLE, day DATE, moment TIMESTAMP, cost DECIMAL(9, 2), flag BOOLEAN, "
    "raw BLOB, point STRUCT(a INTEGER, b VARCHAR), list INTEGER[], small UTINYINT)",
    f"INSERT INTO t SELECT i, 'n' || i, i / 4, DATE '2024-01-01' + (i % 300)::INTEGER, TIMESTAMP '2024-01-01' + to_seconds(i), "
    f"i / 100, i % 2 = 0, encode('r' || i), {{'a': i, 'b': 'x'}}, [i, i + 1], i % 200 FROM range({ROWS}) r(i)",
    "DELETE FROM t WHERE id % 3000 = 7",                    # in the catalog
    "DELETE FROM t WHERE id % 10 = 3 AND id < 20000",       # a delete file
    "ALTER TABLE t RENAME COLUMN price TO value",
    "ALTER TABLE t ADD COLUMN extra INTEGER DEFAULT 5",
    "ALTER TABLE t ALTER small TYPE INTEGER",
    "UPDATE t SET value = -1 WHERE id = 100",
    "INSERT INTO t VALUES (50000, 'z', 1, '2025-01-01', NULL, 3.25, NULL, NULL, NULL, NULL, 9, NULL)",      # in the catalog
    f"INSERT INTO t SELECT i, 'n' || i, i / 4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, i, 9 "
    f"FROM range({ROWS}, {ROWS} + 5000) r(i)",
    f"UPDATE t SET name = 'updated' WHERE id >= {ROWS} AND id < {ROWS} + 500",
    "ALTER TABLE t DROP COLUMN raw",
    "CREATE SCHEMA other",
    "CREATE TABLE other.p(k INTEGER, v VARCHAR)",
    "ALTER TABLE other.p SET PARTITIONED BY (k)",
    "INSERT INTO other.p SELECT i % 3, 'v' || i FROM range(1000) r(i)",
)
ENCRYPTED = ", ENCRYPTED"


@pytest.fixture(scope="module", params=[ENCRYPTED, ""], ids=["encrypted", "plain"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    """A lake, and the rows of its table by DuckDB."""
    folder = tmp_path_factory.mktemp("lake")
    return folder, in_lake(folder, *STATEMENTS, "SELECT * FROM t ORDER BY id", options=request.param)


@pytest.fixture
def lake(made: tuple[Path, list[Any]]) -> Iterator[Any]:
    """A connection to the catalog of the lake, which it does not change."""
    connection = duckdb.connect(str(made[0] / "lake.ducklake"), read_only=True)
    yield connection
    connection.close()


@pytest.fixture
def copied(made: tuple[Path, list[Any]], tmp_path: Path) -> Path:
    """A copy of the lake, which may be changed. Its catalog still names the other folder."""
    shutil.copytree(made[0], tmp_path / "copy")
    return tmp_path / "copy"


def as_duckdb_prints(rows: list[dict[str, Any]]) -> list[list[Any]]:
    """Return rows as the referee prints them."""
    answer: list[list[Any]] = json.loads(json.dumps([list(row.values()) for row in rows], default=str))
    return answer


def test_a_table_is_read_as_duckdb_reads_it(made: tuple[Path, list[Any]], lake: Any) -> None:
    table = read_ducklake(lake, "t")
    assert table.names == [
        "id", "name", "value", "day", "moment", "cost", "flag", "point", "list", "small", "extra"
    ]
    assert as_duckdb_prints(sorted(table.to_pylist(), key=lambda row: row["id"])) == made[1]
    assert read_ducklake(lake, "t", ["extra", "id"]).names == ["extra", "id"]
    assert read_ducklake(lake, "p", schema="other").num_rows == 1000


@pytest.mark.parametrize(
    "filters",
    [
        [("id", "<", 5)], [("id", "==", 50_000)], [("value", "==", -1.0)], [("extra", "==", 5), ("id", "<", 100)],
        [("extra", "is null")], [("small", ">", 25_000)], [("name", "==", "updated")], [[("id", "==", 3)], [("id", "==", 4)]],
        [("extra", "==", 9), ("value", ">", 8000.0)], [("point.a", "==", 17)], [("id", "<", 0)],
    ],
    ids=str,
)
def test_filters(made: tuple[Path, list[Any]], lake: Any, filters: Any) -> None:
    expected = matching_ids(read_ducklake(lake, "t"), filters)
    assert sorted(read_ducklake(lake, "t", ["id"], filters=filters)["id"].to_pylist()) == expected


def matching_ids(table: fastpq.Table, filters: Any) -> list[int]:
    """Return the ids of the matching rows, by a filter on a file that holds the rows."""
    target = io.BytesIO()
    fastpq.write_table(table, target)
    return sorted(fastpq.read_table(target.getvalue(), ["id"], filters=filters)["id"].to_pylist())


def test_snapshots(made: tuple[Path, list[Any]], lake: Any) -> None:
    for number, expected in ((2, ROWS), (3, ROWS - 10), (4, ROWS - 10 - 2000)):
        assert read_ducklake(lake, "t", snapshot=number).num_rows == expected
    assert read_ducklake(lake, "t", snapshot=2).names[2] == "price"
    with pytest.raises(fastpq.SchemaError, match="no snapshot 999"):
        read_ducklake(lake, "t", snapshot=999)
    with pytest.raises(fastpq.SchemaError, match=r"no table main\.none"):
        read_ducklake(lake, "none")
    with pytest.raises(fastpq.SchemaError, match="no column 'none'"):
        read_ducklake(lake, "t", ["none"])


def test_files(made: tuple[Path, list[Any]], lake: Any) -> None:
    files = ducklake_files(lake, "t")
    assert files[0].num_rows == ROWS
    assert len(files[0].deleted_rows) == 10 + 2000 + 1
    assert (files[0].decryption_properties is None) is not is_encrypted(lake)
    assert sum(file.num_rows - len(file.deleted_rows) for file in files) <= read_ducklake(lake, "t").num_rows
    keys = lake.execute("SELECT encryption_key FROM ducklake_data_file").fetchall()
    assert all(key not in repr(files) for key, in keys if key)


def is_encrypted(lake: Any) -> bool:
    return bool(lake.execute("SELECT value = 'true' FROM ducklake_metadata WHERE key = 'encrypted'").fetchall() == [(True,)])


def test_odd_names_and_a_lake_that_is_attached(tmp_path: Path) -> None:
    create = """CREATE TABLE "odd ""one"(k INTEGER, "{k}" INTEGER, "a.b" VARCHAR)"""
    insert = """INSERT INTO "odd ""one" VALUES (1, 2, 'x')"""
    in_lake(tmp_path, create, insert, "SELECT 1", options=ENCRYPTED)
    expected = [{"k": 1, "{k}": 2, "a.b": "x"}]
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{tmp_path}/lake.ducklake' AS \"the lake\"")
        assert read_ducklake(connection, 'odd "one', metadata="the lake").to_pylist() == expected
        append_ducklake(connection, 'odd "one', {"k": [3], "{k}": [4], "a.b": ["y"]}, metadata="the lake")
        more = read_ducklake(connection, 'odd "one', metadata="the lake").to_pylist()
        assert sorted(more, key=str) == [*expected, {"k": 3, "{k}": 4, "a.b": "y"}]
    assert in_lake(tmp_path, """SELECT sum("{k}") FROM "odd ""one" """) == [[6]]


def test_merged_files(copied: Path, made: tuple[Path, list[Any]]) -> None:
    """Files that DuckLake has rewritten or merged, and rows that it has flushed from the catalog."""
    folder = copied.parent / "merged"
    statements = (
        "CREATE TABLE t(id INTEGER)", *(f"INSERT INTO t SELECT * FROM range({100 * n}, {100 * n + 100})" for n in range(5)),
        "CALL ducklake_merge_adjacent_files('lake')", "DELETE FROM t WHERE id % 7 = 0",
        "CALL ducklake_rewrite_data_files('lake')", "INSERT INTO t VALUES (1000)",
        "CALL ducklake_flush_inlined_data('lake')", "SELECT id FROM t ORDER BY id",
    )
    folder.mkdir()
    expected = in_lake(folder, *statements, options=ENCRYPTED)
    with duckdb.connect(str(folder / "lake.ducklake"), read_only=True) as connection:
        assert sorted(read_ducklake(connection, "t")["id"].to_pylist()) == [row[0] for row in expected]


# ---- rows that fastpq appends


def test_duckdb_reads_what_fastpq_appends(tmp_path: Path) -> None:
    create = (
        "CREATE TABLE t(id BIGINT, name VARCHAR, x DOUBLE, day DATE, cost DECIMAL(9, 2))",
        "INSERT INTO t SELECT i, 'n' || i, i / 4, DATE '2024-01-01', i FROM range(1000) r(i)",
        "CREATE TABLE empty(id BIGINT)",
        "SELECT 1",
    )
    in_lake(tmp_path, *create, options=ENCRYPTED)
    count = 250_000
    rows = {
        "name": np.array([f"m{row}" if row % 5 else None for row in range(count)], object),
        "id": np.arange(-count, 0),
        "x": np.ma.masked_equal(np.arange(count, dtype=float), 7.0),
        "day": np.datetime64("2023-01-01") + np.arange(count) % 365,
        "cost": np.array([Decimal(row % 1000) for row in range(count)], object),
    }
    with duckdb.connect(str(tmp_path / "lake.ducklake")) as connection:
        before = connection.execute("SELECT max(snapshot_id) FROM ducklake_snapshot").fetchall()[0][0]
        assert append_ducklake(connection, "t", rows, compression="zstd") == before + 1
        append_ducklake(connection, "empty", {"id": np.arange(10)})
        mine = read_ducklake(connection, "t")
        assert mine.num_rows == count + 1000
    files = list((tmp_path / "data" / "main" / "t").glob("fastpq-*.parquet"))
    assert [file.read_bytes()[:4] for file in files] == [b"PARE"]
    answers = in_lake(
        tmp_path,
        "SELECT count(*), min(id), max(id), count(name), sum(x), min(day), sum(cost), (SELECT sum(id) FROM empty), "
        "(SELECT count(*) FROM t WHERE id = -5), (SELECT count(*) FROM t WHERE name = 'm1'), "
        "(SELECT count(*) FROM t WHERE x IS NULL), (SELECT count(*) FROM t WHERE day < DATE '2023-01-02') FROM t")
    stored = mine.to_pandas()
    assert answers[0] == [
        count + 1000, -count, 999, int(stored["name"].notna().sum()), float(stored["x"].sum()), "2023-01-01",
        str(sum(mine["cost"].to_pylist())), 45, 1, 1, 1, 685,
    ]
    changes = (
        "DELETE FROM t WHERE id % 2 = 0", "INSERT INTO t VALUES (5000, 'q', 0, NULL, NULL)", "UPDATE t SET x = 1 WHERE id = -3",
    )
    expected = in_lake(tmp_path, *changes, "SELECT count(*), sum(id), sum(x) FROM t")
    with duckdb.connect(str(tmp_path / "lake.ducklake"), read_only=True) as connection:
        found = read_ducklake(connection, "t").to_pandas()
    assert [len(found), int(found["id"].sum()), float(found["x"].sum())] == [float(value) for value in expected[0]]


@pytest.mark.parametrize("options", ["", ENCRYPTED])
def test_nested_columns(tmp_path: Path, options: str) -> None:
    create = "CREATE TABLE t(id INTEGER NOT NULL, point STRUCT(a INTEGER, b VARCHAR), list INTEGER[])"
    in_lake(tmp_path, create, "SELECT 1", options=options)
    rows = {"id": [1, 2], "point": [{"a": 1, "b": "x"}, None], "list": [[1, 2], []]}
    with duckdb.connect(str(tmp_path / "lake.ducklake")) as connection:
        append_ducklake(connection, "t", rows)
        assert read_ducklake(connection, "t").to_pylist() == [
            {"id": 1, "point": {"a": 1, "b": "x"}, "list": [1, 2]}, {"id": 2, "point": None, "list": []}
        ]
        with pytest.raises(fastpq.SchemaError, match="null"):
            append_ducklake(connection, "t", {**rows, "id": [1, None]})
    assert in_lake(tmp_path, "SELECT id, point.b, list[1] FROM t ORDER BY id") == [[1, "x", 1], [2, None, None]]


def test_an_append_that_fails_leaves_nothing(copied: Path, made: tuple[Path, list[Any]]) -> None:
    with duckdb.connect(str(copied / "lake.ducklake")) as connection:
        place: dict[str, Any] = {"data_path": str(copied / "data")}
        before = sorted(copied.rglob("*.parquet"))
        snapshot = connection.execute("SELECT max(snapshot_id) FROM ducklake_snapshot").fetchall()
        with pytest.raises(fastpq.UnsupportedError, match="partitioned"):
            append_ducklake(connection, "p", {"k": [1], "v": ["a"]}, schema="other", **place)
        with pytest.raises(fastpq.SchemaError, match="exactly the columns"):
            append_ducklake(connection, "t", {"id": [1]}, **place)
        connection.execute("CREATE TABLE u AS SELECT 1")
        connection.execute("DROP TABLE ducklake_snapshot_changes")
        row = read_ducklake(connection, "t", **place).slice(0, 1)
        with pytest.raises(duckdb.Error):
            append_ducklake(connection, "t", row, **place)
        assert sorted(copied.rglob("*.parquet")) == before
        assert connection.execute("SELECT max(snapshot_id) FROM ducklake_snapshot").fetchall() == snapshot


def test_an_interruption_after_the_commit_keeps_the_file(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalog names the file then, and the table would be broken without it."""
    committed = lake_appending._committed

    def interrupted(*arguments: Any) -> int:
        committed(*arguments)
        raise KeyboardInterrupt

    with duckdb.connect(str(copied / "lake.ducklake")) as connection:
        place: dict[str, Any] = {"data_path": str(copied / "data")}
        rows = read_ducklake(connection, "t", **place)
        monkeypatch.setattr(lake_appending, "_committed", interrupted)
        with pytest.raises(KeyboardInterrupt):
            append_ducklake(connection, "t", rows.slice(0, 1), **place)
        assert read_ducklake(connection, "t", **place).num_rows == rows.num_rows + 1


# ---- attacks


def changed(copied: Path, statement: str) -> Any:
    """Return a connection to the catalog of a copied lake, after a change of it."""
    connection = duckdb.connect(str(copied / "lake.ducklake"))
    connection.execute(statement)
    return connection


def test_a_delete_file_with_a_negative_row_number(copied: Path) -> None:
    with duckdb.connect(str(copied / "lake.ducklake")) as connection:
        (name, key), *_ = connection.execute("SELECT path, encryption_key FROM ducklake_delete_file").fetchall()
        (place,) = copied.rglob(Path(name).name)
        keys = None if key is None else fastpq.FileEncryptionProperties(base64.b64decode(key), for_reader="duckdb")
        fastpq.write_table({"file_path": ["x"], "pos": [-2]}, place, encryption_properties=keys)
        with pytest.raises(fastpq.SchemaError, match="negative row number"):
            read_ducklake(connection, "t", data_path=str(copied / "data"))


def test_a_file_without_a_key_in_an_encrypted_lake(copied: Path) -> None:
    with changed(copied, "UPDATE ducklake_data_file SET encryption_key = NULL") as connection:
        if is_encrypted(connection):
            with pytest.raises(fastpq.KeyAccessError, match="no key for a file"):
                read_ducklake(connection, "t", data_path=str(copied / "data"))


def test_a_plaintext_file_in_the_place_of_an_encrypted_one(copied: Path) -> None:
    with changed(copied, "SELECT 1") as connection:
        if not is_encrypted(connection):
            return
        for file in ducklake_files(connection, "t", data_path=str(copied / "data")):
            rows = fastpq.read_table(file.path, decryption_properties=file.decryption_properties)
            fastpq.write_table(rows, file.path)
        with pytest.raises(fastpq.CryptoError):
            read_ducklake(connection, "t", data_path=str(copied / "data"))


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("UPDATE ducklake_data_file SET path = '../../../' || path", fastpq.SchemaError, "leaves the lake's folder"),
        ("UPDATE ducklake_data_file SET path = '/etc/' || path", fastpq.SchemaError, "leaves the lake's folder"),
        ("UPDATE ducklake_table SET path = '../x/'", fastpq.SchemaError, "leaves the lake's folder"),
        ("UPDATE ducklake_data_file SET record_count = 5", fastpq.SchemaError, "another number of rows"),
        ("UPDATE ducklake_metadata SET value = '9.0' WHERE key = 'version'", fastpq.UnsupportedError, "the version 9.0"),
        ("UPDATE ducklake_data_file SET file_format = 'orc'", fastpq.UnsupportedError, "the format orc"),
        ("UPDATE ducklake_data_file SET mapping_id = 1", fastpq.UnsupportedError, "mapping of names"),
        ("UPDATE ducklake_data_file SET partial_max = 10000", fastpq.UnsupportedError, "later snapshots"),
        ("UPDATE ducklake_column SET column_type = 'hugeint' WHERE column_name = 'id'", fastpq.UnsupportedError, "hugeint"),
        ("UPDATE ducklake_data_file SET encryption_key = 'no base64!'", fastpq.KeyAccessError, "not base64"),
        ("UPDATE ducklake_data_file SET encryption_key = 'c2hvcnQ='", fastpq.CryptoError, "16, 24 or 32"),
        ("UPDATE ducklake_data_file SET encryption_key = 'AAAAAAAAAAAAAAAAAAAAAA=='", fastpq.CryptoError, "authent|encrypted"),
    ],
)
def test_changed_catalogs(copied: Path, statement: str, error: type[Exception], message: str) -> None:
    with changed(copied, statement) as connection:
        with pytest.raises(error, match=message) as raised:
            read_ducklake(connection, "t", data_path=str(copied / "data"))
        keys = [key for key, in connection.execute("SELECT encryption_key FROM ducklake_data_file").fetchall() if key]
        shown = "".join(str(frame.locals) for frame in own_frames(raised.value)) + str(raised.value) + repr(raised.value)
        assert not any(key in shown for key in keys if len(key) > 10)


def own_frames(error: BaseException) -> Iterator[traceback.FrameSummary]:
    """Yield fastpq's frames in a traceback, with their variables."""
    for frame in traceback.TracebackException.from_exception(error, capture_locals=True).stack:
        if is_own_code(frame.filename):
            yield frame


def test_other_connections(tmp_path: Path) -> None:
    import sqlite3

    with pytest.raises(fastpq.UnsupportedError, match="connection of the package duckdb"):
        read_ducklake(sqlite3.connect(tmp_path / "x"), "t")


def test_examples_of_the_page(tmp_path: Path) -> None:
    """They run with the pinned DuckDB, which is imported in place of the project's."""
    python = pinned_python("ducklake-page", *PACKAGES, with_fastpq=True)
    command = [python, "-m", "tests.catalogs.lake_page_driver", str(ROOT / "docs" / "pages" / "ducklake.md"), str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == "4 examples\n"
