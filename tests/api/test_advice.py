"""Errors of usual mistakes say what to do instead, and show no values of arrays."""

from __future__ import annotations

import bz2
import datetime as dt
import gzip
import io
import lzma
import re
import zipfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.common import foreign_names


@pytest.fixture
def path(tmp_path: Path) -> Path:
    fastpq.write_table({"amount": [1.5, 2.0, 7777.0], "year": [1, 2, 3]}, tmp_path / "file")
    return tmp_path / "file"


def test_a_mask_is_no_filter_and_its_values_are_not_shown(path: Path) -> None:
    frame = pd.DataFrame({"amount": [7777.0] * 30})
    for mask in (frame.amount, frame.amount > 3, np.arange(7777, 7780)):
        with pytest.raises(fastpq.SchemaError, match="is not a filter: a tuple") as caught:
            fastpq.read_table(path, filters=mask)
        assert "7777" not in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("expression", [pc.field("yaer") > 1, pl.col("yaer") > 1])
def test_a_wrong_name_in_an_expression(path: Path, expression: Any) -> None:
    with pytest.raises(fastpq.SchemaError, match="no column 'yaer'; did you mean 'year'"):
        fastpq.read_table(path, filters=expression)


@pytest.mark.parametrize("name", ["map<string,int64>", "decimal128(9, 2)", "date32", "list<int64>"])
def test_a_name_of_no_type(tmp_path: Path, name: str) -> None:
    with pytest.raises(fastpq.SchemaError, match=r"is not a data type: .*Arrow type .*maps.*decimal\(9, 2\)") as caught:
        fastpq.write_table({"m": [1]}, tmp_path / "file", schema={"m": name})
    assert caught.value.context["column"] == "m"


def test_a_list_of_tables(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [1]})
    for tables in ([frame, frame], pa.table({"x": [1]}).to_batches()):
        with pytest.raises(fastpq.SchemaError, match=r"iter\(\[\.\.\.\]\)"):
            fastpq.write_table(tables, tmp_path / "file")
        fastpq.write_table(iter(tables), tmp_path / "file")
        assert fastpq.read_table(tmp_path / "file")["x"].to_pylist() == [1] * len(tables)


def test_keys_of_another_library(path: Path) -> None:
    class FileDecryptionProperties:     # as pyarrow names its own
        pass

    keys: Any = FileDecryptionProperties()
    with pytest.raises(TypeError, match=r"must be fastpq\.FileDecryptionProperties, not <class .*test_advice"):
        fastpq.read_table(path, decryption_properties=keys)
    with pytest.raises(TypeError, match=r"must be fastpq\.FileEncryptionProperties, not <class .*test_advice"):
        fastpq.write_table({"x": [1]}, path, encryption_properties=keys)


def test_near_names(path: Path) -> None:
    with pytest.raises(fastpq.SchemaError, match="did you mean zstd"):
        fastpq.write_table({"x": [1]}, path, compression="zst")
    with pytest.raises(fastpq.SchemaError, match=r"known are .*\blz4\b"):
        fastpq.write_table({"x": [1]}, path, compression="7z")
    options: dict[str, Any] = {"preserve_index": False}
    with pytest.raises(TypeError, match="index=False leaves the index"):
        fastpq.write_table(pd.DataFrame({"x": [1]}), path, **options)


def test_the_repr_of_a_dataset(tmp_path: Path) -> None:
    fastpq.write_dataset({"x": [1, 2], "part": ["a", "b"]}, tmp_path / "root", partition_by=["part"])
    assert repr(fastpq.ParquetDataset(tmp_path / "root")) == "<ParquetDataset of 2 files: x, part>"


def test_moments_with_and_without_a_zone(tmp_path: Path) -> None:
    moment = dt.datetime(2024, 1, 1, 10)
    stamps = pd.Series([pd.Timestamp(moment)])
    fastpq.write_table(pd.DataFrame({"zoned": stamps.dt.tz_localize("UTC"), "local": stamps}), tmp_path / "file")
    for value, way in (
        (pd.Timestamp(moment), 'tz_localize("UTC")'),
        (moment, "replace(tzinfo=datetime.UTC)"),
        ("2024-01-01 10:00", '"2024-01-31 10:00Z"'),
    ):
        with pytest.raises(fastpq.SchemaError) as caught:
            fastpq.read_table(tmp_path / "file", filters=("zoned", "==", value))
        assert way in str(caught.value)
        assert "Timestamp Timestamp" not in str(caught.value)
        assert "datetime datetime" not in str(caught.value)
    aware = moment.replace(tzinfo=dt.UTC)
    for zoned, way in ((pd.Timestamp(aware), "tz_localize(None)"), (aware, "replace(tzinfo=None)")):
        with pytest.raises(fastpq.SchemaError, match="no time zone, so give value") as caught:
            fastpq.read_table(tmp_path / "file", filters=("local", "==", zoned))
        assert way in str(caught.value)
        assert fastpq.read_table(tmp_path / "file", filters=("zoned", "==", zoned)).num_rows == 1
    assert fastpq.read_table(tmp_path / "file", filters=("local", "==", moment)).num_rows == 1


def test_decimals_and_floats(tmp_path: Path) -> None:
    with pytest.raises(fastpq.SchemaError, match=r"give \[float\(value\) for value in values\]"):
        fastpq.write_table({"x": [Decimal("0.1")]}, tmp_path / "file", schema={"x": "float64"})
    with pytest.raises(fastpq.SchemaError, match=r"give \[Decimal\(str\(value\)\) for value in values\]"):
        fastpq.write_table({"x": [0.1]}, tmp_path / "file", schema={"x": "decimal(9, 2)"})
    fastpq.write_table({"decimal": [Decimal("0.10")], "float": [0.1]}, tmp_path / "file")
    with pytest.raises(fastpq.SchemaError, match=r'^float 0\.1 does not fit a column of .*give Decimal\("0\.1"\)'):
        fastpq.read_table(tmp_path / "file", filters=("decimal", "==", 0.1))
    with pytest.raises(fastpq.SchemaError, match=r"^Decimal\('sNaN'\) does not fit a column of DOUBLE"):
        fastpq.read_table(tmp_path / "file", filters=("float", "==", Decimal("sNaN")))
    for condition in (("decimal", "==", Decimal("0.1")), ("float", "==", Decimal("0.1"))):
        assert fastpq.read_table(tmp_path / "file", filters=condition).num_rows == 1


def test_dicts_with_keys_that_are_no_text(tmp_path: Path) -> None:
    values = [{1: 2}, {3: 4, 5: 6}]
    with pytest.raises(fastpq.SchemaError, match=r"the key 1 .*schema=\{name: pyarrow\.map_\(keys, values\)\}"):
        fastpq.write_table({"m": values}, tmp_path / "file")
    fastpq.write_table({"m": values}, tmp_path / "file", schema={"m": pa.map_(pa.int64(), pa.int64())})
    assert pq.read_table(tmp_path / "file")["m"].to_pylist() == [list(value.items()) for value in values]


def test_values_of_filters_that_are_none(path: Path, tmp_path: Path) -> None:
    stamps = pd.Series(pd.to_datetime(["2024-01-01"]))
    fastpq.write_table(
        {"zoned": stamps.dt.tz_localize("UTC"), "local": stamps, "day": np.array(["2024-01-01"], "M8[D]")}, tmp_path / "moments"
    )
    for column in ("zoned", "local", "day"):
        with pytest.raises(fastpq.SchemaError, match=r"NaT does not fit a column of [^:]*$"):
            fastpq.read_table(tmp_path / "moments", filters=(column, "==", pd.NaT))
    fastpq.write_table({"d": [Decimal("0.1")]}, tmp_path / "decimals")
    for value in (float("nan"), float("inf")):
        with pytest.raises(fastpq.SchemaError, match=f"float {value} does not fit a column of [^:]*$"):
            fastpq.read_table(tmp_path / "decimals", filters=("d", ">", value))
    for values in (np.arange(7777, 7999), pd.Series([7777]), pa.array([7777]), [7777]):
        with pytest.raises(fastpq.SchemaError, match="give one value, or a list of values to 'in'") as caught:
            fastpq.read_table(path, filters=("year", "==", values))
        assert "7777" not in str(caught.value)
    with pytest.raises(fastpq.SchemaError, match=r"str 'x\\nx") as caught:
        fastpq.read_table(path, filters=("year", "==", "x\n" * 10**6))
    assert len(str(caught.value)) < 300


def test_an_array_for_out(path: Path) -> None:
    wrong: Any
    for wrong in (np.empty(3), [np.empty(3)], np.empty(3).tolist()):
        with pytest.raises(fastpq.SchemaError, match=r'out must map names to arrays, .*\{"price": array\}, but it is a '):
            fastpq.read_table(path, out=wrong)
    array = np.empty(3)
    fastpq.read_table(path, ["amount"], out={"amount": array})
    assert array.tolist() == [1.5, 2.0, 7777.0]


def test_keys_that_are_text() -> None:
    wrong: Any = "0123456789abcdef"
    for call in (
        lambda: fastpq.FileEncryptionProperties(wrong),
        lambda: fastpq.FileDecryptionProperties(wrong),
        lambda: fastpq.FileEncryptionProperties(b"k" * 16, {"a": wrong}),
    ):
        with pytest.raises(TypeError, match=r"16, 24 or 32 bytes, not text: secrets\.token_bytes\(16\)") as caught:
            call()
        assert wrong not in str(caught.value)
    wrong = 5
    with pytest.raises(TypeError, match="16, 24 or 32 bytes, not a int"):
        fastpq.FileEncryptionProperties(wrong)


def in_arrow(table: pa.Table, writer: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with writer(sink, table.schema) as opened:
        opened.write(table)
    return bytes(sink.getvalue())


def zipped(name: str) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr(name, "<x/>" * 100)
    return sink.getvalue()


def saved(save: Callable[[io.BytesIO], object]) -> bytes:
    sink = io.BytesIO()
    save(sink)
    return sink.getvalue()


TABLE = pa.table({"a": [1, 2], "b": ["ü", "x"]})
FRAME = TABLE.to_pandas()
OTHERS: dict[str, tuple[Callable[[], bytes], str]] = {
    "csv": (lambda: FRAME.to_csv().encode(), r"CSV, which pandas\.read_csv"),
    "short csv": (lambda: b"a,b\n1,2\n", "CSV"),
    "long csv": (lambda: FRAME.to_csv(sep=";").encode() * 99, "CSV"),
    "csv of researchers": (lambda: b"ORCID,name\n1,x\n" * 9, "CSV"),
    "csv of Excel": (lambda: b"\xef\xbb\xbfa;b\r\n1;2\r\n", "CSV"),
    "json": (lambda: FRAME.to_json().encode(), r"JSON, which pandas\.read_json"),
    "lines of json": (lambda: FRAME.to_json(orient="records", lines=True).encode(), "JSON"),
    "gzip": (lambda: gzip.compress(b"x" * 99), "a file compressed by gzip. Decompress it first"),
    "zstd": (lambda: pa.compress(b"x" * 99, "zstd", asbytes=True), "a file compressed by zstd"),
    "bzip2": (lambda: bz2.compress(b"x" * 99), "a file compressed by bzip2"),
    "xz": (lambda: lzma.compress(b"x" * 99), "a file compressed by xz"),
    "arrow": (lambda: in_arrow(TABLE, pa.ipc.new_file), r"an Arrow IPC or Feather file, which pyarrow\.feather\.read_table"),
    "feather": (lambda: saved(lambda sink: FRAME.to_feather(sink)), "an Arrow IPC or Feather file"),
    "stream": (lambda: in_arrow(TABLE, pa.ipc.new_stream), "an Arrow IPC stream"),
    "orc": (lambda: saved(lambda sink: FRAME.to_orc(sink)), "an ORC file"),
    "avro": (lambda: saved(lambda sink: pl.DataFrame(TABLE).write_avro(sink)), "an Avro file"),
    "excel": (lambda: zipped("[Content_Types].xml"), r"an Excel workbook or .*\. pandas\.read_excel"),
    "excel of openpyxl": (lambda: zipped("docProps/app.xml"), "an Excel workbook"),
    "old excel": (lambda: bytes.fromhex("D0CF11E0A1B11AE1") + bytes(600), "an old Excel workbook"),
    "zip": (lambda: zipped("rows.parquet"), "a ZIP archive. Extract its files first"),
    "npz": (lambda: saved(lambda sink: np.savez(sink, a=np.arange(9))), r"a NumPy archive \(\.npz\), which numpy"),
    "npy": (lambda: saved(lambda sink: np.save(sink, np.arange(9))), "a NumPy array, which numpy"),
    "git lfs": (lambda: b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "a pointer file of Git LFS"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_files_of_other_kinds(tmp_path: Path, name: str) -> None:
    make, kind = OTHERS[name]
    (tmp_path / "file").write_bytes(make())
    for where in (tmp_path / "file", make(), io.BytesIO(make())):
        with pytest.raises(fastpq.FormatError, match=f"not a Parquet file: it looks like {kind}"):
            fastpq.read_table(where)


NOTHING = [
    b"[section]\nkey=1\n" * 9, b"{% raw %}{{ x }}" * 9,
    b"x" * 100, b"one line, of text", b"a b\nc d\n" * 9, bytes(99), b"\x01,\n\x01,\n" * 9, b"\xff,\n" * 9,
]


@pytest.mark.parametrize("data", NOTHING)
def test_bytes_that_tell_nothing(data: bytes) -> None:
    with pytest.raises(fastpq.FormatError, match="not a Parquet file: it ends with b'"):
        fastpq.read_table(data)


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("read_parquet", "read_table"), ("scan_parquet", "ParquetDataset"), ("to_parquet", "write_table"),
        ("write_parquet", "write_table"), ("Dataset", "ParquetDataset"), ("dataset", "ParquetDataset"),
        ("write_to_dataset", "write_dataset"), ("from_pandas", "write_table"),
    ],
)
def test_names_of_other_libraries(name: str, ours: str) -> None:
    with pytest.raises(AttributeError, match=rf"^module 'fastpq' has no attribute '{name}'; fastpq has .*{ours}"):
        getattr(fastpq, name)
    assert not hasattr(fastpq, name)
    with pytest.raises(ImportError, match=rf"^cannot import name '{name}' from 'fastpq'; fastpq has .*{ours}"):
        exec(f"from fastpq import {name}")


def test_names_in_advice_exist() -> None:
    for text in (*foreign_names._NAMES.values(), *foreign_names._MODULES.values()):
        assert set(re.findall(r"(\w+)(?:\(|,? which|, and)", text)) <= {*fastpq.__all__, "concat", "to_pandas"}


@pytest.mark.parametrize(("room", "ours"), [("read", "read_table"), ("write", "write_table")])
def test_rooms_are_no_functions(path: Path, room: str, ours: str) -> None:
    with pytest.raises(TypeError, match=rf"^fastpq\.{room} is a module, not a function; fastpq has .*{ours}"):
        getattr(fastpq, room)(path)


def test_appended_rows_of_other_columns(tmp_path: Path) -> None:
    fastpq.write_dataset({"a": [1], "b": [2]}, tmp_path)
    for rows, advice in (
        ({"a": [1]}, "give the column, even if it has nulls alone, or check_schema=False"),
        ({"a": [1], "b": [1], "c": [1]}, "leave the column out, or give check_schema=False"),
        ({"a": [1], "b": ["x"]}, "schema= casts values"),
    ):
        with pytest.raises(fastpq.SchemaError, match=advice):
            fastpq.write_dataset(rows, tmp_path)
    fastpq.write_dataset({"a": [3], "b": pa.nulls(1, pa.int64())}, tmp_path)
    fastpq.write_dataset({"a": [5]}, tmp_path, check_schema=False)
    assert sorted(fastpq.read_dataset(tmp_path).to_pylist(), key=lambda row: row["a"]) == [
        {"a": 1, "b": 2}, {"a": 3, "b": None}, {"a": 5, "b": None},
    ]


def test_install_hints_name_packages() -> None:
    """fastpq is in no package index: ``pip install fastpq[extra]`` does not work."""
    package = Path(fastpq.__file__).parent
    texts = [file.read_text() for pattern in ("*.py", "*.pyx") for file in package.rglob(pattern)]
    assert not [text for text in texts if re.search(r"fastpq\[\w", text)]


def test_the_warning_of_attrs_names_the_line_of_the_caller(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [1]})
    frame.attrs = {"it": object()}
    calls: list[Callable[[], object]] = [
        lambda: fastpq.write_table(frame, tmp_path / "file"),
        lambda: fastpq.write_dataset(frame, tmp_path / "root"),
        lambda: fastpq.write_table(iter([frame]), tmp_path / "file"),
    ]
    for call in calls:
        with pytest.warns(UserWarning, match="attrs of the DataFrame") as caught:
            call()
        assert {warning.filename for warning in caught} == {__file__}
