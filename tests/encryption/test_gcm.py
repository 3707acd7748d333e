"""Stored modules against AES-GCM of the package cryptography and the AAD by hand."""

from __future__ import annotations

import os
import struct
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from fastpq.encryption import AesKey
from fastpq.encryption.cipher import ModuleCipher
from fastpq.encryption.gcm import GcmModuleCipher
from fastpq.encryption.modules import ModuleType
from fastpq.errors import CryptoError, FormatError, LimitError, TagVerificationError
from tests.encryption.vectors import flipped

KEY = bytes(range(32))
FILE_AAD = b"prefix" + bytes(range(8))
SIZES = [0, 1, 16, 100, 4095, 4096, 8192, 16384, 70_000, 1 << 20]
PAGE_MODULES = (ModuleType.DATA_PAGE, ModuleType.DATA_PAGE_HEADER)


def cipher(row_group: int = 3, column: int = 5) -> GcmModuleCipher:
    return GcmModuleCipher(AesKey(KEY), FILE_AAD, row_group, column)


def aad_by_hand(module: ModuleType, page: int) -> bytes:
    ordinals = [] if module == ModuleType.FOOTER else [3, 5]
    if module in PAGE_MODULES:
        ordinals.append(page)
    return FILE_AAD + struct.pack(f"<B{len(ordinals)}h", module, *ordinals)


def stored_by_hand(module: ModuleType, page: int, plain: bytes) -> bytes:
    nonce = os.urandom(12)
    sealed = AESGCM(KEY).encrypt(nonce, plain, aad_by_hand(module, page))
    return struct.pack("<I", 12 + len(sealed)) + nonce + sealed


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("module", ModuleType)
def test_a_stranger_opens_what_is_sealed(module: ModuleType, size: int) -> None:
    plain = os.urandom(size)
    stored = cipher().seal(module, 7, plain)
    assert len(stored) == size + cipher().overhead == size + 32
    assert struct.unpack("<I", stored[:4]) == (size + 28,)
    assert AESGCM(KEY).decrypt(stored[4:16], stored[16:], aad_by_hand(module, 7)) == plain


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("module", ModuleType)
def test_what_a_stranger_sealed_is_opened(module: ModuleType, size: int) -> None:
    plain = os.urandom(size)
    stored = stored_by_hand(module, 7, plain)
    assert cipher().open(module, 7, stored) == plain
    assert cipher().open_first(module, 7, stored) == (plain, len(stored))
    assert cipher().open_first(module, 7, stored + b"what follows") == (plain, len(stored))


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda plain: np.frombuffer(plain, np.uint8)])
def test_any_buffer_is_sealed_and_opened(kind: type) -> None:
    stored = cipher().seal(ModuleType.DATA_PAGE, 0, kind(b"plain text"))
    assert cipher().open(ModuleType.DATA_PAGE, 0, kind(stored)) == b"plain text"
    values: Any = np.arange(1000)
    assert cipher().open(ModuleType.DATA_PAGE, 0, cipher().seal(ModuleType.DATA_PAGE, 0, values)) == values.tobytes()


@pytest.mark.parametrize("size", [0, 20, 40_000])
def test_every_part_of_a_module_is_authenticated(size: int) -> None:
    stored = stored_by_hand(ModuleType.DATA_PAGE, 7, bytes(size))
    opener = cipher()
    for index in {*range(4, 36), *range(len(stored) - 16, len(stored)), len(stored) // 2} - set(range(4)):
        if index < len(stored):
            with pytest.raises(TagVerificationError):
                opener.open(ModuleType.DATA_PAGE, 7, flipped(stored, index))
    assert opener.open(ModuleType.DATA_PAGE, 7, stored) == bytes(size)


@pytest.mark.parametrize("size", [20, 40_000])
@pytest.mark.parametrize(
    ("other", "module", "page"),
    [
        (GcmModuleCipher(AesKey(KEY), FILE_AAD, 4, 5), ModuleType.DATA_PAGE, 7),
        (GcmModuleCipher(AesKey(KEY), FILE_AAD, 3, 6), ModuleType.DATA_PAGE, 7),
        (GcmModuleCipher(AesKey(KEY), FILE_AAD, 3, 5), ModuleType.DATA_PAGE, 8),
        (GcmModuleCipher(AesKey(KEY), FILE_AAD, 3, 5), ModuleType.DATA_PAGE_HEADER, 7),
        (GcmModuleCipher(AesKey(KEY), FILE_AAD, 3, 5), ModuleType.DICTIONARY_PAGE, 7),
        (GcmModuleCipher(AesKey(KEY), FILE_AAD[:-1], 3, 5), ModuleType.DATA_PAGE, 7),
        (GcmModuleCipher(AesKey(KEY), b"", 3, 5), ModuleType.DATA_PAGE, 7),
        (GcmModuleCipher(AesKey(KEY[:16]), FILE_AAD, 3, 5), ModuleType.DATA_PAGE, 7),
        (GcmModuleCipher(AesKey(KEY[::-1]), FILE_AAD, 3, 5), ModuleType.DATA_PAGE, 7),
    ],
    ids=["row group", "column", "page", "header", "dictionary", "file", "no file", "key size", "key"],
)
def test_a_module_in_another_place_is_refused(other: GcmModuleCipher, module: ModuleType, page: int, size: int) -> None:
    stored = stored_by_hand(ModuleType.DATA_PAGE, 7, bytes(size))
    with pytest.raises(TagVerificationError):
        other.open(module, page, stored)
    with pytest.raises(TagVerificationError):
        other.open_first(module, page, stored)


@pytest.mark.parametrize("size", [0, 1, 20, 40_000, 1 << 20])
def test_nothing_of_a_refused_module_is_released(size: int) -> None:
    plain = b"\x55" * size
    stored = stored_by_hand(ModuleType.DATA_PAGE, 7, plain)
    out = bytearray(b"\xff" * (len(stored) + 8))
    assert cipher().open_to(ModuleType.DATA_PAGE, 7, stored, out) == size
    assert out == plain + b"\xff" * 40
    for changed in {4, len(stored) // 2, len(stored) - 1}:
        out[:size] = b"\xff" * size
        with pytest.raises(TagVerificationError):
            cipher().open_to(ModuleType.DATA_PAGE, 7, flipped(stored, changed), out)
        assert out == bytes(size) + b"\xff" * 40
    with pytest.raises(ValueError, match="bytes, but the stored module has"):
        cipher().open_to(ModuleType.DATA_PAGE, 7, stored, bytearray(len(stored) - 1))


def test_a_refusal_names_the_module_and_nothing_else() -> None:
    plain = b"a very secret value"
    stored = flipped(stored_by_hand(ModuleType.DATA_PAGE, 7, plain), 20)
    named = GcmModuleCipher(AesKey(KEY), FILE_AAD, 3, 5, "group.leaf")
    for opener, column in ((cipher(), "5"), (named, "group.leaf")):
        with pytest.raises(TagVerificationError) as raised:
            opener.open(ModuleType.DATA_PAGE, 7, stored)
        message = str(raised.value)
        assert message.endswith(f"[row group 3, column {column}, page 7, module DATA_PAGE]")
        assert not any(secret in message for secret in (plain.decode(), plain.hex(), KEY.hex()))
        assert raised.value.__cause__ is raised.value.__context__ is None
    footer = stored_by_hand(ModuleType.COLUMN_METADATA, 0, plain)
    with pytest.raises(TagVerificationError) as raised:
        cipher().open(ModuleType.FOOTER, -1, footer)
    assert raised.value.context == {"module": "FOOTER"}


@pytest.mark.parametrize("size", [0, 1, 4, 16, 31])
def test_bytes_that_are_too_few_for_a_module(size: int) -> None:
    for opening in (cipher().open, cipher().open_first):
        honest = struct.pack("<I", size - 4 & 0xFFFFFFFF)[:size] + bytes(max(0, size - 4))
        for data in (bytes(size), b"\xff" * size, honest):
            with pytest.raises(FormatError, match="encrypted module"):
                opening(ModuleType.DATA_PAGE, 0, data)


@pytest.mark.parametrize("length", [0, 12, 27, 28, 47, 49, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFC, 0xFFFFFFFF])
def test_a_length_field_that_is_not_the_module_s(length: int) -> None:
    stored = bytearray(stored_by_hand(ModuleType.DATA_PAGE, 7, bytes(20)))
    assert len(stored) - 4 == 48
    stored[:4] = struct.pack("<I", length)
    with pytest.raises(FormatError):
        cipher().open(ModuleType.DATA_PAGE, 7, bytes(stored))
    kind = TagVerificationError if length in (28, 47) else FormatError
    with pytest.raises(kind):
        cipher().open_first(ModuleType.DATA_PAGE, 7, bytes(stored))


def test_a_cut_off_module_is_refused() -> None:
    stored = stored_by_hand(ModuleType.DATA_PAGE, 7, bytes(100))
    for size in range(len(stored)):
        with pytest.raises(FormatError):
            cipher().open(ModuleType.DATA_PAGE, 7, stored[:size])
        with pytest.raises(FormatError):
            cipher().open_first(ModuleType.DATA_PAGE, 7, stored[:size])


@pytest.mark.parametrize("page", [-1, 32768, 40_000])
def test_page_ordinals_that_do_not_exist(page: int) -> None:
    stored = stored_by_hand(ModuleType.DATA_PAGE, 0, b"text")
    for module in PAGE_MODULES:
        with pytest.raises(CryptoError, match=f"page ordinal {page}"):
            cipher().seal(module, page, b"text")
        with pytest.raises(CryptoError, match=f"page ordinal {page}"):
            cipher().open(module, page, stored)
    assert cipher().seal(ModuleType.DATA_PAGE, 32767, b"text")
    assert cipher().seal(ModuleType.DICTIONARY_PAGE, page, b"text")


@pytest.mark.parametrize(("row_group", "column"), [(-1, 0), (0, -1), (32768, 0), (0, 32768), (1 << 70, 0)])
def test_chunk_ordinals_that_do_not_exist(row_group: int, column: int) -> None:
    with pytest.raises(CryptoError, match="ordinal"):
        GcmModuleCipher(AesKey(KEY), FILE_AAD, row_group, column)


def test_a_cipher_survives_its_refusals() -> None:
    used = cipher()
    stored = used.seal(ModuleType.DATA_PAGE, 7, b"text")
    with pytest.raises(CryptoError):
        used.seal(ModuleType.DATA_PAGE, 40_000, b"text")
    with pytest.raises(TagVerificationError):
        used.open(ModuleType.DATA_PAGE, 8, stored)
    with pytest.raises(BufferError):
        used.seal(ModuleType.DATA_PAGE, 7, memoryview(b"not contiguous")[::2])
    assert used.open(ModuleType.DATA_PAGE, 7, stored) == b"text"


def test_a_file_aad_is_bounded() -> None:
    GcmModuleCipher(AesKey(KEY), bytes(1 << 16))
    with pytest.raises(LimitError, match="65537"):
        GcmModuleCipher(AesKey(KEY), bytes((1 << 16) + 1))


@pytest.mark.parametrize("plain", [b"", b"text"])
def test_the_null_cipher_stores_a_module_as_it_is(plain: bytes) -> None:
    null = ModuleCipher()
    assert null.overhead == 0
    assert null.seal(ModuleType.DATA_PAGE, 40_000, plain) is plain
    assert null.open(ModuleType.DATA_PAGE, 40_000, plain) == plain
    assert null.open_first(ModuleType.DATA_PAGE, 40_000, plain) == (plain, -1)
    out = bytearray(8)
    assert null.open_to(ModuleType.DATA_PAGE, 40_000, plain, out) == len(plain)
    assert out.startswith(plain)


@pytest.mark.parametrize("size", [1, 1000, 100_000])
def test_signatures(size: int) -> None:
    footer, nonce = os.urandom(size), os.urandom(12)
    tag = AESGCM(KEY).encrypt(nonce, footer, FILE_AAD + b"\0")[-16:]
    verifier = GcmModuleCipher(AesKey(KEY), FILE_AAD)
    verifier.verify_signature(footer, nonce + tag)
    for index in range(28):
        with pytest.raises(TagVerificationError, match="signature"):
            verifier.verify_signature(footer, flipped(nonce + tag, index))
    with pytest.raises(TagVerificationError, match="signature"):
        verifier.verify_signature(flipped(footer, size // 2), nonce + tag)
    with pytest.raises(TagVerificationError, match="signature"):
        GcmModuleCipher(AesKey(KEY), b"").verify_signature(footer, nonce + tag)
    for signature in (b"", nonce + tag[:-1], nonce + tag + b"\0"):
        with pytest.raises(FormatError, match="28"):
            verifier.verify_signature(footer, signature)
    with pytest.raises(FormatError):
        verifier.verify_signature(b"", nonce + tag)
