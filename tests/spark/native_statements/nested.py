"""Columns of structs, lists and maps, of which queries need some fields."""

from __future__ import annotations

from typing import Any

from pyspark.sql import functions

from tests.spark.native_statements.scene import Place, Scene, refused


def _files(spark: Any, folder: str) -> None:
    spark.range(0, 6, 1, 2).selectExpr(
        "id",
        "if(id = 1, null, named_struct('first', concat('f', id), 'last', if(id = 2, null, 'l'), 'inner', named_struct('x', id, 'y', id * 2))) as name",
        "if(id = 3, null, if(id = 4, array(), array(named_struct('a', id, 'b', string(id)), null, named_struct('a', id + 1, 'b', null)))) as items",
        "map(string(id), named_struct('k', id, 'v', double(id)), 'none', null) as pairs",
        "array(array(named_struct('p', id, 'q', -id))) as deep",
        "map(named_struct('m', id), array(named_struct('n', id, 'o', id))) as keyed",
    ).write.parquet(f"{folder}/contacts")


COLUMNS = (
    "name.first",
    "name.inner.y",
    "name.inner",
    "name.first is null",
    "id, name.last",
    "name.first, name.inner.x",
    "name",
    "items.a",
    "get(items, 0).b",
    "get(items, 0).a, get(items, 2).b",
    "size(items)",
    "items is null",
    "pairs['none'].v",
    "pairs[string(id)].k",
    "map_keys(pairs)",
    "map_values(pairs)",
    "map_values(pairs).v",
    "deep[0][0].q",
    "deep[0].p",
    "keyed",
    "map_keys(keyed).m",
    "map_values(keyed)[0].n",
    "name.inner.x + get(items, 0).a",
    "named_struct('again', name.first)",
    "coalesce(name.first, 'none')",
    "name.*",
    "count(name.first)",
    "max(name.inner.x)",
    "sum(size(items))",
    "count(items.a)",
    "transform(items, i -> i.a)",
    "filter(items, i -> i.b is not null).a",
    "explode(items)",
    "explode(items.a)",
    "posexplode(items)",
    "explode(pairs)",
    "inline(items)",
    "explode_outer(items.b)",
    "to_json(name)",
    "arrays_zip(items.a, items.b)",
    "try_element_at(items, -1).a",
    "if(id > 2, name, null).first",
    "array_contains(items.a, 5L)",
    "hash(name, items)",
)
PREDICATES = (
    "name.first = 'f3'",
    "name.inner.x > 2",
    "name is null",
    "name.last is null",
    "name.first is not null and name.inner.y = 8",
    "get(items, 0).a = 2",
    "size(items) = 0",
    "exists(items, i -> i.a = 3)",
    "pairs['2'].k = 2",
    "deep[0][0].p < 2",
    "name.inner = named_struct('x', 3L, 'y', 6L)",
)


def _view(at: Place) -> None:
    at.load("contacts").createOrReplaceTempView("contacts")


NESTED = Scene(
    "nested",
    files=_files,
    before=_view,
    statements={
        **{f"select {columns}": f"select {columns} from contacts" for columns in COLUMNS},
        **{f"where {predicate}": f"select id, name.first from contacts where {predicate}" for predicate in PREDICATES},
        "exploded, then one field": "select id, item.a from contacts lateral view explode(items) as item where item.b is not null",
        "exploded in an outer view": "select id, item.b from contacts lateral view outer explode(items) as item",
        "grouped by a field": "select name.last, count(*), max(name.first) from contacts group by name.last",
        "ordered by a field": lambda at: at.sql("select name.first from contacts order by name.inner.x desc").collect(),
        "joined by a field": "select a.id, b.name.last from contacts a join contacts b on a.name.first = b.name.first",
        "distinct fields": "select distinct name.last from contacts",
        "an unknown field": refused("select name.unknown from contacts"),
        "a field added": lambda at: (
            at.load("contacts")
            .withColumn(
                "name",
                functions.col("name").withField("more", functions.lit(1)),
            )
            .select("name.more", "name.first")
        ),
        "a field dropped": lambda at: (
            at.load("contacts").withColumn("name", functions.col("name").dropFields("inner")).select("name")
        ),
        "by a schema with fewer fields": lambda at: at.read.schema("name struct<inner: struct<y: long>>").load(
            f"{at.files}/contacts"
        ),
        "by a schema with new fields": lambda at: at.read.schema(
            "name struct<middle: string, first: string>, items array<struct<c: int, a: long>>"
        ).load(f"{at.files}/contacts"),
        "by a schema with new fields alone": lambda at: at.read.schema(
            "name struct<middle: string>, items array<struct<c: int>>, pairs map<string, struct<w: int>>"
        ).load(f"{at.files}/contacts"),
        "by a schema, a filter on a new field": lambda at: (
            at.read.schema("id long, name struct<middle: string, first: string>")
            .load(f"{at.files}/contacts")
            .where("name.middle is null")
            .select("id")
        ),
    },
)
IN_ROWS = Scene(
    "nested, in rows",
    files=_files,
    before=_view,
    settings={"spark.sql.parquet.enableVectorizedReader": "false"},
    statements={
        f"select {columns}": f"select {columns} from contacts"
        for columns in ("*", "name.first", "items.a", "pairs['none'].v", "deep[0].p")
    },
)
NESTED_READER_OFF = Scene(
    "nested, without columns",
    files=_files,
    before=_view,
    settings={
        "spark.sql.parquet.enableNestedColumnVectorizedReader": "false",
        "spark.sql.optimizer.nestedSchemaPruning.enabled": "false",
    },
    statements={f"select {columns}": f"select {columns} from contacts" for columns in ("*", "name.first", "items.a")},
)
SCENES = [NESTED, IN_ROWS, NESTED_READER_OFF]
