"""Files rewritten or truncated in place: values read before stay, and a read under way ends in an error.

Each case runs in a process of its own: touching a lost page of a mapped file ends the process (SIGBUS).
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import fastpq
from fastpq.arrays.table import BinaryViews, Column

SETUP = """
    import os, sys
    import numpy as np, pyarrow as pa, pyarrow.parquet as pq
    import fastpq
    path = sys.argv[1]
    rows = 300_000
    values = {
        "number": np.arange(rows),
        "text": np.array([f"a text of some length, {i}" for i in range(rows)], dtype=np.dtypes.StringDType()),
        "nested": pa.array([[f"also a long text, {i}"] for i in range(rows)]),
    }
    uncompressed = {"compression": "none", "use_dictionary": False}
    table = pa.table({**values, "text": pa.array(values["text"].tolist())})
    fastpq.write_table(table, path, row_group_size=100_000, **uncompressed)
    with open(path, "rb") as file:
        stored = file.read()
    expected = pq.read_table(path)

    def truncate():
        os.truncate(path, 50_000)

    def refused(work, *kinds):
        try:
            work()
        except kinds as error:
            assert "truncated while it was read" in str(error), error
            return
        raise AssertionError("no error")
"""
CASES = {
    "pyarrow writes into the file that its table was read from": """
        t = pa.table(fastpq.read_table(path))
        pq.write_table(t, path)
        assert pq.read_table(path).equals(expected.cast(t.schema))
    """,
    "one page of numbers is no view of the file": """
        fastpq.write_table({"a": np.arange(1000)}, path, **uncompressed)
        t = fastpq.read_table(path)
        open(path, "wb").close()
        assert t["a"].to_pylist() == list(range(1000))
    """,
    "fastpq's own bytes change": """
        t = fastpq.read_table(path)
        with open(path, "r+b") as file:
            file.write(b"#" * len(stored))
        assert pa.table(t).equals(expected.cast(pa.table(t).schema))
    """,
    "a batch stays": """
        with fastpq.ParquetFile(path) as file:
            t = next(iter(file.iter_batches(1000)))
        open(path, "wb").close()
        assert t["text"].to_pylist() == values["text"][:1000].tolist()
    """,
    "chosen rows stay": """
        with fastpq.ParquetFile(path) as file:
            t = file.take([5, 150_000], ["text"])
            u = file.read(["text"], filters=[("number", "==", 7)])
        open(path, "wb").close()
        assert t["text"].to_pylist() == [values["text"][5], values["text"][150_000]]
        assert u["text"].to_pylist() == [values["text"][7]]
    """,
    "a file shrinks before its columns are read": """
        with fastpq.ParquetFile(path) as file:
            truncate()
            refused(file.read, fastpq.FormatError)
            refused(lambda: file.read(filters=[("number", ">", 250_000)]), fastpq.FormatError)
            refused(lambda: file.take([299_000]), fastpq.FormatError)
    """,
    "a file shrinks between batches": """
        with fastpq.ParquetFile(path) as file:
            batches = file.iter_batches(1000)
            next(batches)
            truncate()
            refused(lambda: list(batches), fastpq.FormatError)
    """,
    "a file shrinks between the batches of a dataset": """
        batches = fastpq.ParquetDataset(path).iter_batches(1000)
        next(batches)
        truncate()
        refused(lambda: list(batches), fastpq.FormatError)
    """,
    "a file shrinks while it is encrypted": """
        keys = fastpq.encryption.FileEncryptionProperties(footer_key=b"0123456789abcdef")
        refused(
            lambda: fastpq.encrypt_file(path, path + ".new", keys, progress=lambda done, total: truncate()), fastpq.FormatError
        )
        assert not os.path.exists(path + ".new")
    """,
    "a mapping of the caller": """
        import mmap
        with open(path, "r+b") as file:
            mapped = mmap.mmap(file.fileno(), 0)
        t = fastpq.read_table(mapped)
        mapped[:] = bytes(len(mapped))
        assert t["text"].to_pylist() == values["text"].tolist()
        assert t["number"].to_pylist() == values["number"].tolist()
    """,
}


@pytest.mark.parametrize("case", CASES)
def test_a_change_of_the_file(case: str, tmp_path: Path) -> None:
    program = textwrap.dedent(SETUP) + textwrap.dedent(CASES[case])
    command = [sys.executable, "-c", program, str(tmp_path / "x.parquet")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.returncode, done.stderr)


def test_keep_gives_views_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    text = np.array([f"a text of some length, {i}" for i in range(1000)], dtype=np.dtypes.StringDType())
    fastpq.write_table({"a": np.arange(1000), "b": text}, path, compression="none", use_dictionary=False)
    kept, copied = (fastpq.read_table(path, memory_map=how) for how in ("keep", True))
    shared = np.memmap(path, np.uint8, "r+")
    shared[:] = 0
    assert copied["a"].to_pylist() == list(range(1000))
    assert copied["b"].to_pylist() == text.tolist()
    column = kept["b"]
    assert isinstance(column, Column)
    assert isinstance(column.values, BinaryViews)
    assert not any(buffer.any() for buffer in column.values.buffers)


@pytest.mark.parametrize("memory_map", [None, 1, "yes", "Keep"])
def test_memory_map_is_one_of_three(memory_map: object, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match='True, False or "keep"'):
        fastpq.read_table(tmp_path / "missing", memory_map=memory_map)  # type: ignore[arg-type]
