"""Paths, schemas, columns, and files that are missing, empty or damaged."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from tests.spark.native_statements.scene import Place, Scene, refused

ROWS = ("string(id) as text", "double(id) / 4 as part", "id % 3 = 0 as flag")


def _rows_files(spark: Any, folder: str) -> None:
    """Two files in ``rows``, and further folders with names that URLs, globs and Hadoop treat specially."""
    rows = spark.range(0, 20, 1, 2).selectExpr("id", *ROWS)
    rows.write.parquet(f"{folder}/rows")
    few = spark.range(0, 3, 1, 1)
    for name in (
        "with space",
        "percent%20",
        "plus+",
        "ünïcode €",
        "comma,semi",
        "hash#",
        "glob/a1",
        "glob/a2",
        "glob/b1",
        "equals=1",
    ):
        few.write.parquet(f"{folder}/special/{name}")
    hidden = Path(folder, "hidden")
    few.write.parquet(str(hidden))
    file = next(hidden.glob("part-*.parquet"))
    for name in ("_ignored.parquet", ".ignored.parquet", "part-copying._COPYING_"):
        shutil.copy(file, hidden / name)
    (hidden / "_folder").mkdir()
    shutil.copy(file, hidden / "_folder" / "part.parquet")
    Path(folder, "nothing").mkdir()
    few.where("id < 0").write.parquet(f"{folder}/no_rows")
    shutil.copy(file, Path(folder, "name_without_ending"))


READING = Scene(
    "reading",
    files=_rows_files,
    statements={
        "all": lambda at: at.load("rows"),
        "column names and types": lambda at: at.load("rows").dtypes,
        "some columns": lambda at: at.load("rows").select("text", "id"),
        "one column twice": lambda at: at.load("rows").select("id", "id"),
        "no column": lambda at: len(at.load("rows").select().collect()),
        "count": lambda at: at.load("rows").count(),
        "count of a constant": lambda at: at.load("rows").selectExpr("count(1)", "sum(1)", "max('a')"),
        "limit": lambda at: at.load("rows").limit(3).count(),
        "limit of none": lambda at: at.load("rows").limit(0),
        "offset": lambda at: at.load("rows").orderBy("id").offset(17),
        "head and tail": lambda at: [at.load("rows").orderBy("id").head(2), at.load("rows").orderBy("id").tail(2)],
        "is empty": lambda at: [at.load("rows").isEmpty(), at.load("no_rows").isEmpty()],
        "first row by order": lambda at: at.load("rows").orderBy("text", ascending=False).first(),
        "top by order": lambda at: at.load("rows").orderBy("part").limit(4).collect(),
        "distinct": lambda at: at.load("rows").select("flag").distinct(),
        "drop duplicates": lambda at: at.load("rows").dropDuplicates(["flag"]).select("flag"),
        "union with itself": lambda at: at.load("rows").union(at.load("rows")),
        "union by name with other columns": lambda at: at.load("rows").unionByName(at.load("hidden"), allowMissingColumns=True),
        "join with itself": lambda at: (
            at.load("rows").alias("a").join(at.load("rows").alias("b"), "text").select("a.id", "b.part")
        ),
        "window": lambda at: at.load("rows").selectExpr("id", "sum(id) over (partition by flag order by id) as running"),
        "aggregates": lambda at: at.load("rows").selectExpr(
            "sum(id)", "avg(part)", "min(text)", "max(part)", "count(distinct flag)"
        ),
        "aggregates in groups": lambda at: at.load("rows").groupBy("flag").agg({"id": "sum", "part": "max", "text": "min"}),
        "aggregates of no rows": lambda at: at.load("no_rows").selectExpr("sum(id)", "min(id)", "count(*)"),
        "rollup": lambda at: at.load("rows").rollup("flag").count(),
        "pivot": lambda at: at.load("rows").groupBy("flag").pivot("flag", [True, False]).sum("id"),
        "describe": lambda at: at.load("rows").describe(),
        "sample": lambda at: at.load("rows").coalesce(1).sample(0.5, 7).count() >= 0,
        "cache": lambda at: at.load("rows").cache().where("id = 3"),
        "convert to JSON": lambda at: sorted(at.load("rows").toJSON().collect()),
        "to an RDD": lambda at: at.load("rows").rdd.map(lambda row: row.id).sum(),
        "to pandas": lambda at: at.load("rows").toPandas().sort_values("id").values.tolist(),
        "to Arrow": lambda at: at.load("rows").orderBy("id").toArrow().to_pylist(),
        "map in Arrow": lambda at: at.load("rows").mapInArrow(
            lambda batches: batches, "id long, text string, part double, flag boolean"
        ),
        "schema in another order": lambda at: at.read.schema("text string, id long").load(f"{at.files}/rows"),
        "schema with another case": lambda at: at.read.schema("TEXT string, Id long").load(f"{at.files}/rows"),
        "schema with a further column": lambda at: at.read.schema("id long, further int").load(f"{at.files}/rows"),
        "schema of further columns alone": lambda at: at.read.schema("further int, `and more` string").load(f"{at.files}/rows"),
        "schema with a comment": lambda at: at.read.schema("id long comment 'key'").load(f"{at.files}/rows"),
        "schema with not null": lambda at: at.read.schema("id long not null").load(f"{at.files}/rows"),
        "schema with one name twice": refused(lambda at: at.read.schema("id long, id long").load(f"{at.files}/rows")),
        "schema without columns": refused(lambda at: at.read.schema("").load(f"{at.files}/rows").count()),
        "schema with char": refused(lambda at: at.read.schema("text char(5)").load(f"{at.files}/rows")),
        "two paths": lambda at: at.read.load([f"{at.files}/rows", f"{at.files}/rows"]),
        "a path as an option": lambda at: at.read.option("path", f"{at.files}/rows").load(),
        "a path as an option and another": refused(
            lambda at: at.read.option("path", f"{at.files}/rows").load(f"{at.files}/no_rows")
        ),
        "no path": refused(lambda at: at.read.load()),
        "no path but a schema": lambda at: at.read.schema("id long").load(),
        "an empty path": refused(lambda at: at.read.load("")),
        "a missing path": refused(lambda at: at.load("missing")),
        "a missing path and a schema": refused(lambda at: at.read.schema("id long").load(f"{at.files}/missing")),
        "a glob without files": refused(lambda at: at.load("missing*")),
        "an unknown filesystem": refused(lambda at: at.read.load("unknown://host/path")),
        "an empty folder": refused(lambda at: at.load("nothing")),
        "an empty folder and a schema": lambda at: at.read.schema("id long").load(f"{at.files}/nothing"),
        "one file": lambda at: at.load("name_without_ending"),
        "a file without rows": lambda at: at.load("no_rows"),
        "hidden files": lambda at: at.load("hidden"),
        "a hidden file by its name": lambda at: at.read.schema("id long").load(f"{at.files}/hidden/_ignored.parquet"),
        "a hidden folder by its name": lambda at: at.load("hidden/_folder"),
        "a path with a space": lambda at: at.load("special/with space"),
        "a path with a percent sign": lambda at: at.load("special/percent%20"),
        "a path with a plus sign": lambda at: at.load("special/plus+"),
        "a path with letters of other languages": lambda at: at.load("special/ünïcode €"),
        "a path with a comma": lambda at: at.load("special/comma,semi"),
        "a path with a hash sign": lambda at: at.load("special/hash#"),
        "a path that looks like a partition": lambda at: at.load("special/equals=1"),
        "a URL": lambda at: at.read.load(f"file:{at.files}/rows"),
        "a URL with three slashes": lambda at: at.read.load(f"file://{at.files}/rows"),
        "a glob with a star": lambda at: at.load("special/glob/a*"),
        "a glob with a question mark": lambda at: at.load("special/glob/?1"),
        "a glob with alternatives": lambda at: at.load("special/glob/{a1,b1}"),
        "a glob with a class": lambda at: at.load("special/glob/[a-b]1"),
        "a glob switched off": lambda at: at.read.option("__globPaths__", "false").load(f"{at.files}/rows"),
        "a path in SQL": "select * from {source}.`{files}/rows` where id > 15",
        "a glob in SQL": "select * from {source}.`{files}/special/glob/*`",
        "a missing path in SQL": refused("select * from {source}.`{files}/missing`"),
        "an empty path in SQL": refused("select * from {source}.``"),
        "a path in SQL, with an alias": "select r.text from {source}.`{files}/rows` as r where r.id = 2",
        "a path in SQL, sampled": "select count(*) from {source}.`{files}/rows` tablesample (100 percent)",
        "a path in SQL, as of a version": refused("select * from {source}.`{files}/rows` version as of 1"),
        "a default source": lambda at: _with_default(at).read.load(f"{at.files}/rows"),
    },
)


def _with_default(at: Place) -> Any:
    at.spark.conf.set("spark.sql.sources.default", at.source)
    return at.spark


def _broken_files(spark: Any, folder: str) -> None:
    """Files with bytes that are not Parquet, beside a whole one."""
    few = spark.range(0, 3, 1, 1).selectExpr("id", "string(id) as text")
    for name in ("text", "short", "bytes", "page"):
        few.write.parquet(f"{folder}/{name}")
    part = next(Path(folder, "text").glob("part-*")).read_bytes()
    for name, content in {
        "text": b"id,text\n1,one\n" * 20,
        "short": part[:-20],
        "bytes": b"",
        "page": part[:4] + bytes(40) + part[44:],
    }.items():
        Path(folder, name, "part-99999.parquet").write_bytes(content)
    for name in ("text", "page"):
        Path(folder, f"only_{name}").mkdir()
        shutil.copy(Path(folder, name, "part-99999.parquet"), Path(folder, f"only_{name}", "part.parquet"))


SCHEMA = "id long, text string"


def _typed(at: Place, path: str, **options: object) -> Any:
    return at.read.options(**options).schema(SCHEMA).load(f"{at.files}/{path}")


def _vanished(at: Place, **options: object) -> Any:
    """Rows of a dataset of two files, of which one is deleted after the DataFrame was made."""
    path = Path(at.folder, "vanished")
    shutil.rmtree(path, ignore_errors=True)
    at.spark.range(0, 10, 1, 2).write.parquet(str(path))
    frame = at.read.options(**options).load(str(path))
    min(path.glob("part-*")).unlink()
    return frame


def _emptied(at: Place) -> Any:
    """Rows of a dataset whose folder is deleted after the DataFrame was made."""
    frame = _vanished(at)
    shutil.rmtree(Path(at.folder, "vanished"))
    return frame


def _grown(at: Place) -> Any:
    path = f"{at.folder}/grown"
    at.rows(count=3).write.parquet(path)
    frame = at.read.load(path)
    at.rows(count=3).write.mode("append").parquet(path)
    return [frame.count(), at.read.load(path).count()]


def _replaced(at: Place) -> Any:
    path = f"{at.folder}/replaced"
    at.rows(count=3).write.parquet(path)
    frame = at.read.load(path)
    at.rows(count=5).write.mode("overwrite").parquet(path)
    return frame.collect()


BROKEN = Scene(
    "broken files",
    files=_broken_files,
    statements={
        "text in place of a file": refused(lambda at: _typed(at, "text").collect()),
        "a file without its end": refused(lambda at: _typed(at, "short").collect()),
        "a file without bytes": lambda at: _typed(at, "bytes"),
        "a file with a broken page": refused(lambda at: _typed(at, "page").collect()),
        "count of a file with a broken page": lambda at: _typed(at, "page").count(),
        "text alone, without a schema": refused(lambda at: at.load("only_text")),
        "text alone, without a schema, ignored": refused(lambda at: at.load("only_text", ignoreCorruptFiles=True)),
        "ignored: text": lambda at: _typed(at, "text", ignoreCorruptFiles=True),
        "ignored: a file without its end": lambda at: _typed(at, "short", ignoreCorruptFiles=True),
        "ignored: a file without bytes": lambda at: _typed(at, "bytes", ignoreCorruptFiles=True),
        "ignored: a broken page": lambda at: _typed(at, "page", ignoreCorruptFiles=True),
        "ignored: text, inferred": lambda at: at.load("text", ignoreCorruptFiles=True, mergeSchema=True),
        "merged: text": refused(lambda at: at.load("text", mergeSchema=True)),
        "a file that vanished": refused(lambda at: _vanished(at).collect()),
        "a file that vanished, ignored": lambda at: _vanished(at, ignoreMissingFiles=True),
        "a file that vanished, corrupt ones ignored": refused(lambda at: _vanished(at, ignoreCorruptFiles=True).collect()),
        "a folder that vanished": refused(lambda at: _emptied(at).collect()),
        "files that came later": _grown,
        "files that were replaced": refused(_replaced),
    },
)


def _columns_files(spark: Any, folder: str) -> None:
    names = ("a.b", "a b", "`", "a,b", "a=b", "ünï", "select", "a;b", "{x}", "(y)", "0", "")
    spark.range(1).selectExpr(
        *(f"{number} as `{name.replace('`', '``')}`" for number, name in enumerate(names[:-1]))
    ).write.parquet(f"{folder}/names")
    spark.range(1).selectExpr(*(f"{number} as c{number}" for number in range(300))).write.parquet(f"{folder}/wide")
    spark.conf.set("spark.sql.caseSensitive", "true")
    spark.range(1).selectExpr("1 as a", "2 as A", "3 as b").write.parquet(f"{folder}/case")
    spark.range(1).selectExpr("named_struct('x', 1, 'X', 2) as s").write.parquet(f"{folder}/inner_case")
    spark.conf.unset("spark.sql.caseSensitive")


NAMES = Scene(
    "names of columns",
    files=_columns_files,
    statements={
        "all": lambda at: at.load("names"),
        "a dot": lambda at: at.load("names").select("`a.b`"),
        "a filter on a dot": lambda at: at.load("names").where("`a.b` = 0"),
        "other characters": lambda at: at.load("names").select(
            "`a b`", "````", "`a,b`", "`a=b`", "ünï", "`a;b`", "`{x}`", "`(y)`", "`0`"
        ),
        "filters on other characters": lambda at: at.load("names").where(
            "`a b` = 1 and ```` = 2 and `a,b` > 0 and `ünï` > 0 and `{x}` = 8"
        ),
        "a missing column": refused(lambda at: at.load("names").select("missing")),
        "many columns": lambda at: at.load("wide"),
        "some of many columns": lambda at: at.load("wide").select("c299", "c0"),
        "two columns that differ in their case": refused(lambda at: at.load("case").collect()),
        "one of two columns that differ in their case": refused(
            lambda at: at.read.schema("a int").load(f"{at.files}/case").collect()
        ),
        "a column beside two that differ in their case": lambda at: at.read.schema("b int").load(f"{at.files}/case"),
        "a filter on one of two that differ": refused(
            lambda at: at.read.schema("a int, b int").load(f"{at.files}/case").where("a > 0").collect()
        ),
        "fields that differ in their case": refused(lambda at: at.load("inner_case").select("s.x").collect()),
    },
)
CASE = Scene(
    "case of names",
    files=_columns_files,
    settings={"spark.sql.caseSensitive": "true"},
    statements={
        "all": lambda at: at.load("case"),
        "one": lambda at: at.load("case").select("A"),
        "a filter": lambda at: at.load("case").where("A = 2 and a = 1"),
        "a missing case": refused(lambda at: at.load("case").select("B")),
        "a schema of a missing case": lambda at: at.read.schema("B int").load(f"{at.files}/case"),
        "a schema of a missing case, with a filter": lambda at: (
            at.read.schema("B int, b int").load(f"{at.files}/case").where("B is null")
        ),
        "fields": lambda at: at.load("inner_case").select("s.x", "s.X"),
    },
)


def _merge_files(spark: Any, folder: str) -> None:
    def write(path: str, *columns: str) -> None:
        spark.range(0, 2, 1, 1).selectExpr(*columns).write.mode("append").parquet(f"{folder}/{path}")

    write("two/one", "id", "1 as a")
    write("two/two", "id + 10 as id", "'b' as b")
    write("types/one", "id as a")
    write("types/two", "string(id) as a")
    write("wide/one", "int(id) as a")
    write("wide/two", "id as a")
    write("decimals/one", "cast(id as decimal(5, 2)) as a")
    write("decimals/two", "cast(id as decimal(7, 2)) as a")
    write("nested/one", "named_struct('x', id) as s")
    write("nested/two", "named_struct('y', id) as s")
    write("parts/p=1", "id")
    write("parts/p=2", "id", "2 as more")
    write("case/one", "id", "1 as value")
    write("case/two", "id", "2 as VALUE")


def _merged(path: str, **options: object) -> Any:
    return lambda at: at.load(path, recursiveFileLookup=True, mergeSchema=True, **options)


MERGE = Scene(
    "merged schemas",
    files=_merge_files,
    statements={
        "columns of both": _merged("two"),
        "columns of one": lambda at: at.load("two", recursiveFileLookup=True).columns,
        "columns of paths": lambda at: at.read.option("mergeSchema", "true").load([f"{at.files}/two/one", f"{at.files}/two/two"]),
        "a filter on a column of one": lambda at: _merged("two")(at).where("a = 1"),
        "a filter on a missing column": lambda at: _merged("two")(at).where("b is null"),
        "other types": refused(_merged("types")),
        "integers of two widths": refused(_merged("wide")),
        "decimals of two precisions": _merged("decimals"),
        "fields of both": _merged("nested"),
        "fields of one": lambda at: _merged("nested")(at).select("s.y"),
        "in partitions": lambda at: at.load("parts", mergeSchema=True),
        "in partitions, not merged": lambda at: at.load("parts", mergeSchema=False).select("id", "p"),
        "columns that differ in case": _merged("case"),
        "an option that is no truth value": refused(lambda at: at.load("two/one", mergeSchema="perhaps")),
    },
)
MERGE_BY_SETTING = Scene(
    "schemas merged by the setting",
    files=_merge_files,
    settings={"spark.sql.parquet.mergeSchema": "true"},
    statements={
        "columns of both": lambda at: at.load("two", recursiveFileLookup=True),
        "an option that overrides": lambda at: at.load("two", recursiveFileLookup=True, mergeSchema=False).columns,
        "in a table": "create table t using {source} options (recursiveFileLookup true) location '{files}/two'; select * from t",
    },
)
SCENES = [READING, BROKEN, NAMES, CASE, MERGE, MERGE_BY_SETTING]
