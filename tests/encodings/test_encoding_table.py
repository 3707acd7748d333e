"""The table of encodings is complete, and a new encoding needs no other files than ARCHITECTURE.md lists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from fastpq.encodings.encoding_table import READABLE, WRITABLE
from fastpq.encodings.registry import BY_SIMPLICITY, readable_encodings
from fastpq.format import Encoding, Type

ROOT = Path(__file__).resolve().parent.parent.parent

# INT64 values with all bits inverted.
SOURCE = '''"""INVERTED: values with all bits inverted."""

from libc.stdint cimport int64_t, uint8_t

from fastpq.encodings.interface cimport PageValues, ValueDecoder, ValueEncoder, ValuesToEncode
from fastpq.encodings.status cimport TRUNCATED


cdef void inverted_decoder(ValueDecoder* decoder) noexcept:
    decoder.start = start
    decoder.next = next_values
    decoder.skip = skip_values


cdef int64_t start(PageValues* page) noexcept nogil:
    return 0


cdef int64_t next_values(PageValues* page, int64_t count, uint8_t* out) noexcept nogil:
    cdef int64_t i, first = page.position * <int64_t>page.width, size = count * <int64_t>page.width
    if first + size > page.size:
        return TRUNCATED
    for i in range(size):
        out[i] = ~page.data[first + i]
    return count


cdef int64_t skip_values(PageValues* page, int64_t count) noexcept nogil:
    return count


cdef void inverted_encoder(ValueEncoder* encoder) noexcept:
    encoder.bound = bound
    encoder.encode = encode_values


cdef int64_t bound(const ValuesToEncode* values) noexcept nogil:
    return values.plain_size


cdef int64_t encode_values(const ValuesToEncode* values, uint8_t* out) noexcept nogil:
    cdef int64_t i
    for i in range(values.plain_size):
        out[i] = ~values.values[i]
    return values.plain_size
'''
DECLARATIONS = """from fastpq.encodings.interface cimport ValueDecoder, ValueEncoder

cdef void inverted_decoder(ValueDecoder* decoder) noexcept
cdef void inverted_encoder(ValueEncoder* encoder) noexcept
"""
IMPORT = "from fastpq.encodings.inverted cimport inverted_decoder, inverted_encoder"
BUILD = """
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

names = ["encoding_table", "inverted"]
folders = [str(folder.parent) for folder in Path("fastpq").glob("*/c")]     # a .pxd names headers as "c/NAME.h"
setup(
    script_args=["-q", "build_ext", "--inplace"],
    ext_modules=cythonize(
        [
            Extension(
                f"fastpq.encodings.{name}", [f"fastpq/encodings/{name}.pyx"], include_dirs=folders, extra_compile_args=["-O0"]
            )
            for name in names
        ],
        language_level="3",
        quiet=True,
    ),
)
"""
USE = """
import io

import numpy as np

import fastpq
from fastpq.recovery.pages import find_pages

values = np.arange(100_000) * 7
file = io.BytesIO()
fastpq.write_table({"x": values}, file, column_encoding={"x": "INVERTED"}, use_dictionary=False, compression="none")
data = file.getvalue()
assert values[5:6].tobytes() not in data
assert np.array_equal(fastpq.read_table(data)["x"].to_numpy(), values)
assert fastpq.read_table(data, filters=[("x", "in", [70, 69_993])])["x"].to_numpy().tolist() == [70, 69_993]
assert len(find_pages(np.frombuffer(data, np.uint8), 4, True)) > 0
"""


def linked_copy(folder: Path) -> None:
    """Fill a folder with links to the files of the package."""
    for path in (ROOT / "fastpq").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            link = folder / path.relative_to(ROOT)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)


def replace(path: Path, old: str, new: str) -> None:
    """Replace text of a linked file in the copy alone."""
    text = path.read_text()
    assert text.count(old) == 1, f"{path.name}: {old!r}"
    path.unlink()
    path.write_text(text.replace(old, new))


def test_every_encoding_of_values_is_in_the_table() -> None:
    assert set(READABLE) == set(Encoding) - {Encoding.BIT_PACKED}
    assert set(WRITABLE) == set(READABLE)
    assert all(WRITABLE[encoding] <= READABLE[encoding] for encoding in WRITABLE)


def test_encodings_that_are_chosen_automatically_can_be_written() -> None:
    assert all(WRITABLE[encoding] for encoding in BY_SIMPLICITY)


@pytest.mark.parametrize("physical", Type)
def test_readable_encodings_have_a_bit_each(physical: Type) -> None:
    bits = readable_encodings(physical)
    assert {encoding for encoding in Encoding if bits >> encoding & 1} == {
        encoding for encoding, types in READABLE.items() if physical in types
    }


def test_compiled_code_outside_of_the_room_names_few_encodings() -> None:
    names = "|".join(encoding.name for encoding in Encoding if encoding not in (Encoding.PLAIN, Encoding.RLE))
    mentions = re.compile(rf"^[^#\n\"]*\b(?:{names})\b", re.MULTILINE)
    sources = [path for path in (ROOT / "fastpq").rglob("*.p[yx][xd]") if path.parent.name != "encodings"]
    files = {path.relative_to(ROOT / "fastpq").as_posix() for path in sources if mentions.search(path.read_text())}
    assert files <= {"column/page.pyx", "column/chunk_writer.pyx", "column/value_reader.pyx"}


@pytest.mark.slow
def test_a_new_encoding_is_its_number_its_file_and_two_rows(tmp_path: Path) -> None:
    linked_copy(tmp_path)
    room = tmp_path / "fastpq" / "encodings"
    replace(tmp_path / "fastpq" / "format" / "enums.py", "    ALP = 10\n", "    ALP = 10\n    INVERTED = 11\n")
    (room / "inverted.pyx").write_text(SOURCE)
    (room / "inverted.pxd").write_text(DECLARATIONS)
    table = room / "encoding_table.pyx"
    replace(table, "from fastpq.encodings.interface", f"{IMPORT}\nfrom fastpq.encodings.interface")
    for role in ("decoder", "encoder"):
        last = f"    add_{role}(Encoding.ALP,"
        replace(table, last, f"    add_{role}(Encoding.INVERTED, inverted_{role}, {{Type.INT64}})\n{last}")
    for built in room.glob("encoding_table.*.so"):
        built.unlink()
    (room / "encoding_table.c").unlink(missing_ok=True)
    subprocess.run([sys.executable, "-c", BUILD], cwd=tmp_path, check=True)
    subprocess.run([sys.executable, "-c", USE], cwd=tmp_path, check=True)
