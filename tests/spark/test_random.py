"""Files of random types, encodings and codecs: those of fastpq in Spark's own readers, and those of Spark here."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import fastpq
from tests.interop.comparison import assert_same
from tests.interop.random_tables import ENCODINGS, LEAVES, encodings, options, tables

CODECS = ("none", "snappy", "gzip", "zstd", "lz4")      # Spark has no BROTLI
COLUMNS = 12            # random ones in a file: what a query costs is the query
FEW = settings(
    max_examples=4,
    database=None,
    phases=[Phase.generate],        # shrinking takes a Spark job a step
    suppress_health_check=list(HealthCheck),
)
# Spark's rows have one NaN, whatever bits it had.
ONE_NAN = LEAVES | {
    pa.float64(): st.floats(allow_nan=False) | st.just(math.nan),
    pa.float32(): st.floats(allow_nan=False, width=32) | st.just(math.nan),
}
# Spark's vectorized reader refuses BYTE_STREAM_SPLIT; its other one is parquet-java's.
VECTORIZED = {type_: tuple(name for name in names if name != "BYTE_STREAM_SPLIT") for type_, names in ENCODINGS.items()}


@pytest.mark.parametrize("vectorized", [True, False])
@seed(20260501)
@given(table=tables((COLUMNS, COLUMNS), rows=9, leaves=ONE_NAN), written=options(CODECS), data=st.data())
@FEW
def test_spark_reads_us_and_we_read_spark(
    request: pytest.FixtureRequest, spark: Any, vectorized: bool, table: pa.Table, written: dict[str, Any], data: st.DataObject
) -> None:
    folder: Path = request.getfixturevalue("tmp_path_factory").mktemp("random")
    chosen = data.draw(encodings(table, VECTORIZED if vectorized else ENCODINGS))
    fastpq.write_table(table, folder / "ours.parquet", column_encoding=chosen, **written)
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", str(vectorized).lower())
    request.addfinalizer(lambda: spark.conf.unset("spark.sql.parquet.enableVectorizedReader"))
    frame = spark.read.parquet(str(folder / "ours.parquet"))
    assert_same(frame.toArrow(), table)
    codec = {"none": "uncompressed", "lz4": "lz4_raw"}.get(written["compression"], written["compression"])
    version = {"1.0": "v1", "2.0": "v2"}[written["data_page_version"]]
    frame.coalesce(1).write.option("parquet.writer.version", version).parquet(str(folder / "theirs"), compression=codec)
    (theirs,) = (folder / "theirs").glob("*.parquet")
    assert_same(pa.table(fastpq.read_table(theirs, coerce_int96_timestamp_unit="us")), table)     # INT96 by default
