"""Folders of partitions: types of values found in names, names that need escapes, and datasets whose folders disagree."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.spark.native_statements.scene import Place, Scene, refused

FOLDERS = {
    "ints": ("p=1", "p=-2", "p=007"),
    "longs": ("p=1", "p=3000000000"),
    "digits": ("p=12345678901234567890", "p=1"),
    "doubles": ("p=1.5", "p=2", "p=1e3"),
    "texts": ("p=a", "p=1"),
    "dates": ("p=2020-01-01", "p=2020-02-03"),
    "dates_and_text": ("p=2020-01-01", "p=later"),
    "bad_dates": ("p=2020-02-30", "p=2020-01-01"),
    "dates_and_ints": ("p=2020-01-01", "p=5"),
    "instants": ("p=2020-01-01 12%3A00%3A00", "p=2020-01-02 00%3A00%3A00.123"),
    "dates_and_instants": ("p=2020-01-01", "p=2020-01-02 12%3A00%3A00"),
    "truths": ("p=true", "p=false"),
    "nulls": ("p=__HIVE_DEFAULT_PARTITION__", "p=1"),
    "nulls_alone": ("p=__HIVE_DEFAULT_PARTITION__",),
    "escapes": ("p=a%2Fb", "p=a%20b", "p=a b", "p=%C3%A4", "p=100%25", "p=a=b"),
    "names": ("a b=1", "a b=2"),
    "escaped_names": ("a%2Fb=1",),
    "two": ("p=1/q=a", "p=1/q=b", "p=2/q=a"),
    "case": ("P=1", "P=2"),
    "floats": ("p=NaN", "p=1.0"),
    "empty": ("p=", "p=1"),
    "mixed_names": ("p=1", "q=2"),
    "uneven": ("p=1", "p=2/q=3"),
    "root_and_folder": ("", "p=1"),
    "other_folder": ("plain", "p=1"),
    "inner": ("plain/p=1", "plain/p=2"),
    "like_column": ("id=7", "id=8"),
    "spaces": ("p= 1", "p=2"),
    "signs": ("p=+1", "p=2"),
    "hex": ("p=0x10", "p=2"),
    "suffixes": ("p=1d", "p=2f"),
}


def _files(spark: Any, folder: str) -> None:
    spark.range(0, 2, 1, 1).selectExpr("id", "string(id) as text").write.parquet(f"{folder}/.seed")
    seed = next(Path(folder, ".seed").glob("part-*"))
    for name, parts in FOLDERS.items():
        for number, part in enumerate(parts):
            place = Path(folder, name, part)
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy(seed, place / f"part-{number:05d}.parquet")


def _found(name: str) -> Callable[[Place], Any]:
    return lambda at: at.load(name)


def _typed(name: str, schema: str) -> Callable[[Place], Any]:
    def action(at: Place) -> Any:
        rows = at.read.schema(schema).load(f"{at.files}/{name}")
        rows.collect()
        return rows

    return action


def _where(name: str, predicate: str) -> Callable[[Place], Any]:
    return lambda at: at.load(name).where(predicate)


DISAGREEING = ("mixed_names", "uneven", "other_folder", "empty")
DISCOVERY = Scene(
    "partitions",
    files=_files,
    statements={
        **{
            f"values: {name}": _found(name) if name not in DISAGREEING else refused(_found(name))
            for name in FOLDERS
            if name != "escaped_names"
        },
        "a folder of a partition": lambda at: at.load("two/p=1"),
        "a folder of a partition, below a base": lambda at: at.load("two/p=1", basePath=f"{at.files}/two"),
        "folders by a glob": lambda at: at.load("two/p=*", basePath=f"{at.files}/two"),
        "folders by a glob, without a base": refused(lambda at: at.load("two/p=*")),
        "a base that is no parent": refused(lambda at: at.load("two/p=1", basePath=f"{at.files}/ints")),
        "a base that is a file": refused(lambda at: at.load("two", basePath=f"{at.files}/ints/p=1/part-00000.parquet")),
        "inner folders alone": lambda at: at.load("inner/plain"),
        "two bases": refused(lambda at: at.read.load([f"{at.files}/ints", f"{at.files}/two"])),
        "two paths of one base": lambda at: at.read.option("basePath", f"{at.files}/two").load(
            [f"{at.files}/two/p=1", f"{at.files}/two/p=2"]
        ),
        "a type of the schema": _typed("ints", "id long, p string"),
        "a wider type of the schema": _typed("ints", "id long, p long"),
        "a date of the schema": _typed("dates", "id long, p date"),
        "text of the schema": _typed("dates", "id long, p string"),
        "a decimal of the schema": _typed("doubles", "id long, p decimal(10, 2)"),
        "bytes of the schema": _typed("texts", "id long, p binary"),
        "a type that does not fit": refused(_typed("texts", "id long, p int")),
        "a date that does not fit": refused(_typed("bad_dates", "id long, p date")),
        "a narrow type": refused(_typed("longs", "id long, p int")),
        "the column before others": _typed("ints", "p int, id long"),
        "the column left out": _typed("ints", "id long"),
        "the column alone": lambda at: at.load("ints").select("p").distinct(),
        "the column in another case": _typed("case", "id long, p int"),
        "the column in another case, filtered": lambda at: at.load("case").where("p = 1").select("p", "P"),
        "count by the column": lambda at: at.load("two").groupBy("p", "q").count(),
        "max of the column": lambda at: at.load("two").selectExpr("max(p)", "min(q)", "count(*)"),
        "filter: equal": _where("ints", "p = 1"),
        "filter: in": _where("ints", "p in (7, 1, 9)"),
        "filter: not in": _where("two", "q not in ('a')"),
        "filter: range": _where("dates", "p > '2020-01-15'"),
        "filter: date": _where("dates", "p = date'2020-01-01'"),
        "filter: like": _where("texts", "p like 'a%'"),
        "filter: is null": _where("nulls", "p is null"),
        "filter: is not null": _where("nulls", "p is not null"),
        "filter: null-safe": _where("nulls", "p <=> null"),
        "filter: with a column": _where("two", "p = 1 and id = 1"),
        "filter: or a column": _where("two", "p = 1 or id = 1"),
        "filter: compared with a column": _where("ints", "p = id"),
        "filter: function": _where("dates", "month(p) = 2"),
        "filter: none matches": _where("ints", "p = 99"),
        "filter: escaped": _where("escapes", "p = 'a/b'"),
        "filter: percent": _where("escapes", "p in ('100%', 'ä', 'a b', 'a=b')"),
        "filter: instant": _where("instants", "p < timestamp'2020-01-01 20:00:00'"),
        "filter: subquery": lambda at: at.load("two").where("p = (select 2)"),
        "joined by the column": lambda at: at.load("two").join(at.load("ints").where("id = 1").select("p"), "p"),
    },
)
NOT_INFERRED = Scene(
    "partitions without types",
    files=_files,
    settings={"spark.sql.sources.partitionColumnTypeInference.enabled": "false"},
    statements={f"values: {name}": _found(name) for name in ("ints", "doubles", "dates", "nulls", "two")},
)
WITHOUT_ZONE = Scene(
    "partitions of timestamps without a zone",
    files=_files,
    settings={"spark.sql.timestampType": "TIMESTAMP_NTZ"},
    statements={
        "values": _found("instants"),
        "filter": _where("instants", "p < timestamp_ntz'2020-01-01 20:00:00'"),
    },
)
NOT_VALIDATED = Scene(
    "partitions that are not validated",
    files=_files,
    settings={"spark.sql.sources.validatePartitionColumns": "false"},
    statements={
        "a type that does not fit": _typed("texts", "id long, p int"),
        "a date that does not fit": _typed("bad_dates", "id long, p date"),
    },
)
SENSITIVE = Scene(
    "case of partitions",
    files=_files,
    settings={"spark.sql.caseSensitive": "true"},
    statements={
        "as in the folder": lambda at: at.load("case").where("P = 1"),
        "another case": refused(lambda at: at.load("case").where("p = 1")),
        "another case in the schema": _typed("case", "id long, p int"),
    },
)

VALUES = {
    "ints": "int(id)",
    "texts": "concat('v', id)",
    "nulls": "if(id = 1, null, int(id))",
    "empty texts": "if(id = 1, '', concat('v', id))",
    "escapes": "element_at(array('a/b', 'a b', 'ä:=', '100%', '\\\\', '\\''), int(id) + 1)",
    "dates": "date_add(date'2020-01-01', int(id))",
    "instants": "timestamp'2020-01-01 12:00:00.5' + make_dt_interval(int(id))",
    "local times": "timestamp_ntz'2020-01-01 12:00:00' + make_dt_interval(int(id))",
    "decimals": "cast(id + 0.5 as decimal(5, 2))",
    "doubles": "if(id = 1, double('NaN'), id / 4)",
    "truths": "id = 1",
    "bytes": "cast(concat('v', id) as binary)",
    "smallints": "smallint(id)",
    "intervals": "make_dt_interval(int(id))",
    "blanks": "concat(' ', id, ' ')",
    "control characters": "concat(id, '\\n\\t')",
}
REFUSED_VALUES = {"arrays": "array(id)", "structs": "named_struct('a', id)", "maps": "map(id, id)"}


def _written(value: str) -> Callable[[Place], Any]:
    def action(at: Place) -> Any:
        path = f"partitioned{abs(hash(value))}"
        at.write(at.rows(f"{value} as p", count=3)).partitionBy("p").save(f"{at.folder}/{path}")
        return {
            "folders": at.paths(path, "p=*"),
            "rows": at.read.load(f"{at.folder}/{path}"),
            "by Spark's own": at.spark.read.parquet(f"{at.folder}/{path}"),
        }

    return action


def _by(*names: str, rows: tuple[str, ...] = ("id % 2 as p", "id % 3 as q")) -> Callable[[Place], Any]:
    def action(at: Place) -> Any:
        path = f"by_{'_'.join(names)}"
        at.write(at.rows(*rows)).partitionBy(*names).save(f"{at.folder}/{path}")
        return [at.paths(path, "*=*"), at.read.load(f"{at.folder}/{path}")]

    return action


WRITTEN = Scene(
    "partitions written",
    statements={
        **{f"values: {name}": _written(value) for name, value in VALUES.items()},
        **{f"values: {name}": refused(_written(value)) for name, value in REFUSED_VALUES.items()},
        "two columns": _by("p", "q"),
        "two columns, in another order": _by("q", "p"),
        "a name in another case": _by("P"),
        "a missing column": refused(_by("missing")),
        "all columns": refused(_by("id", "p", "q")),
        "one column twice": refused(_by("p", "p")),
        "one column twice, in another case": refused(_by("p", "P")),
        "a column with a space": _by("a b", rows=("id % 2 as `a b`",)),
        "a column with a dot": _by("a.b", rows=("id % 2 as `a.b`",)),
        "a column with a slash": _by("a/b", rows=("id % 2 as `a/b`",)),
        "many values": lambda at: len(_by("id", rows=("1 as value",))(at)[0]),
        "values that differ in their case": _by("p", rows=("if(id < 5, 'a', 'A') as p",)),
        "a void column": refused(_by("p", rows=("null as p",))),
    },
)
SCENES = [DISCOVERY, NOT_INFERRED, WITHOUT_ZONE, NOT_VALIDATED, SENSITIVE, WRITTEN]
