"""Filters on values of all types, which sources use to leave out row groups, and filters that no source knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.spark.native_statements.scene import Action, Place, Refused, Scene, refused

COLUMNS = {
    "tiny": "tinyint(id)",
    "number": "int(id)",
    "large": "id * 1000000000",
    "ratio": "if(id = 5, double('NaN'), if(id = 6, -0.0D, id / 4))",
    "narrow": "float(id) / 3",
    "price": "cast(id * 1.25 as decimal(9, 2))",
    "amount": "cast(id * 1.25 as decimal(25, 4))",
    "text": "if(id = 3, '', concat('a', id % 7))",
    "mark": "concat('ä', id)",
    "bytes": "cast(string(id) as binary)",
    "day": "date_add(date'2020-01-01', int(id))",
    "instant": "timestamp'2020-01-01 00:00:00' + make_dt_interval(int(id))",
    "local": "timestamp_ntz'2020-01-01 00:00:00' + make_dt_interval(int(id))",
    "flag": "id % 2 = 0",
    "list": "array(id, id + 1)",
    "pairs": "map('k', id)",
    "pair": "named_struct('a', int(id), 'b', named_struct('c', string(id)))",
    "hole": "if(id % 3 = 0, null, int(id))",
    "empty": "cast(null as int)",
    "padded": "concat(id, ' ')",
}
PREDICATES = (
    "number = 3",
    "number <> 3",
    "number < 3",
    "number <= 3",
    "number > 3",
    "number >= 3",
    "3 < number",
    "number = 3.0",
    "number = '3'",
    "number < 2.5",
    "number between 2 and 4",
    "number not between 2 and 4",
    "number in (1, 5, 100)",
    "number not in (1, 5)",
    "number in (1, null)",
    "number not in (1, null)",
    "number = null",
    "number <=> null",
    "hole <=> 3",
    "hole is null",
    "hole is not null",
    "not (hole > 3)",
    "hole > 3 or hole is null",
    "empty is null",
    "empty = 1",
    "isnull(empty) and isnotnull(hole)",
    "tiny = 300",
    "tiny > -129",
    "tiny = 3",
    "number = 3000000000",
    "number < 3000000000",
    "large = 4000000000",
    "large > 5e9",
    "large in (0, 1000000000)",
    "ratio = double('NaN')",
    "ratio > 1",
    "ratio < 1",
    "ratio = 0.0D",
    "ratio = -0.0D",
    "ratio <> double('NaN')",
    "isnan(ratio)",
    "not (ratio < 1)",
    "ratio in (0.0D, double('NaN'))",
    "ratio >= double('Infinity')",
    "narrow = 1",
    "narrow > 0.3",
    "narrow = float(0.33333334)",
    "narrow <= 1.0D",
    "price = 2.5",
    "price > 2.505",
    "price = 2.50",
    "price in (1.25, 2.5)",
    "price < 1000000",
    "amount >= 5.0000",
    "amount = 3.75",
    "text = 'a3'",
    "text = ''",
    "text <> ''",
    "text > 'a4'",
    "text like 'a%'",
    "text like '%3'",
    "text like '%a%'",
    "text like 'a_'",
    "text like 'a3'",
    "text ilike 'A%'",
    "text rlike 'a[12]'",
    "text not like 'a1%'",
    "startswith(text, 'a1')",
    "endswith(text, '2')",
    "contains(text, '3')",
    "upper(text) = 'A1'",
    "length(text) = 0",
    "text in ('a1', '')",
    "substr(text, 2) = '1'",
    "text || 'x' = 'a1x'",
    "mark > 'ä2'",
    "mark like 'ä1%'",
    "mark < 'z'",
    "padded = '3 '",
    "trim(padded) = '3'",
    "bytes = X'33'",
    "bytes > X'35'",
    "bytes in (X'31', X'32')",
    "day = date'2020-01-03'",
    "day > '2020-01-05'",
    "day between date'2020-01-02' and date'2020-01-04'",
    "year(day) = 2020",
    "day = timestamp'2020-01-03 00:00:00'",
    "date_trunc('month', day) = date'2020-01-01'",
    "instant = timestamp'2020-01-03 00:00:00'",
    "instant > '2020-01-05'",
    "date(instant) = date'2020-01-04'",
    "instant < timestamp'2020-01-03 08:00:00Z'",
    "local >= timestamp_ntz'2020-01-05 00:00:00'",
    "local = timestamp'2020-01-03 00:00:00'",
    "flag",
    "not flag",
    "flag = true",
    "flag <> true",
    "flag is true",
    "flag <=> null",
    "flag and number > 3",
    "flag or number > 3",
    "not (flag or number > 3)",
    "(flag and number < 3) or (not flag and number > 5)",
    "pair.a = 3",
    "pair.b.c = '3'",
    "pair.b.c like '3%'",
    "pair is not null",
    "pair.a in (1, 2)",
    "pair = named_struct('a', 3, 'b', named_struct('c', '3'))",
    "list[0] = 3",
    "array_contains(list, 3L)",
    "size(list) = 2",
    "exists(list, x -> x = 3)",
    "pairs['k'] = 3",
    "map_keys(pairs)[0] = 'k'",
    "number = tiny",
    "number > price",
    "number + 1 = 4",
    "number % 2 = 1",
    "-number = -3",
    "abs(number) = 3",
    "cast(number as string) = '3'",
    "coalesce(hole, -1) = -1",
    "case when flag then number else 0 end = 4",
    "if(flag, text, mark) like 'a%'",
    "nullif(number, 3) is null",
    "true",
    "false",
    "cast(null as boolean)",
    "1 = 1",
    "number = number",
    "number <> number",
    "rand(1) >= 0",
    "monotonically_increasing_id() >= 0",
    "number > (select 3)",
    "number in (select 4)",
    "exists (select 1)",
    "number = (select max(number) from rows)",
    "text collate UTF8_LCASE = 'A1'",
    "number > 1 and number > 2 and number < 100 and text is not null and hole > 0",
    "number in (" + ", ".join(map(str, range(5, 400))) + ")",
)
REFUSED_PREDICATES = (
    "flag = 1",
    "null",
    "missing = 1",
    "text",
    "number = array(1)",
    "pair.missing = 1",
    "number / 0 > 1",
    "cast(mark as int) > 1",
)


def _files(spark: Any, folder: str) -> None:
    """Three row groups of four rows, in two files."""
    rows = spark.range(0, 12, 1, 1).selectExpr("id", *(f"{value} as {name}" for name, value in COLUMNS.items()))
    for low, high in ((0, 4), (4, 8), (8, 12)):
        rows.where(f"id >= {low} and id < {high}").write.mode("append").parquet(f"{folder}/rows")


def _interval_files(spark: Any, folder: str) -> None:
    rows = spark.range(0, 9, 1, 1).selectExpr(
        "id", "make_ym_interval(0, int(id)) as months", "if(id = 3, null, make_dt_interval(int(id))) as span"
    )
    rows.write.parquet(f"{folder}/intervals")


def _view(at: Place) -> None:
    at.load("rows").createOrReplaceTempView("rows")


def _name(predicate: str) -> str:
    return predicate if len(predicate) < 60 else predicate[:60] + " ..."


def _collected(text: str) -> Action:
    return lambda at: at.sql(text).collect()


def _matching(predicate: str) -> Action:
    return lambda at: at.load("intervals").where(predicate).select("id")


def _where(predicate: str) -> str:
    return f"select id, hole from rows where {predicate}"


def _all() -> Mapping[str, Action | Refused]:
    return {_name(predicate): _where(predicate) for predicate in PREDICATES} | {
        _name(predicate): refused(_collected(_where(predicate))) for predicate in REFUSED_PREDICATES
    }


def _counts(predicates: tuple[str, ...]) -> dict[str, Action | Refused]:
    return {_name(predicate): f"select count(*), min(number), max(text) from rows where {predicate}" for predicate in predicates}


FILTERS = Scene("filters", files=_files, before=_view, statements=_all())
SOME = (
    "number > 3",
    "ratio = double('NaN')",
    "text like 'a1%'",
    "pair.a = 3",
    "hole is null",
    "price > 2.505",
    "instant > '2020-01-05'",
    "flag or number > 3",
)
NO_PUSHDOWN = Scene(
    "filters that are not pushed",
    files=_files,
    before=_view,
    statements=_counts(SOME),
    settings={"spark.sql.parquet.filterPushdown": "false"},
)
IN_ROWS = Scene(
    "filters of rows",
    files=_files,
    before=_view,
    statements=_counts(SOME),
    settings={"spark.sql.parquet.enableVectorizedReader": "false", "spark.sql.parquet.recordLevelFilter.enabled": "true"},
)
INTERVALS = Scene(
    "filters on intervals",
    files=_interval_files,
    statements={
        predicate: _matching(predicate)
        for predicate in (
            "months = interval '3' month",
            "months > interval '0-5' year to month",
            "span < interval '2' day",
            "span is null",
        )
    },
)
SCENES = [FILTERS, INTERVALS, NO_PUSHDOWN, IN_ROWS]
