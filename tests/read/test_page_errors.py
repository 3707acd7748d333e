"""Errors about a broken page name its offset in the file, as ``verify`` does, however the page is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fastpq
from fastpq.cli.stored_chunks import stored_pages
from fastpq.errors import FormatError
from fastpq.read.page_errors import give_file_offset

ROWS = 4_000
GROUP = 1_000


def read_batches(path: Path) -> None:
    with fastpq.ParquetFile(path) as file:
        for _ in file.iter_batches(300):
            pass


def removed_rows(path: Path) -> None:
    fastpq.delete_rows(path, path.with_name("new.parquet"), [("a", "in", [1, 2_900])])


READS: dict[str, Callable[[Path], object]] = {
    "whole": fastpq.read_table,
    "one column": lambda path: fastpq.read_table(path, columns=["b"]),
    "bytes": lambda path: fastpq.read_table(path.read_bytes()),
    "one row group": lambda path: fastpq.read_table(path, row_groups=[2]),
    "batches": read_batches,
    "selected pages": lambda path: fastpq.read_table(path, filters=[("a", ">=", 2_700), ("a", "<", 2_800)]),
    "a recompressed file": lambda path: fastpq.recompress_file(path, path.with_name("new.parquet"), compression="gzip"),
    "a copied file": lambda path: fastpq.project_file(path, path.with_name("new.parquet"), columns=["b", "nested"]),
    "removed rows": removed_rows,
}


def offsets_of_pages(path: Path, name: str) -> list[int]:
    """Return where the data pages of the third row group begin."""
    with fastpq.ParquetFile(path) as file:
        column = next(each for each in file.schema.columns if each.name.startswith(name))
        return [page.offset for page in stored_pages(file, 2, column) if page.kind.startswith("data")]


@pytest.mark.parametrize("name", ["b", "nested"])
@pytest.mark.parametrize("how", READS)
def test_the_offset_of_a_broken_page_is_the_one_of_verify(tmp_path: Path, how: str, name: str) -> None:
    path = tmp_path / "broken.parquet"
    rng = np.random.default_rng(1)
    fastpq.write_table(
        {"a": np.arange(ROWS), "b": rng.random(ROWS), "nested": [[float(value)] for value in rng.random(ROWS)]},
        path, row_group_size=GROUP, data_page_size=1_000, use_dictionary=False, compression=None,
    )
    offsets = offsets_of_pages(path, name)
    assert len(offsets) > 5
    page = len(offsets) * 3 // 4
    data = bytearray(path.read_bytes())
    data[offsets[page + 1] - 9] ^= 4
    path.write_bytes(data)
    if how == "one column" and name != "b":
        READS[how](path)
        return
    with pytest.raises(FormatError, match="CRC-32 does not match") as caught:
        READS[how](path)
    context = caught.value.context
    assert (context["row_group"], context["page"], context["offset"]) == (2, page, offsets[page])
    [violation] = [each for each in fastpq.verify_file(path).violations if each.place.offset is not None]
    assert (violation.place.page, violation.place.offset) == (page, offsets[page])


def test_a_broken_page_header_has_its_offset_too(tmp_path: Path) -> None:
    path = tmp_path / "broken.parquet"
    fastpq.write_table({"a": np.arange(ROWS)}, path, row_group_size=GROUP, data_page_size=1_000, use_dictionary=False)
    [first, second, *_] = offsets_of_pages(path, "a")
    data = bytearray(path.read_bytes())
    data[second : second + 8] = b"\xff" * 8
    path.write_bytes(data)
    with pytest.raises(FormatError) as caught:
        offsets_of_pages(path, "a")
    assert (caught.value.context["row_group"], caught.value.context["offset"]) == (2, second)
    assert first < second


def test_offsets_within_ranges() -> None:
    ranges = [(100, 10), (500, 20)]
    for position, offset in ((0, 100), (9, 109), (10, 500), (29, 519), (30, 520)):
        error = FormatError("broken", page=1, offset=position)
        give_file_offset(error, ranges)
        assert error.context["offset"] == offset
        give_file_offset(error.at(row_group=3), ranges)     # it has the file's offset already
        assert error.context["offset"] == offset
    for whole in (FormatError("cut off", offset=7), FormatError("broken", page=1)):
        context = dict(whole.context)
        give_file_offset(whole, ranges)
        assert whole.context == context
