"""Every byte of a small file of each mode is altered: a typed error, or unchanged values. What cannot be noticed is named."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastpq
from fastpq import format as fmt
from fastpq.encryption.modules import ModuleType
from fastpq.encryption.properties import ALGORITHMS
from tests.encryption.module_walk import open_file
from tests.interop.parquet_java import ParquetJava, explicit_keys

FOOTER_KEY, COLUMN_KEY = b"the footer's key", b"the column's key, of twenty-four"[:24]
LENGTH_SIZE, FRAME = 4, 8       # of a module; of what stands behind the footer
COLUMNS: dict[str, Any] = {
    "price": np.ma.masked_array(np.arange(6) / 4, mask=np.arange(6) % 3 == 0),
    "name": np.array([f"name {row % 2}" for row in range(6)], dtype=object),
}
MODES: dict[str, dict[str, Any]] = {
    "uniform": {},
    "by column": {"column_keys": {"price": COLUMN_KEY}},
    "signed footer": {"plaintext_footer": True},
    "signed footer, by column": {
        "plaintext_footer": True,
        "column_keys": {"price": COLUMN_KEY, "name": FOOTER_KEY},
        "unlisted": "footer_key",
    },
    "CTR": {"algorithm": "AES_GCM_CTR_V1"},
    "CTR, signed footer": {"algorithm": "AES_GCM_CTR_V1", "plaintext_footer": True},
    "prefix": {"aad_prefix": b"file 7", "footer_key_metadata": b"id"},
}
V2: dict[str, Any] = {"data_page_version": "2.0"}
Outcome = type[fastpq.ParquetError] | bool | None
NO_CRC: dict[str, Any] = {"write_page_checksum": False}


def written(mode: str, v2_layout: Any = "arrow", **options: Any) -> bytes:
    """A file of two row groups, with a dictionary, two pages in one chunk, page indexes and a bloom filter."""
    out = io.BytesIO()
    keys = fastpq.FileEncryptionProperties(FOOTER_KEY, v2_layout=v2_layout, **MODES[mode])
    usual: dict[str, Any] = {"row_group_size": 4, "data_page_rows": 2, "compression": "none", "bloom_filter": {"price": True}}
    fastpq.write_table(COLUMNS, out, use_dictionary=["name"], encryption_properties=keys, **usual | options)
    return out.getvalue()


def decryption(mode: str) -> fastpq.FileDecryptionProperties:
    """With column keys for all columns that may have one, and the strictest policies under which the file is read."""
    return fastpq.FileDecryptionProperties(
        FOOTER_KEY,
        MODES[mode].get("column_keys"),
        aad_prefix=MODES[mode].get("aad_prefix"),
        allowed_algorithms=[MODES[mode].get("algorithm", "AES_GCM_V1")],
    )


def contents(data: bytes, keys: fastpq.FileDecryptionProperties, filters: Any = None) -> Any:
    """All that a reader sees: names, values, bounds of chunks, page indexes and bloom filters."""
    with fastpq.ParquetFile(data, decryption_properties=keys, threads=1) as file:
        table = file.read(filters=filters)
        if filters is None:
            use_indexes(file)
        columns = [
            file.metadata.row_group(group).column(column)
            for group in range(file.metadata.num_row_groups)
            for column in range(file.metadata.num_columns)
        ]
        values = {column.name: table[column.name].to_pylist() for column in file.schema.columns}
        return values, file.metadata.num_rows, [column.statistics for column in columns]


def outcomes(data: bytes, read: Any, mask: int | None = None) -> list[Outcome]:
    """For each byte, what reading the file raises when one of its bits (or those of mask) is flipped: None where all is
    as it was, True where it is not and nothing was raised."""
    truth = read(data)
    found: list[Outcome] = []
    messages = []
    altered = bytearray(data)
    for place in range(len(data)):
        altered[place] ^= mask or 1 << place % 8
        try:
            found.append(None if read(bytes(altered)) == truth else True)
        except fastpq.ParquetError as error:
            found.append(type(error))
            messages.append(str(error))
        altered[place] = data[place]
    assert bytes(altered) == data
    assert not any(FOOTER_KEY.decode() in message or FOOTER_KEY.hex() in message for message in messages)
    return found


def footer_start(data: bytes) -> int:
    return len(data) - FRAME - int.from_bytes(data[-FRAME : -FRAME + 4], "little")


GCM_CASES: list[tuple[str, dict[str, Any]]] = [
    *((mode, {}) for mode in MODES if not mode.startswith("CTR")),
    ("uniform", V2),
    ("by column", NO_CRC),
]


@pytest.mark.parametrize(("mode", "pages"), GCM_CASES, ids=str)
def test_every_byte_under_gcm(mode: str, pages: dict[str, Any]) -> None:
    data, keys = written(mode, **pages), decryption(mode)
    found = outcomes(data, lambda altered: contents(altered, keys))
    assert True not in found
    assert set(found[:4]) == {fastpq.FormatError}
    chunks = found[4 : footer_start(data)]
    modules = open_file(data, keys).walk()
    assert None not in chunks
    framing = [error for error in chunks if error is not fastpq.TagVerificationError]
    assert len(framing) <= LENGTH_SIZE * modules            # lengths say where a module ends, before it is opened
    assert set(framing) <= {fastpq.FormatError}
    assert found[footer_start(data) :].count(None) <= 12    # FileCryptoMetaData may have bytes that nothing depends on


@pytest.mark.parametrize("mode", [name for name in MODES if name.startswith("CTR")])
def test_every_byte_under_ctr(mode: str) -> None:
    """Page bodies are the documented exception: altered ciphertext becomes other values. Nothing else does."""
    data, keys = written(mode, **NO_CRC), decryption(mode)
    found = outcomes(data, lambda altered: contents(altered, keys))
    wrong = [place for place, outcome in enumerate(found) if outcome is True]
    assert wrong
    assert wrong[-1] < footer_start(data)
    bodies = [place for start, stop in page_bodies(data, keys) for place in range(start + LENGTH_SIZE, stop)]
    assert set(wrong) <= set(bodies)
    checked = written(mode)         # a CRC-32 inside the encrypted page header notices accidents, though not intent
    assert True not in outcomes(checked, lambda altered: contents(altered, keys))


def page_bodies(data: bytes, keys: fastpq.FileDecryptionProperties) -> list[tuple[int, int]]:
    """Where the bodies of all pages begin and end."""
    file, spans = open_file(data, keys), []
    for index, group in enumerate(file.metadata.row_groups):
        for column, chunk in enumerate(group.columns):
            metadata = file.decryptor.column_metadata(chunk, index, column)
            cipher = file.decryptor.chunk_cipher(chunk, index, column)
            dictionary = metadata.dictionary_page_offset is not None
            position = metadata.dictionary_page_offset or metadata.data_page_offset
            end, page = position + metadata.total_compressed_size, 0
            while position < end:
                kind = ModuleType.DICTIONARY_PAGE_HEADER if dictionary else ModuleType.DATA_PAGE_HEADER
                plain, size = cipher.open_first(kind, page, data[position:end])
                header, _ = fmt.decode(fmt.PageHeader, plain)
                spans.append((position + size, position + size + header.compressed_page_size))
                position, page, dictionary = spans[-1][1], page + (not dictionary), False
    return spans


def test_levels_that_parquet_java_s_layout_leaves_in_the_clear() -> None:
    """No tag covers them, but the CRC-32 in the encrypted header does, for what is no more than an accident."""
    data = written("uniform", v2_layout="parquet-java", **V2)
    keys = decryption("uniform")
    found = outcomes(data, lambda altered: contents(altered, keys))
    assert True not in found
    unchecked = written("uniform", v2_layout="parquet-java", **V2, **NO_CRC)
    assert outcomes(unchecked, lambda altered: contents(altered, keys), 0b11).count(True) > 0      # a null changes places
    default = written("uniform", **V2, **NO_CRC)
    assert True not in outcomes(default, lambda altered: contents(altered, keys), 0b11)


@pytest.mark.parametrize("column_keys", [{}, {"id": COLUMN_KEY, "name": COLUMN_KEY}], ids=["uniform", "by column"])
def test_every_byte_of_a_file_with_indexes(parquet_java: ParquetJava, tmp_path: Path, column_keys: dict[str, bytes]) -> None:
    """parquet-java's, read with a filter that goes through column and offset indexes."""
    path = tmp_path / "java.parquet"
    explicit_keys(parquet_java, "write", path, FOOTER_KEY, column_keys, "3")
    data = path.read_bytes()
    keys = fastpq.FileDecryptionProperties(FOOTER_KEY, column_keys)
    plain = set(range(0, 4))
    if column_keys:     # price is not encrypted there, and nothing protects it
        with fastpq.ParquetFile(data, decryption_properties=keys) as file:
            start, size = file.metadata.row_group(0).column(1).byte_range
            plain |= set(range(start, start + size))
            chunk = file.metadata.row_group(0).column(1).chunk
            for part in ("column_index", "offset_index"):
                start = getattr(chunk, f"{part}_offset")
                plain |= set(range(start, start + getattr(chunk, f"{part}_length")))
    found = outcomes(data, lambda altered: contents(altered, keys, [("id", ">=", 0), ("name", "!=", "x")]))
    for place, outcome in enumerate(found[: footer_start(data)]):
        assert place in plain or isinstance(outcome, type) or outcome is None
        if place not in plain and outcome is None:      # modules that the reader had no need of
            with fastpq.ParquetFile(flipped(data, place), decryption_properties=keys) as file, pytest.raises(fastpq.ParquetError):
                use_indexes(file)
    assert True not in found[footer_start(data) :]


def use_indexes(file: fastpq.ParquetFile) -> None:
    for group in range(file.num_row_groups):
        for column in range(file.metadata.num_columns):
            file.offset_index(group, column)
            file.column_index(group, column)
            file.bloom_filter(group, column)


def flipped(data: bytes, place: int) -> bytes:
    altered = bytearray(data)
    altered[place] ^= 1 << place % 8
    return bytes(altered)


def test_all_algorithms_are_here() -> None:
    assert {mode.get("algorithm", "AES_GCM_V1") for mode in MODES.values()} == set(ALGORITHMS)
