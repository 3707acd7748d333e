"""Encrypted files that somebody without the keys has altered, and how each reader takes them.

The bytes are altered without fastpq's reader and writer: the footer is only asked where the chunks lie.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe

import fastpq
from fastpq import format as fmt
from fastpq.encryption import DecryptionConfiguration, FileDecryptionProperties, FileEncryptionProperties, KmsConnectionConfig
from fastpq.encryption.properties import ALGORITHMS
from tests.encryption.keys.peers import arrow_factory, factory, managed_keys
from tests.encryption.test_duckdb import duckdb_reads
from tests.encryption.test_matrix import FOOTER_KEY, key_metadata
from tests.interop.parquet_java import ParquetJava

ROWS, GROUP_ROWS, PAGE_ROWS = 400, 200, 50
OTHER_KEY = b"another file key"
PREFIX = b"table 7, file 1"
LENGTH_SIZE, NONCE_SIZE, BLOCK = 4, 12, 16
TAIL = 8        # size of the footer's length and the magic

Base = Literal["gcm", "one page", "prefix", "signed", "ctr"]
# How a file is written, and how its reader is set up.
BASES: dict[Base, dict[str, Any]] = {
    "gcm": {},
    "one page": {},     # a chunk, as DuckDB needs it
    "prefix": {"aad_prefix": PREFIX},
    "signed": {"plaintext_footer": True},
    "ctr": {"algorithm": "AES_GCM_CTR_V1"},
}


def values(seed: int = 0) -> dict[str, Any]:
    """Return the rows of a file. Another seed gives other values that lie in the same places."""
    rows = np.arange(ROWS, dtype=np.int64) + seed * 1_000_000
    return {"a": rows, "b": rows * 3}


def write(base: Base, seed: int = 0, *, is_plain: bool = False) -> bytes:
    """Return a file's bytes."""
    keys = FileEncryptionProperties(FOOTER_KEY, footer_key_metadata=key_metadata(FOOTER_KEY, "kf", True), **BASES[base])
    out = io.BytesIO()
    fastpq.write_table(
        values(seed),
        out,
        compression="none",
        use_dictionary=False,
        row_group_size=GROUP_ROWS,
        data_page_rows=GROUP_ROWS if base == "one page" else PAGE_ROWS,
        write_page_checksum=False,
        encryption_properties=None if is_plain else keys,
    )
    return out.getvalue()


def reading(base: Base, **options: Any) -> FileDecryptionProperties:
    """Return fastpq's keys for a file."""
    allowed = ALGORITHMS if base == "ctr" else ("AES_GCM_V1",)
    return FileDecryptionProperties(
        FOOTER_KEY, aad_prefix=BASES[base].get("aad_prefix"), allowed_algorithms=allowed, **options
    )


class Modules:
    """Where the modules of a genuine file lie.

    Args:
        data: the file.
        base: how it was written.
    """

    def __init__(self, data: bytes, base: Base) -> None:
        self.data = data
        metadata = fastpq.read_metadata(io.BytesIO(data), decryption_properties=reading(base))
        self._chunks = {
            (group, column): metadata.row_group(group).column(column).metadata for group in range(2) for column in range(2)
        }
        size = int.from_bytes(data[-TAIL:-4], "little")
        self.footer = slice(len(data) - TAIL - size, len(data) - TAIL)

    def page(self, group: int, column: int, page: int, *, is_header: bool = False) -> slice:
        """Return the place of a page's module, or of its header's."""
        place = self._chunks[group, column].data_page_offset
        for _ in range(2 * page + (not is_header)):
            place += LENGTH_SIZE + self._length(place)
        return slice(place, place + LENGTH_SIZE + self._length(place))

    def _length(self, place: int) -> int:
        return int.from_bytes(self.data[place : place + LENGTH_SIZE], "little")


def flipped(data: bytes, place: int) -> bytes:
    """Return data with one bit changed."""
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def exchanged(data: bytes, one: slice, other: slice) -> bytes:
    """Return data with two modules of the same size in each other's place."""
    assert one.stop - one.start == other.stop - other.start
    out = bytearray(data)
    out[one], out[other] = data[other], data[one]
    return bytes(out)


def _page_of(base: Base) -> int:
    """Return the number of the page that is altered: the second one, if there are several."""
    return 0 if base == "one page" else 1


def _replaced_page(genuine: bytes, base: Base) -> bytes:
    """Put a page of another file, written with the same keys, in the place of a page."""
    place = Modules(genuine, base).page(0, 0, _page_of(base))
    other = write(base, 1)
    source = Modules(other, base).page(0, 0, _page_of(base))
    return genuine[: place.start] + other[source] + genuine[place.stop :]


def _framed(footer: bytes, magic: bytes) -> bytes:
    return footer + len(footer).to_bytes(4, "little") + magic


def _with_algorithm(genuine: bytes, base: Base, change: Callable[[fmt.FileCryptoMetaData], None]) -> bytes:
    """Change the struct in front of an encrypted footer, which nothing authenticates."""
    footer = Modules(genuine, base).footer
    crypto, size = fmt.decode(fmt.FileCryptoMetaData, genuine[footer])
    change(crypto)
    return genuine[: footer.start] + _framed(fmt.encode(crypto) + genuine[footer][size:], b"PARE")


def _to_ctr(crypto: fmt.FileCryptoMetaData) -> None:
    gcm = crypto.encryption_algorithm.AES_GCM_V1
    assert gcm is not None
    crypto.encryption_algorithm = fmt.EncryptionAlgorithm(
        AES_GCM_CTR_V1=fmt.AesGcmCtrV1(
            aad_prefix=gcm.aad_prefix, aad_file_unique=gcm.aad_file_unique, supply_aad_prefix=gcm.supply_aad_prefix
        )
    )


def _other_prefix(crypto: fmt.FileCryptoMetaData) -> None:
    gcm = crypto.encryption_algorithm.AES_GCM_V1
    assert gcm is not None
    gcm.aad_prefix = PREFIX[:-1] + b"2"


def _downgraded(genuine: bytes, base: Base) -> bytes:
    """Present a GCM file as CTR, and choose new values for a page whose values the attacker knows.

    The counter of CTR begins at 1, and that of GCM's pages at 2. The key stream of a block is therefore known from the block
    before, and only the first block of the page becomes random.
    """
    place = Modules(genuine, base).page(0, 0, 1)
    start = place.start + LENGTH_SIZE + NONCE_SIZE
    known = values()["a"][PAGE_ROWS : 2 * PAGE_ROWS]
    stream = _xor(genuine[start : start + known.nbytes], known.tobytes())
    chosen = (known + 1000).tobytes()
    forged = genuine[start : start + BLOCK] + _xor(stream[: known.nbytes - BLOCK], chosen[BLOCK:])
    return _with_algorithm(genuine[:start] + forged + genuine[start + known.nbytes :], base, _to_ctr)


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(left ^ right for left, right in zip(one, other, strict=True))


def _resigned(
    genuine: bytes, base: Base, change: Callable[[fmt.FileMetaData], None], signature: Callable[[bytes], bytes]
) -> bytes:
    """Change a plaintext footer, and keep or change its signature."""
    footer = Modules(genuine, base).footer
    metadata, size = fmt.decode(fmt.FileMetaData, genuine[footer])
    change(metadata)
    return genuine[: footer.start] + _framed(fmt.encode(metadata) + signature(genuine[footer][size:]), b"PAR1")


def _fewer_rows(metadata: fmt.FileMetaData) -> None:
    metadata.row_groups = metadata.row_groups[:1]
    metadata.num_rows = GROUP_ROWS


def _keep(metadata: fmt.FileMetaData) -> None:
    pass


def _own_keys(genuine: bytes, base: Base) -> bytes:
    """Write a file under another master key, as somebody can who may use that key alone."""
    keys = FileEncryptionProperties(OTHER_KEY, footer_key_metadata=key_metadata(OTHER_KEY, "kc1", True))
    out = io.BytesIO()
    fastpq.write_table(values(1), out, encryption_properties=keys)
    return out.getvalue()


@dataclass(frozen=True)
class Forgery:
    """One way to alter a file.

    Attributes:
        name: what was done, as the page says it.
        base: the genuine file.
        make: makes the forged file of the genuine one.
        is_undetectable: why no reader can notice it, or an empty text.
    """

    name: str
    base: Base
    make: Callable[[bytes, Base], bytes]
    is_undetectable: str = ""


def forgeries() -> list[Forgery]:
    """Return all forgeries, with the untouched files among them."""

    def in_page(offset: int) -> Callable[[bytes, Base], bytes]:
        return lambda data, base: flipped(data, Modules(data, base).page(0, 0, _page_of(base)).start + offset)

    def swap(*pages: tuple[int, int, int]) -> Callable[[bytes, Base], bytes]:
        return lambda data, base: exchanged(data, *(Modules(data, base).page(*page) for page in pages))

    def header(data: bytes, base: Base) -> bytes:
        return flipped(data, Modules(data, base).page(0, 0, _page_of(base), is_header=True).stop - 1)

    def footer(data: bytes, base: Base) -> bytes:
        return flipped(data, len(data) - TAIL - 40)

    same_keys = "it was written with the same keys"
    return [
        *(Forgery(f"{base}: untouched", base, lambda data, base: data) for base in BASES),
        Forgery("a bit of a page", "gcm", in_page(LENGTH_SIZE + NONCE_SIZE + 8)),
        Forgery("a bit of a page's nonce", "gcm", in_page(LENGTH_SIZE)),
        Forgery("a bit of a page header", "gcm", header),
        Forgery("a bit of the encrypted footer", "gcm", footer),
        Forgery("two pages of a column exchanged", "gcm", swap((0, 0, 1), (0, 0, 2))),
        Forgery("pages of two columns exchanged", "gcm", swap((0, 0, 1), (0, 1, 1))),
        Forgery("pages of two row groups exchanged", "gcm", swap((0, 0, 1), (1, 0, 1))),
        Forgery("a page of another file with the same keys", "gcm", _replaced_page),
        Forgery("GCM presented as CTR, values of a page chosen", "gcm", _downgraded),
        Forgery("replaced by a plaintext file", "gcm", lambda data, base: write(base, 1, is_plain=True)),
        Forgery("replaced by another file with the same keys", "gcm", lambda data, base: write(base, 1), same_keys),
        Forgery("replaced by a file under a master key that the reader may use, but does not trust", "gcm", _own_keys),
        Forgery("one page: a bit of it", "one page", in_page(LENGTH_SIZE + NONCE_SIZE + 8)),
        Forgery("one page: a bit of its header", "one page", header),
        Forgery("one page: a bit of the encrypted footer", "one page", footer),
        Forgery("one page: pages of two columns exchanged", "one page", swap((0, 0, 0), (0, 1, 0))),
        Forgery("one page: pages of two row groups exchanged", "one page", swap((0, 0, 0), (1, 0, 0))),
        Forgery("one page: a page of another file with the same keys", "one page", _replaced_page),
        Forgery("one page: replaced by a plaintext file", "one page", lambda data, base: write(base, 1, is_plain=True)),
        Forgery("one page: replaced by another file with the same keys", "one page",
                lambda data, base: write(base, 1), same_keys),
        Forgery("stored AAD prefix altered", "prefix", lambda data, base: _with_algorithm(data, base, _other_prefix)),
        Forgery("replaced by a file with the same keys, without the AAD prefix", "prefix", lambda data, base: write("gcm", 1)),
        Forgery("signed footer altered", "signed", lambda data, base: _resigned(data, base, _fewer_rows, bytes)),
        Forgery("signed footer altered, signature removed", "signed",
                lambda data, base: _resigned(data, base, _fewer_rows, lambda seal: b"")),
        Forgery("a bit of the signature", "signed",
                lambda data, base: _resigned(data, base, _keep, lambda seal: flipped(seal, len(seal) - 1))),
        Forgery("signed file replaced by a plaintext file", "signed", lambda data, base: write(base, 1, is_plain=True)),
        Forgery("CTR: a bit of a page", "ctr", in_page(LENGTH_SIZE + NONCE_SIZE + 8), "AES-CTR has no tag"),
        Forgery("CTR: two pages of a column exchanged", "ctr", swap((0, 0, 1), (0, 0, 2)), "AES-CTR has no tag"),
        Forgery("CTR: a page of another file with the same keys", "ctr", _replaced_page, "AES-CTR has no tag"),
        Forgery("CTR: a bit of a page header", "ctr", header),
    ]


REFUSED, GENUINE, OTHER, UNREADABLE = "refused", "read", "**other values**", "–"


class Readers:
    """All readers, by name, each as a function of a path and the genuine file's base. They return an Arrow table.

    Args:
        java: parquet-java, or None to leave it out.
    """

    def __init__(self, java: ParquetJava | None) -> None:
        self._java, self._arrow = java, arrow_factory()
        self.functions: dict[str, Callable[[Path, Base], pa.Table]] = {
            "fastpq": self.fastpq,
            "fastpq, key service": self.fastpq_by_service,
            "pyarrow": self.pyarrow,
            "pyarrow, key service": self.pyarrow_by_service,
            "Polars": self.polars,
            "DuckDB": lambda path, base: duckdb_reads(path, FOOTER_KEY),
        }

    def verdict(self, name: str, path: Path, forgery: Forgery, genuine: pa.Table) -> str:
        """Return what a reader does with a forged file: REFUSED, GENUINE or OTHER."""
        try:
            if name == "parquet-java, key service":
                assert self._java is not None
                is_genuine = self._digest(path) == self._digest_of(genuine, path.with_name("truth.parquet"))
            else:
                is_genuine = self.functions[name](path, forgery.base).cast(genuine.schema).equals(genuine)
        except Exception:
            return REFUSED
        return GENUINE if is_genuine else OTHER

    @property
    def names(self) -> list[str]:
        return [*self.functions, *([] if self._java is None else ["parquet-java, key service"])]

    def fastpq(self, path: Path, base: Base) -> pa.Table:
        return pa.table(fastpq.read_table(path, decryption_properties=reading(base)))

    def fastpq_by_service(self, path: Path, base: Base) -> pa.Table:
        allowed = ALGORITHMS if base == "ctr" else ("AES_GCM_V1",)
        prefix = BASES[base].get("aad_prefix")
        trust = DecryptionConfiguration(trusted_master_keys=["kf"])
        keys = factory().file_decryption_properties(
            KmsConnectionConfig(), trust, allowed_algorithms=allowed, aad_prefix=prefix
        )
        return pa.table(fastpq.read_table(path, decryption_properties=keys))

    def pyarrow(self, path: Path, base: Base) -> pa.Table:
        keys = pe.create_decryption_properties(FOOTER_KEY, aad_prefix=BASES[base].get("aad_prefix"))
        return pq.read_table(path, decryption_properties=keys)

    def pyarrow_by_service(self, path: Path, base: Base) -> pa.Table:
        keys = self._arrow.file_decryption_properties(pe.KmsConnectionConfig(), pe.DecryptionConfiguration())
        return pq.read_table(path, decryption_properties=keys)

    def polars(self, path: Path, base: Base) -> pa.Table:
        with warnings.catch_warnings(action="ignore"):      # Polars calls its encryption unstable
            keys = pl.ParquetDecryptionProperties(footer_key=FOOTER_KEY, aad_prefix=BASES[base].get("aad_prefix"))
            return pl.read_parquet(path, decryption=keys).to_arrow()

    def _digest(self, path: Path) -> str:
        assert self._java is not None
        return managed_keys(self._java, "digest", path)

    def _digest_of(self, table: pa.Table, path: Path) -> str:
        pq.write_table(table, path)
        return self._digest(path)


def judge(readers: Readers, folder: Path) -> list[tuple[Forgery, dict[str, str]]]:
    """Return what each reader does with each forgery. A reader that cannot read the genuine file has no verdict."""
    rows, able = [], {}
    genuine_files = {base: write(base) for base in BASES}
    truth = pa.table(values())
    for number, forgery in enumerate(forgeries()):
        path = folder / f"{number}.parquet"
        path.write_bytes(forgery.make(genuine_files[forgery.base], forgery.base))
        verdicts = {name: readers.verdict(name, path, forgery, truth) for name in readers.names}
        if forgery.name.endswith("untouched"):
            able.update({(name, forgery.base): verdict == GENUINE for name, verdict in verdicts.items()})
            verdicts = {name: GENUINE if verdict == GENUINE else UNREADABLE for name, verdict in verdicts.items()}
        else:
            verdicts = {name: verdict if able[name, forgery.base] else UNREADABLE for name, verdict in verdicts.items()}
        rows.append((forgery, verdicts))
    return rows
