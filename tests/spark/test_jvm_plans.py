"""Plans through the jar: limits, joins that prune folders, filters that are worth it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastpq
from fastpq.spark.jvm.file_reading import is_worth_filtering
from tests.spark.scans import leaves_of, plan_of
from tests.spark.test_jvm_read import FORMAT, rows_of


@pytest.fixture(scope="module")
def parted(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Rows in folders of ``part`` and ``name``, with a folder of nulls; a file has two row groups."""
    path = tmp_path_factory.mktemp("plans") / "rows"
    for part in range(4):
        for name in ("a", "b", None):
            folder = path / f"part={part}" / f"name={name or '__HIVE_DEFAULT_PARTITION__'}"
            folder.mkdir(parents=True)
            start = 1000 * part + 100 * (ord(name) - 96 if name else 0)
            numbers = np.arange(start, start + 100)
            columns = {
                "id": numbers,
                "tiny": np.ma.masked_array((numbers % 50).astype(np.int8), numbers % 7 == 0),
                "flag": numbers % 2 == 0,
                "price": np.where(numbers % 10 == 0, np.nan, numbers / 2),
                "text": [None if number % 5 == 0 else f"row {number:05}" for number in numbers.tolist()],
                "day": numbers.astype("datetime64[D]"),
                "instant": (numbers * 1_000_003).astype("datetime64[us]"),
            }
            fastpq.write_table(columns, folder / "file.parquet", row_group_size=50)
    return str(path)


def both(spark: Any, path: str) -> tuple[Any, Any]:
    return spark.read.format(FORMAT).load(path), spark.read.parquet(path)


@pytest.mark.parametrize(
    "condition",
    ["id = 1105", "id between 1149 and 1150", "part = 2", "part = 2 and id < 2050", "id < 0", "name = 'a' and text = 'row 03120'",
     "id in (7, 3299)", "day = date'1970-01-08'", "tiny <=> null", "not (tiny in (3, 4))"],
)
def test_filters(spark: Any, parted: str, condition: str) -> None:
    found, expected = (frame.where(condition) for frame in both(spark, parted))
    assert str(rows_of(found)) == str(rows_of(expected))        # a NaN equals no other


def test_every_row_group_is_in_one_task(spark: Any, tmp_path: Path) -> None:
    """Tasks of few bytes, of files whose footers tell the sizes of row groups wrongly, too."""
    fastpq.write_table({"id": np.arange(1000)}, tmp_path / "file.parquet", row_group_size=50, compression=None)
    spark.conf.set("spark.sql.files.maxPartitionBytes", "700")
    spark.conf.set("spark.sql.files.openCostInBytes", "0")
    try:
        found = spark.read.format(FORMAT).load(str(tmp_path))
        assert found.rdd.getNumPartitions() > 10
        rows = found.selectExpr("id", "_metadata.row_index as row").collect()
        assert sorted(row.id for row in rows) == list(range(1000))
        assert all(row.id == row.row for row in rows)
        assert found.where("id = 777").selectExpr("_metadata.row_index as row").collect()[0].row == 777
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
        spark.conf.unset("spark.sql.files.openCostInBytes")


def test_limits(spark: Any, parted: str) -> None:
    found = spark.read.format(FORMAT).load(parted)
    for number in (0, 1, 49, 50, 51, 120, 1200, 5000):
        rows = found.limit(number).collect()
        assert len(rows) == min(number, 1200)
        assert len({row.id for row in rows}) == len(rows)
    assert found.where("id % 2 = 0").limit(100).count() == 100
    assert found.where("part = 3").limit(301).count() == 300
    assert len(found.offset(1190).limit(20).collect()) == 10


def test_text_of_folders_that_looks_like_numbers(spark: Any, tmp_path: Path) -> None:
    """The types of a given schema count, also for a column that only a condition names."""
    for number in ("00501", "501"):
        (tmp_path / f"zip={number}").mkdir()
        fastpq.write_table({"id": [int(number)]}, tmp_path / f"zip={number}" / "file.parquet")
    for reader in (spark.read.format(FORMAT), spark.read.format("parquet")):
        found = reader.schema("id bigint, zip string").load(str(tmp_path))
        assert [row.id for row in found.where("zip = '00501'").select("id").collect()] == [501]


def test_a_join_prunes_folders(spark: Any, parted: str, tmp_path: Path) -> None:
    spark.range(4).selectExpr("cast(id as int) as key", "concat('part ', id) as label").write.parquet(str(tmp_path / "small"))
    text = """select f.id, s.label from {found} f join parquet.`{small}` s on f.part = s.key
              where s.label in ('part 1', 'part 3') and f.name = 'a'"""
    found, expected = both(spark, parted)
    found.createOrReplaceTempView("jvm_found")
    expected.createOrReplaceTempView("jvm_expected")
    frames = [spark.sql(text.format(found=view, small=tmp_path / "small")) for view in ("jvm_found", "jvm_expected")]
    assert "dynamicpruning" in plan_of(frames[0]).lower()
    rows = [rows_of(frame) for frame in frames]
    assert rows[0] == rows[1]
    assert len(rows[0]) == 200
    scan = next(leaf for leaf in leaves_of(frames[0]) if "fastpq" in leaf.nodeName() or "fastpq" in leaf.toString())
    assert int(scan.metrics().apply("numFiles").value()) == 2       # of 4 that the condition on name leaves


def test_filters_are_left_to_spark_where_that_saves_time(spark: Any, tmp_path: Path) -> None:
    """Few rows of many columns are worth it, most rows or few columns are not; rows are those of Spark's own source."""
    path = str(tmp_path / "rows")
    columns = [f"id % {number + 2} as c{number}" for number in range(9)]
    spark.range(0, 5000, 1, 1).selectExpr("hash(id) as mixed", "timestamp_micros(id) as time", *columns).write.parquet(path)
    (file,) = (tmp_path / "rows").glob("*.parquet")
    metadata = fastpq.read_metadata(file)
    everything = list(range(11))
    assert is_worth_filtering(metadata, [("mixed", "==", 7)], (0,), everything)
    assert not is_worth_filtering(metadata, [("mixed", "==", 7)], (0,), [0, 2])
    assert not is_worth_filtering(metadata, [("mixed", ">", 7)], (0,), everything)
    time = "time < timestamp'1970-01-01 00:00:00.0001'"
    for condition in ("mixed > 0", "mixed between 0 and 1000000", "c1 = 2 and c2 > 1", time):
        for chosen in (["*"], ["mixed", "c1"]):
            found, expected = (frame.where(condition).selectExpr(*chosen) for frame in both(spark, path))
            assert sorted(found.collect()) == sorted(expected.collect())
