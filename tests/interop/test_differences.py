"""What differs on purpose from pandas, pyarrow and fastparquet: each row of docs/pages/differences.md, by its case."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import fastpq
from fastpq import format as fmt
from fastpq.schema.parquet_schema import ParquetSchema
from fastpq.types import ColumnType, Timestamp, Type
from tests.index.forging import Forgery
from tests.requirements import needs, peer
from tests.verify.late_indexes import file_with_late_indexes

needs(peer("fastparquet"))

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pages" / "differences.md"
TABLE = pa.table({"n": [1, 2, 3], "t": ["x", None, "z"]})
CASES: dict[str, Callable[[Path], None]] = {}


def case(text: str) -> Callable[[Callable[[Path], None]], Callable[[Path], None]]:
    """The test of a row of the page."""

    def add(test: Callable[[Path], None]) -> Callable[[Path], None]:
        assert text not in CASES
        CASES[text] = test
        return test

    return add


def ours(data: Any, **options: Any) -> bytes:
    target = io.BytesIO()
    fastpq.write_table(data, target, **options)
    return target.getvalue()


def theirs(table: pa.Table, **options: Any) -> bytes:
    target = io.BytesIO()
    pq.write_table(table, target, **options)
    return target.getvalue()


def count_of(data: bytes, *filters: Any) -> tuple[int, int]:
    """Numbers of rows that pyarrow and fastpq read."""
    found = pq.read_table(io.BytesIO(data), filters=list(filters)), fastpq.read_table(data, filters=list(filters))
    return found[0].num_rows, found[1].num_rows


@case("an INT96 timestamp outside of the years 1677 to 2262")
def far_times(_: Path) -> None:
    far = dt.datetime(3000, 1, 1)
    data = theirs(pa.table({"at": pa.array([far], pa.timestamp("us"))}), use_deprecated_int96_timestamps=True)
    assert pq.read_table(io.BytesIO(data))["at"].to_pylist()[0].year == 1830
    assert fastpq.read_table(data)["at"].to_pylist() == [far]


@case("a column that is requested twice")
def named_twice(_: Path) -> None:
    data = ours(TABLE)
    assert pq.read_table(io.BytesIO(data), columns=["n", "n"]).num_columns == 2
    assert fastpq.read_table(data, ["n", "n"]).names == ["n"]


@case("two columns with the same name")
def of_one_name(_: Path) -> None:
    data = theirs(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]))
    with pytest.raises(pa.ArrowInvalid):
        pq.read_table(io.BytesIO(data))
    assert [column.to_pylist() for column in fastpq.read_table(data).columns] == [[1], [2]]


@case("NaN in filters")
def nan(_: Path) -> None:
    assert count_of(ours({"x": [1.0, np.nan]}), ("x", ">", 0.5)) == (1, 2)
    assert fastpq.read_table(ours({"x": [1.0, np.nan]}), filters=[("x", "==", np.nan)]).num_rows == 1


@case("nulls in `in` and `not in`")
def nulls(_: Path) -> None:
    data = ours(TABLE)
    assert count_of(data, ("t", "in", ["x", None])) == (2, 1)
    assert count_of(data, ("t", "not in", ["x"])) == (2, 1)
    assert fastpq.read_table(data, filters=[("t", "is null")]).num_rows == 1


@case("filters")
def rows_or_row_groups(folder: Path) -> None:
    import fastparquet

    path = folder / "rows.parquet"
    path.write_bytes(ours(TABLE))
    file = fastparquet.ParquetFile(path)
    assert len(file.to_pandas(filters=[("n", "==", 2)])) == 3
    assert len(file.to_pandas(filters=[("n", "==", 2)], row_filter=True)) == 1
    assert fastpq.read_table(path, filters=[("n", "==", 2)]).num_rows == 1


@case("directories without `name=`")
def directories(folder: Path) -> None:
    (folder / "2012").mkdir()
    (folder / "2012" / "x.parquet").write_bytes(ours(TABLE))
    named = ds.partitioning(field_names=["year"])
    assert pq.read_table(folder, partitioning=named).column_names == ["n", "t", "year"]
    assert fastpq.read_table(folder).names == ["n", "t"]
    with pytest.raises(ValueError, match="partitioning must be"):
        fastpq.read_dataset(folder, partitioning=named)
    assert fastpq.read_dataset(folder, partitioning=["year"]).names == ["n", "t", "year"]


@case("text in a column of dtype `object`")
def objects(folder: Path) -> None:
    frame = pd.DataFrame({"t": pd.Series(["x", None], dtype=object)})
    path = folder / "objects.parquet"
    frame.to_parquet(path)
    assert fastpq.read_pandas(path)["t"].dtype == object
    if int(pd.__version__.partition(".")[0]) >= 3:
        assert pd.read_parquet(path)["t"].dtype == "str"


@case("partition columns")
def partitions(folder: Path) -> None:
    fastpq.write_dataset(pd.DataFrame({"n": [1, 2], "year": [2020, 2021]}), folder / "rows", partition_by=["year"])
    assert pq.read_table(folder / "rows").schema.field("year").type == pa.dictionary(pa.int32(), pa.int32())
    assert pd.read_parquet(folder / "rows")["year"].dtype == "category"
    assert fastpq.read_table(folder / "rows")["year"].to_numpy().dtype == np.int32
    assert fastpq.read_pandas(folder / "rows")["year"].dtype == "int32"


@case("an empty directory")
def empty_directory(folder: Path) -> None:
    assert pq.read_table(folder).shape == (0, 0)
    with pytest.raises(FileNotFoundError, match="no data file"):
        fastpq.read_table(folder)


@case("a name in `columns` that the file does not have")
def unknown_name(_: Path) -> None:
    data = ours(TABLE)
    assert pq.ParquetFile(io.BytesIO(data)).read(["n", "m"]).column_names == ["n"]
    with pytest.raises(fastpq.SchemaError, match="no column 'm'"):
        fastpq.ParquetFile(data).read(["n", "m"])


@case("values of filters")
def values_of_filters(folder: Path) -> None:
    path = folder / "rows.parquet"
    path.write_bytes(ours(TABLE))
    for condition, count in ((("t", "==", b"x"), 1), (("t", "in", "xz"), 2)):
        assert pq.read_table(path, filters=[condition]).num_rows == count
        with pytest.raises(fastpq.SchemaError):
            fastpq.read_table(path, filters=[condition])


@case("Arrow types in `ARROW:schema`")
def arrow_types(_: Path) -> None:
    given = pa.table({
        "day": pa.array([86_400_000], pa.date64()), "time": pa.array([1], pa.time32("s")),
        "list": pa.array([[1]], pa.list_(pa.field("item", pa.int64()))),
    })
    theirs_again, ours_again = pq.read_table(io.BytesIO(theirs(given))).schema, pa.table(fastpq.read_table(ours(given))).schema
    assert [field.type for field in theirs_again][:2] == [pa.date32(), pa.time32("ms")]
    assert [field.type for field in ours_again][:2] == [pa.date64(), pa.time32("s")]
    assert [schema.field("list").type.value_field.name for schema in (theirs_again, ours_again)] == ["element", "item"]


@case("levels in the deprecated encoding BIT_PACKED")
def bit_packed_levels(_: Path) -> None:
    """Eight rows, of which the first is null by one order of bits, and the last by the other."""
    values = np.arange(7, dtype="<i4").tobytes()
    page = bytes([0b0111_1111]) + values
    header = fmt.encode(
        fmt.PageHeader(
            type=fmt.PageType.DATA_PAGE,
            uncompressed_page_size=len(page),
            compressed_page_size=len(page),
            data_page_header=fmt.DataPageHeader(
                num_values=8,
                encoding=fmt.Encoding.PLAIN,
                definition_level_encoding=fmt.Encoding.BIT_PACKED,
                repetition_level_encoding=fmt.Encoding.BIT_PACKED,
            ),
        )
    )
    chunk = fmt.ColumnMetaData(
        type=fmt.Type.INT32,
        encodings=[fmt.Encoding.PLAIN, fmt.Encoding.BIT_PACKED],
        path_in_schema=["a"],
        codec=fmt.CompressionCodec.UNCOMPRESSED,
        num_values=8,
        total_uncompressed_size=len(header + page),
        total_compressed_size=len(header + page),
        data_page_offset=4,
    )
    group = fmt.RowGroup(
        columns=[fmt.ColumnChunk(file_offset=4, meta_data=chunk)], total_byte_size=len(header + page), num_rows=8
    )
    schema = ParquetSchema.of([("a", ColumnType(Type.INT32), True)])
    footer = fmt.encode(fmt.FileMetaData(version=1, schema=schema.to_thrift(), num_rows=8, row_groups=[group]))
    data = b"PAR1" + header + page + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    assert pq.read_table(io.BytesIO(data))["a"].to_pylist() == [*range(7), None]
    assert fastpq.read_table(data)["a"].to_pylist() == [None, *range(7)]


@case("pages with values before pages with dictionary indexes in one chunk")
def late_indexes(_: Path) -> None:
    """tests/spark/test_rewritten_files.py shows what Spark reads."""
    data = file_with_late_indexes()
    assert fastpq.read_table(data)["text"].to_pylist() == pq.read_table(io.BytesIO(data))["text"].to_pylist()
    assert pl.read_parquet(data)["text"].to_list() == fastpq.read_table(data)["text"].to_pylist()
    assert [each.place.column for each in fastpq.verify_file(data).differences] == ["text"]


@case("chunks of a row group in another order than the columns")
def swapped_chunks(_: Path) -> None:
    forgery = Forgery(ours({"a": np.arange(3), "b": np.arange(3, 6)}))
    forgery.metadata.row_groups[0].columns.reverse()
    data = forgery.written()
    assert pq.read_table(io.BytesIO(data))["a"].to_pylist() == [3, 4, 5]
    with pytest.raises(fastpq.FormatError, match="chunk_order"):
        fastpq.read_table(data)
    by_position = fastpq.ReaderProperties(chunk_order="position")
    assert fastpq.read_table(data, properties=by_position)["a"].to_pylist() == [3, 4, 5]


@case("a footer with another number of rows than its row groups")
def no_rows_by_the_footer(_: Path) -> None:
    """As in a file in the tests of Apache Impala."""
    forgery = Forgery(ours({"a": np.arange(1)}))
    forgery.metadata.num_rows = 0
    data = forgery.written()
    assert pq.ParquetFile(io.BytesIO(data)).read().num_rows == 1
    with pytest.raises(fastpq.FormatError, match='on_error="null" reads'):
        fastpq.read_table(data)
    assert fastpq.read_table(data, on_error="null")["a"].to_pylist() == [0]


@case("a first repetition level other than 0, as in encrypted files of apache/parquet-testing before its commit c7cf137 of 2025")
def first_levels(folder: Path) -> None:
    data = {"l": [[1, 2], [3], [4, 5, 6]], "n": [1, 2, 3]}
    raw = bytearray(ours(data, compression=None, use_dictionary=False, write_page_checksum=False, write_page_index=False))
    with fastpq.ParquetFile(bytes(raw)) as file:
        start = file.metadata.row_group(0).column(0).data_page_offset
    _, size = fmt.decode(fmt.PageHeader, memoryview(bytes(raw)), start)
    raw[start + size + 5] |= 1      # behind 4 bytes for the length of the levels, and 1 byte for the length of a run
    path = folder / "x.parquet"
    path.write_bytes(raw)
    with pytest.raises(OSError, match="repetition level at the start of a record must be 0"):
        pq.read_table(path)
    with pytest.raises(duckdb.Error, match="before any list started"):
        duckdb.execute(f"select l from '{path}'").fetchall()
    with pytest.raises(fastpq.FormatError, match="first repetition level is not 0"):
        fastpq.read_table(path)
    table = fastpq.read_table(path, on_error="null")
    assert table["l"].to_pylist() == [None] * 3
    assert table["n"].to_pylist() == [1, 2, 3]


@case("damaged pages")
def damaged(_: Path) -> None:
    data = bytearray(ours({"n": np.arange(1000)}, compression="none", use_dictionary=False))
    data[fastpq.read_metadata(bytes(data)).row_group(0).column(0).data_page_offset + 500] ^= 1
    assert pq.read_table(io.BytesIO(data)).num_rows == 1000
    with pytest.raises(fastpq.FormatError):
        fastpq.read_table(bytes(data))
    unverified = fastpq.ReaderProperties(verify_checksums=False)
    assert fastpq.read_table(bytes(data), properties=unverified).num_rows == 1000


@case("`ParquetDataset(filters=)`")
def filters_of_datasets(folder: Path) -> None:
    pq.write_table(TABLE, folder / "x.parquet")
    chosen = [("n", ">", 1)]
    assert pq.ParquetDataset(folder, filters=chosen).read()["n"].to_pylist() == [2, 3]
    with pytest.raises(fastpq.SchemaError, match="by partition columns"):
        fastpq.ParquetDataset(folder, filters=chosen)
    assert fastpq.ParquetDataset(folder).read(filters=chosen)["n"].to_pylist() == [2, 3]


@case("dates and numbers in the names of partitions")
def names_of_partitions(folder: Path) -> None:
    import fastparquet

    frame = pd.DataFrame({"n": [1, 2], "date": ["2020-01-02", "2020-01-03"], "number": ["10", "0.5"]})
    fastparquet.write(str(folder / "d"), frame, file_scheme="hive", partition_on=["date", "number"])
    text = {"date": ["2020-01-02", "2020-01-03"], "number": ["10", "0.5"]}
    found = fastparquet.ParquetFile(str(folder / "d")).to_pandas().sort_values("n")
    assert {name: [*found[name]] for name in text} == text
    assert pq.read_table(folder / "d")["date"].to_pylist() == text["date"]
    ours = fastpq.read_table(folder / "d")
    assert ours["date"].to_pylist() == [dt.date(2020, 1, 2), dt.date(2020, 1, 3)]
    assert ours["number"].to_pylist() == [10.0, 0.5]
    given = fastpq.read_dataset(folder / "d", schema={"n": "int64", "date": "string", "number": "string"})
    assert given.select(["date", "number"]).to_pandas().to_dict("list") == text


@case("structs, maps, decimals and dates in a DataFrame")
def objects_of_frames(folder: Path) -> None:
    import fastparquet

    day, digits = dt.date(2020, 1, 2), decimal.Decimal("1.25")
    columns = {"m": pa.array([[("k", 2)]], pa.map_("string", "int64")), "x": [digits], "d": [day], "s": [{"f": 1}]}
    pq.write_table(pa.table(columns), folder / "x.parquet", store_schema=False)
    theirs = fastparquet.ParquetFile(str(folder / "x.parquet")).to_pandas()
    assert [*theirs.columns] == ["m", "x", "d", "s.f"]
    assert [*theirs.iloc[0]] == [{"k": 2}, 1.25, pd.Timestamp(day), 1]
    expected = [[("k", 2)], digits, day, {"f": 1}]
    assert [*pd.read_parquet(folder / "x.parquet").iloc[0]] == expected
    assert [*fastpq.read_pandas(folder / "x.parquet").iloc[0]] == expected


@case("optional numbers without metadata of pandas")
def optional_numbers(folder: Path) -> None:
    import fastparquet

    path = folder / "x.parquet"
    pq.write_table(pa.table({"i": [1, None], "b": [True, None]}), path)
    assert [*map(str, fastparquet.ParquetFile(str(path)).to_pandas().dtypes)] == ["Int64", "boolean"]
    assert [*map(str, pd.read_parquet(path).dtypes)] == [*map(str, fastpq.read_pandas(path).dtypes)] == ["float64", "object"]
    assert [*map(str, fastpq.read_pandas(path, dtype_backend="numpy_nullable").dtypes)] == ["Int64", "boolean"]


@case("dates before 1582-10-15 that Spark wrote in its legacy calendar")
def julian_dates(folder: Path) -> None:
    keys = {"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyDateTime": ""}
    day, other = dt.date(1500, 2, 20), dt.date(1500, 3, 1)      # the same day in both calendars
    pq.write_table(pa.table({"d": [other]}).replace_schema_metadata(keys), folder / "x")
    assert fastpq.read_table(folder / "x")["d"].to_pylist() == [day]
    assert fastpq.read_table(folder / "x", legacy_calendar="keep")["d"].to_pylist() == [other]
    assert pq.read_table(folder / "x")["d"].to_pylist() == [other]
    assert pl.read_parquet(folder / "x")["d"].to_list() == [other]
    assert duckdb.execute(f"select d from read_parquet('{folder / 'x'}')").fetchall() == [(other,)]


@case("text that is not UTF-8")
def latin_text(folder: Path) -> None:
    table = pa.table({"t": pa.array([b"caf\xe9"], pa.binary()).view(pa.string())})
    path = folder / "x.parquet"
    pq.write_table(table, path)
    assert pq.read_table(path)["t"].cast(pa.binary()).to_pylist() == [b"caf\xe9"]
    with pytest.raises(pl.exceptions.ComputeError, match="UTF-8"):
        pl.read_parquet(path)
    with pytest.raises(duckdb.InvalidInputException, match=r"UTF-?8"):
        duckdb.execute(f"select t from '{path}'").fetchall()
    with pytest.raises(fastpq.FormatError, match="not UTF-8"):
        fastpq.read_table(path)
    with pytest.raises(fastpq.SchemaError, match="not UTF-8"):
        ours(table)
    assert fastpq.read_table(path, invalid_utf8="replace")["t"].to_pylist() == ["caf\ufffd"]
    assert fastpq.read_table(ours(table, invalid_utf8="binary"))["t"].to_pylist() == [b"caf\xe9"]


@case("INT96 in seconds")
def seconds(folder: Path) -> None:
    pq.write_table(pa.table({"t": [dt.datetime(2020, 1, 2)]}), folder / "x", use_deprecated_int96_timestamps=True)
    assert pq.read_table(folder / "x", coerce_int96_timestamp_unit="s")["t"].type == pa.timestamp("s")
    asked: Any = "s"
    with pytest.raises(ValueError, match=r"must be .*\"ms\""):
        fastpq.read_table(folder / "x", coerce_int96_timestamp_unit=asked)
    found = fastpq.read_table(folder / "x", coerce_int96_timestamp_unit="ms")["t"].to_numpy()
    assert found.astype("datetime64[s]").tolist() == [dt.datetime(2020, 1, 2)]


@case("several files")
def several_files(folder: Path) -> None:
    for number in range(2):
        (folder / f"{number}.parquet").write_bytes(ours(TABLE))
    assert pq.read_table(folder)["n"].num_chunks == 2
    assert fastpq.read_table(folder).to_arrow()["n"].num_chunks == 1


@case("files with other prefixes than `_` and `.`")
def prefixes(folder: Path) -> None:
    for name in ("a", "temporary"):
        (folder / f"{name}.parquet").write_bytes(ours(TABLE))
    assert pq.read_table(folder, ignore_prefixes=["temp"]).num_rows == 3
    with pytest.raises(TypeError, match="ignore_prefixes"):
        fastpq.read_table(folder, ignore_prefixes=["temp"])     # type: ignore[call-arg]
    assert fastpq.read_table(folder).num_rows == 6
    assert fastpq.read_table(str(folder / "[!t]*.parquet")).num_rows == 3


@case("settings of `EncryptionConfiguration` and `DecryptionConfiguration`")
def settings(_: Path) -> None:
    theirs = pe.DecryptionConfiguration()
    theirs.cache_lifetime = dt.timedelta(seconds=5)
    with pytest.raises(AttributeError):
        fastpq.encryption.DecryptionConfiguration().cache_lifetime = dt.timedelta(seconds=5)     # type: ignore[misc]
    with pytest.raises(AttributeError):
        fastpq.encryption.EncryptionConfiguration("kf", uniform_encryption=True).footer_key = "other"     # type: ignore[misc]


@case("errors")
def classes_of_errors(folder: Path) -> None:
    (folder / "x").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(pa.ArrowInvalid):
        pq.read_table(folder / "x")
    with pytest.raises(fastpq.FormatError):
        fastpq.read_table(folder / "x")
    with pytest.raises(OSError, match="encrypted"):
        pq.read_table(pa.BufferReader(ours(TABLE, encryption_properties=fastpq.FileEncryptionProperties(b"k" * 16))))
    with pytest.raises(fastpq.KeyAccessError):
        fastpq.read_table(ours(TABLE, encryption_properties=fastpq.FileEncryptionProperties(b"k" * 16)))


@case("`closed` of a file over a file object")
def closed_files(folder: Path) -> None:
    source = io.BytesIO(ours(TABLE))
    with pq.ParquetFile(source) as their_file, fastpq.ParquetFile(source) as our_file:
        pass
    assert not source.closed
    assert not their_file.closed
    assert our_file.closed


@case("files encrypted with AES_GCM_CTR_V1")
def weaker_algorithm(folder: Path) -> None:
    key = b"0123456789012345"
    data = ours(TABLE, encryption_properties=fastpq.FileEncryptionProperties(key, algorithm="AES_GCM_CTR_V1"))
    assert pq.read_table(pa.BufferReader(data), decryption_properties=pe.create_decryption_properties(key)).num_rows == 3
    with pytest.raises(fastpq.CryptoError, match="allowed_algorithms"):
        fastpq.read_table(data, decryption_properties=fastpq.FileDecryptionProperties(key))
    keys = fastpq.FileDecryptionProperties(key, allowed_algorithms=["AES_GCM_CTR_V1"])
    assert fastpq.read_table(data, decryption_properties=keys).num_rows == 3


@case("a table without rows")
def without_rows(_: Path) -> None:
    empty = TABLE.slice(0, 0)
    assert pq.read_metadata(io.BytesIO(theirs(empty))).num_row_groups == 1
    assert pq.read_metadata(io.BytesIO(ours(empty))).num_row_groups == 0
    assert pq.read_table(io.BytesIO(ours(empty))).schema == empty.schema


@case("elements of lists")
def elements(_: Path) -> None:
    lists = pa.table({"a": [[1]]})
    other = theirs(lists, use_compliant_nested_type=False)
    assert [pq.ParquetFile(io.BytesIO(data)).schema.column(0).path for data in (other, ours(lists))] == [
        "a.list.item", "a.list.element"
    ]
    with pytest.raises(TypeError, match="three levels"):
        ours(lists, use_compliant_nested_type=False)


@case("`sorting_columns`")
def sorting(_: Path) -> None:
    unsorted = pa.table({"n": [2, 1]})
    theirs(unsorted, sorting_columns=[pq.SortingColumn(0)])
    for column in ("n", pq.SortingColumn(0)):
        with pytest.raises(fastpq.SchemaError, match="rows are not sorted by n"):
            ours(unsorted, sorting_columns=[column])
        data = ours(unsorted, sort_by=[column])
        assert pq.read_table(io.BytesIO(data))["n"].to_pylist() == [1, 2]
        assert pq.read_metadata(io.BytesIO(data)).row_group(0).sorting_columns == (pq.SortingColumn(0),)
    down = pq.SortingColumn(0, descending=True, nulls_first=True)
    assert pq.read_metadata(io.BytesIO(ours(unsorted, sorting_columns=[down]))).row_group(0).sorting_columns == (down,)
    for wrong in (pq.SortingColumn(1), 7):
        with pytest.raises((fastpq.SchemaError, TypeError), match="sorting column"):
            ours(unsorted, sorting_columns=[wrong])


@case("page index and checksums of pages")
def indexes(_: Path) -> None:
    chunks = [pq.read_metadata(io.BytesIO(data)).row_group(0).column(0) for data in (theirs(TABLE), ours(TABLE))]
    assert [chunk.has_column_index for chunk in chunks] == [False, True]
    assert [chunk.has_offset_index for chunk in chunks] == [False, True]
    assert pq.read_table(io.BytesIO(ours(TABLE)), page_checksum_verification=True).equals(TABLE)


@case("number of distinct values of a dictionary column")
def distinct(_: Path) -> None:
    table = pa.table({"t": ["x", "y", "z"] * 100})
    statistics = [pq.read_metadata(io.BytesIO(data)).row_group(0).column(0).statistics for data in (theirs(table), ours(table))]
    assert [found.distinct_count for found in statistics] == [None, 3]


@case("categories of a large dictionary")
def categories(_: Path) -> None:
    table = pa.table({"t": pa.array([str(number) for number in range(50_000)]).dictionary_encode()})
    sizes = [len(write(table, row_group_size=5000)) for write in (theirs, ours)]
    assert sizes[1] < sizes[0] / 2
    assert pq.read_table(io.BytesIO(ours(table, row_group_size=5000)))["t"].to_pylist() == table["t"].to_pylist()


@case("text and numbers in one column")
def mixed(_: Path) -> None:
    frame = pd.DataFrame({"a": ["x", 1]})
    with pytest.raises(pa.ArrowTypeError):
        frame.to_parquet(io.BytesIO())
    with pytest.raises(fastpq.SchemaError, match=r"value 1 is a .*int among values of kind str"):
        ours(frame)


@case("values for the types of `schema`")
def types_of_schema(_: Path) -> None:
    for values, type_ in (([0, 1], pa.bool_()), (["1.50"], pa.decimal128(5, 2))):
        frame, schema = pd.DataFrame({"a": values}), pa.schema([("a", type_)])
        frame.to_parquet(data := io.BytesIO(), schema=schema)
        assert pq.read_table(data).schema.field("a").type == type_
        with pytest.raises(fastpq.SchemaError, match="do not fit"):
            ours(frame, schema=schema)


@case("INT96")
def int96(_: Path) -> None:
    with pytest.raises(TypeError, match=r"schema=\{name: ColumnType\(Type.INT96, None, Timestamp\('ns'\)\)\} writes INT96"):
        ours(TABLE, use_deprecated_int96_timestamps=True)
    data = theirs(pa.table({"at": pa.array([0], pa.timestamp("us"))}), use_deprecated_int96_timestamps=True)
    again = ours(fastpq.ParquetFile(data).read())
    assert pq.read_metadata(io.BytesIO(again)).schema.column(0).physical_type == "INT96"
    assert pq.read_table(io.BytesIO(again))["at"].to_pylist() == [dt.datetime(1970, 1, 1)]
    for values in (np.array(["2020-01-01"], "M8[us]"), pa.array([dt.datetime(2020, 1, 1)])):
        data = ours({"at": values, "other": values}, schema={"at": ColumnType(Type.INT96, None, Timestamp("ns"))})
        assert [pq.read_metadata(io.BytesIO(data)).schema.column(i).physical_type for i in (0, 1)] == ["INT96", "INT64"]
        assert pq.read_table(io.BytesIO(data))["at"].cast("timestamp[us]").to_pylist() == [dt.datetime(2020, 1, 1)]


@case("unsigned and nanosecond columns")
def versions(_: Path) -> None:
    table = pa.table({"u": pa.array([1], pa.uint32()), "at": pa.array([1000], pa.timestamp("ns"))})
    changed = pq.read_table(io.BytesIO(theirs(table, version="1.0", store_schema=False)))
    assert [field.type for field in changed.schema] == [pa.int64(), pa.timestamp("us")]
    assert pq.read_table(io.BytesIO(ours(table, arrow_schema=False))).schema == table.schema
    with pytest.raises(TypeError, match="there is one version"):
        ours(table, version="1.0")


@case("column names")
def names(_: Path) -> None:
    table = pa.table({"a b": [1]})
    assert pq.read_table(io.BytesIO(theirs(table, flavor="spark"))).column_names == ["a_b"]
    assert pq.read_table(io.BytesIO(ours(table))).column_names == ["a b"]
    with pytest.raises(TypeError, match="column names are kept"):
        ours(table, flavor="spark")


@case("a write that fails")
def failing(folder: Path) -> None:
    path = folder / "old.parquet"
    path.write_bytes(ours(TABLE))
    with pytest.raises(fastpq.SchemaError):
        fastpq.write_table({"a": ["x", 1]}, path)
    assert fastpq.read_table(path)["n"].to_pylist() == [1, 2, 3]
    schema = TABLE.schema
    with pytest.raises(ValueError, match="schema"), pq.ParquetWriter(path, schema) as writer:
        writer.write_table(pa.table({"other": [1]}))
    assert pq.read_metadata(path).num_rows == 0     # what was there is lost


@case("a power failure soon after a write")
def power_failures(folder: Path) -> None:
    synced: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", synced.append)
        fastpq.write_table({"a": [1]}, folder / "quick.parquet")
        assert not synced
        fastpq.write_table({"a": [2]}, folder / "quick.parquet")
        assert len(synced) == 1     # the bytes that replace others
        fastpq.write_table({"a": [1]}, folder / "safe.parquet", durable=True)
    assert len(synced) == 3         # the file, and the directory with its name


@case("more rows for a dataset")
def appended(folder: Path) -> None:
    other = pa.table({"other": [1]})
    pq.write_to_dataset(TABLE, folder / "theirs")
    pq.write_to_dataset(other, folder / "theirs")
    fastpq.write_dataset(TABLE, folder / "ours")
    with pytest.raises(fastpq.SchemaError):
        fastpq.write_dataset(other, folder / "ours")
    assert [len(list((folder / name).glob("*.parquet"))) for name in ("theirs", "ours")] == [2, 1]


@case("nulls in a partition column")
def null_partitions(folder: Path) -> None:
    import fastparquet

    frame = pd.DataFrame({"n": [1, 2, 3], "t": ["x", None, "z"]})
    fastparquet.write(str(folder / "theirs"), frame, file_scheme="hive", partition_on=["t"])
    fastpq.write_dataset(frame, folder / "ours", partition_by=["t"])
    assert (folder / "ours" / "t=__HIVE_DEFAULT_PARTITION__").is_dir()
    for read in (pq.read_table, fastpq.read_table):
        assert [sorted(read(folder / name)["n"].to_pylist()) for name in ("theirs", "ours")] == [[1, 3], [1, 2, 3]]


@case("more rows for a file")
def longer_files(folder: Path) -> None:
    import fastparquet

    frame = pd.DataFrame({"n": [1, 2]})
    fastparquet.write(str(folder / "theirs"), frame)
    fastparquet.write(str(folder / "theirs"), frame, append=True)
    assert pq.read_metadata(folder / "theirs").num_rows == 4
    fastpq.write_table(frame, folder / "ours")
    with (folder / "ours").open("rb") as old:
        fastpq.append_table(frame, folder / "ours")
        assert pq.read_metadata(old).num_rows == 2      # whoever has the old file open still reads it
    assert pq.read_metadata(folder / "ours").num_rows == 4
    assert len(fastpq.write_dataset(frame, folder / "files") + fastpq.write_dataset(frame, folder / "files")) == 2
    assert pq.read_table(folder / "files").num_rows == 4


@case("an index without a name")
def nameless_indexes(folder: Path) -> None:
    import fastparquet

    frame = pd.DataFrame({"n": [1, 2]}, index=[5, 7])
    fastparquet.write(str(folder / "theirs"), frame)
    assert pq.read_schema(folder / "theirs").names == ["index", "n"]
    assert pq.read_schema(pa.BufferReader(ours(frame))).names == ["n", "__index_level_0__"]
    assert fastpq.read_pandas(ours(frame)).index.tolist() == [5, 7]


@case("column labels that are not text")
def labels_of_numbers(folder: Path) -> None:
    import fastparquet

    frame = pd.DataFrame({0: [1, 2]})
    with pytest.raises((TypeError, ValueError)):
        fastparquet.write(str(folder / "theirs"), frame)
    assert fastpq.read_pandas(ours(frame)).columns.tolist() == [0]


def rows_of_page() -> list[str]:
    found = re.findall(r"^\| (.+?) \|", PAGE.read_text(), re.MULTILINE)
    return [row for row in found if row not in ("Case", "---")]


def test_each_row_of_the_page_has_a_test() -> None:
    assert rows_of_page() == list(CASES)


# fastparquet leaves files to the garbage collector, and asks NumPy 2.5 for NaT without a unit
@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning", "ignore:The 'generic' unit:DeprecationWarning"
)
@pytest.mark.parametrize("text", CASES)
def test_difference(text: str, tmp_path: Path) -> None:
    CASES[text](tmp_path)
