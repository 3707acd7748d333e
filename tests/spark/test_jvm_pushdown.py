"""Work that the planner leaves to the workers: the same rows as Spark's own source, with fewer of them read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from tests.spark.conftest import CLIENT
from tests.spark.scans import plan_of
from tests.spark.test_jvm_read import FORMAT

SETTING = "spark.fastpq.pushdown"
PUSHED = "Format: fastpq["
COLUMNS = (
    "id", "cast(if(id % 4 = 0, null, id % 100) as tinyint) tiny", "cast(id % 7 as int) number",
    "if(id % 5 = 0, null, string(id)) text", "id % 3 part",
    "case when id % 10 = 0 then double('nan') when id % 3 = 1 then -0.0d else id / 2 end price",
    "cast(if(id % 3 = 2, -0.0, 0.0) as float) zero", "cast(id * 7 as decimal(20, 3)) amount", "cast(id as decimal(5, 1)) small",
    "timestamp_micros(id * -1000003) instant", "cast(timestamp_micros(id) as timestamp_ntz) local",
    "date_add(date'1970-01-01', int(id)) day", "id % 2 = 0 flag", "cast(string(id) as binary) bytes", "array(id) list",
    "named_struct('x', id) pair", "cast(null as int) nothing", "concat(repeat('x', 200), id) long_text",
)


@pytest.fixture(scope="module")
def views(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The views ``pushed_native`` and ``pushed_fastpq`` of the same files, which are in folders."""
    path = str(tmp_path_factory.mktemp("pushdown") / "rows")
    spark.range(999).repartition(2, "id").selectExpr(*COLUMNS).write.partitionBy("part").parquet(path)
    spark.read.parquet(path).createOrReplaceTempView("pushed_native")
    spark.read.format(FORMAT).load(path).createOrReplaceTempView("pushed_fastpq")
    yield
    spark.catalog.dropTempView("pushed_native")
    spark.catalog.dropTempView("pushed_fastpq")


def rows_of(frame: Any) -> list[str]:
    """The rows as text, in which a NaN equals a NaN."""
    return sorted(map(str, frame.collect()))


ANSWERED = (
    "select count(*) from T",
    "select count(1), count(id), count(tiny), count(text), count(nothing), count(price) from T",
    "select min(id), max(id), min(tiny), max(tiny), min(number), max(number), min(day), max(day), min(flag), max(flag) from T",
    "select min(text), max(text), min(bytes), max(bytes), min(long_text), max(long_text) from T",
    "select min(price), max(price), count(price), min(zero), max(zero) from T",
    "select min(amount), max(amount), min(small), max(small), min(instant), max(instant), min(local), max(local) from T",
    "select min(nothing), max(nothing) from T",
    "select part, count(*), max(text) from T group by part",
    "select part + 1, count(*) + max(number) * 2 as both from T group by part + 1",
    "select count(part), min(part), max(part * 2) from T",
    "select distinct part from T",
    "select count(*), max(id) from T where part = 1",
    "select part, count(*) from T where part > 0 and part in (0, 2) group by part",
    "select count(*), max(id) from T where part = 77",
    "select part, count(*) from T where part = 77 group by part",
    "select count(*) from T having count(*) > 10000",
    "select (select max(id) from T) as most, id from T where id > (select max(id) - 3 from T)",
    "select a.part, a.n, b.n from (select part, count(*) n from T group by part) a"
    " join (select part, max(id) n from T group by part) b on a.part = b.part",
    "with c as (select part, max(id) m from T group by part) select * from c union all select * from c",
    "select part, max(id) from T group by rollup(part) having part is not null",
    "select max(renamed) from (select number as renamed from T)",
    "select folder, max(b), count(c) from (select part % 2 folder, number b, text c from T where part > 0) where folder = 0"
    " group by 1",
    "select count(*) from T where part = (select max(part) from T)",
    "select if(count(*) > 3, 'many', 'few'), rank() over (order by part) from T group by part",
)


@pytest.mark.parametrize("statement", ANSWERED)
def test_aggregates(spark: Any, views: None, statement: str) -> None:
    native, ours = (spark.sql(statement.replace(" T", f" {view}")) for view in ("pushed_native", "pushed_fastpq"))
    assert ours.schema == native.schema
    assert "rollup" in statement or PUSHED in plan_of(ours)
    assert rows_of(ours) == rows_of(native)


KEPT_BY_SPARK = (
    "select count(*) from T where id > 5",
    "select count(distinct tiny) from T",
    "select count(tiny, text) from T",
    "select count(list), count(pair), count(pair.x) from T",
    "select sum(id) from T",
    "select number, count(*) from T group by number",
    "select count(*) filter (where id > 5) from T",
    "select max(id + 1) from T",
    "select count(null) + max(abs(id)) from T",
    "select count(*), first(part) from T",
    "select max(struct(id, tiny)) from T",
    "select count(*) > 0 from T where rand(3) < 0.9",
    "select max(name) from (select input_file_name() as name from T)",
    "select count(*) from (select * from T limit 5)",
    "select count(*) from T tablesample (50 percent) where id < 0",
    "select count(*) from T a join T b on a.part = b.part and a.id = b.id",
    "select max_by(id, number) from T where part = 1 and id < 6",
)


@pytest.mark.parametrize("statement", KEPT_BY_SPARK)
def test_aggregates_that_stay_with_spark(spark: Any, views: None, statement: str) -> None:
    native, ours = (spark.sql(statement.replace(" T", f" {view}")) for view in ("pushed_native", "pushed_fastpq"))
    assert f"{PUSHED}rows" not in plan_of(ours)
    assert rows_of(ours) == rows_of(native)


def test_metadata_stays_with_spark(spark: Any, tmp_path: Path) -> None:
    spark.range(10).write.parquet(str(tmp_path / "rows"))
    expressions = ["max(_metadata.file_size)", "max(_metadata.row_index)", "count(id)"]
    native, ours = (
        spark.read.format(name).load(str(tmp_path / "rows")).selectExpr(*expressions) for name in ("parquet", FORMAT)
    )
    assert PUSHED not in plan_of(ours)
    assert rows_of(ours) == rows_of(native)


def test_the_setting_turns_it_off(spark: Any, views: None) -> None:
    spark.conf.set(SETTING, "false")
    try:
        frame = spark.sql("select count(*) from pushed_fastpq")
        assert PUSHED not in plan_of(frame)
        assert frame.first()[0] == 999
    finally:
        spark.conf.unset(SETTING)


def test_files_without_rows(spark: Any, tmp_path: Path) -> None:
    """A folder whose files have no rows is no group."""
    for part, numbers in ((0, []), (1, [3, 4])):
        (tmp_path / f"part={part}").mkdir()
        fastpq.write_table({"id": np.array(numbers, np.int64)}, tmp_path / f"part={part}" / "file.parquet")
    frames = [spark.read.format(name).load(str(tmp_path)) for name in ("parquet", FORMAT)]
    for expressions in (["count(*)", "min(id)", "max(part)"], ["max(id)"]):
        native, ours = (rows_of(frame.selectExpr(*expressions)) for frame in frames)
        assert ours == native
    native, ours = (rows_of(frame.groupBy("part").count()) for frame in frames)
    assert ours == native == ["Row(part=1, count=2)"]
    empty = spark.read.schema("id bigint").format(FORMAT).load(str(tmp_path / "part=0"))
    assert empty.selectExpr("count(*)", "count(id)", "max(id)").first() == (0, 0, None)


def test_columns_that_files_lack(spark: Any, tmp_path: Path) -> None:
    fastpq.write_table({"id": [1, 2]}, tmp_path / "1.parquet")
    fastpq.write_table({"id": [3], "other": [5]}, tmp_path / "2.parquet")
    expressions = ["count(other)", "min(other)", "max(other)", "count(ID)", "max(Id)"]
    native, ours = (
        spark.read.schema("id bigint, other bigint").format(name).load(str(tmp_path)).selectExpr(*expressions)
        for name in ("parquet", FORMAT)
    )
    assert PUSHED in plan_of(ours)
    assert rows_of(ours) == rows_of(native)


def test_defaults_of_columns(spark: Any, tmp_path: Path) -> None:
    """Rows of files that were written before the column was added have its default."""
    spark.sql(f"create table pushed_defaults (id bigint) using {FORMAT} location '{tmp_path}/rows'")
    try:
        spark.sql("insert into pushed_defaults values (1), (2)")
        spark.conf.set("spark.sql.defaultColumn.allowedProviders", f"parquet,{FORMAT}")
        spark.sql("alter table pushed_defaults add column more int default 7")
        spark.sql("insert into pushed_defaults values (3, null), (4, 9)")
        assert spark.sql("select count(more), min(more), max(more), count(*) from pushed_defaults").first() == (3, 7, 9, 4)
    finally:
        spark.conf.unset("spark.sql.defaultColumn.allowedProviders")
        spark.sql("drop table pushed_defaults")


def test_tables_in_the_catalog(spark: Any) -> None:
    spark.sql(f"create table pushed_table (id bigint, part int) using {FORMAT} partitioned by (part)")
    try:
        count = spark.table("pushed_table").groupBy()
        assert count.count().first() == (0,)
        spark.range(10).selectExpr("id", "cast(id % 3 as int) part").write.insertInto("pushed_table")
        assert spark.sql("select count(*), max(id) from pushed_table where part > 0").first() == (6, 8)
        spark.sql("alter table pushed_table drop partition (part = 1)")
        spark.sql("analyze table pushed_table compute statistics for all columns")
        assert spark.sql("select part, count(*) n from pushed_table group by part order by part").collect() == [(0, 4), (2, 3)]
        spark.sql("truncate table pushed_table")
        assert spark.sql("select count(*), max(id) from pushed_table").first() == (0, None)
    finally:
        spark.sql("drop table pushed_table")


def test_cached_frames_keep_their_rows(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "rows")
    spark.range(10).write.parquet(path)
    cached = spark.read.format(FORMAT).load(path).cache()
    try:
        assert cached.count() == 10
        assert cached.selectExpr("max(id)").first() == (9,)
        assert PUSHED not in plan_of(cached.selectExpr("max(id)"))
    finally:
        cached.unpersist()


def test_streams_count(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "rows")
    spark.range(10).selectExpr("id", "id % 2 part").write.partitionBy("part").parquet(path)
    stream = spark.readStream.format(FORMAT).schema("id bigint, part bigint").load(path)
    query = stream.groupBy("part").count().writeStream.format("memory").queryName("pushed_stream").outputMode("complete")
    query.trigger(availableNow=True).start().awaitTermination()
    assert sorted(spark.table("pushed_stream").collect()) == [(0, 5), (1, 5)]


def test_encrypted_files(spark: Any, tmp_path: Path) -> None:
    keys = {"parquet.encryption.footer.key": "kf", "parquet.encryption.column.keys": "kc1:id"}
    path = str(tmp_path / "rows")
    spark.range(100).selectExpr("id", "string(id) text").write.options(**keys).parquet(path)
    expressions = ["count(*)", "count(text)", "min(id)", "max(id)", "max(text)"]
    ours = spark.read.format(FORMAT).option("kms.client", CLIENT).load(path).selectExpr(*expressions)
    assert PUSHED in plan_of(ours)
    assert ours.first() == spark.read.parquet(path).selectExpr(*expressions).first()


@pytest.mark.parametrize("file_format", ["fastpq", "pyarrow"])
def test_shortened_bounds_and_foreign_types(spark: Any, tmp_path: Path, file_format: str) -> None:
    """Text whose bounds are cut, timestamps in milliseconds, unsigned numbers, and numbers that are read as others."""
    columns = {
        "text": pa.array([f"{'y' * 100}{number}" for number in range(50)]),
        "ms": pa.array(range(50), pa.timestamp("ms", "UTC")),
        "unsigned": pa.array([2**32 - 1, *range(49)], pa.uint32()),
        "narrow": pa.array(range(-25, 25), pa.int32()),
        "nulls": pa.array([None] * 50, pa.int64()),
    }
    if file_format == "pyarrow":
        pq.write_table(pa.table(columns), tmp_path / "file.parquet", row_group_size=7)
    else:
        fastpq.write_table(pa.table(columns), tmp_path / "file.parquet", row_group_size=7)
    expressions = [f"{kind}({name})" for kind in ("count", "min", "max") for name in columns]
    schema = "text string, ms timestamp, unsigned bigint, narrow bigint, nulls bigint"
    native, ours = (
        spark.read.schema(schema).format(name).load(str(tmp_path)).selectExpr(*expressions) for name in ("parquet", FORMAT)
    )
    assert PUSHED in plan_of(ours)
    assert rows_of(ours) == rows_of(native)


def test_files_without_statistics(spark: Any, tmp_path: Path) -> None:
    table = pa.table({"id": pa.array([3, None, 1]), "text": ["b", None, "a"]})
    pq.write_table(table, tmp_path / "file.parquet", write_statistics=False)
    ours = spark.read.format(FORMAT).load(str(tmp_path)).selectExpr("count(id)", "min(id)", "max(text)", "count(*)")
    assert ours.first() == (2, 1, "b", 3)


def test_a_file_that_is_gone(spark: Any, tmp_path: Path) -> None:
    for number in range(2):
        fastpq.write_table({"id": [number]}, tmp_path / f"{number}.parquet")
    frames = [spark.read.format(name).load(str(tmp_path)) for name in ("parquet", FORMAT)]
    (tmp_path / "1.parquet").unlink()
    for frame in frames:
        with pytest.raises(Exception, match="FILE_NOT_EXIST"):
            frame.selectExpr("max(id)").collect()


def test_no_data_page_is_read_for_counts(spark: Any, tmp_path: Path) -> None:
    """The pages are damaged, so that a query that reads one fails."""
    path = tmp_path / "file.parquet"
    fastpq.write_table({"id": np.arange(1000), "text": [str(number) for number in range(1000)]}, path, compression=None)
    data = bytearray(path.read_bytes())
    metadata = fastpq.read_metadata(path)
    end = max(sum(metadata.row_group(0).column(number).byte_range) for number in range(2))
    data[4:end] = bytes(end - 4)
    path.write_bytes(data)
    frame = spark.read.format(FORMAT).load(str(path))
    assert frame.selectExpr("count(*)", "count(text)", "min(id)", "max(id)").first() == (1000, 1000, 0, 999)
    with pytest.raises(Exception, match="FormatError"):
        frame.selectExpr("sum(id)").collect()


def test_every_part_of_a_file_counts_once(spark: Any, tmp_path: Path) -> None:
    fastpq.write_table({"id": np.arange(1000)}, tmp_path / "file.parquet", row_group_size=50, compression=None)
    spark.conf.set("spark.sql.files.maxPartitionBytes", "700")
    spark.conf.set("spark.sql.files.openCostInBytes", "0")
    try:
        frame = spark.read.format(FORMAT).load(str(tmp_path)).selectExpr("count(*)", "min(id)", "max(id)")
        assert frame.first() == (1000, 0, 999)
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
        spark.conf.unset("spark.sql.files.openCostInBytes")


def test_identifiers_of_fields_are_refused(spark: Any, tmp_path: Path) -> None:
    """By name, the aggregates would be those of another column."""
    from pyspark.sql.types import LongType, StructField, StructType

    fastpq.write_table({"id": [1], "other": [2]}, tmp_path / "file.parquet", field_ids={"id": 2, "other": 1})
    schema = StructType([StructField("id", LongType(), True, {"parquet.field.id": 1})])
    spark.conf.set("spark.sql.parquet.fieldId.read.enabled", "true")
    try:
        native, ours = (spark.read.schema(schema).format(name).load(str(tmp_path)) for name in ("parquet", FORMAT))
        assert native.selectExpr("max(id)").first() == (2,)
        for statement in ("max(id)", "count(id)"):
            with pytest.raises(Exception, match="identifiers of fields"):
                ours.selectExpr(statement).collect()
    finally:
        spark.conf.unset("spark.sql.parquet.fieldId.read.enabled")


def test_names_that_differ_in_case(spark: Any, tmp_path: Path) -> None:
    """A column of files and a folder's column, whose names are the same but for case."""
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        (tmp_path / "part=7").mkdir()
        fastpq.write_table({"PART": [1, 2, 3], "id": [4, 5, 6]}, tmp_path / "part=7" / "file.parquet")
        statements = (["max(PART)", "max(part)", "count(PART)"], ["min(id)", "max(PART)"])
        for expressions in statements:
            native, ours = (
                spark.read.format(name).load(str(tmp_path)).selectExpr(*expressions) for name in ("parquet", FORMAT)
            )
            assert PUSHED in plan_of(ours)
            assert ours.first() == native.first()
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_folders_whose_columns_files_have_too(spark: Any, tmp_path: Path) -> None:
    """The folder's value counts, as for Spark's own source."""
    (tmp_path / "id=7").mkdir()
    fastpq.write_table({"id": [1, 2], "other": [3, None]}, tmp_path / "id=7" / "file.parquet")
    for expressions in (["max(id)", "count(id)", "count(other)"], ["min(ID)"]):
        native, ours = (spark.read.format(name).load(str(tmp_path)).selectExpr(*expressions) for name in ("parquet", FORMAT))
        assert PUSHED in plan_of(ours)
        assert ours.first() == native.first()


def test_a_type_that_cannot_be_read(spark: Any, tmp_path: Path) -> None:
    fastpq.write_table({"id": [1, 2]}, tmp_path / "file.parquet")
    for name in ("parquet", FORMAT):
        with pytest.raises(Exception, match="PARQUET_COLUMN_DATA_TYPE_MISMATCH"):
            spark.read.schema("id int").format(name).load(str(tmp_path)).selectExpr("max(id)").collect()
