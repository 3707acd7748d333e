"""Writes docs/pages/evidence.md: what readers do with forged files, which modes are exchanged, and what key services see.

python -m tools.evidence            write the page
python -m tools.evidence --check    fail if the page is not what would be written

Everything is done anew: files are written, altered, and read by the versions of other libraries that ``PINS`` names. Other
versions are refused. parquet-java is the one in PySpark's jars, and needs a JDK.
"""

from __future__ import annotations

import argparse
import io
import json
import multiprocessing
import os
import socket
import sys
import tempfile
import unittest.mock
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import boto3
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe

import fastpq
from fastpq.encryption import (
    AwsKmsClient,
    AzureKmsClient,
    CryptoFactory,
    EncryptionConfiguration,
    FileDecryptionProperties,
    FileEncryptionProperties,
    GoogleKmsClient,
    Keyring,
    KmsConnectionConfig,
    Pkcs11KmsClient,
    VaultKmsClient,
)
from tests.encryption.keys.azure_server import HOST, AzureServer
from tests.encryption.keys.google_server import KEY_RING, GoogleServer
from tests.encryption.keys.peers import InMemoryKms, arrow_factory, managed_keys
from tests.encryption.keys.softhsm import softhsm_token
from tests.encryption.keys.vault_server import TransitServer
from tests.encryption.test_duckdb import RECIPE, duckdb, duckdb_reads
from tests.encryption.test_matrix import (
    ARROW_MODES,
    COLUMN_KEY,
    COLUMN_PATHS,
    FOOTER_KEY,
    JAVA_MODES,
    MODES,
    Case,
    managed,
    truth,
    write,
)
from tests.interop.parquet_java import ParquetJava
from tests.io.object_stores import moto_server
from tests.requirements import softhsm_library
from tools.forgeries import OTHER, Forgery, Readers, judge

PAGE = Path(__file__).resolve().parent.parent / "docs" / "pages" / "evidence.md"
PINS = {"pyarrow": "26.0.1", "polars": "2.1.0", "duckdb": "2.0.1", "pyspark": "4.3.0"}
PARQUET_JAVA = "1.17.0"     # in the jars of this PySpark
READ, NOT_READ, NOT_WRITTEN = "yes", "no", "–"
DUCKDB_KEY = b"0123456789012345"

HEAD = """# Evidence

What [Encryption](encryption.md) and [Security](security.md) claim, tried out. `python -m tools.evidence` writes this page: it
makes the files, alters them, and reads them with fastpq and with {peers}.
"""
FORGERIES = """## Forged files

Somebody without the keys alters a file, or puts another file in its place. The reader has the right keys, the AAD prefix if the
file has one, and for files in AES_GCM_CTR_V1 the permission to read them. The whole file is read.

The file *one page* has one page in each chunk, which is the only kind of these files that DuckDB reads.

*read*: the right values. *refused*: an error. **other values**: values that the writer did not write, and no error. –: the reader
cannot read the untouched file either.

"""
AFTER_FORGERIES = """
No reader can notice a forgery that the last column explains. In the column *fastpq, key service*, `trusted_master_keys` names the
one master key of the file. The key service interfaces of pyarrow and parquet-java take no AAD prefix and accept plaintext files.
"""
MODES_HEAD = """## Modes and peers

A file with flat and nested columns, nulls, dictionaries and several pages, in each mode. Zstandard, V1 pages.
`tests/encryption/test_matrix.py` has the product with all codecs, page versions and indexes.

Who reads what fastpq wrote:

"""
PEERS_HEAD = """
What fastpq reads of others' files:

"""
SERVICES_HEAD = """## What a key service sees

A file with a footer key `footer` and a column under the key `prices` is written, read, and read again. The table has
the calls as the service got them: requests of AWS KMS with the names of their members, what a token does with its keys, and
what a keyring is asked in its own process. No call has a file name, a column name or a value of a column. AWS KMS is moto's
server, and the token is SoftHSM2's.

"""
CALLS_HEAD = """
The number of calls for one file with 100 columns, and for a second file with the same factory:

"""


def check_pins() -> None:
    """Refuse other versions of the peers than the page names."""
    others = [f"{name}=={pin}" for name, pin in PINS.items() if version(name) != pin]
    if others:
        raise SystemExit(f"the page is made with pinned peers: pip install {' '.join(others)}")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


# --- forgeries ---


def forgery_table(rows: Sequence[tuple[Forgery, dict[str, str]]]) -> str:
    names = list(rows[0][1])
    return table(
        ["What was done", *names, "Why no reader can notice"],
        [[forgery.name, *verdicts.values(), forgery.is_undetectable] for forgery, verdicts in rows],
    )


# --- modes ---


def _is_right(read: Callable[[], Any]) -> str:
    try:
        result = pa.table(read())
        return READ if result.select(truth().column_names).cast(truth().schema).equals(truth()) else OTHER
    except Exception:
        return NOT_READ


def _columns(mode: str) -> dict[str, bytes]:
    return dict.fromkeys(COLUMN_PATHS, COLUMN_KEY) if "columns" in MODES[mode] else {}


def _arrow(path: Path, mode: str) -> Any:
    if _columns(mode) or "aad_prefix" not in MODES[mode]:
        keys = arrow_factory()
        return pq.read_table(
            path, decryption_properties=keys.file_decryption_properties(pe.KmsConnectionConfig(), pe.DecryptionConfiguration())
        )
    keys = pe.create_decryption_properties(FOOTER_KEY, aad_prefix=MODES[mode]["aad_prefix"])
    return pq.read_table(path, decryption_properties=keys)


def _polars(path: Path, mode: str) -> Any:
    keys = pl.ParquetDecryptionProperties(
        footer_key=FOOTER_KEY, column_keys=_columns(mode), aad_prefix=MODES[mode].get("aad_prefix")
    )
    return pl.read_parquet(path, decryption=keys).to_arrow()


def _java(java: ParquetJava, path: Path, folder: Path) -> str:
    pq.write_table(truth(), folder / "truth.parquet")
    try:
        return READ if len(set(managed_keys(java, "digest", folder / "truth.parquet", path).splitlines())) == 1 else OTHER
    except RuntimeError:
        return NOT_READ


def reads_of_peers(java: ParquetJava, folder: Path) -> list[list[str]]:
    """Return a row for each mode: which peers read fastpq's file."""
    rows = []
    for mode in MODES:
        path = folder / "mode.parquet"
        write(Case(mode, "zstd", "1.0", True), path)
        readers: list[Callable[[], Any]] = [lambda: _arrow(path, mode), lambda: _polars(path, mode)]  # noqa: B023
        duck = _is_right(lambda: duckdb_reads(path, FOOTER_KEY))    # noqa: B023
        rows.append([mode, *map(_is_right, readers), _java(java, path, folder), duck])
    rows.append(["uniform, flat columns, one page a chunk", *_recipe(java, folder)])
    return rows


def _recipe(java: ParquetJava, folder: Path) -> list[str]:
    """Return which peers read the file that DuckDB reads."""
    path, data = folder / "recipe.parquet", {"id": np.arange(1000)}
    from tests.encryption.test_matrix import key_metadata

    keys = FileEncryptionProperties(DUCKDB_KEY, footer_key_metadata=key_metadata(DUCKDB_KEY, "kf", True))
    fastpq.write_table(data, path, encryption_properties=keys, **RECIPE)
    pq.write_table(pa.table(data), folder / "truth.parquet")
    readers: list[Callable[[], pa.Table]] = [
        lambda: pq.read_table(path, decryption_properties=pe.create_decryption_properties(DUCKDB_KEY)),
        lambda: pl.read_parquet(path, decryption=pl.ParquetDecryptionProperties(footer_key=DUCKDB_KEY)).to_arrow(),
        lambda: duckdb_reads(path, DUCKDB_KEY),
    ]
    arrow, polars, duck = (READ if read()["id"].to_pylist() == list(range(1000)) else OTHER for read in readers)
    digests = set(managed_keys(java, "digest", folder / "truth.parquet", path).splitlines())
    return [arrow, polars, READ if len(digests) == 1 else OTHER, duck]


def reads_of_fastpq(java: ParquetJava, folder: Path) -> list[list[str]]:
    """Return a row for each mode: which peers' files fastpq reads."""
    pq.write_table(truth(), folder / "truth.parquet")
    path = folder / "peer.parquet"
    rows = []
    for mode in dict.fromkeys([*ARROW_MODES, *JAVA_MODES]):
        cells = [NOT_WRITTEN] * 4
        if mode in ARROW_MODES:
            keys = arrow_factory()
            configuration = pe.EncryptionConfiguration("kf", **ARROW_MODES[mode])
            properties = keys.file_encryption_properties(pe.KmsConnectionConfig(), configuration)
            pq.write_table(truth(), path, encryption_properties=properties)
            cells[0] = _is_right(lambda: fastpq.read_table(path, decryption_properties=managed(path)))
        if mode in ("uniform", "by column"):
            columns = dict.fromkeys(COLUMN_PATHS, COLUMN_KEY) if mode == "by column" else {}
            theirs = pl.ParquetEncryptionProperties(footer_key=FOOTER_KEY, column_keys=columns)
            pl.DataFrame(pl.from_arrow(truth())).write_parquet(path, encryption=theirs)
            ours = FileDecryptionProperties(FOOTER_KEY, columns)
            cells[1] = _is_right(lambda: fastpq.read_table(path, decryption_properties=ours))  # noqa: B023
        if mode in JAVA_MODES:
            place = folder / f"java {mode}.parquet"
            managed_keys(java, "copy", folder / "truth.parquet", folder, f"{place.stem};ZSTD;v1;true;{JAVA_MODES[mode]}")
            cells[2] = _is_right(lambda: fastpq.read_table(place, decryption_properties=managed(place)))  # noqa: B023
        rows.append([mode, *cells])
    return [*rows, ["DuckDB's dialect (`allow_duckdb_dialect=True`)", *([NOT_WRITTEN] * 3), _duckdb_dialect(folder)]]


def _duckdb_dialect(folder: Path) -> str:
    path = folder / "duckdb.parquet"
    with duckdb.connect() as connection:
        connection.execute("SET force_mbedtls_unsafe = 'true'")
        connection.execute(f"PRAGMA add_parquet_key('k', '{DUCKDB_KEY.decode()}')")
        connection.execute(
            f"COPY (SELECT range AS id FROM range(1000)) TO '{path}' (FORMAT parquet, ENCRYPTION_CONFIG {{footer_key: 'k'}})"
        )
    keys = FileDecryptionProperties(DUCKDB_KEY, allow_duckdb_dialect=True)
    return READ if fastpq.read_table(path, decryption_properties=keys)["id"].to_pylist() == list(range(1000)) else OTHER


# --- key services ---


def _use(client: Any, config: KmsConnectionConfig, footer: str = "footer", prices: str = "prices") -> None:
    """Write a file, read it, and read it again, without the cache of the first factory."""
    configuration = EncryptionConfiguration(footer, {prices: ["price"]})
    out = io.BytesIO()
    keys = CryptoFactory(client).file_encryption_properties(config, configuration)
    fastpq.write_table({"id": np.arange(10), "price": np.arange(10)}, out, encryption_properties=keys)
    reading = CryptoFactory(client)
    for _ in range(2):
        fastpq.read_table(io.BytesIO(out.getvalue()), decryption_properties=reading.file_decryption_properties(config))


def services(folder: Path) -> list[list[str]]:
    """Return a row for each service: its calls, as the service got them."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:      # SoftHSM2 takes one token a process
        token = process.submit(_token, folder).result()
    return [
        ["AWS KMS", _aws()],
        ["Google Cloud KMS", _google()],
        ["Azure Key Vault", _azure(folder)],
        ["Vault, OpenBao", _vault()],
        ["PKCS#11 token", token],
        ["`Keyring`, a local file", _keyring(folder)],
    ]


def _aws() -> str:
    """Return what moto's server of AWS KMS gets: the operation, the key, and the names of all members."""
    calls: list[str] = []

    def recording(app: Any) -> Any:
        def recorded(environ: dict[str, Any], start_response: Any) -> Any:
            body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
            environ["wsgi.input"] = io.BytesIO(body)
            members = json.loads(body)
            operation = environ["HTTP_X_AMZ_TARGET"].rpartition(".")[2]
            calls.append(f"{operation} {members.get('KeyId')} {' '.join(sorted(members.keys() - {'KeyId'}))}")
            return app(environ, start_response)

        return recorded

    with moto_server(recording) as url:
        settings = {"region_name": "eu-west-1", "aws_access_key_id": "id", "aws_secret_access_key": "secret"}
        client = boto3.client("kms", endpoint_url=url, **settings)
        for name in ("footer", "prices"):
            client.create_alias(AliasName=f"alias/{name}", TargetKeyId=client.create_key()["KeyMetadata"]["KeyId"])
        calls.clear()
        with unittest.mock.patch.dict(os.environ, AWS_ACCESS_KEY_ID="id", AWS_SECRET_ACCESS_KEY="secret"):
            _use(AwsKmsClient, KmsConnectionConfig("eu-west-1", kms_instance_url=url), "alias/footer", "alias/prices")
    return _listed(calls)


class _SeenKey:
    """A key of a token that lists what the token is asked to do with it."""

    def __init__(self, key: Any, calls: list[str]) -> None:
        self._key, self._calls = key, calls

    def encrypt(self, data: bytes, **options: Any) -> Any:
        self._calls.append(f"encrypt {self._key.label} {options['mechanism'].name}")
        return self._key.encrypt(data, **options)

    def decrypt(self, data: bytes, **options: Any) -> Any:
        self._calls.append(f"decrypt {self._key.label} {options['mechanism'].name}")
        return self._key.decrypt(data, **options)


def _token(folder: Path) -> str:
    calls: list[str] = []

    class Client(Pkcs11KmsClient):
        @contextmanager
        def _keys(self, label: str) -> Iterator[dict[bytes, Any]]:
            with super()._keys(label) as keys:
                yield {identifier: _SeenKey(key, calls) for identifier, key in keys.items()}

    with softhsm_token(folder, softhsm_library()) as config:
        _use(Client, config)
    return _listed(calls)


def _keyring(folder: Path) -> str:
    calls: list[str] = []

    class Client(Keyring):
        def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
            calls.append(f"wrap_key {master_key_identifier}")
            return super().wrap_key(key_bytes, master_key_identifier)

        def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
            calls.append(f"unwrap_key {master_key_identifier}")
            return super().unwrap_key(wrapped_key, master_key_identifier)

    keyring = Client.create(folder / "keyring.json", "a passphrase", scrypt_log_n=10)
    for name in ("footer", "prices"):
        keyring.create_key(name)
    _use(lambda config: keyring, KmsConnectionConfig())
    return _listed(calls)


def _google() -> str:
    server = GoogleServer()
    try:
        for name in ("footer", "prices"):
            server.create_key(name)
        _use(GoogleKmsClient, KmsConnectionConfig(KEY_RING, kms_instance_url=server.url))
        return _listed(
            f"{type(request).__name__.removesuffix('Request')} {request.name.rpartition('/')[2]}" for request in server.requests
        )
    finally:
        server.stop()


def _azure(folder: Path) -> str:
    look_up = socket.getaddrinfo
    server = AzureServer(folder)

    def local_look_up(host: Any, *arguments: Any, **options: Any) -> Any:
        return look_up("127.0.0.1" if host == HOST else host, *arguments, **options)

    socket.getaddrinfo = local_look_up
    try:
        for name in ("footer", "prices"):
            server.create_key(name)
        custom = {"ca_cert": str(server.certificate)}
        token = next(iter(server.tokens))
        _use(AzureKmsClient, KmsConnectionConfig(kms_instance_url=server.url, key_access_token=token, custom_kms_conf=custom))
        versions = {version: "VERSION" for versions in server.keys.values() for version in versions}
        return _listed("/".join(versions.get(part, part) for part in request.split("/")) for request in server.requests)
    finally:
        socket.getaddrinfo = look_up
        server.stop()


def _vault() -> str:
    server = TransitServer()
    try:
        for name in ("footer", "prices"):
            server.create_key(name)
        _use(VaultKmsClient, KmsConnectionConfig(kms_instance_url=server.url, key_access_token="root"))
        return _listed(server.requests)
    finally:
        server.stop()


def _listed(calls: Sequence[str] | Iterator[str]) -> str:
    return "<br>".join(f"{count} x `{call}`" for call, count in sorted(Counter(calls).items()))


def call_counts() -> list[list[str]]:
    """Return a row for each way to wrap: calls of the service for a first and a second file with 100 columns."""
    names = [f"c{number}" for number in range(100)]
    data = dict.fromkeys(names, np.arange(10))
    ways: list[tuple[str, dict[str, Sequence[str]], bool]] = [
        ("double wrapping, 1 master key for the columns", {"kc1": names}, True),
        ("double wrapping, 2 master keys for the columns", {"kc1": names[:50], "kc2": names[50:]}, True),
        ("single wrapping, 1 master key for the columns", {"kc1": names}, False),
    ]
    rows = []
    for title, columns, is_double in ways:
        kms = InMemoryKms()
        writing, reading = (CryptoFactory(_maker_of(kms)) for _ in range(2))
        cells = []
        files = [io.BytesIO(), io.BytesIO()]
        configuration = EncryptionConfiguration("kf", columns, double_wrapping=is_double)
        for out in files:
            before = len(kms.wrapped)
            keys = writing.file_encryption_properties(KmsConnectionConfig(), configuration)
            fastpq.write_table(data, out, encryption_properties=keys)
            cells.append(_counted(kms.wrapped[before:]))
        for out in files:
            before = len(kms.unwrapped)
            opening = reading.file_decryption_properties(KmsConnectionConfig())
            fastpq.read_table(io.BytesIO(out.getvalue()), decryption_properties=opening)
            cells.append(_counted(kms.unwrapped[before:]))
        rows.append([title, *cells])
    return rows


def _maker_of(kms: InMemoryKms) -> Callable[[KmsConnectionConfig], InMemoryKms]:
    return lambda config: kms


def _counted(master_keys: Sequence[str]) -> str:
    return ", ".join(f"{count} x {name}" for name, count in sorted(Counter(master_keys).items())) or "none"


def page() -> str:
    """Return the page."""
    check_pins()
    peers = f"pyarrow {PINS['pyarrow']}, Polars {PINS['polars']}, DuckDB {PINS['duckdb']} and parquet-java {PARQUET_JAVA}"
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")     # Polars calls its encryption unstable
        folder, classes = Path(name), Path(name) / "java"
        classes.mkdir()
        with ParquetJava(classes) as java:
            forged = forgery_table(judge(Readers(java), folder))
            ours = table(["Mode", "pyarrow", "Polars", "parquet-java", "DuckDB"], reads_of_peers(java, folder))
            theirs = table(["Mode", "pyarrow", "Polars", "parquet-java", "DuckDB"], reads_of_fastpq(java, folder))
        seen = table(["Service", "Calls"], services(folder))
    counts = table(["Way", "first write", "second write", "first read", "second read"], call_counts())
    parts = [HEAD.format(peers=peers), FORGERIES + forged + AFTER_FORGERIES, MODES_HEAD + ours + PEERS_HEAD + theirs]
    return "\n".join([*parts, SERVICES_HEAD + seen + CALLS_HEAD + counts])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.evidence", description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if the page is not what would be written")
    options = parser.parse_args(arguments)
    text = page()
    if options.check and PAGE.read_text() != text:
        sys.exit(f"{PAGE} is not what python -m tools.evidence writes")
    if not options.check:
        PAGE.write_text(text)


if __name__ == "__main__":
    main()
