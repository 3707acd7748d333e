"""Tables: DDL, inserts, partition commands, views, column types and defaults, and what such tables refuse."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from typing import Any

from tests.spark.native_statements.scene import Place, Scene, last, refused

VOLATILE = ("Created Time", "Last Access", "Created By", "Statistics", "Partition Statistics", "Table Properties")


def _described(statement: str) -> Callable[[Place], Any]:
    """Return the rows of a description, without times and sizes."""
    return lambda at: [tuple(row) for row in at.sql(statement).collect() if row[0] not in VOLATILE]


def _without_folder(at: Place) -> Any:
    shutil.rmtree(f"{at.folder}/warehouse/sales/day=2024-01-01")
    return at.sql("msck repair table sales drop partitions; show partitions sales partition (day = '2024-01-01')")


def _failing(text: str) -> Any:
    return refused(lambda at: at.sql(text).collect())


def _statistics(table: str, column: str = "") -> Callable[[Place], Any]:
    """Return the row count of a table, or the statistics of a column but sizes in bytes."""

    def action(at: Place) -> Any:
        rows = {row[0]: row[1] for row in at.sql(f"describe extended {table} {column}").collect()}
        return {name: value for name, value in rows.items() if column} or rows.get("Statistics", "none").split(", ")[1:]

    return action


PLAIN = Scene(
    "tables",
    before="create table items (id long comment 'key', text string, price decimal(9, 2)) using {source} comment 'all items' tblproperties ('team' = 'us'); "
    "insert into items select id, string(id), id / 4 from range(8)",
    statements={
        "select": "select * from items",
        "describe": "describe items",
        "describe extended": _described("describe extended items"),
        "describe a column": "describe items text",
        "describe as JSON": lambda at: sorted(
            json.loads(at.sql("describe extended items as json").first()[0])["columns"], key=str
        ),
        "show create table": lambda at: at.sql("show create table items").first()[0],
        "show columns": "show columns in items",
        "show properties": lambda at: [row for row in at.sql("show tblproperties items").collect() if "transient" not in row[0]],
        "show tables": "show tables",
        "show table extended": lambda at: at.sql("show table extended like 'items'").count(),
        "table in SQL": "table items",
        "by the catalog": lambda at: [
            at.spark.catalog.tableExists("items"),
            at.spark.catalog.getTable("items").tableType,
            [tuple(c) for c in at.spark.catalog.listColumns("items")],
        ],
        "read by its name": lambda at: at.spark.read.table("items"),
        "full name": "select id from {database}.items where id = 1",
        "count": "select count(*), max(price) from items",
        "a filter": "select text from items where price > 0.75 and id < 6",
        "insert values": "insert into items values (100, 'hundred', 1.5), (101, null, null); select * from items where id >= 100",
        "insert some columns": "insert into items (price, id) values (2.5, 102); select * from items where id = 102",
        "insert by name": "insert into items by name select 'x' as text, 103 as id, 3.5 as price; select * from items where id = 103",
        "insert from itself": "insert into items select id + 1000, text, price from items where id < 3; select count(*) from items",
        "insert of fewer columns": _failing("insert into items values (1, 'one')"),
        "insert of more columns": _failing("insert into items values (1, 'one', 1.0, 2)"),
        "insert of an unknown column": _failing("insert into items (id, missing) values (1, 2)"),
        "insert of another type": _failing("insert into items select named_struct('a', 1), 'x', 1.0"),
        "insert that overflows": _failing("insert into items values (1, 'a', 1e20)"),
        "insert of text as a number": _failing("insert into items values ('abc', 'a', 1.0)"),
        "insert by a DataFrame": lambda at: last(
            at.spark.sql("select 104L as a, 'x' as b, cast(1.5 as decimal(9, 2)) as c").write.insertInto("items"),
            at.sql("select * from items where id = 104"),
        ),
        "append by a DataFrame": lambda at: last(
            at.write(at.sql("select 105L as id, 'y' as text, cast(2 as decimal(9, 2)) as price"), "append").saveAsTable("items"),
            at.sql("select * from items where id = 105"),
        ),
        "append by a DataFrame, of another form": refused(lambda at: at.write(at.rows(count=1), "append").saveAsTable("items")),
        "append by another format": refused(
            lambda at: at.spark.table("items").write.format("json").mode("append").saveAsTable("items")
        ),
        "insert overwrite": "insert overwrite items select id, 'new', 0 from range(3); select * from items",
        "insert overwrite from itself": refused("insert overwrite items select id + 1, text, price from items"),
        "insert replace where": _failing("insert into items replace where id = 1 select 1, 'a', 1"),
        "create again": _failing("create table items (id int) using {source}"),
        "create again if it is not there": "create table if not exists items (other int) using {source}; describe items",
        "create or replace": _failing("create or replace table items (id int) using {source}"),
        "replace": _failing("replace table items (id int) using {source}"),
        "delete": _failing("delete from items where id = 1"),
        "update": _failing("update items set text = 'x'"),
        "merge": _failing("merge into items using (select 1 as k) on id = k when matched then delete"),
        "time travel": _failing("select * from items version as of 1"),
        "add a column": "alter table items add columns (more int comment 'new', last array<int>); select * from items",
        "add a column that is there": _failing("alter table items add columns (text int)"),
        "insert after a column was added": "insert into items values (200, 'b', 1, 7, array(1, 2)); select id, more, last from items",
        "rename a column": _failing("alter table items rename column text to words"),
        "drop a column": _failing("alter table items drop column text"),
        "replace columns": _failing("alter table items replace columns (id long)"),
        "change a type": _failing("alter table items alter column id type string"),
        "change a type, the old way": _failing("alter table items change column more more long"),
        "change a comment": "alter table items alter column text comment 'words'; describe items text",
        "set not null": _failing("alter table items alter column id set not null"),
        "set properties": "alter table items set tblproperties ('colour' = 'red'); show tblproperties items ('colour')",
        "unset properties": "alter table items unset tblproperties ('colour'); show tblproperties items ('colour')",
        "unset an unknown property": "alter table items unset tblproperties if exists ('unknown')",
        "comment on the table": lambda at: last(
            at.sql("comment on table items is 'changed'"),
            _described("describe extended items")(at),
        ),
        "rename the table": "alter table items rename to things; alter table things rename to items; select count(*) from items",
        "analyze": lambda at: last(at.sql("analyze table items compute statistics"), _statistics("items")(at)),
        "analyze without a scan": lambda at: (at.sql("analyze table items compute statistics noscan"), _statistics("items")(at))[
            1
        ],
        "analyze columns": lambda at: last(
            at.sql("analyze table items compute statistics for columns id, text, price"),
            [_statistics("items", name)(at) for name in ("id", "text", "price")],
        ),
        "analyze all tables": lambda at: last(
            at.sql("analyze tables in {database} compute statistics"), _statistics("items")(at)
        ),
        "truncate": "truncate table items; select count(*) from items",
        "truncate a partition": _failing("truncate table items partition (id = 1)"),
        "show partitions": _failing("show partitions items"),
        "add a partition": _failing("alter table items add partition (id = 1)"),
        "repair": _failing("msck repair table items"),
        "cache": "insert into items values (1, 'a', 1, 1, null); cache table items; select * from items",
        "cache, then insert": "insert into items values (2, 'b', 2, 2, null); select * from items",
        "uncache": "uncache table items; refresh table items; select * from items",
        "add a column in another place": "alter table items add column front int first; describe items",
        "drop": "drop table items; show tables",
        "drop again": _failing("drop table items"),
        "drop if it is there": "drop table if exists items",
    },
)


CREATED = Scene(
    "tables created",
    before="create temporary view numbers as select id, id % 3 as p, string(id) as text from range(9)",
    statements={
        "as select": "create table a1 using {source} as select * from numbers; select * from a1",
        "as select, partitioned": "create table a2 using {source} partitioned by (p) as select * from numbers; select * from a2 where p = 1",
        "as select, with a place": "create table a3 using {source} location '{folder}/a3' as select * from numbers; select * from {source}.`{folder}/a3`",
        "as select, with options": "create table a4 using {source} options ('compression' = 'gzip') as select * from numbers; select count(*) from a4",
        "as select of nothing": "create table a5 using {source} as select * from numbers where false; select * from a5",
        "as select with not null": lambda at: last(
            at.sql("create table a6 using {source} as select 1 as a"),
            at.spark.table("a6").schema.json(),
        ),
        "as select into a place with files": _failing("create table a7 using {source} location '{folder}/a3' as select 1 as a"),
        "as select, with columns": _failing("create table a8 (id int) using {source} as select 1"),
        "as select, by a DataFrame": lambda at: last(
            at.write(at.sql("select * from numbers")).saveAsTable("a9"),
            at.spark.table("a9"),
        ),
        "by a DataFrame, again": refused(lambda at: at.write(at.sql("select * from numbers")).saveAsTable("a9")),
        "by a DataFrame, ignored": lambda at: last(at.write(at.rows(), "ignore").saveAsTable("a9"), at.spark.table("a9").columns),
        "by a DataFrame, overwritten": lambda at: last(at.write(at.rows(), "overwrite").saveAsTable("a9"), at.spark.table("a9")),
        "by a DataFrame, appended": lambda at: last(at.write(at.rows(count=2), "append").saveAsTable("a9"), at.spark.table("a9")),
        "by a DataFrame, partitioned": lambda at: last(
            at.write(at.sql("select * from numbers")).partitionBy("p", "text").saveAsTable("a10"),
            at.sql("show partitions a10"),
        ),
        "by a DataFrame, appended with other partitions": refused(
            lambda at: at.write(at.sql("select * from numbers"), "append").partitionBy("text").saveAsTable("a10")
        ),
        "by a DataFrame, with a path": lambda at: last(
            at.write(at.rows(count=2)).option("path", f"{at.folder}/a11").saveAsTable("a11"),
            at.read.load(f"{at.folder}/a11"),
        ),
        "from files": "create table b1 using {source} location '{folder}/a3'; describe b1",
        "from files, by options": "create table b2 using {source} options (path '{folder}/a3'); select * from b2 where id = 2",
        "from files, with columns": "create table b3 (text string, id long, more int) using {source} location '{folder}/a3'; select * from b3",
        "from files, by the catalog": lambda at: at.spark.catalog.createTable("b4", f"{at.folder}/a3", at.source),
        "from no files": _failing("create table b5 using {source} location '{folder}/nothing'"),
        "from no files, with columns": "create table b6 (id int) using {source} location '{folder}/nothing'; select * from b6",
        "insert into files": "insert into b6 values (1); select * from {source}.`{folder}/nothing`",
        "external": _failing("create external table b7 (id int) using {source}"),
        "dropped, its files stay": "drop table b6; select * from {source}.`{folder}/nothing`",
        "without columns": _failing("create table b8 using {source}"),
        "with one column twice": _failing("create table b9 (a int, A int) using {source}"),
        "with void": "create table b10 (a void) using {source}",
        "with an interval": "create table b11 (a interval day to second, b int) using {source}; insert into b11 select make_dt_interval(1), 1; select * from b11",
        "with an interval of the calendar": _failing("create table b12 (a interval) using {source}"),
        "with not null": "create table b13 (a int not null) using {source}; describe b13",
        "null into not null": "insert into b13 values (null); select * from b13",
        "with variant": "create table b14 (a variant) using {source}; insert into b14 select parse_json('[1]'); select to_json(a) from b14",
        "with a generated column": _failing("create table b15 (a int, b int generated always as (a + 1)) using {source}"),
        "with an identity": _failing("create table b16 (a bigint generated always as identity) using {source}"),
        "with a check": _failing("create table b17 (a int, constraint positive check (a > 0)) using {source}"),
        "with a primary key": _failing("create table b18 (a int primary key) using {source}"),
        "like another": "create table c1 like b3; describe c1",
        "like another, used": "insert into c1 values ('x', 1, 2); select * from c1",
        "like another, with a place": "create table c2 like b3 location '{folder}/c2'; insert into c2 values ('y', 1, 2); select * from {source}.`{folder}/c2`",
        "like another, with a format": lambda at: last(
            at.sql("create table c3 like b3 using {source}"),
            _described("describe extended c3")(at),
        ),
        "like another, with properties": "create table c4 like b3 tblproperties ('a' = 'b'); show tblproperties c4 ('a')",
        "like a partitioned one": lambda at: last(at.sql("create table c5 like a2"), at.sql("show create table c5").first()[0]),
        "clustered": _failing("create table c6 (id int, p int) using {source} partitioned by (p) cluster by (id)"),
        "as select, clustered": lambda at: at.sql("create table c7 (id int) using {source} cluster by (id)").count(),
        "by transforms": _failing("create table c8 (id int, d date) using {source} partitioned by (years(d))"),
        "temporary, with a path": "create temporary view v1 using {source} options (path '{folder}/a3'); select * from v1 where p = 2",
        "temporary, with columns": "create temporary view v2 (id long, extra int) using {source} options (path '{folder}/a3'); select * from v2",
        "temporary, inserted into": "insert into v1 values (50, 1, 'fifty'); refresh table v1; select * from v1 where id = 50",
        "temporary, overwritten": "insert overwrite table v1 select 60, 1, 'sixty'; select * from v1",
        "view": "create view v3 as select id, p from a1 where id > 3; select * from v3",
        "view with columns and a comment": "create view v4 (a comment 'first', b) comment 'words' as select id, text from a1; describe v4",
        "view altered": "alter view v3 as select text from a1; select * from v3",
        "view replaced": "create or replace view v3 as select p from a1; select distinct p from v3",
        "view over a path": "create view v5 as select id from {source}.`{folder}/a3`; select * from v5",
        "view over a changed table": "create view v6 as select * from a2; alter table a2 add columns (extra int); select * from v6",
        "view, described": _described("describe extended v4"),
        "view, inserted into": _failing("insert into v3 values (1)"),
        "view, dropped": "drop view v3; show views",
        "view, global": "create or replace global temporary view g1 as select max(id) as m from a1; select * from global_temp.g1",
        "subquery in a CTE": "with few as (select * from a1 where id < 3) select f.id from few f join a1 on f.id = a1.id",
        "a session's default source": lambda at: last(
            at.spark.conf.set("spark.sql.sources.default", at.source),
            at.sql("create table d1 (a int); insert into d1 values (1)"),
            at.spark.table("d1"),
        ),
        "a session's default source, as select": "create table d2 as select * from range(3); select * from d2",
        "a session's default source, described": _described("describe extended d2"),
        "a session's default source, overwritten": "insert overwrite d2 values (7); select * from d2",
        "another format beside": "create table d3 using json as select 1 as a; select * from d3 join d1 using (a)",
    },
)

PARTITIONED = Scene(
    "partitioned tables",
    before="create table sales (id long, amount int) using {source} partitioned by (day date, shop string) ; "
    "drop table sales; create table sales (id long, amount int, day date, shop string) using {source} partitioned by (day, shop); "
    "insert into sales select id, int(id * 10), date_add(date'2020-01-01', int(id % 2)), concat('s', id % 3) from range(12)",
    statements={
        "select": "select * from sales",
        "describe": "describe sales",
        "describe a partition": _described("describe extended sales partition (day = '2020-01-01', shop = 's0')"),
        "describe a missing partition": _failing("describe extended sales partition (day = '2030-01-01', shop = 's0')"),
        "show create table": lambda at: at.sql("show create table sales").first()[0],
        "show partitions": "show partitions sales",
        "show some partitions": "show partitions sales partition (day = date'2020-01-01')",
        "show partitions of an unknown column": _failing("show partitions sales partition (id = 1)"),
        "show table extended": lambda at: at.sql(
            "show table extended like 'sales' partition (day = '2020-01-01', shop = 's0')"
        ).count(),
        "filter": "select sum(amount) from sales where day = '2020-01-02' and shop in ('s1', 's2')",
        "aggregate by a partition": "select day, count(*), max(shop) from sales group by day",
        "distinct partitions": "select distinct shop from sales",
        "insert a static partition": "insert into sales partition (day = '2021-01-01', shop = 'x') values (50, 1); select * from sales where day = '2021-01-01'",
        "insert a partly static partition": "insert into sales partition (day = '2021-01-02', shop) values (51, 1, 'y'); select * from sales where shop = 'y'",
        "insert a dynamic partition": "insert into sales partition (day, shop) values (52, 1, date'2021-01-03', 'z'); select * from sales where shop = 'z'",
        "insert by names": "insert into sales (shop, day, id) values ('named', date'2021-01-04', 53); select * from sales where shop = 'named'",
        "insert nulls": "insert into sales values (54, 1, null, null), (55, 1, date'2021-01-05', ''); select * from sales where id in (54, 55)",
        "insert a value with escapes": "insert into sales values (56, 1, date'2021-01-06', 'a/b c=%ä'); select * from sales where shop = 'a/b c=%ä'",
        "insert a missing partition column": _failing("insert into sales partition (missing = 1) values (1, 1)"),
        "insert a wrong static value": _failing("insert into sales partition (day = 'abc', shop = 'x') values (1, 1)"),
        "show all partitions": "show partitions sales",
        "overwrite a static partition": "insert overwrite sales partition (day = '2021-01-01', shop = 'x') values (60, 6); select * from sales where day = '2021-01-01'",
        "overwrite a partly static partition": "insert overwrite sales partition (day = '2020-01-01', shop) values (61, 6, 'only'); select * from sales where day = '2020-01-01'",
        "overwrite dynamic partitions": "set spark.sql.sources.partitionOverwriteMode=dynamic; insert overwrite sales values (62, 6, date'2020-01-02', 's1'); select * from sales where day = '2020-01-02'",
        "overwrite dynamic partitions by a DataFrame": lambda at: last(
            at.sql("select 63L, 6, date'2021-01-02', 'y'").write.mode("overwrite").insertInto("sales"),
            at.sql("select * from sales where id > 50"),
        ),
        "overwrite, if it is not there": "set spark.sql.sources.partitionOverwriteMode=static; insert overwrite sales partition (day = '2021-01-01', shop = 'x') if not exists values (70, 7); select * from sales where day = '2021-01-01'",
        "add a partition": "alter table sales add partition (day = '2022-01-01', shop = 'new'); show partitions sales partition (day = '2022-01-01')",
        "add a partition again": _failing("alter table sales add partition (day = '2022-01-01', shop = 'new')"),
        "add a partition if it is not there": "alter table sales add if not exists partition (day = '2022-01-01', shop = 'new')",
        "add a partition with a place": "alter table sales add partition (day = '2022-01-02', shop = 'far') location '{folder}/far'; insert into sales partition (day = '2022-01-02', shop = 'far') values (80, 8); select id from {source}.`{folder}/far`",
        "select from a partition with a place": "select * from sales where shop = 'far'",
        "add an incomplete partition": _failing("alter table sales add partition (day = '2022-01-03')"),
        "rename a partition": "alter table sales partition (day = '2022-01-01', shop = 'new') rename to partition (day = '2022-01-01', shop = 'newer'); show partitions sales partition (day = '2022-01-01')",
        "rename a missing partition": _failing(
            "alter table sales partition (day = '2032-01-01', shop = 'x') rename to partition (day = '2032-01-01', shop = 'y')"
        ),
        "move a partition": "alter table sales partition (day = '2022-01-01', shop = 'newer') set location '{folder}/moved'; select * from sales where shop = 'newer'",
        "drop a partition": "alter table sales drop partition (day = '2021-01-01', shop = 'x'); select * from sales where day = '2021-01-01'",
        "drop some partitions": _failing("alter table sales drop partition (day = '2020-01-02')"),
        "drop a missing partition": _failing("alter table sales drop partition (day = '2032-01-01', shop = 'x')"),
        "drop a missing partition, if it is there": "alter table sales drop if exists partition (day = '2032-01-01', shop = 'x')",
        "truncate a partition": "truncate table sales partition (day = '2020-01-01', shop = 'only'); select count(*) from sales where day = '2020-01-01'",
        "analyze": lambda at: last(at.sql("analyze table sales compute statistics"), _statistics("sales")(at)),
        "analyze a partition": lambda at: at.sql(
            "analyze table sales partition (day = '2021-01-03', shop = 'z') compute statistics"
        ).count(),
        "analyze a partition column": lambda at: last(
            at.sql("analyze table sales compute statistics for columns shop, id"),
            _statistics("sales", "shop")(at),
        ),
        "add a column": "alter table sales add columns (extra string); select * from sales where id = 63",
        "insert after a column was added": "insert into sales values (90, 9, 'extra', date'2023-01-01', 'w'); select * from sales where id = 90",
        "rename a partition column": _failing("alter table sales rename column shop to store"),
        "a partition that others wrote": lambda at: last(
            at.rows("1 as amount", count=2).write.parquet(f"{at.folder}/warehouse/sales/day=2024-01-01/shop=found"),
            at.sql("select * from sales where shop = 'found'"),
        ),
        "repair": "msck repair table sales; select * from sales where shop = 'found'",
        "repair: drop": _without_folder,
        "recover by the catalog": lambda at: at.spark.catalog.recoverPartitions("sales"),
        "move the table": "alter table sales set location '{folder}/elsewhere'; select count(*) from sales",
        "truncate": "truncate table sales; select * from sales",
        "a table with all columns partitions": _failing("create table wrong (p int) using {source} partitioned by (p)"),
        "a table with an unknown partition column": _failing("create table wrong (p int) using {source} partitioned by (q)"),
        "a table with a partition of an array": _failing(
            "create table wrong (a int, p array<int>) using {source} partitioned by (p)"
        ),
        "partitions typed as numbers": "create table typed (a int, p smallint, q double) using {source} partitioned by (p, q); insert into typed values (1, 7, 1.5), (2, null, double('NaN')); select * from typed",
        "partitions typed as text that look like numbers": "create table texts (a int, p string) using {source} partitioned by (p); insert into texts values (1, '007'), (2, '1.0'); select * from texts where p = '007'",
        "partitions from files": "create table files using {source} location '{folder}/elsewhere2' partitioned by (p) as select 1 as a, 2 as p; create table files2 using {source} location '{folder}/elsewhere2'; select * from files2",
        "partitions from files, unmanaged": "insert into files2 values (3, 4); msck repair table files2; select * from files2",
    },
)

TYPED = Scene(
    "types of columns of tables",
    statements={
        "char": "create table c (a char(5), b varchar(3)) using {source}; insert into c values ('ab', 'ab'); select a, length(a), b from c",
        "char, too long": _failing("insert into c values ('abcdef', 'a')"),
        "char, too long by blanks": "insert into c values ('abc     ', 'ab   '); select a, length(b) from c",
        "varchar, too long": _failing("insert into c values ('a', 'abcd')"),
        "char, compared": "select a from c where a = 'ab'",
        "char, compared with blanks": "select a from c where a = 'ab   '",
        "char, in a list": "select a from c where a in ('ab', 'x')",
        "char, joined": "select c.a from c join (select 'ab' as k) on a = k",
        "char, described": "describe c",
        "char, in nested types": "create table n (a array<char(3)>, s struct<f: varchar(2)>) using {source}; insert into n select array('x'), named_struct('f', 'ab'); select a[0], length(a[0]), s.f from n",
        "char, in nested types, too long": _failing("insert into n select array('abcd'), named_struct('f', 'ab')"),
        "char, as a partition": "create table cp (a int, p char(3)) using {source} partitioned by (p); insert into cp values (1, 'x'); select a, length(p) from cp where p = 'x'",
        "char, written without": lambda at: last(
            at.sql("insert into c select 'z', 'z'"),
            at.spark.read.parquet(f"{at.folder}/warehouse/c").where("b = 'z'"),
        ),
        "char, files without blanks": lambda at: last(
            at.sql("select 'q' as a, 'q' as b").write.mode("append").parquet(f"{at.folder}/warehouse/c"),
            at.sql("refresh table c; select a, length(a) from c where a = 'q'"),
        ),
        "char, as text": "set spark.sql.legacy.charVarcharAsString=true; select length(a) from c where b = 'z'; ",
        "varchar, widened": _failing(
            "set spark.sql.legacy.charVarcharAsString=false; alter table c alter column b type varchar(10)"
        ),
        "default": "create table d (a int, b int default 7, c string default upper('x')) using {source}; insert into d (a) values (1); select * from d",
        "default, by the word": "insert into d values (2, default, 'given'); select * from d where a = 2",
        "default, null": "insert into d values (3, null, null); select * from d where a = 3",
        "default, described": "describe extended d b",
        "default, of a new column": "alter table d add column e int default 42; select * from d",
        "default, of a new column, filtered": "select a from d where e = 42",
        "default, of a new column, aggregated": "select sum(e), min(e), count(e) from d",
        "default, of a new column, with new rows": "insert into d values (4, 4, 'four', 4); insert into d (a) values (5); select * from d where a > 3",
        "default, changed": "alter table d alter column e set default 43; insert into d (a) values (6); select a, e from d",
        "default, dropped": "alter table d alter column b drop default; insert into d (a) values (7); select a, b from d where a = 7",
        "default, of another type": _failing("create table dw (a int default 'text') using {source}"),
        "default, of a subquery": _failing("create table dw (a int default (select 1)) using {source}"),
        "default, of a nested column": "create table dn (a int, s struct<x: int> default named_struct('x', 5), l array<int> default array(1, 2)) using {source}; insert into dn (a) values (1); select * from dn",
        "default, of a partition": "create table dp (a int, p int default 3) using {source} partitioned by (p); insert into dp (a) values (1); select * from dp",
        "collations": "create table t (a string collate UTF8_LCASE, b string) using {source}; insert into t values ('AbC', 'AbC'); select * from t where a = 'aBC'",
        "collations, not equal": "select * from t where b = 'aBC'",
        "store: ANSI, a decimal": "create table s (a int, b decimal(5, 2), c string) using {source}; insert into s values (1.0, 1.234, 5); select * from s",
        "store: ANSI, too large": _failing("insert into s values (3000000000, 1, 'x')"),
        "store: legacy": "set spark.sql.storeAssignmentPolicy=legacy; insert into s values ('12', 3, 4); select * from s",
        "store: strict": refused("set spark.sql.storeAssignmentPolicy=strict; insert into s values (5L, 3, 4)"),
    },
)
SCENES = [PLAIN, CREATED, PARTITIONED, TYPED]
