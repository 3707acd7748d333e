"""Eight queries of TPC-H as plain SQL, with the validation parameters of the specification (TPC-H 2.4)."""

from __future__ import annotations

TABLES = ("customer", "lineitem", "orders", "part")
QUERIES = {
    1: """select l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), sum(l_extendedprice * (1 - l_discount)),
        sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)), avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*)
        from lineitem where l_shipdate <= date'1998-12-01' - interval 90 days
        group by l_returnflag, l_linestatus order by l_returnflag, l_linestatus""",
    3: """select l_orderkey, sum(l_extendedprice * (1 - l_discount)) as revenue, o_orderdate, o_shippriority
        from customer, orders, lineitem
        where c_mktsegment = 'BUILDING' and c_custkey = o_custkey and l_orderkey = o_orderkey
        and o_orderdate < date'1995-03-15' and l_shipdate > date'1995-03-15'
        group by l_orderkey, o_orderdate, o_shippriority order by revenue desc, o_orderdate limit 10""",
    4: """select o_orderpriority, count(*) from orders
        where o_orderdate >= date'1993-07-01' and o_orderdate < date'1993-10-01'
        and exists (select * from lineitem where l_orderkey = o_orderkey and l_commitdate < l_receiptdate)
        group by o_orderpriority order by o_orderpriority""",
    6: """select sum(l_extendedprice * l_discount) from lineitem
        where l_shipdate >= date'1994-01-01' and l_shipdate < date'1995-01-01'
        and l_discount between 0.05 and 0.07 and l_quantity < 24""",
    10: """select c_custkey, c_name, sum(l_extendedprice * (1 - l_discount)) as revenue, c_acctbal, c_address, c_phone, c_comment
        from customer, orders, lineitem
        where c_custkey = o_custkey and l_orderkey = o_orderkey and o_orderdate >= date'1993-10-01'
        and o_orderdate < date'1994-01-01' and l_returnflag = 'R'
        group by c_custkey, c_name, c_acctbal, c_phone, c_address, c_comment order by revenue desc, c_custkey limit 20""",
    12: """select l_shipmode, sum(case when o_orderpriority in ('1-URGENT', '2-HIGH') then 1 else 0 end),
        sum(case when o_orderpriority not in ('1-URGENT', '2-HIGH') then 1 else 0 end)
        from orders, lineitem where o_orderkey = l_orderkey and l_shipmode in ('MAIL', 'SHIP') and l_commitdate < l_receiptdate
        and l_shipdate < l_commitdate and l_receiptdate >= date'1994-01-01' and l_receiptdate < date'1995-01-01'
        group by l_shipmode order by l_shipmode""",
    14: """select 100.00 * sum(case when p_type like 'PROMO%' then l_extendedprice * (1 - l_discount) else 0 end)
        / sum(l_extendedprice * (1 - l_discount))
        from lineitem, part where l_partkey = p_partkey and l_shipdate >= date'1995-09-01' and l_shipdate < date'1995-10-01'""",
    18: """select c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) from customer, orders, lineitem
        where o_orderkey in (select l_orderkey from lineitem group by l_orderkey having sum(l_quantity) > 300)
        and c_custkey = o_custkey and o_orderkey = l_orderkey
        group by c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice order by o_totalprice desc, o_orderdate limit 100""",
}
