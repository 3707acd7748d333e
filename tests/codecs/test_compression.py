"""Every codec passes through one battery, and each is held against an implementation that is not the one it uses."""

from __future__ import annotations

import contextlib
import json
import struct
import sys
import threading
import zlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from fastpq.codecs.catalogue import (
    HIGHEST_ZSTD_LEVEL,
    PACKAGES_ALONE,
    check_claimed_size,
    codec_for_read,
    codec_for_write,
    is_compiled,
)
from fastpq.codecs.checksum import crc32, crc32_by_package
from fastpq.codecs.codec import Codec
from fastpq.codecs.framing import HADOOP_BLOCK_SIZE
from fastpq.errors import FormatError, LimitError, ParquetError, SchemaError, UnsupportedError
from fastpq.format import CompressionCodec
from tests.interop.page_walk import Page, pages
from tests.requirements import DATA, is_there, needs, needs_data, peer

lzo = peer("lzo", "python-lzo")
CODECS = ["uncompressed", "snappy", "gzip", "brotli", "zstd", "lz4_raw", "lz4_hadoop", *(["lzo"] if is_there(lzo) else [])]
# each codec, and the package behind each compiled one
NAMES = [*CODECS, *(f"{name}/package" for name in CODECS if is_compiled(name) and not PACKAGES_ALONE)]

RANDOM = np.random.default_rng(7)
TEXT = b"the quick brown fox jumps over the lazy dog; " * 3000
CASES = {
    "empty": b"",
    "byte": b"x",
    "short": b"parquet",
    "text": TEXT,
    "random": RANDOM.bytes(100_000),
    "zeros": bytes(1 << 20),
    "integers": np.cumsum(RANDOM.integers(0, 100, 50_000)).astype("<i8").tobytes(),
    "words": b" ".join(RANDOM.choice([b"carefully", b"furiously", b"deposits", b"the", b"ironic"], 20_000)),
    "hadoop block": TEXT[: HADOOP_BLOCK_SIZE // 2] * 2,
    "brotli buffer": TEXT[:32768],
}


def named(name: str, level: int | None = None) -> Codec:
    """The codec of a name in NAMES."""
    codec, _, package = name.partition("/")
    return codec_for_write(codec, level, package=PACKAGES_ALONE or package == "package")


def both(*names: str) -> list[str]:
    return [name for name in NAMES if name.partition("/")[0] in names]


def decompress(codec: Codec, stream: bytes, size: int) -> bytes:
    target = np.full(size, 0xA5, np.uint8)
    codec.decompress_into(stream, target.data)
    return target.tobytes()


def forms_of(data: bytes) -> list[Any]:
    """The same bytes in every kind of buffer."""
    return [data, bytearray(data), memoryview(data), np.frombuffer(data, np.uint8)]


def foreign(name: str, **options: int) -> pa.Codec:
    return pa.Codec(name.partition("/")[0], **options)


# ---- one battery for all codecs


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", NAMES)
def test_round_trip(name: str, case: str) -> None:
    data = CASES[case]
    codec = named(name)
    stream = bytes(codec.compress(data))
    check_claimed_size(codec.number, len(stream), len(data))
    assert decompress(codec, stream, len(data)) == data


@pytest.mark.parametrize("name", NAMES)
def test_any_buffer_is_taken(name: str) -> None:
    codec = named(name)
    for data in forms_of(TEXT):
        stream = codec.compress(data)
        for source in forms_of(bytes(stream)):
            targets: list[Any] = [bytearray(len(TEXT)), np.empty(len(TEXT), np.uint8)]
            for target in targets:
                codec.decompress_into(source, target)
                assert bytes(target) == TEXT


@pytest.mark.parametrize("name", NAMES)
def test_streams_that_do_not_fit_are_refused(name: str) -> None:
    codec = named(name)
    data = CASES["integers"][:20_000]
    stream = bytes(codec.compress(data))
    for broken in (stream[:-1], stream[: len(stream) // 2], stream[:1], b"", stream + b"\0", stream + stream, b"\xff" * 9):
        with pytest.raises(FormatError):
            decompress(codec, broken, len(data))
    for size in (0, 1, len(data) - 1, len(data) + 1, 2 * len(data)):
        with pytest.raises(FormatError):
            decompress(codec, stream, size)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_decompresses_to_nothing(name: str) -> None:
    assert decompress(named(name), b"", 0) == b""


@pytest.mark.parametrize("name", NAMES)
@given(changes=st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), min_size=1, max_size=5))
@settings(max_examples=60)
def test_altered_streams_end_in_an_error_or_in_the_size_asked_for(name: str, changes: list[tuple[int, int]]) -> None:
    codec = named(name)
    stream = bytearray(codec.compress(TEXT[:5000]))
    for position, byte in changes:
        stream[position % len(stream)] = byte
    target = np.zeros(5000 + 64, np.uint8)
    target[5000:] = 0x5A
    with contextlib.suppress(ParquetError):
        codec.decompress_into(stream, target[:5000].data)
    assert (target[5000:] == 0x5A).all()


@pytest.mark.parametrize("name", NAMES)
@given(stream=st.binary(max_size=80), size=st.integers(0, 300))
@settings(max_examples=60)
def test_any_bytes_end_in_an_error_or_in_the_size_asked_for(name: str, stream: bytes, size: int) -> None:
    with contextlib.suppress(ParquetError):
        decompress(named(name), stream, size)


@pytest.mark.parametrize("name", NAMES)
def test_threads(name: str) -> None:
    codec = named(name)
    inputs = [CASES["integers"][i * 1000 :] for i in range(4)]
    failures: list[object] = []

    def work(data: bytes) -> None:
        try:
            for _ in range(5):
                assert decompress(codec, bytes(codec.compress(data)), len(data)) == data
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(data,)) for data in inputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def counts_while(work: object) -> int:
    """How far another thread counts while work runs: a call that keeps the GIL lets it count nothing."""
    state = {"running": False, "done": False}

    def run() -> None:
        state["running"] = True
        work()  # type: ignore[operator]
        state["done"] = True

    thread = threading.Thread(target=run)
    thread.start()
    count = 0
    while not state["done"]:
        count += state["running"]
    thread.join()
    return count


@pytest.mark.parametrize("name", [name for name in NAMES if name != "uncompressed"])
def test_the_gil_is_released(name: str) -> None:
    codec = named(name, 1 if name.startswith(("brotli", "gzip")) else None)
    data = CASES["integers"] * 12
    stream = bytes(codec.compress(data))
    target = np.empty(len(data), np.uint8)
    for work in (lambda: codec.compress(data), lambda: codec.decompress_into(stream, target.data)):
        assert any(counts_while(work) > 500 for _ in range(200))     # the first time, unless the machine is very busy


# ---- strangers


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", both("snappy", "gzip", "brotli", "zstd", "lz4_raw"))
def test_pyarrow_both_ways(name: str, case: str) -> None:
    data = CASES[case]
    codec = named(name)
    assert foreign(name).decompress(bytes(codec.compress(data)), len(data)).to_pybytes() == data
    level = {"compression_level": 4} if name.startswith(("gzip", "brotli")) else {}
    theirs = foreign(name, **level).compress(data).to_pybytes()
    assert decompress(codec, theirs, len(data)) == data


LEVELS = {"gzip": (1, 9, 12), "brotli": (0, 11), "zstd": (-131072, -1, 3, 22), "lz4_raw": (1, 3, 12)}


@pytest.mark.parametrize("name", both(*LEVELS))
def test_pyarrow_reads_every_level(name: str) -> None:
    data = CASES["integers"][:40_000]
    for level in LEVELS[name.partition("/")[0]]:
        stream = bytes(named(name, level).compress(data))
        assert foreign(name).decompress(stream, len(data)).to_pybytes() == data


def test_highest_zstd_level_is_the_librarys() -> None:
    assert HIGHEST_ZSTD_LEVEL == zstandard.MAX_COMPRESSION_LEVEL


@pytest.mark.parametrize("name", both("gzip", "brotli", "zstd", "lz4_raw", "lz4_hadoop"))
def test_levels_matter(name: str) -> None:
    data = CASES["words"]
    for high in {"zstd": (19,), "lz4_raw": (3, 12), "lz4_hadoop": (3, 12)}.get(name.partition("/")[0], (9,)):
        assert len(named(name, high).compress(data)) < len(named(name, 1).compress(data))


# Written by hand from each format's description; plain bytes beside them.
VECTORS = [
    # length 12; literal "abcd"; copy of 8 bytes from 4 back (type 1)
    ("snappy", "0c 0c61626364 1104", b"abcdabcdabcd"),
    # token: 4 literals, match of 4 + 1; offset 4; last sequence of 12 literals
    ("lz4_raw", "41 61626364 0400 c0 6c6d6e6f7071727374757677", b"abcdabcdalmnopqrstuvw"),
    # a raw block of 3 bytes, last, in a single-segment frame that states its length
    ("zstd", "28b52ffd 20 03 190000 616263", b"abc"),
    # stored block in a gzip member (CRC-32 of "abc" is 352441c2)
    ("gzip", "1f8b08000000000000ff 01 0300 fcff 616263 c2412435 03000000", b"abc"),
    # window bits 16, one uncompressed meta-block of 3 bytes, then an empty last one
    ("brotli", "200010 616263 03", b"abc"),
    # Hadoop: a block of 5 bytes in one chunk of 6: token of 5 literals
    ("lz4_hadoop", "00000005 00000006 50 68656c6c6f", b"hello"),
    # Hadoop: a block of 5 bytes in one chunk: 5 literals (17 + 5), end of stream
    ("lzo", "00000005 00000009 16 68656c6c6f 110000", b"hello"),
    # the same without framing, as Drill writes pages
    ("lzo", "16 68656c6c6f 110000", b"hello"),
]


@pytest.mark.parametrize(("name", "stream", "plain"), VECTORS, ids=[vector[0] for vector in VECTORS])
def test_handwritten_streams(name: str, stream: str, plain: bytes) -> None:
    if name == "lzo":
        needs(lzo)
    for implementation in both(name):
        assert decompress(named(implementation), bytes.fromhex(stream), len(plain)) == plain


# ---- gzip


def gzip(data: bytes, wbits: int = 31) -> bytes:
    compressor = zlib.compressobj(wbits=wbits)
    return compressor.compress(data) + compressor.flush()


@pytest.mark.parametrize("name", both("gzip"))
def test_gzip_members_are_read_to_the_last(name: str) -> None:
    codec = named(name)
    parts = [TEXT[:1000], b"", TEXT, b"tail"]
    stream = b"".join(gzip(part) for part in parts)
    assert decompress(codec, stream, sum(map(len, parts))) == b"".join(parts)
    # a first member of no bytes, then one whose trailer states the whole length
    assert decompress(codec, gzip(b"") + gzip(TEXT), len(TEXT)) == TEXT
    assert decompress(codec, gzip(b"ab") * 5000, 10_000) == b"ab" * 5000


@pytest.mark.parametrize("name", both("gzip"))
def test_gzip_reads_zlib_streams(name: str) -> None:
    assert decompress(named(name), gzip(TEXT, wbits=15), len(TEXT)) == TEXT


@pytest.mark.parametrize("name", both("gzip"))
def test_gzip_checks_every_members_checksum_and_end(name: str) -> None:
    codec = named(name)
    first, second = bytearray(gzip(b"one")), gzip(b"two")
    assert decompress(codec, bytes(first) + second, 6) == b"onetwo"
    first[-5] ^= 1
    whole = gzip(b"onetwo")
    ends = (whole[:-8], whole + whole, whole + whole[-8:], whole + whole[5:])
    for broken in (bytes(first) + second, gzip(b"one") + second[:-1], gzip(b"one") + b"garbage", *ends):
        with pytest.raises(FormatError):
            decompress(codec, broken, 6)


@pytest.mark.parametrize("name", both("gzip", "zstd", "brotli"))
def test_a_bomb_is_stopped_at_the_size_of_the_header(name: str) -> None:
    level = {"gzip": 6, "zstd": 1, "brotli": 3}[name.partition("/")[0]]
    stream = bytes(named(name, level).compress(bytes(64 << 20)))
    with pytest.raises(FormatError):
        decompress(named(name), stream, 1000)


# ---- zstd


@pytest.mark.parametrize("name", both("zstd"))
def test_zstd_frames_without_a_length_and_in_number(name: str) -> None:
    codec = named(name)
    streaming = zstandard.ZstdCompressor().compressobj()
    unsized = streaming.compress(TEXT) + streaming.flush()
    assert zstandard.frame_content_size(unsized) == -1
    assert decompress(codec, unsized, len(TEXT)) == TEXT
    sized = bytes(codec.compress(TEXT))
    skippable = struct.pack("<II", 0x184D2A50, 4) + b"skip"
    for stream in (unsized + sized, sized + unsized, skippable + sized + sized, sized + skippable + sized):
        assert decompress(codec, stream, 2 * len(TEXT)) == 2 * TEXT


@pytest.mark.parametrize("name", both("zstd"))
def test_zstd_frame_that_states_too_much_allocates_nothing(name: str) -> None:
    # single segment, 8-byte content size of 2^60
    stream = bytes.fromhex("28b52ffd e0") + (1 << 60).to_bytes(8, "little") + bytes.fromhex("190000616263")
    with pytest.raises(FormatError):
        decompress(named(name), stream, 3)


# ---- the deprecated LZ4


def hadoop(*blocks: list[bytes]) -> bytes:
    """Blocks of chunks, compressed by pyarrow."""
    framed = b""
    for chunks in blocks:
        framed += struct.pack(">I", sum(map(len, chunks)))
        for chunk in chunks:
            compressed = foreign("lz4_raw").compress(chunk).to_pybytes()
            framed += struct.pack(">I", len(compressed)) + compressed
    return framed


@pytest.mark.parametrize("name", both("lz4_hadoop"))
def test_lz4_dialects(name: str) -> None:
    codec = named(name)
    data = TEXT + RANDOM.bytes(1000)
    half = len(data) // 2
    streams = {
        "one block": hadoop([data]),
        "blocks": hadoop([data[:half]], [data[half:]]),
        "chunks": hadoop([data[:half], data[half:]]),
        "both": hadoop([data[:10], data[10:half]], [data[half:]]),
        "ended by an empty block": hadoop([data]) + bytes(4),
        "frame": foreign("lz4").compress(data).to_pybytes(),
        "raw block": foreign("lz4_raw").compress(data).to_pybytes(),
    }
    for dialect, stream in streams.items():
        assert decompress(codec, stream, len(data)) == data, dialect
        for broken in (stream[:-1], stream + b"\1"):
            with pytest.raises(FormatError):
                decompress(codec, broken, len(data))


@pytest.mark.parametrize("name", both("lz4_hadoop"))
def test_lz4_empty_pages(name: str) -> None:
    codec = named(name)
    for stream in (b"", bytes(4), hadoop([b""]), b"\0", foreign("lz4").compress(b"").to_pybytes()):
        assert decompress(codec, stream, 0) == b""


@pytest.mark.parametrize("name", both("lz4_hadoop"))
def test_lz4_is_written_in_hadoop_blocks(name: str) -> None:
    data = CASES["integers"]
    assert len(data) > HADOOP_BLOCK_SIZE
    stream = bytes(named(name).compress(data))
    plain, position = b"", 0
    while position < len(stream):
        block, chunk = struct.unpack_from(">II", stream, position)
        plain += foreign("lz4_raw").decompress(stream[position + 8 : position + 8 + chunk], block).to_pybytes()
        position += 8 + chunk
    assert plain == data


# ---- names, levels, sizes


def test_names() -> None:
    assert codec_for_write(None).number == CompressionCodec.UNCOMPRESSED
    assert codec_for_write("none") is codec_for_write("UNCOMPRESSED")
    assert codec_for_write("lz4").number == CompressionCodec.LZ4_RAW
    assert codec_for_write("LZ4_HADOOP").number == CompressionCodec.LZ4
    assert [codec_for_read(number).name for number in range(8)] == [
        "uncompressed", "snappy", "gzip", "lzo", "brotli", "lz4_hadoop", "zstd", "lz4_raw",
    ]


def test_unknown_codecs() -> None:
    for number in (8, 16, -4, 5000):
        with pytest.raises(UnsupportedError, match=str(number)):
            codec_for_read(number)
    with pytest.raises(SchemaError, match="zstandard"):
        codec_for_write("zstandard")


@pytest.mark.parametrize(
    ("name", "level"),
    [("gzip", 0), ("gzip", 13), ("brotli", -1), ("brotli", 12), ("zstd", 23), ("zstd", -(1 << 18)), ("lz4", 0)],
)
def test_levels_out_of_range(name: str, level: int) -> None:
    with pytest.raises(SchemaError, match=f"level {level} .* outside"):
        codec_for_write(name, level)


@pytest.mark.parametrize("name", ["snappy", "none", None])
def test_levels_where_there_are_none(name: str | None) -> None:
    with pytest.raises(SchemaError, match="no levels"):
        codec_for_write(name, 1)


def test_lzo_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lzo", None)
    with pytest.raises(UnsupportedError, match="python-lzo"):
        codec_for_write("lzo").compress(b"x")
    with pytest.raises(UnsupportedError, match="python-lzo"):
        decompress(codec_for_read(CompressionCodec.LZO), b"x", 1)


def test_densest_streams_are_within_the_bounds() -> None:
    # zstd: RLE blocks of 2^17 bytes (size << 3 | type 1 << 1 | last), window descriptor of 2^17
    blocks = 1000
    rle = ((1 << 17) << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
    last = ((1 << 17) << 3 | 1 << 1 | 1).to_bytes(3, "little") + b"\0"
    dense = bytes.fromhex("28b52ffd 00 38") + rle * (blocks - 1) + last
    size = blocks << 17
    check_claimed_size(CompressionCodec.ZSTD, len(dense), size)
    assert zstandard.ZstdDecompressor().decompress(dense, max_output_size=size) == bytes(size)
    for name in CODECS:
        for level in {"gzip": (12,), "brotli": (11,), "zstd": (19,)}.get(name, (None,)):
            data = bytes(8 << 20) if name != "brotli" else bytes(32 << 20)
            codec = codec_for_write(name, level)
            stream = codec.compress(data)
            check_claimed_size(codec.number, len(stream), len(data))


@pytest.mark.parametrize("name", NAMES)
def test_claims_that_cannot_be_true(name: str) -> None:
    codec = named(name)
    with pytest.raises(ParquetError) as caught:
        check_claimed_size(codec.number, 1000, 1 << 31)
    assert isinstance(caught.value, FormatError if name == "uncompressed" else LimitError)
    for sizes in ((-1, 1), (1, -1)):
        with pytest.raises(FormatError):
            check_claimed_size(codec.number, *sizes)
    check_claimed_size(codec.number, 0, 0)
    with pytest.raises(ParquetError):
        check_claimed_size(codec.number, 0, 1)


@given(st.binary(max_size=300))
@settings(max_examples=50)
def test_crc32(data: bytes) -> None:
    for function in (crc32, crc32_by_package):
        assert function(b"123456789") == 0xCBF43926  # the check value of CRC-32/ISO-HDLC
        assert function(np.frombuffer(data, np.uint8).data) == zlib.crc32(data)
        assert function(data[9:], function(data[:9])) == zlib.crc32(data)


# ---- pages of files from everywhere


def check_page(page: Page) -> bool:
    number = NUMBERS[page.codec]
    if page.crc is not None:
        assert crc32(page.stored) == page.crc
    if not page.compressed or number == CompressionCodec.UNCOMPRESSED:
        return False
    check_claimed_size(number, len(page.body), page.plain_size)
    decompress(codec_for_read(number), page.body, page.plain_size)
    return True


# As pyarrow calls them: LZ4 is LZ4_RAW, and the deprecated one has no name.
NUMBERS = {"UNCOMPRESSED": 0, "SNAPPY": 1, "GZIP": 2, "LZO": 3, "BROTLI": 4, "UNKNOWN": 5, "ZSTD": 6, "LZ4": 7}


@needs_data
def test_pages_of_wild_files() -> None:
    folder = DATA / "wild"
    seen: dict[str, int] = {}
    for entry in json.loads((folder / "manifest.json").read_text()):
        if entry["class"] != "valid" or entry["peers"].get("pyarrow") != "ok":
            continue
        if not any(feature.startswith("codec:") and feature != "codec:UNCOMPRESSED" for feature in entry["features"]):
            continue
        for page in pages(folder / entry["file"]):
            try:
                seen[page.codec] = seen.get(page.codec, 0) + check_page(page)
            except AssertionError as error:
                raise AssertionError(entry["file"]) from error
    assert {"SNAPPY", "GZIP", "BROTLI", "UNKNOWN", "ZSTD", "LZ4"} <= {codec for codec, count in seen.items() if count}


@needs_data
@pytest.mark.parametrize(
    "name",
    ["hadoop_lz4_compressed", "hadoop_lz4_compressed_larger", "non_hadoop_lz4_compressed", "concatenated_gzip_members"],
)
def test_pages_of_reference_files(name: str) -> None:
    found = list(pages(DATA / "parquet-testing" / "data" / f"{name}.parquet"))
    assert found
    for page in found:
        assert check_page(page)
