"""PLAIN BYTE_ARRAY values and UTF-8 checks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastpq._kernel_calls import check_utf8, decode_byte_arrays
from fastpq.errors import FormatError
from fastpq.format import Encoding
from tests.encodings import reference


def value_of(view: bytes, data: bytes) -> bytes:
    length = int.from_bytes(view[:4], "little")
    if length <= 12:
        assert view[4 + length :] == bytes(12 - length)
        return view[4 : 4 + length]
    offset = int.from_bytes(view[12:], "little")
    assert view[4:8] == data[offset : offset + 4]
    assert int.from_bytes(view[8:12], "little") == 3
    return data[offset : offset + length]


@given(st.lists(st.binary(max_size=40), max_size=30), st.binary(max_size=5))
def test_views(values: list[bytes], trailing: bytes) -> None:
    data = b"".join(len(value).to_bytes(4, "little") + value for value in values)
    assert reference.byte_arrays(data, len(values)) == values
    views, _, consumed = decode_byte_arrays(Encoding.PLAIN, data + trailing, len(values), buffer=3)
    assert consumed == len(data)
    assert [value_of(view.tobytes(), data) for view in views] == values


@pytest.mark.parametrize("data", [b"\1\0\0", b"\5\0\0\0abc", b"\xff\xff\xff\xff", b"\xff\xff\xff\x7fabc"])
def test_bad_lengths(data: bytes) -> None:
    with pytest.raises(FormatError):
        decode_byte_arrays(Encoding.PLAIN, data, 1)


@given(st.one_of(st.text().map(str.encode), st.binary(max_size=20)))
def test_utf8_is_python_s(data: bytes) -> None:
    try:
        data.decode()
        valid = True
    except UnicodeDecodeError:
        valid = False
    assert check_utf8(data) == valid


@pytest.mark.parametrize("lead", range(0x80, 0x100))
def test_every_two_and_three_byte_start(lead: int) -> None:
    for second in range(0x00, 0x100, 5):
        for data in (bytes([lead, second]), bytes([lead, second, 0x80]), bytes([lead, second, 0x80, 0xBF])):
            try:
                data.decode()
                valid = True
            except UnicodeDecodeError:
                valid = False
            assert check_utf8(np.frombuffer(data, np.uint8)) == valid
