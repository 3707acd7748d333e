"""INT96 timestamps: the unit in memory follows the values."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq import ColumnType, Table
from fastpq.arrays.flat_column import fixed_values
from fastpq.arrays.nested_columns import ListColumn
from fastpq.arrays.table import AnyColumn, Column
from fastpq.convert.numpy_input import column_from_numpy
from fastpq.filters.predicate import Outcome
from fastpq.schema.nested_types import Field, ListType
from fastpq.schema.types import Timestamp, Type
from tests.requirements import DATA, needs_data

ROWS = 30
NEAR = 1_600_000_000        # seconds: 2020, in every unit
FAR = 253_402_300_799       # the end of 9999: not in nanoseconds
EARLY = -60_000_000_000     # the year 68
FARTHEST = 10**14           # more than 3 million years from now: not in microseconds
PER_SECOND = {"ns": 10**9, "us": 10**6, "ms": 10**3}


def int96(seconds: list[int | None]) -> Column:
    """An INT96 column, by the milliseconds of which all values fit."""
    values = np.array([0 if value is None else value * 1000 for value in seconds], np.int64)
    valid = np.array([value is not None for value in seconds])
    nulls = int((~valid).sum())
    type_ = ColumnType(Type.INT96, None, Timestamp("ms"))
    return Column(type_, values, np.packbits(valid, bitorder="little") if nulls else None, nulls)


def seconds_of(last: int, count: int = ROWS) -> list[int | None]:
    return [None if i == 3 else NEAR + i for i in range(count - 1)] + [last]


def moment(seconds: int, unit: str) -> Any:
    return np.array(seconds * PER_SECOND[unit]).view(f"M8[{unit}]")[()]


def lists(column: Column) -> AnyColumn:
    offsets = np.arange(len(column) + 1, dtype=np.int32)
    return ListColumn(ListType(Field("element", column.type)), offsets, column)


def written(table: Table, where: Any = None, **options: Any) -> bytes:
    sink = io.BytesIO() if where is None else where
    fastpq.write_table(table, sink, row_group_size=10, data_page_rows=5, **options)
    return sink.getvalue() if where is None else b""


def file_of(last: int, **options: Any) -> bytes:
    """A column t whose last value of three row groups is given, the same in lists, and a column of values that fit."""
    column = int96(seconds_of(last))
    numbers = Column(ColumnType(Type.INT64), np.arange(ROWS))
    near = int96([NEAR] * ROWS)
    return written(Table({"t": column, "l": lists(column), "near": near, "n": numbers}), **options)


def leaf_of(column: AnyColumn) -> Column:
    (leaf,) = [leaf for _, leaf in column.leaves()]
    return leaf


def unit_of(column: AnyColumn) -> str:
    logical: Any = leaf_of(column).type.logical
    return str(logical.unit)


def expected(last: int, unit: str) -> list[Any]:
    return [None if value is None else value * PER_SECOND[unit] for value in seconds_of(last)]


def stored(column: Column) -> list[Any]:
    mask = column.validity_mask()
    return [value if valid else None for value, valid in zip(fixed_values(column).tolist(), mask, strict=True)]


CASES = [(NEAR + 1000, "ns"), (FAR, "us"), (EARLY, "us"), (FARTHEST, "ms")]


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"compression": None, "use_dictionary": False}], ids=str)
@pytest.mark.parametrize("on_error", ["raise", "null", "skip"])
@pytest.mark.parametrize(("last", "unit"), CASES)
def test_each_way_of_reading_has_one_unit(last: int, unit: str, on_error: Any, options: dict[str, Any]) -> None:
    truth = expected(last, unit)
    with fastpq.ParquetFile(file_of(last, **options), on_error=on_error) as file:
        reads: dict[str, Callable[[], Table]] = {
            "read": file.read,
            "row groups": lambda: file.read(row_groups=[0, 1, 2]),
            "ranges": lambda: file.read(row_ranges=[(0, 5), (5, ROWS)]),
            "filters": lambda: file.read(filters=("n", ">=", 0)),
            "own filter": lambda: file.read(filters=[[("t", "is null")], [("t", "is not null")]]),
            "take": lambda: file.take(np.arange(ROWS)),
            "batches": lambda: Table.concat([*file.iter_batches(7)]),
            "filtered batches": lambda: Table.concat([*file.iter_batches(7, filters=("n", ">=", 0))]),
        }
        for name, read in reads.items():
            table = read()
            assert (unit_of(table["t"]), unit_of(table["l"]), unit_of(table["near"])) == (unit, unit, "ns"), name
            assert stored(table.flat("t")) == truth, name
            assert stored(leaf_of(table["l"])) == truth, name
            assert table["near"].to_pylist() == [np.datetime64(NEAR * 10**9, "ns")] * ROWS
            pa.table(table).validate(full=True)
        assert not file.recovery.losses
        assert [unit_of(batch["t"]) for batch in file.iter_batches(7)] == [unit] * 5
        low, high = file.min_max("t")
        assert {np.datetime64(low), np.datetime64(high)} >= {moment(last, unit)}
        assert file.null_count("t") == 1
        assert file.count(("t", "==", moment(last, unit))) == 1
        assert file.count(("t", "<", np.datetime64(NEAR + 5, "s"))) == 4 + (last < 0)


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}], ids=str)
@pytest.mark.parametrize("on_error", ["raise", "null"])
@pytest.mark.parametrize(("last", "unit"), CASES)
def test_explain_binds_filters_in_the_unit_of_the_read(last: int, unit: str, on_error: Any, options: dict[str, Any]) -> None:
    near, far = (moment(NEAR + 5, unit), moment(last, unit))
    filters = {
        "equal": ("t", "==", far),
        "one of": ("t", "in", [near, far]),
        "none of": ("t", "not in", [near, far]),
        "below": ("t", "<", far),
        "from": ("t", ">=", far),
        "between": [("t", ">", near), ("t", "<=", far)],
        "either": [[("t", "==", far)], [("n", "<", 2)]],
        "null": ("t", "is null"),
    }
    with fastpq.ParquetFile(file_of(last, **options), on_error=on_error) as file:
        for name, condition in filters.items():
            for columns in (None, ["n"], ["t"], []):
                explained = file.explain(condition, columns)
                of_groups = [
                    file.read(["n"], filters=condition, row_groups=[number]).num_rows for number in range(file.num_row_groups)
                ]
                assert sum(of_groups) == file.read(columns, filters=condition).num_rows
                for group, rows in zip(explained.row_groups, of_groups, strict=True):
                    assert group.rows >= rows, name
                    assert group.outcome is not Outcome.NONE or not rows, name
                    assert group.outcome is not Outcome.ALL or rows == group.num_rows, name
    with fastpq.ParquetFile(file_of(last, **options), coerce_int96_timestamp_unit="ns") as file:
        assert (file.explain(("t", "==", far)).bytes_read == 0) == (unit != "ns")


def test_explain_stays_in_the_unit_of_the_rows_read() -> None:
    """Nanoseconds fit all row groups but the last; dictionaries are evidence in the unit of the values."""
    padding = column_from_numpy([np.random.default_rng(row).bytes(200) for row in range(ROWS)])     # worth a look at dictionaries
    seconds: list[int | None] = [FAR if row > 25 else NEAR + row // 5 for row in range(ROWS)]
    data = written(Table({"t": int96(seconds), "pad": padding}), use_dictionary=True)
    near, far = moment(NEAR, "us"), moment(FAR, "us")
    with fastpq.ParquetFile(data) as file:
        for groups, outcome in (([0, 1], Outcome.NONE), ([2], Outcome.SOME), ([0, 1, 2], Outcome.SOME)):
            explained = file.explain(("t", "==", far), row_groups=groups)
            assert explained.row_groups[-1].outcome is outcome
            assert explained.bytes_read or outcome is Outcome.NONE
            assert file.read(filters=("t", "==", far), row_groups=groups).num_rows == 4 * (2 in groups)
        assert [group.outcome for group in explained.row_groups] == [Outcome.NONE, Outcome.NONE, Outcome.SOME]
        assert str(FAR * 10**6) in str(explained)
        near_ones = str(file.explain(("t", "==", near)))
        assert str(NEAR * 10**6) in near_ones
        assert str(NEAR * 10**9) not in near_ones
        assert str(NEAR * 10**9) in str(file.explain(("t", "==", near), row_groups=[1]))


def test_a_read_of_rows_that_fit_stays_in_nanoseconds() -> None:
    with fastpq.ParquetFile(file_of(FAR)) as file:
        assert unit_of(file.read(row_groups=[0, 1])["t"]) == "ns"
        assert unit_of(file.read(row_groups=[2])["t"]) == "us"
        assert [unit_of(batch["t"]) for batch in file.iter_batches(5, row_groups=[0, 1])] == ["ns"] * 4


@pytest.mark.parametrize(("last", "fitting"), [(FAR, "'us' or 'ms'"), (FARTHEST, "'ms'")])
def test_a_chosen_unit_is_kept_and_the_error_names_the_units_that_fit(last: int, fitting: str) -> None:
    with pytest.raises(fastpq.UnsupportedError, match=f"datetime64\\[ns\\].*coerce_int96_timestamp_unit={fitting} "):
        fastpq.read_table(file_of(last), coerce_int96_timestamp_unit="ns")
    if last == FARTHEST:
        with pytest.raises(fastpq.UnsupportedError, match=r"datetime64\[us\].*coerce_int96_timestamp_unit='ms' "):
            fastpq.read_table(file_of(last), coerce_int96_timestamp_unit="us")
    assert unit_of(fastpq.read_table(file_of(last), coerce_int96_timestamp_unit="ms")["near"]) == "ms"


def test_arrays_to_read_into_choose_the_unit() -> None:
    data = file_of(FAR)
    for unit in ("us", "ms"):
        array = np.ma.MaskedArray(np.zeros(ROWS, f"M8[{unit}]"))
        fastpq.read_table(data, ["t"], out={"t": array})
        assert array[-1] == np.datetime64(FAR, "s")
    with pytest.raises(fastpq.SchemaError, match=r"datetime64\[ns\]"):
        fastpq.read_table(data, ["t"], out={"t": np.ma.MaskedArray(np.zeros(ROWS, "M8[ns]"))})


def test_a_dataset_has_one_unit_in_all_files(tmp_path: Path) -> None:
    for number, last in enumerate((NEAR, FAR, NEAR)):
        column = int96(seconds_of(last))
        with (tmp_path / f"{number}.parquet").open("wb") as sink:
            written(Table({"t": column, "l": lists(column)}), sink)
    dataset = fastpq.ParquetDataset(tmp_path)
    truth = [*expected(NEAR, "us"), *expected(FAR, "us"), *expected(NEAR, "us")]
    for table in (dataset.read(), Table.concat([*dataset.iter_batches(7)])):
        assert (unit_of(table["t"]), unit_of(table["l"])) == ("us", "us")
        assert stored(table.flat("t")) == stored(leaf_of(table["l"])) == truth
    assert unit_of(dataset.read(filters=("t", "<=", dt.datetime(2020, 9, 13, 12, 26, 50)))["t"]) in ("ns", "us")
    assert dataset.count(("t", ">", np.datetime64("9000", "us"))) == 1
    assert unit_of(fastpq.read_dataset(tmp_path / "0.parquet")["t"]) == "ns"
    with pytest.raises(fastpq.UnsupportedError, match="'us' or 'ms'"):
        fastpq.read_dataset(tmp_path, coerce_int96_timestamp_unit="ns")


FAR_DAY, NEAR_DAY = dt.datetime(1500, 1, 1), dt.datetime(2020, 9, 13)
A_TIME = pa.timestamp("us")
NESTED = pa.schema([
    ("id", pa.int64()),
    ("struct", pa.struct([("near", A_TIME), ("far", A_TIME), ("x", pa.int64())])),
    ("list", pa.list_(pa.struct([("far", A_TIME)]))),
    ("map", pa.map_(pa.string(), A_TIME)),
])


@pytest.mark.parametrize("other", [
    {},
    {"struct": [{"x": 5}]},
    {"struct": [{"far": NEAR_DAY}], "map": [[("k", NEAR_DAY)]]},
    {"struct": [{"far": FAR_DAY, "near": NEAR_DAY}], "list": [[{"far": NEAR_DAY}]]},
])
def test_nested_timestamps_that_a_file_lacks_have_the_unit_of_the_other_files(other: dict[str, Any], tmp_path: Path) -> None:
    struct, list_, map_ = {"near": NEAR_DAY, "far": FAR_DAY, "x": 1}, [{"far": FAR_DAY}], [("k", FAR_DAY)]
    first = pa.Table.from_pylist([{"id": 1, "struct": struct, "list": list_, "map": map_}], NESTED)
    columns = dict(other)
    if "struct" in other:       # a struct of some of the fields, in its own order
        names = other["struct"][0]
        type_ = pa.struct([(name, NESTED.field("struct").type.field(name).type) for name in names])
        columns["struct"] = pa.array(other["struct"], type_)
    columns |= {name: pa.array(other[name], NESTED.field(name).type) for name in ("list", "map") if name in other}
    for number, table in enumerate((first, pa.table({"id": [2], **columns}))):
        pq.write_table(table, tmp_path / f"{number}.parquet", use_deprecated_int96_timestamps=True)
    absent: dict[str, Any] = {"struct": None, "list": None, "map": None}
    rows = [first.to_pylist()[0], {"id": 2, **absent, **{name: values[0] for name, values in other.items()}}]
    if "struct" in other:
        rows[1]["struct"] = {"near": None, "far": None, "x": None, **other["struct"][0]}
    dataset = fastpq.ParquetDataset(tmp_path)
    for table in (dataset.read(), Table.concat([*dataset.iter_batches(1)]), dataset.head(2), dataset.take([0, 1])):
        assert pa.table(table).to_pylist() == rows
        units = [str(leaf.type.logical).split("'")[1] for _, leaf in table["struct"].leaves() if leaf.type.logical is not None]
        assert units == ["ns", "us"]


def int96_files(folder: Path, *tables: dict[str, Any]) -> fastpq.ParquetDataset:
    """A dataset of INT96 files with the given columns; datetimes are in microseconds."""
    for number, columns in enumerate(tables):
        pq.write_table(pa.table(columns), folder / f"{number}.parquet", use_deprecated_int96_timestamps=True)
    return fastpq.ParquetDataset(folder)


@pytest.mark.parametrize("unit", ["auto", "us", "ms"])
def test_filters_are_bound_in_the_unit_of_the_rows(unit: Any, tmp_path: Path) -> None:
    """A second condition on a column of two widths lets the dataset, not the file, decide the rows."""
    narrow = {"t": pa.array([NEAR_DAY, FAR_DAY], A_TIME), "y": pa.array([1, 1], pa.int32())}
    nested = {"s": pa.array([{"t": NEAR_DAY}, {"t": FAR_DAY}], pa.struct([("t", A_TIME)]))}
    wide = {"t": pa.array([NEAR_DAY], A_TIME), "y": pa.array([1], pa.int64())}
    other = {"s": pa.array([{"t": NEAR_DAY, "y": 1}], pa.struct([("t", A_TIME), ("y", pa.int64())]))}
    int96_files(tmp_path, narrow | nested, wide | other)
    dataset = fastpq.ParquetDataset(tmp_path, coerce_int96_timestamp_unit=unit)
    day = dt.datetime(2019, 1, 1)
    for filters, rows in (
        ([("t", ">", day), ("y", "==", 1)], 2), ([("t", "<", day), ("y", "==", 1)], 1),
        ([(("s", "t"), ">", day)], 2), ([(("s", "t"), "<", day)], 1),
    ):
        assert dataset.read(filters=filters).num_rows == dataset.count(filters) == rows
        assert sum(batch.num_rows for batch in dataset.iter_batches(1, filters=filters)) == rows
        assert dataset.head(5, filters=filters).num_rows == rows


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_a_given_schema_has_the_chosen_unit(unit: Any, tmp_path: Path) -> None:
    schema = int96_files(tmp_path, {"t": pa.array([NEAR_DAY], A_TIME)}, {"x": [1]}).schema
    dataset = fastpq.ParquetDataset(tmp_path, schema=schema, coerce_int96_timestamp_unit=unit)
    assert [dataset.read(filters=[("t", sign, dt.datetime(2019, 1, 1))]).num_rows for sign in ("<", ">")] == [0, 1]
    for table in (dataset.read(), dataset.tail(1), Table.concat([*dataset.iter_batches(1)])):
        assert unit_of(table["t"]) == unit


def test_fields_of_one_name_share_the_coarsest_unit(tmp_path: Path) -> None:
    def twice(one: dt.datetime, other: dt.datetime) -> dict[str, Any]:
        return {"s": pa.StructArray.from_arrays([pa.array([day], A_TIME) for day in (one, other)], names=["x", "x"])}

    dataset = int96_files(tmp_path, twice(FAR_DAY, NEAR_DAY), twice(NEAR_DAY, NEAR_DAY))
    assert len({str(batch["s"].type) for batch in dataset.iter_batches(1)}) == 1
    assert pa.table(dataset).num_rows == 2


def test_the_schema_of_a_dataset_is_one_that_can_be_given(tmp_path: Path) -> None:
    column = int96(seconds_of(FAR))
    for name, table in (("a", Table({"i": column, "t": column})), ("b", Table({"i": column}))):
        with (tmp_path / f"{name}.parquet").open("wb") as sink:
            written(table, sink)
    (tmp_path / "c.parquet").write_bytes(written(Table({"i": int96(seconds_of(NEAR)), "t": int96(seconds_of(NEAR))})))
    dataset = fastpq.ParquetDataset(tmp_path, schema=fastpq.ParquetFile(tmp_path / "a.parquet").schema)
    found = dataset.read()
    assert unit_of(found["t"]) == "us"
    assert stored(found.flat("t")) == [*expected(FAR, "us"), *[None] * ROWS, *expected(NEAR, "us")]
    values = [value for value in found["t"].to_pylist() if value is not None]
    assert dataset.min_max("t") == (min(values), max(values))


def test_recovered_rows_are_not_lost_for_their_unit() -> None:
    recovered = fastpq.recover_table(file_of(FAR))
    assert not recovered.report.losses
    assert stored(recovered.table.flat("t")) == expected(FAR, "us")
    data = bytearray(file_of(FAR, use_dictionary=False, compression=None))
    page = fastpq.ParquetFile(bytes(data)).offset_index(0, "t").page_locations[0]      # type: ignore[union-attr]
    data[page.offset + page.compressed_page_size - 1] ^= 1
    table = fastpq.read_table(bytes(data), on_error="null")
    assert unit_of(table["t"]) == "us"
    assert stored(table.flat("t")) == [None] * 5 + expected(FAR, "us")[5:]


@needs_data
def test_a_file_of_spark_is_read_as_by_pyarrow_in_the_unit_that_fits() -> None:
    path = DATA / "parquet-testing" / "data" / "int96_from_spark.parquet"
    column = fastpq.read_table(path).flat("a")
    theirs = pq.read_table(path, coerce_int96_timestamp_unit=unit_of(column))["a"]
    assert unit_of(column) == "ms"
    assert stored(column)[:-1] == theirs.cast(pa.int64()).to_pylist()[:-1]     # pyarrow wraps around in the last value
