"""NIST's known answers for AES-GCM (CAVP), as the package cryptography-vectors ships them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import cryptography_vectors

NONCE_BITS = "96"
TAG_BITS = "128"


@dataclass(frozen=True, slots=True)
class KnownAnswer:
    """One case; plain is None where decryption must fail."""

    key: bytes
    nonce: bytes
    aad: bytes
    plain: bytes | None
    sealed: bytes


def known_answers(file: str) -> list[KnownAnswer]:
    """The cases of one file that have nonces and tags of the sizes that Parquet uses.

    Args:
        file: such as ``gcmDecrypt128.rsp``.
    """
    return [
        KnownAnswer(
            bytes.fromhex(case["Key"]),
            bytes.fromhex(case["IV"]),
            bytes.fromhex(case["AAD"]),
            None if "FAIL" in case else bytes.fromhex(case["PT"]),
            bytes.fromhex(case["CT"] + case["Tag"]),
        )
        for case in _cases(file)
        if case["IVlen"] == NONCE_BITS and case["Taglen"] == TAG_BITS
    ]


def _cases(file: str) -> Iterator[dict[str, str]]:
    section: dict[str, str] = {}
    case: dict[str, str] = {}
    with cryptography_vectors.open_vector_file(f"ciphers/AES/GCM/{file}", "r") as lines:
        for line in map(str.strip, lines):
            name, _, value = line.strip("[]").partition(" =")
            if line.startswith("#"):
                continue
            if line.startswith("["):
                section[name] = value.strip()
            elif line:
                case[name] = value.strip()
            elif case:
                yield section | case
                case = {}
    if case:
        yield section | case


def flipped(data: bytes, index: int) -> bytes:
    """The bytes with one bit of one of them changed."""
    changed: Any = bytearray(data)
    changed[index] ^= 1 << index % 8
    return bytes(changed)
