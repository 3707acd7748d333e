"""Keys of the encrypted jobs, in the form of each library.

pyarrow takes column keys only from a key service, so files carry key metadata for a key service without any wrapping.
"""

from __future__ import annotations

import base64
import json
from functools import cache
from typing import Any

from benchmarks.jobs import SECRET_COLUMNS, Job

FOOTER_KEY, COLUMN_KEY = b"0123456789012345", b"1234567890123450"
MASTER_KEY = "none"


def for_fastpq_to_read(job: Job) -> Any:
    """Decryption properties of fastpq; None for a plaintext job, as from the other functions with properties."""
    import fastpq

    if not job.encrypted:
        return None
    return fastpq.FileDecryptionProperties(FOOTER_KEY, _columns(job), allowed_algorithms=[job.algorithm])


def for_fastpq_to_write(job: Job) -> Any:
    import fastpq
    from fastpq.encryption import ColumnEncryptionProperties

    if not job.encrypted:
        return None
    columns = {
        name: ColumnEncryptionProperties(key, key_metadata=_metadata(key, False)) for name, key in _columns(job).items()
    }
    return fastpq.FileEncryptionProperties(
        FOOTER_KEY,
        columns,
        footer_key_metadata=_metadata(FOOTER_KEY, True),
        algorithm=job.algorithm,
        unlisted="plaintext" if columns else None,      # as pyarrow and Polars have it
    )


def for_pyarrow_to_read(job: Job) -> Any:
    import pyarrow.parquet.encryption as pe

    if not job.encrypted:
        return None
    if job.encrypted == "uniform":
        return pe.create_decryption_properties(FOOTER_KEY)
    return _arrow_factory().file_decryption_properties(pe.KmsConnectionConfig(), pe.DecryptionConfiguration())


def for_pyarrow_to_write(job: Job) -> Any:
    import pyarrow.parquet.encryption as pe

    if not job.encrypted:
        return None
    if job.encrypted == "uniform":
        return pe.create_encryption_properties(FOOTER_KEY, encryption_algorithm=job.algorithm)
    configuration = pe.EncryptionConfiguration(
        MASTER_KEY, column_keys={MASTER_KEY: list(SECRET_COLUMNS)}, encryption_algorithm=job.algorithm, double_wrapping=False
    )
    return _arrow_factory().file_encryption_properties(pe.KmsConnectionConfig(), configuration)


def for_polars_to_read(job: Job) -> Any:
    import polars as pl

    return pl.ParquetDecryptionProperties(footer_key=FOOTER_KEY, column_keys=_columns(job)) if job.encrypted else None


def for_polars_to_write(job: Job) -> Any:
    import polars as pl

    return pl.ParquetEncryptionProperties(footer_key=FOOTER_KEY, column_keys=_columns(job)) if job.encrypted else None


def for_duckdb(job: Job) -> str:
    """Further arguments of DuckDB's read_parquet, as text; DuckDB supports AES_GCM_V1 with one key only."""
    blob = "".join(f"\\x{byte:02X}" for byte in FOOTER_KEY)
    return f", encryption_config={{footer_key_value: '{blob}'::BLOB}}" if job.encrypted else ""


def _columns(job: Job) -> dict[str, bytes]:
    return dict.fromkeys(SECRET_COLUMNS, COLUMN_KEY) if job.encrypted == "columns" else {}


def _metadata(key: bytes, is_footer_key: bool) -> bytes:
    material: dict[str, Any] = {"keyMaterialType": "PKMT1", "internalStorage": True, "isFooterKey": is_footer_key}
    if is_footer_key:
        material |= {"kmsInstanceID": "DEFAULT", "kmsInstanceURL": "DEFAULT"}
    material |= {"masterKeyID": MASTER_KEY, "wrappedDEK": base64.b64encode(key).decode(), "doubleWrapping": False}
    return json.dumps(material).encode()


@cache
def _arrow_factory() -> Any:
    import pyarrow.parquet.encryption as pe

    class NullKms(pe.KmsClient):     # type: ignore[misc]
        def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
            return base64.b64encode(key_bytes).decode()

        def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
            return base64.b64decode(wrapped_key)

    return pe.CryptoFactory(lambda config: NullKms())
