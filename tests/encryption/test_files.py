"""Whole files through the encryption layer alone: those of other producers, those of attackers, and ours before pyarrow
and Polars."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import fastpq
from fastpq import format as fmt
from fastpq.encryption import ColumnEncryptionProperties, FileDecryptionProperties, FileEncryptionProperties
from fastpq.encryption.decryptor_choice import open_file_decryptor
from fastpq.encryption.properties import ALGORITHMS, Algorithm
from fastpq.errors import CryptoError, FormatError, KeyAccessError, ParquetError, TagVerificationError
from tests.encryption.module_walk import OpenFile, encrypt_file, open_file
from tests.narrowing import present
from tests.requirements import DATA, needs_data

FOOTER_KEYS = {128: b"the footer's key", 192: b"the footer's key, longer", 256: b"the footer's key, of 32 bytes..."}
FOOTER_KEY = FOOTER_KEYS[128]
PRICE_KEY = b"the price's  key"
NAME_KEY = b"the name's key, of 32 bytes....."
COLUMN_KEYS = {"price": PRICE_KEY, "name": NAME_KEY}
WRONG_KEY = b"some other's key"


def manifest(folder: str) -> list[dict[str, Any]]:
    path = DATA / "encryption" / folder / "manifest.json"
    entries = json.loads(path.read_text()) if path.exists() else []
    return entries["files"] if isinstance(entries, dict) else entries


def read_entry(folder: str, entry: dict[str, Any], properties: FileDecryptionProperties) -> OpenFile:
    return open_file((DATA / "encryption" / folder / entry["file"]).read_bytes(), properties)


@needs_data
@pytest.mark.parametrize("entry", manifest("fixtures"), ids=lambda entry: entry["name"])
def test_every_module_of_other_producers_opens(entry: dict[str, Any]) -> None:
    prefix = entry["aad_prefix"].encode() if entry["aad_prefix"] else None
    columns = {path: bytes.fromhex(key) for path, key in entry["keys"]["columns"].items()}
    properties = FileDecryptionProperties(
        bytes.fromhex(entry["keys"]["footer"]),
        columns,
        aad_prefix=prefix,
        allowed_algorithms=ALGORITHMS,
        allow_duckdb_dialect=entry.get("duckdb_dialect", False),
    )
    file = read_entry("fixtures", entry, properties)
    assert file.walk() > 0
    truth = pq.read_metadata(DATA / f"encryption/fixtures/expected_{entry['table']}.parquet")
    assert file.metadata.num_rows == truth.num_rows


def table() -> pa.Table:
    rows = range(3000)
    return pa.table(
        {
            "id": pa.array(rows, pa.int64()),
            "price": pa.array([None if row % 3 == 0 else row / 4 for row in rows], pa.float64()),
            "name": pa.array([f"name {row % 7}" for row in rows]),
            "note": pa.array(["" if row % 2 else "some text " * 10 for row in rows]),
        }
    )


@pytest.fixture(scope="module")
def plain() -> bytes:
    out = io.BytesIO()
    sizes = {"row_group_size": 1000, "data_page_size": 2000, "write_batch_size": 64}
    pq.write_table(table(), out, use_dictionary=["price", "name"], **sizes)
    return out.getvalue()


def test_a_plaintext_file_goes_the_same_road(plain: bytes) -> None:
    assert pq.read_table(io.BytesIO(encrypt_file(plain, None))).equals(table())
    assert open_file(plain, None).walk() == 0


@pytest.mark.parametrize(
    ("prefix", "stored"), [(None, True), (b"employees_23May2018.part0", True), (b"employees_23May2018.part0", False)]
)
@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("bits", FOOTER_KEYS)
def test_pyarrow_reads_what_is_sealed(
    plain: bytes, bits: int, algorithm: Algorithm, plaintext_footer: bool, stored: bool, prefix: bytes | None
) -> None:
    keys = FileEncryptionProperties(
        FOOTER_KEYS[bits],
        algorithm=algorithm,
        plaintext_footer=plaintext_footer,
        aad_prefix=prefix,
        store_aad_prefix=stored,
    )
    data = encrypt_file(plain, keys)
    properties = pe.create_decryption_properties(FOOTER_KEYS[bits], aad_prefix=prefix)
    assert pq.read_table(io.BytesIO(data), decryption_properties=properties).equals(table())
    ours = FileDecryptionProperties(FOOTER_KEYS[bits], aad_prefix=prefix, allowed_algorithms=[algorithm])
    assert open_file(data, ours).walk() > 100


@pytest.mark.parametrize("unlisted", ["plaintext", "footer_key"])
def test_polars_reads_what_is_sealed(plain: bytes, unlisted: Any) -> None:
    keys = FileEncryptionProperties(FOOTER_KEY, COLUMN_KEYS, unlisted=unlisted)
    data = encrypt_file(plain, keys)
    with warnings.catch_warnings(action="ignore"):      # Polars calls its encryption unstable
        properties = pl.ParquetDecryptionProperties(footer_key=FOOTER_KEY, column_keys=COLUMN_KEYS)
        frame = pl.read_parquet(io.BytesIO(data), decryption=properties)
    assert frame.equals(pl.DataFrame(pl.from_arrow(table())))


@pytest.mark.parametrize("prefix", [None, b"a prefix"])
@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_what_pyarrow_sealed_opens(prefix: bytes | None, plaintext_footer: bool) -> None:
    out = io.BytesIO()
    keys = pe.create_encryption_properties(FOOTER_KEY, aad_prefix=prefix, plaintext_footer=plaintext_footer)
    pq.write_table(table(), out, encryption_properties=keys)
    file = open_file(out.getvalue(), FileDecryptionProperties(FOOTER_KEY, aad_prefix=prefix))
    assert file.metadata.num_rows == 3000
    assert file.walk() > 0
    with pytest.raises(TagVerificationError, match="FOOTER"):
        open_file(out.getvalue(), FileDecryptionProperties(WRONG_KEY))


@pytest.fixture(scope="module")
def sealed(plain: bytes) -> bytes:
    """Two columns with keys of their own, one under the footer key, one in the clear."""
    columns: dict[str, bytes | ColumnEncryptionProperties] = {
        "price": ColumnEncryptionProperties(PRICE_KEY, key_metadata=b"the price's key id"),
        "name": NAME_KEY,
        "id": ColumnEncryptionProperties(),
    }
    keys = FileEncryptionProperties(FOOTER_KEY, columns, unlisted="plaintext", footer_key_metadata=b"the footer key's id")
    return encrypt_file(plain, keys)


def test_what_stands_in_the_footer(sealed: bytes) -> None:
    file = open_file(sealed, FileDecryptionProperties(FOOTER_KEY, COLUMN_KEYS))
    for group in file.metadata.row_groups:
        identifier, price, name, note = group.columns
        assert identifier.crypto_metadata == fmt.ColumnCryptoMetaData(
            ENCRYPTION_WITH_FOOTER_KEY=fmt.EncryptionWithFooterKey()
        )
        assert identifier.meta_data is not None
        assert identifier.encrypted_column_metadata is None
        assert price.crypto_metadata == fmt.ColumnCryptoMetaData(
            ENCRYPTION_WITH_COLUMN_KEY=fmt.EncryptionWithColumnKey(
                path_in_schema=["price"], key_metadata=b"the price's key id"
            )
        )
        assert price.meta_data is name.meta_data is None
        assert price.encrypted_column_metadata is not None
        assert note.crypto_metadata is None
        assert note.encrypted_column_metadata is None
    algorithm = file.metadata.encryption_algorithm
    assert algorithm is not None
    assert algorithm.AES_GCM_V1 is not None
    assert algorithm.AES_GCM_V1.supply_aad_prefix is False
    assert len(algorithm.AES_GCM_V1.aad_file_unique or b"") == 8
    assert sealed[:4] == sealed[-4:] == b"PARE"
    assert NAME_KEY not in sealed
    assert b"name 3" not in sealed
    assert b"some text" in sealed


def test_two_files_have_two_identifiers(plain: bytes) -> None:
    keys = FileEncryptionProperties(FOOTER_KEY)
    files = [open_file(encrypt_file(plain, keys), FileDecryptionProperties(FOOTER_KEY)) for _ in range(2)]
    one, other = (file.metadata.encryption_algorithm for file in files)
    assert one != other


def test_columns_without_their_key(sealed: bytes) -> None:
    file = open_file(sealed, FileDecryptionProperties(FOOTER_KEY, {"name": NAME_KEY}))
    identifier, price, name, note = file.metadata.row_groups[0].columns
    assert file.walk_chunk(identifier, 0, 0)
    assert file.walk_chunk(name, 0, 2)
    assert file.walk_chunk(note, 0, 3) == 0
    for touch in (file.decryptor.column_metadata, file.decryptor.chunk_cipher):
        with pytest.raises(KeyAccessError, match="column price"):
            touch(price, 0, 1)


def test_the_footer_without_its_key(sealed: bytes) -> None:
    with pytest.raises(KeyAccessError, match="decryption_properties"):
        open_file(sealed, None)
    with pytest.raises(KeyAccessError, match="no footer key"):
        open_file(sealed, FileDecryptionProperties())
    with pytest.raises(KeyAccessError, match="no footer key"):
        open_file(sealed, FileDecryptionProperties(key_retriever=lambda _: None))
    with pytest.raises(TagVerificationError, match="FOOTER"):
        open_file(sealed, FileDecryptionProperties(WRONG_KEY))


def test_keys_from_a_retriever(sealed: bytes) -> None:
    asked: list[bytes] = []
    keys = {b"the footer key's id": FOOTER_KEY, b"the price's key id": PRICE_KEY}

    def retrieve(key_metadata: bytes) -> bytes | None:
        asked.append(key_metadata)
        return keys.get(key_metadata)

    file = open_file(sealed, FileDecryptionProperties(column_keys={"name": NAME_KEY}, key_retriever=retrieve))
    assert file.walk() > 0
    assert sorted(asked) == sorted(keys)


def test_an_explicit_key_wins(sealed: bytes) -> None:
    keys = {b"the footer key's id": FOOTER_KEY, b"the price's key id": PRICE_KEY}
    wrong = FileDecryptionProperties(column_keys={"price": WRONG_KEY}, key_retriever=keys.get)
    file = open_file(sealed, wrong)
    with pytest.raises(TagVerificationError, match="COLUMN_METADATA") as raised:
        file.decryptor.column_metadata(file.metadata.row_groups[1].columns[1], 1, 1)
    assert raised.value.context == {"module": "COLUMN_METADATA", "row_group": 1, "column": "price"}


def test_what_a_retriever_raises_reaches_the_caller(sealed: bytes) -> None:
    def refuse(_: bytes) -> bytes:
        raise PermissionError("not you")

    with pytest.raises(PermissionError, match="not you"):
        open_file(sealed, FileDecryptionProperties(key_retriever=refuse))
    short = FileDecryptionProperties(FOOTER_KEY, key_retriever=lambda _: b"short")
    file = open_file(sealed, short)
    with pytest.raises(CryptoError, match=r"not 5 \[column price\]"):
        file.decryptor.chunk_cipher(file.metadata.row_groups[0].columns[1], 0, 1)


PREFIX_CASES: list[tuple[bytes | None, bool, bytes | None, type[ParquetError] | None, str]] = [
    (None, True, None, None, ""),
    (None, True, b"", None, ""),
    (b"", True, None, None, ""),
    (None, True, b"given", CryptoError, "without one"),
    (b"given", True, None, None, ""),
    (b"given", True, b"given", None, ""),
    (b"given", True, b"other", CryptoError, "the file was replaced"),
    (b"given", False, None, CryptoError, "must be supplied"),
    (b"given", False, b"given", None, ""),
    (b"given", False, b"other", TagVerificationError, "the supplied prefix may be wrong"),
]


@pytest.mark.parametrize(("written", "stored", "supplied", "refusal", "words"), PREFIX_CASES)
@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_aad_prefixes(
    plain: bytes,
    plaintext_footer: bool,
    written: bytes | None,
    stored: bool,
    supplied: bytes | None,
    refusal: type[ParquetError] | None,
    words: str,
) -> None:
    keys = FileEncryptionProperties(
        FOOTER_KEY, aad_prefix=written, store_aad_prefix=stored, plaintext_footer=plaintext_footer
    )
    data = encrypt_file(plain, keys)
    properties = FileDecryptionProperties(FOOTER_KEY, aad_prefix=supplied)
    if refusal is None:
        assert open_file(data, properties).walk() > 0
    else:
        with pytest.raises(refusal, match=words):
            open_file(data, properties)


def test_a_prefix_stored_against_its_own_flag_must_be_supplied() -> None:
    algorithm = fmt.EncryptionAlgorithm(
        AES_GCM_V1=fmt.AesGcmV1(aad_prefix=b"given", aad_file_unique=bytes(8), supply_aad_prefix=True)
    )
    with pytest.raises(CryptoError, match="must be supplied"):
        open_file_decryptor(
            FileDecryptionProperties(FOOTER_KEY), algorithm=algorithm, key_metadata=None, encrypted_footer=True
        )


def test_an_altered_algorithm_is_noticed(sealed: bytes) -> None:
    file = open_file(sealed, FileDecryptionProperties(FOOTER_KEY))
    other = fmt.EncryptionAlgorithm(AES_GCM_CTR_V1=fmt.AesGcmCtrV1(aad_file_unique=bytes(8)))
    with pytest.raises(CryptoError, match="altered"):
        file.decryptor.confirm_algorithm(other)
    file.decryptor.confirm_algorithm(None)


@pytest.fixture(scope="module")
def signed() -> bytes:
    out = io.BytesIO()
    keys = pe.create_encryption_properties(FOOTER_KEY, plaintext_footer=True)
    pq.write_table(table(), out, encryption_properties=keys)
    return out.getvalue()


def test_a_signed_footer_without_keys(signed: bytes) -> None:
    file = open_file(signed, None)
    chunk = file.metadata.row_groups[0].columns[0]
    assert file.decryptor.column_metadata(chunk, 0, 0).num_values == 3000
    with pytest.raises(KeyAccessError, match="column id"):
        file.decryptor.chunk_cipher(chunk, 0, 0)


def test_an_altered_signed_footer(signed: bytes) -> None:
    altered = signed.replace(b"price", b"prize")
    with pytest.raises(TagVerificationError, match="signature"):
        open_file(altered, FileDecryptionProperties(FOOTER_KEY))
    unchecked = FileDecryptionProperties(FOOTER_KEY, verify_footer_signature=False)
    assert open_file(altered, unchecked).metadata.num_rows == 3000
    with pytest.raises(KeyAccessError, match="no footer key"):
        open_file(signed, FileDecryptionProperties(column_keys={"id": PRICE_KEY}))


def test_a_footer_is_parsed_after_its_signature_is_verified(signed: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    class ParsedError(Exception):
        pass

    def parse(footer: memoryview, *_: object) -> None:
        raise ParsedError

    monkeypatch.setattr("fastpq.metadata.footer.FileMetaData", parse)
    properties = FileDecryptionProperties(FOOTER_KEY)
    with pytest.raises(ParsedError):
        fastpq.read_metadata(signed, decryption_properties=properties)
    with pytest.raises(TagVerificationError, match="signature"):
        fastpq.read_metadata(signed.replace(b"price", b"prize"), decryption_properties=properties)


def test_a_footer_stays_what_was_verified(signed: bytes, tmp_path: Path) -> None:
    """Its parts are parsed when they are touched, which may be long after the file, mapped into memory, was opened."""
    path = tmp_path / "signed.parquet"
    path.write_bytes(signed)
    with fastpq.ParquetFile(path, decryption_properties=FileDecryptionProperties(FOOTER_KEY)) as file:
        with path.open("r+b") as stored:
            stored.write(signed.replace(b"price", b"prize"))
        assert file.schema.columns[1].name == "price"
        assert present(file.metadata.row_group(0).column(1).chunk.meta_data).path_in_schema == ["price"]
    with pytest.raises(TagVerificationError, match="signature"):
        fastpq.read_metadata(path, decryption_properties=FileDecryptionProperties(FOOTER_KEY))


def with_signature(signed: bytes, signature: bytes) -> bytes:
    """The file with other bytes where the signature is."""
    footer = signed[: -8 - 28]
    size = int.from_bytes(signed[-8:-4], "little") - 28 + len(signature)
    return footer + signature + size.to_bytes(4, "little") + b"PAR1"


def test_a_signature_of_another_length(signed: bytes) -> None:
    signature = signed[-8 - 28 : -8]
    assert with_signature(signed, signature) == signed
    unchecked = FileDecryptionProperties(FOOTER_KEY, verify_footer_signature=False)
    for other in (b"", signature[:-1], signature + b"\0", signature[:12], signature * 2):
        with pytest.raises(FormatError, match=f"^{len(other)} bytes where the footer's signature"):
            open_file(with_signature(signed, other), FileDecryptionProperties(FOOTER_KEY))
        if other:
            with pytest.raises(FormatError, match="signature"):
                open_file(with_signature(signed, other), unchecked)
    first_draft = with_signature(signed, b"")       # of the specification, where footers were not signed yet
    assert open_file(first_draft, unchecked).walk() > 0


def test_nothing_is_opened_before_the_signature_is_verified(signed: bytes) -> None:
    metadata = open_file(signed, None).metadata
    decryptor = open_file_decryptor(
        FileDecryptionProperties(FOOTER_KEY),
        algorithm=metadata.encryption_algorithm,
        key_metadata=None,
        encrypted_footer=False,
    )
    chunk = metadata.row_groups[0].columns[0]
    touches: list[Callable[..., Any]] = [decryptor.column_metadata, decryptor.chunk_cipher]
    for touch in touches:
        with pytest.raises(CryptoError, match="has not been verified"):
            touch(chunk, 0, 0)


def test_a_file_that_is_not_encrypted(plain: bytes) -> None:
    with pytest.raises(CryptoError, match="not encrypted"):
        open_file(plain, FileDecryptionProperties(FOOTER_KEY))
    assert open_file(plain, FileDecryptionProperties(FOOTER_KEY, allow_plaintext_files=True)).walk() == 0
