"""Decoded statistics beside pyarrow's."""

from __future__ import annotations

import datetime as dt
import io
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.schema import types
from tests.index.forging import Forgery

FOOTER_KEY, COLUMN_KEY = b"f" * 16, b"c" * 16
MOMENTS = [dt.datetime(1969, 5, 1, 2, 3, 4, 567_000), None, dt.datetime(2026, 1, 2)]
COLUMNS = {
    "int8": pa.array([-3, None, 7], pa.int8()),
    "uint32": pa.array([5, None, (1 << 32) - 1], pa.uint32()),
    "int64": pa.array([-1 << 60, 0, None], pa.int64()),
    "uint64": pa.array([1, (1 << 64) - 1, None], pa.uint64()),
    "float": pa.array([1.5, -2.5, None], pa.float32()),
    "double": pa.array([1.5, float("nan"), None, -2.5]),
    "boolean": pa.array([True, False, None]),
    "text": pa.array(["Zürich", None, "Aarau"]),
    "binary": pa.array([b"\xff\x00", b"\x01", None]),
    "date": pa.array([dt.date(1960, 2, 29), None, dt.date(2026, 11, 23)]),
    "decimal": pa.array([Decimal("-123.45"), None, Decimal("99999.99")], pa.decimal128(20, 2)),
    "short decimal": pa.array([Decimal("-123.45"), None, Decimal("99999.99")], pa.decimal128(7, 2)),
    "ms": pa.array(MOMENTS, pa.timestamp("ms")),
    "us": pa.array(MOMENTS, pa.timestamp("us")),
    "instant": pa.array(MOMENTS, pa.timestamp("us", "UTC")),
    "time": pa.array([dt.time(1, 2, 3, 4), None, dt.time(23, 59)], pa.time64("us")),
    "nulls": pa.array([None, None], pa.int32()),
    "list": pa.array([[3, None], [], None, [1, 2]]),
}


def statistics_of(data: Any, column: int = 0, **options: Any) -> Any:
    return fastpq.read_metadata(data, **options).row_group(0).column(column).statistics


def written(table: Any, **options: Any) -> bytes:
    sink = io.BytesIO()
    fastpq.write_table(table, sink, **options)
    return sink.getvalue()


@pytest.mark.parametrize("writer", ["pyarrow", "fastpq"])
@pytest.mark.parametrize("name", COLUMNS)
def test_as_pyarrow_decodes(name: str, writer: str) -> None:
    table = pa.table({"x": COLUMNS[name]})
    if writer == "fastpq":
        data = written(table)
    else:
        sink = io.BytesIO()
        pq.write_table(table, sink, store_decimal_as_integer=True)
        data = sink.getvalue()
    ours, theirs = statistics_of(data), pq.read_metadata(io.BytesIO(data)).row_group(0).column(0).statistics
    names = ("has_min_max", "min", "max", "has_null_count", "null_count", "num_values", "has_distinct_count", "distinct_count")
    assert {name: getattr(ours, name) for name in names} == {name: getattr(theirs, name) for name in names}
    assert ours.physical_type.name == theirs.physical_type
    assert ours.is_min_exact == ours.is_max_exact == ours.has_min_max


def test_other_types() -> None:
    ids = [UUID(int=5), UUID(int=1 << 127)]
    found = statistics_of(written({"x": ids}))
    assert (found.min, found.max, found.logical_type) == (*ids, types.Uuid())
    found = statistics_of(written({"x": np.array([2, -1, 2], np.float16)}))
    assert (found.min, found.max, found.nan_count) == (-1.0, 2.0, 0)
    found = statistics_of(written({"x": ["a", "b", "a"] * 100}))
    assert (found.distinct_count, found.has_distinct_count, found.num_values) == (2, True, 300)
    found = statistics_of(written({"x": np.array(["2026-01-01T00:00:00.000000001", "NaT"], "M8[ns]")}))
    assert found.min == found.max == np.datetime64("2026-01-01T00:00:00.000000001")
    point = types.ColumnType(types.Type.BYTE_ARRAY, None, types.Geometry())
    places = written({"x": [b"\x01\x01\0\0\0" + bytes(16)]}, schema={"x": point})
    assert not statistics_of(places).has_min_max        # points have no order
    assert statistics_of(written({"x": [1]}, write_statistics=False)) is None


def test_shortened_text() -> None:
    found = statistics_of(written({"x": ["ä" * 50, "ö" * 50]}, statistics_truncation=9))
    assert (found.min, found.max) == ("ä" * 4, "ööö÷")
    assert (found.is_min_exact, found.is_max_exact, found.raw.is_max_value_exact) == (False, False, False)


def test_unusable_bounds() -> None:
    def forged(low: bytes, high: bytes, created_by: str | None = None) -> Any:
        forgery = Forgery(written({"x": ["a", "b"]}))
        stored = forgery.chunks[0].statistics
        stored.min_value, stored.max_value = low, high
        if created_by is not None:
            forgery.metadata.created_by = created_by
            forgery.metadata.column_orders = None
        return statistics_of(forgery.written())

    for found in (forged(b"b", b"a"), forged(b"a", b"b\xc3"), forged(b"a", b"b", "parquet-mr version 1.6.0")):
        assert (found.has_min_max, found.min, found.max, found.is_min_exact) == (False, None, None, False)
        assert found.raw.min_value is not None
    assert forged(b"a", b"b").has_min_max


def test_encrypted_columns_stay_closed() -> None:
    keys = fastpq.FileEncryptionProperties(FOOTER_KEY, column_keys={"x": COLUMN_KEY}, plaintext_footer=True, unlisted="plaintext")
    data = written({"x": ["classified", "secret"], "y": [1, 2]}, encryption_properties=keys)
    assert statistics_of(data) is None
    assert statistics_of(data, 1).max == 2
    footer_alone = fastpq.FileDecryptionProperties(FOOTER_KEY)
    whole = fastpq.FileDecryptionProperties(FOOTER_KEY, {"x": COLUMN_KEY})
    assert statistics_of(data, decryption_properties=whole).min == "classified"
    assert "classified" not in repr(statistics_of(data, decryption_properties=whole))
    sealed = written(
        {"x": ["classified"]}, encryption_properties=fastpq.FileEncryptionProperties(FOOTER_KEY, column_keys={"x": COLUMN_KEY})
    )
    with pytest.raises(fastpq.KeyAccessError):
        statistics_of(sealed, decryption_properties=footer_alone)
