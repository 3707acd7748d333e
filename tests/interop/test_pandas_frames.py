"""DataFrames of every dtype: as fastpq writes and reads them, between fastpq and pandas' own way through pyarrow."""

from __future__ import annotations

import io
import warnings
from typing import Any

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import fastpq
from tests.interop.pandas_frames import FRAMES

# What comes back in another form on purpose, as docs/pages/dataframes.md says.
IN_ANOTHER_FORM: dict[str, Any] = {
    "object timestamp": lambda frame: frame.assign(c=pd.to_datetime(frame["c"], utc=True)),
    "object int and float": lambda frame: frame.astype(float),
    "index tuple name": lambda frame: frame.rename_axis(index=["('a', '1')"]),
    "labels mixed": lambda frame: frame.set_axis(["a", "1"], axis=1),
    "labels tuples": lambda frame: frame.set_axis(["('a', '1')", "('b', '2')"], axis=1),
    "labels interval": lambda frame: frame.set_axis(["(0, 1]", "(1, 2]"], axis=1),
}
# Frames that pandas and pyarrow write, whose file does not say all of them: a category's order or dtype, or its entries.
NOT_IN_THE_FILE = {
    "category int", "category timedelta", "category Int64", "category none", "no rows of a category", "labels category",
    "labels interval",
}


def written(frame: pd.DataFrame) -> bytes:
    fastpq.write_table(frame, sink := io.BytesIO())
    return sink.getvalue()


def through_pyarrow(frame: pd.DataFrame) -> tuple[bytes, pd.DataFrame | None]:
    """The file of pyarrow, empty where pyarrow writes none, and the DataFrame that pandas reads from it, None where it fails."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            frame.to_parquet(sink := io.BytesIO(), engine="pyarrow")
        except Exception:
            return b"", None
        try:
            return sink.getvalue(), pd.read_parquet(io.BytesIO(sink.getvalue()), engine="pyarrow")
        except Exception:
            return sink.getvalue(), None


def same(frame: pd.DataFrame | None, expected: pd.DataFrame) -> bool:
    if frame is None or frame.attrs != expected.attrs:
        return False
    try:
        assert_frame_equal(frame, expected, check_freq=False)
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize("name", FRAMES)
def test_what_fastpq_writes_and_reads(name: str) -> None:
    frame = FRAMES[name]
    expected = IN_ANOTHER_FORM.get(name, lambda frame: frame)(frame)
    found = fastpq.read_pandas(written(frame))
    assert_frame_equal(found, expected, check_freq=False)
    assert found.attrs == frame.attrs


@pytest.mark.parametrize("name", FRAMES)
def test_what_pyarrow_writes(name: str) -> None:
    """fastpq gives the original, or what pandas makes of the file."""
    frame = FRAMES[name]
    data, theirs = through_pyarrow(frame)
    if not data:
        return
    found = fastpq.read_pandas(data)
    if name not in NOT_IN_THE_FILE or same(theirs, frame):
        assert same(found, frame) or (theirs is not None and not same(theirs, frame) and same(found, theirs))
    assert len(found) == len(frame if theirs is None else theirs)


@pytest.mark.parametrize("name", FRAMES)
def test_what_pandas_reads_of_fastpq(name: str) -> None:
    """pandas gives of fastpq's file at least what it gives of pyarrow's, and opens every file."""
    frame = FRAMES[name]
    _, theirs = through_pyarrow(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = pd.read_parquet(io.BytesIO(written(frame)), engine="pyarrow")
    assert len(found) == len(frame)
    if theirs is not None and name != "labels bool":        # of pyarrow's file: True, True
        assert same(found, frame) or (not same(theirs, frame) and same(found, theirs))


def test_nothing_is_pyarrow_s_alone() -> None:
    """No frame comes back through pandas and pyarrow, and not through fastpq."""
    lost = [name for name in IN_ANOTHER_FORM if same(through_pyarrow(FRAMES[name])[1], FRAMES[name])]
    assert not lost
