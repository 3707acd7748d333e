"""Opening of files: order of the checks, and what a failure leaves behind."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastpq
from fastpq import format as fmt
from fastpq.format.stored_footer import TAIL_LENGTH

DESCRIPTORS = Path("/proc/self/fd")


@pytest.mark.skipif(sys.platform != "linux", reason="counts the entries of /proc/self/fd")
@pytest.mark.parametrize("memory_map", [False, True])
def test_a_wrong_number_of_threads_opens_nothing(memory_map: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    fastpq.write_table({"a": np.arange(3)}, path)
    before = len(os.listdir(DESCRIPTORS))
    caught: list[pytest.ExceptionInfo[ValueError]] = []
    for where in (path, tmp_path / "none.parquet"):
        with pytest.raises(ValueError, match="threads") as info:
            fastpq.ParquetFile(where, threads=0, memory_map=memory_map)
        caught.append(info)
    assert len(os.listdir(DESCRIPTORS)) == before


@pytest.mark.parametrize("on_error", ["null", "skip"])
def test_a_file_with_a_broken_schema_opens(on_error: fastpq.options.OnError, tmp_path: Path) -> None:
    """Its footer can be looked at; reads fail, and name the file."""
    path = tmp_path / "broken.parquet"
    fastpq.write_table({"a": np.arange(3)}, path, write_page_index=False)
    stored = path.read_bytes()
    length = int.from_bytes(stored[-TAIL_LENGTH:-4], "little")
    footer, _ = fmt.decode(fmt.FileMetaData, stored[-TAIL_LENGTH - length : -TAIL_LENGTH])
    footer.schema[1].repetition_type = 12
    encoded = fmt.encode(footer)
    path.write_bytes(stored[: -TAIL_LENGTH - length] + encoded + len(encoded).to_bytes(4, "little") + b"PAR1")
    with fastpq.ParquetFile(path, on_error=on_error) as file:
        assert file.metadata.num_rows == 3
        with pytest.raises(fastpq.FormatError, match=rf"repetition type 12 is unknown \[path {path}"):
            file.read()


def test_key_value_metadata_may_be_added_while_writing() -> None:
    target, metadata = io.BytesIO(), {"x": "1"}
    with fastpq.ParquetWriter(target, key_value_metadata=metadata) as writer:
        writer.write_table({"a": np.arange(3)})
        metadata["rows"] = "3"
    assert fastpq.read_metadata(target).key_value_metadata == {"x": "1", "rows": "3"}


class Closing(io.BytesIO):
    """A file object whose read closes a ParquetFile, as another thread may."""

    file: fastpq.ParquetFile | None = None

    def readinto(self, buffer: Any) -> int:
        if self.file is not None:
            self.file.close()
            self.close()
        return super().readinto(buffer)


def test_a_file_closed_while_it_is_read(tmp_path: Path) -> None:
    out = io.BytesIO()
    fastpq.write_table({"a": np.arange(1000)}, out)
    held = Closing(out.getvalue())
    held.file = fastpq.ParquetFile(held)
    with pytest.raises(ValueError, match="was closed while it was read"):
        held.file.read()


