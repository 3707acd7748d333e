"""The kernel of Snappy: elements of every kind at every distance from the ends of its buffers, and streams of the C++ library."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastpq.codecs.catalogue import codec_for_write
from fastpq.errors import FormatError
from tests.varints import varint

CODEC = codec_for_write("snappy", package=False)
LIBRARY = pa.Codec("snappy")


def literal(data: bytes, extra: int | None = None) -> bytes:
    """A literal with its length in the tag, or in extra bytes behind the tag."""
    if extra is None:
        extra = 0 if len(data) <= 60 else (len(data) - 1).bit_length() + 7 >> 3
    if extra == 0:
        return bytes([(len(data) - 1) << 2]) + data
    return bytes([(59 + extra) << 2]) + (len(data) - 1).to_bytes(extra, "little") + data


def copy(offset: int, length: int, kind: int) -> bytes:
    if kind == 1:
        return bytes([offset >> 8 << 5 | (length - 4) << 2 | 1, offset & 0xFF])
    return bytes([(length - 1) << 2 | kind]) + offset.to_bytes(2 if kind == 2 else 4, "little")


def decode(stream: bytes, size: int) -> bytes:
    """The content of a stream, decompressed between guards."""
    room = np.full(size + 128, 0x5A, np.uint8)
    # a copy of the exact size: sanitizers see each byte read behind its end
    CODEC.decompress_into(bytes(bytearray(stream)), room[64 : 64 + size].data)
    assert (room[:64] == 0x5A).all()
    assert (room[64 + size :] == 0x5A).all()
    return room[64 : 64 + size].tobytes()


@st.composite
def elements(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """A stream of elements of all kinds, and its content by the description of the format."""
    stream, content = bytearray(), bytearray()
    for _ in range(draw(st.integers(0, 60))):
        kind = draw(st.integers(0, 3))
        if kind == 0 or not content:
            size = draw(st.one_of(st.integers(1, 20), st.integers(1, 70), st.integers(1, 700)))
            data = draw(st.binary(min_size=size, max_size=size))
            least = 0 if size <= 60 else (size - 1).bit_length() + 7 >> 3
            stream += literal(data, draw(st.integers(least, 4)))
            content += data
            continue
        length = draw(st.integers(4, 11) if kind == 1 else st.one_of(st.integers(1, 16), st.integers(1, 64)))
        nearest = st.integers(1, min(len(content), 20))
        offset = draw(st.one_of(nearest, st.integers(1, min(len(content), 2047 if kind == 1 else 65535))))
        stream += copy(offset, length, kind)
        for _ in range(length):
            content.append(content[-offset])
    return varint(len(content)) + bytes(stream), bytes(content)


@given(elements())
@settings(max_examples=300)
def test_elements_of_all_kinds(case: tuple[bytes, bytes]) -> None:
    stream, content = case
    assert decode(stream, len(content)) == content
    if content:
        assert LIBRARY.decompress(stream, len(content)).to_pybytes() == content


@given(elements(), st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), min_size=1, max_size=4), st.integers(0, 99))
@settings(max_examples=300)
def test_altered_streams_are_as_the_library_sees_them(
    case: tuple[bytes, bytes], changes: list[tuple[int, int]], cut: int
) -> None:
    altered, content = bytearray(case[0]), case[1]
    for position, byte in changes:
        altered[position % len(altered)] = byte
    stream = bytes(altered[: len(altered) - cut % len(altered)])
    try:
        wanted = LIBRARY.decompress(stream, len(content)).to_pybytes() if content else None
    except (OSError, pa.ArrowException):
        wanted = None
    if wanted is not None and len(wanted) == len(content) and stream.startswith(varint(len(content))):
        assert decode(stream, len(content)) == wanted
        return
    try:
        found = decode(stream, len(content))
    except FormatError:
        return
    assert found == b"" == content


@given(
    st.lists(st.tuples(st.binary(min_size=1, max_size=12), st.integers(1, 400)), max_size=200),
    st.integers(0, 1 << 17),
)
@settings(max_examples=100)
def test_compressed_pages(runs: list[tuple[bytes, int]], noise: int) -> None:
    data = b"".join(part * count for part, count in runs) + np.random.default_rng(noise).bytes(noise)
    data += b"".join(part * count for part, count in runs[::-1])
    stream = bytes(CODEC.compress(data))
    assert len(stream) <= len(data) + len(data) // 6 + 32
    assert decode(stream, len(data)) == data
    if data:
        assert LIBRARY.decompress(stream, len(data)).to_pybytes() == data


def test_pages_are_compressed_as_well_as_by_the_library() -> None:
    random = np.random.default_rng(11)
    words = b" ".join(random.choice([b"carefully", b"furiously", b"deposits", b"the", b"ironic"], 100_000))
    integers = np.cumsum(random.integers(0, 100, 100_000)).astype("<i8").tobytes()
    for data in (words, integers, bytes(1 << 20), random.bytes(1 << 20)):
        assert len(CODEC.compress(data)) <= 1.02 * LIBRARY.compress(data).size


@pytest.mark.parametrize(
    "stream",
    [
        b"", b"\x80", b"\xff" * 5, b"\x80\x80\x80\x80\x80\x01",                        # lengths that do not end
        b"\x04", b"\x04\x0c", b"\x04\x0cabc", b"\x04\x0cabcde",                            # literals too short and too long
        b"\x04" + copy(1, 4, 1), b"\x05" + literal(b"a") + copy(2, 4, 2),                     # copies from before the page
        b"\x05" + literal(b"a") + copy(0, 4, 2), b"\x05" + literal(b"a") + copy(1, 5, 2),        # from nowhere; too long
        b"\x05" + literal(b"a") + b"\x0e\x01", b"\x05" + literal(b"a") + b"\x0f\x01\0\0",          # cut off
        b"\x04\xfc\xff\xff\xff\xffabcd", b"\x04\xf0",                                       # a literal of 4 GiB; of no length
        varint(200) + literal(bytes(100)) + copy(101, 60, 2) + literal(bytes(100)),           # in the loop of whole words
        varint(300) + literal(bytes(100)) + copy(0, 60, 2) + literal(bytes(100)),
        varint(300) + literal(bytes(100), 4)[:1] + b"\xff\xff\xff\xff" + bytes(300),
    ],
)
def test_broken_streams(stream: bytes) -> None:
    for size in (4, 5, 200, 300):
        with pytest.raises(FormatError, match="snappy"):
            decode(stream, size)
