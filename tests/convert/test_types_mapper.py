"""types_mapper, ignore_metadata and to_pandas_kwargs of read_pandas: as in pyarrow's to_pandas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from tests.requirements import needs, peer

needs(peer("pandas"))
needs(peer("pyarrow"))

FRAME = pd.DataFrame({"n": [1, 2, 3], "t": ["x", "y", None], "f": [0.5, 1.5, None]}, index=pd.Index([5, 6, 7], name="i"))
DTYPES = {pa.int64(): pd.Int64Dtype(), pa.string(): pd.StringDtype(), pa.large_string(): pd.StringDtype()}
WISHES: list[dict[str, Any]] = [
    {"types_mapper": DTYPES.get}, {"ignore_metadata": True}, {"types_mapper": DTYPES.get, "ignore_metadata": True},
    {"types_mapper": pd.ArrowDtype}, {"types_mapper": lambda type_: None}, {},
]


@pytest.mark.parametrize("number", range(len(WISHES)))
@pytest.mark.parametrize("as_dataset", [False, True])
def test_like_pyarrow(tmp_path: Path, number: int, as_dataset: bool) -> None:
    FRAME.to_parquet(tmp_path / "x.parquet", engine="pyarrow")
    expected = pq.read_table(tmp_path / "x.parquet").to_pandas(**WISHES[number])
    where = tmp_path if as_dataset else tmp_path / "x.parquet"
    pd.testing.assert_frame_equal(fastpq.read_pandas(where, **WISHES[number]), expected)
    pd.testing.assert_frame_equal(fastpq.read_pandas(where, to_pandas_kwargs=WISHES[number]), expected)


def test_unknown_options(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="deduplicate_objects"):
        fastpq.read_pandas(tmp_path / "x.parquet", to_pandas_kwargs={"deduplicate_objects": True})
