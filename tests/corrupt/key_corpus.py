"""Key metadata, material files and keyrings, mutated as JSON: they give the original's keys, or a typed error."""

from __future__ import annotations

import functools
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

import fastpq
from fastpq.encryption import AesKey, CryptoFactory, EncryptionConfiguration, Keyring, KmsClient, KmsConnectionConfig
from fastpq.encryption.keys.material import parse_key_material, parse_material_file
from fastpq.encryption.keys.secret import open_key, seal_key
from tests.corrupt.mutate import Sample, flip, grow, overwrite, splice, truncate
from tests.corrupt.paths import WrongValueError

PASSPHRASE = "passphrase"
MASTER_KEY = bytes(range(16))
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1 << 70, 1.5, "", "a", "\0", "é\ud800", "A" * 70_000, [], {}, [[]], {"a": "b"},
)
KEYRING, WRAPPED = "keyring.json", "wrapped.txt"
WHAT = b"sealed by the original key"


class Service(KmsClient):
    """A key service with one master key."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        nonce = os.urandom(12)
        return (nonce + AESGCM(MASTER_KEY).encrypt(nonce, key_bytes, master_key_identifier.encode())).hex()

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        sealed = bytes.fromhex(wrapped_key)
        return AESGCM(MASTER_KEY).decrypt(sealed[:12], sealed[12:], master_key_identifier.encode())


def factory() -> CryptoFactory:
    return CryptoFactory(lambda config: Service())


def store_keys(folder: Path) -> None:
    """Write key metadata, a material file and a keyring to a new folder."""
    for double in (False, True):
        configuration = EncryptionConfiguration("footer", column_keys={"column": ["a"]}, double_wrapping=double)
        given = factory().file_encryption_properties(KmsConnectionConfig(), configuration)
        column = given.column(("a",))
        assert given.footer_key_metadata is not None
        assert column is not None
        assert column.key_metadata is not None
        (folder / f"metadata-footer-{double}.json").write_bytes(given.footer_key_metadata)
        (folder / f"metadata-column-{double}.json").write_bytes(column.key_metadata)
    entries = {path.stem: path.read_text() for path in sorted(folder.glob("metadata-*.json"))}
    (folder / "material.json").write_text(json.dumps(entries))
    ring = Keyring.create(folder / KEYRING, PASSPHRASE, scrypt_log_n=10)
    ring.create_key("first")
    ring.create_key("second", 128)
    ring.rotate_key("first")
    (folder / WRAPPED).write_text(ring.wrap_key(MASTER_KEY, "first"))


def key_samples(folder: Path) -> list[Sample]:
    """Key metadata, each with the seal that its key opens, and the material file."""
    made = [Sample(path.name, path.read_bytes(), ()) for path in sorted(folder.glob("metadata-*.json"))]
    return [*made, Sample("material.json", (folder / "material.json").read_bytes(), ())]


def keyring_samples(folder: Path) -> list[Sample]:
    ring, wrapped = (folder / KEYRING).read_bytes(), (folder / WRAPPED).read_text()
    return [Sample(wrapped, ring, ())]


class Document:
    """A mutated document.

    Attributes:
        data: the text.
        original: the sample.
    """

    def __init__(self, data: bytes, original: Sample) -> None:
        self.data, self.original = data, original


def mutate_json(samples: Sequence[Sample], seed: int, number: int) -> tuple[str, Document]:
    """The mutation with this number: of members, or of bytes."""
    random = Random(f"{seed}:{number}")
    given = random.choice(samples)
    data, name = given.data, "member"
    if random.random() < 0.6:
        content = json.loads(data)
        alter(content, random)
        data = json.dumps(content).encode()
    else:
        mutation = random.choice((flip, overwrite, grow, splice, truncate))
        data, name = mutation(given, random), mutation.__name__
    return f"{given.name}: {name}", Document(data, given)


def alter(content: dict[str, Any], random: Random) -> None:
    """Give a member, or a member of an inner object or of a text that is an object, another value."""
    name = random.choice(list(content))
    inner = content[name]
    choice = random.randrange(8)
    if isinstance(inner, dict) and inner and choice < 6:
        alter(inner, random)
    elif isinstance(inner, str) and inner.startswith("{") and choice < 6:
        parsed = json.loads(inner)
        alter(parsed, random)
        content[name] = json.dumps(parsed)
    elif isinstance(inner, str) and choice < 3 and inner:
        place = random.randrange(len(inner))
        content[name] = inner[:place] + random.choice("Aa0+/=\0é\"{") + inner[place + random.randrange(2) :]
    elif choice == 3:
        del content[name]
    elif choice == 4:
        content[name + random.choice(("", "x"))] = content[random.choice(list(content))]
    else:
        content[name] = random.choice(VALUES)


@functools.cache
def _retriever() -> tuple[Any, dict[bytes, bytes]]:
    """What finds keys for key metadata, and what the keys of originals have sealed."""
    properties = factory().file_decryption_properties(KmsConnectionConfig())
    return properties.key_retriever, {}


def key_material(document: Document, index: int) -> None:
    """Key metadata gives the original's key or a typed error; a material file is parsed, entry by entry."""
    if document.original.name == "material.json":
        for text in parse_material_file(document.data).values():
            parse_key_material(text)
        return
    retrieve, seals = _retriever()
    original = document.original.data
    if original not in seals:
        seals[original] = seal_key(retrieve(original), AesKey(MASTER_KEY), WHAT)
    found = factory().file_decryption_properties(KmsConnectionConfig()).key_retriever
    assert found is not None
    key = found(document.data)
    assert isinstance(key, AesKey)
    try:
        open_key(key, seals[original], WHAT)
    except fastpq.ParquetError as error:
        raise WrongValueError("another key than the original's") from error


@functools.cache
def _place() -> str:
    return tempfile.mkstemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)[1]


def keyring(document: Document, index: int) -> None:
    """A keyring opens with the original's keys, or gives a typed error."""
    path = Path(_place())
    path.write_bytes(document.data)
    ring = Keyring(path, PASSPHRASE)
    if ring.key_ids != ["first", "second"] or ring.unwrap_key(document.original.name, "first") != MASTER_KEY:
        raise WrongValueError("a keyring with other keys")
