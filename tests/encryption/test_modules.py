"""The AAD of every module type, against the table of Encryption.md (4.4.2)."""

from __future__ import annotations

import struct

import pytest

from fastpq.encryption.modules import ModuleType, module_aad
from fastpq.errors import CryptoError

# module type: number, and how many of (row group, column, page) its AAD holds; copied from the specification by hand
TABLE = {
    "FOOTER": (0, 0),
    "COLUMN_METADATA": (1, 2),
    "DATA_PAGE": (2, 3),
    "DICTIONARY_PAGE": (3, 2),
    "DATA_PAGE_HEADER": (4, 3),
    "DICTIONARY_PAGE_HEADER": (5, 2),
    "COLUMN_INDEX": (6, 2),
    "OFFSET_INDEX": (7, 2),
    "BLOOM_FILTER_HEADER": (8, 2),
    "BLOOM_FILTER_BITSET": (9, 2),
}


def test_the_numbers_are_those_of_the_specification() -> None:
    assert {module.name: int(module) for module in ModuleType} == {name: number for name, (number, _) in TABLE.items()}


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("file_aad", [b"", b"\0\1\2\3\4\5\6\7", b"employees_23May2018.part0" + b"\xff" * 8])
@pytest.mark.parametrize("ordinals", [(0, 0, 0), (1, 2, 3), (0x1234, 0x7FFF, 0x0100), (32767, 32767, 32767)])
def test_aad(name: str, file_aad: bytes, ordinals: tuple[int, int, int]) -> None:
    number, count = TABLE[name]
    expected = file_aad + bytes([number]) + struct.pack(f"<{count}h", *ordinals[:count])
    assert module_aad(file_aad, ModuleType[name], *ordinals) == expected


def test_an_aad_byte_for_byte() -> None:
    assert module_aad(b"ab", ModuleType.DATA_PAGE_HEADER, 258, 3, 32767).hex() == "6162" "04" "0201" "0300" "ff7f"


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("position", range(3))
@pytest.mark.parametrize("ordinal", [-1, -32768, 32768, 65536, 1 << 32])
def test_ordinals_that_an_aad_cannot_hold(name: str, position: int, ordinal: int) -> None:
    ordinals = [0, 0, 0]
    ordinals[position] = ordinal
    if position < TABLE[name][1]:
        with pytest.raises(CryptoError, match=str(ordinal)):
            module_aad(b"file", ModuleType[name], *ordinals)
    else:
        assert module_aad(b"file", ModuleType[name], *ordinals)


@pytest.mark.parametrize("module", [-1, 10, 255])
def test_no_module_type(module: int) -> None:
    with pytest.raises(CryptoError, match="not a module type"):
        module_aad(b"file", module, 0, 0, 0)
