"""Support of the format's features by other libraries: data, with the source of each cell.

The first of these sources with an entry decides a cell:

1. FOUND: results of our tests, with the installed versions. tests/tools/test_format_support.py reads files with each encoding,
   codec, page kind and mode of encryption; tests/encryption exchanges encrypted files with pyarrow, parquet-java, Polars and
   DuckDB.
2. CITED: statements in the documentation or the issues of the library's project.
3. STATUS: the implementation status page of Apache Parquet (repository apache/parquet-site, data/implementations/support).

Without an entry, support is unknown.
"""

from __future__ import annotations

from typing import NamedTuple

WRITES_TOO, READS, NO, UNKNOWN, YES = "RW", "R", "–", "?", "yes"


class Source(NamedTuple):
    """Sources of a library's column: project and date of the status page, and the tested version."""

    status: str
    tested: str


PEERS = {
    "pyarrow": Source("arrow, 2026-01-15", "pyarrow 26.0.1"),
    "parquet-java": Source("parquet-java, 2025-12-09", "1.17.0, of PySpark"),
    "parquet-rs": Source("arrow-rs, 2025-12-09", "arro3-io 0.9.1, for reading"),
    "DuckDB": Source("duckdb, 2025-12-09", "DuckDB 2.0.0"),
    "Polars": Source("polars, 2026-01-30", "Polars 2.1.0"),
}

# Support by feature, one word for each library in the order of PEERS.
STATUS = {
    "BOOLEAN": "RW RW RW RW RW",
    "INT32": "RW RW RW RW RW",
    "INT64": "RW RW RW RW RW",
    "INT96": "RW RW RW R R",
    "FLOAT": "RW RW RW RW RW",
    "DOUBLE": "RW RW RW RW RW",
    "BYTE_ARRAY": "RW RW RW RW RW",
    "FIXED_LEN_BYTE_ARRAY": "RW RW RW RW R",
    "STRING": "RW RW RW RW RW",
    "ENUM": "– RW RW RW R",
    "JSON": "RW RW RW RW –",
    "BSON": "– RW RW – –",
    "UUID": "– RW RW RW R",
    "INTEGER": "RW RW RW RW RW",
    "DECIMAL on INT32": "RW RW RW RW R",
    "DECIMAL on INT64": "RW RW RW RW R",
    "DECIMAL on BYTE_ARRAY": "RW RW RW R R",
    "DECIMAL on FIXED_LEN_BYTE_ARRAY": "RW RW RW RW RW",
    "FLOAT16": "RW RW RW RW RW",
    "DATE": "RW RW RW RW RW",
    "TIME on INT32": "RW RW RW RW R",
    "TIME on INT64": "RW RW RW RW RW",
    "TIMESTAMP": "RW RW RW RW RW",
    "INTERVAL": "RW RW RW RW R",
    "GEOMETRY": "RW RW RW RW R",
    "GEOGRAPHY": "RW RW RW RW R",
    "UNKNOWN": "RW RW RW RW RW",
    "LIST": "RW RW RW RW RW",
    "MAP": "RW RW RW RW R",
    "VARIANT": "? RW RW RW –",
    "FILE": "? – ? ? –",
    "PLAIN": "RW RW RW RW RW",
    "PLAIN_DICTIONARY": "RW RW RW R R",
    "RLE": "RW RW RW RW R",
    "BIT_PACKED": "RW RW – – –",
    "DELTA_BINARY_PACKED": "RW RW RW RW R",
    "DELTA_LENGTH_BYTE_ARRAY": "RW RW RW RW R",
    "DELTA_BYTE_ARRAY of BYTE_ARRAY": "RW RW RW RW R",
    "DELTA_BYTE_ARRAY of FIXED_LEN_BYTE_ARRAY": "RW RW RW RW R",
    "RLE_DICTIONARY": "RW RW RW RW RW",
    "BYTE_STREAM_SPLIT of floats": "RW RW RW RW R",
    "BYTE_STREAM_SPLIT of integers": "RW RW RW RW –",
    "BYTE_STREAM_SPLIT of FIXED_LEN_BYTE_ARRAY": "RW RW RW RW –",
    "ALP": "? – ? ? –",
    "UNCOMPRESSED": "RW RW RW RW RW",
    "SNAPPY": "RW RW RW RW RW",
    "GZIP": "RW RW RW RW RW",
    "LZO": "– – – – R",
    "BROTLI": "RW RW RW RW RW",
    "LZ4": "RW – RW – –",
    "ZSTD": "RW RW RW RW RW",
    "LZ4_RAW": "RW RW RW RW RW",
    "data page V2": "RW RW RW RW R",
    "page CRC-32": "RW RW RW R R",
    "statistics: min_value, max_value": "RW RW RW RW RW",
    "size statistics": "RW RW RW R R",
    "page index": "RW RW RW R R",
    "bloom filters": "RW RW RW RW –",
    "sorting columns": "RW – RW R R",
    "single columns": "yes yes yes yes yes",
    "row groups left out by statistics": "– yes yes yes yes",
    "row groups left out by bloom filters": "– yes yes yes –",
    "pages left out by the page index": "– yes yes – –",
    "column chunks in other files": "yes yes – – –",
    "any encryption": "RW RW RW RW –",
}

# Encodings supported by some libraries for some types only: a feature for each group of types.
BY_TYPE: dict[str, dict[str, tuple[str, ...]]] = {
    "DELTA_BYTE_ARRAY": {
        "DELTA_BYTE_ARRAY of BYTE_ARRAY": ("BYTE_ARRAY",),
        "DELTA_BYTE_ARRAY of FIXED_LEN_BYTE_ARRAY": ("FIXED_LEN_BYTE_ARRAY",),
    },
    "BYTE_STREAM_SPLIT": {
        "BYTE_STREAM_SPLIT of floats": ("FLOAT", "DOUBLE"),
        "BYTE_STREAM_SPLIT of integers": ("INT32", "INT64"),
        "BYTE_STREAM_SPLIT of FIXED_LEN_BYTE_ARRAY": ("FIXED_LEN_BYTE_ARRAY",),
    },
}

# Tested support by feature and library, where STATUS has another value or none.
FOUND: dict[tuple[str, str], str] = {
    **{("data page V1", peer): WRITES_TOO for peer in PEERS},
    **{("ALP", peer): NO for peer in ("pyarrow", "parquet-rs", "DuckDB", "Polars")},
    ("DELTA_BYTE_ARRAY of FIXED_LEN_BYTE_ARRAY", "Polars"): NO,
    ("BYTE_STREAM_SPLIT of integers", "Polars"): READS,
    ("BYTE_STREAM_SPLIT of FIXED_LEN_BYTE_ARRAY", "DuckDB"): NO,
    ("LZ4", "DuckDB"): READS,
    ("LZ4", "Polars"): READS,
    ("row groups left out by statistics", "pyarrow"): YES,
    ("any encryption", "Polars"): WRITES_TOO,
    **{("one key for footer and columns", peer): WRITES_TOO for peer in ("pyarrow", "parquet-java", "Polars")},
    ("one key for footer and columns", "DuckDB"): READS,
    **{("keys of single columns", peer): WRITES_TOO for peer in ("pyarrow", "parquet-java", "Polars")},
    **{("signed plaintext footer", peer): WRITES_TOO for peer in ("pyarrow", "parquet-java", "Polars")},
    ("AAD prefix", "pyarrow"): WRITES_TOO,
    ("AAD prefix", "parquet-java"): READS,
    ("AAD prefix", "Polars"): WRITES_TOO,
    **{("AES_GCM_V1", peer): WRITES_TOO for peer in ("pyarrow", "parquet-java", "Polars")},
    ("AES_GCM_V1", "DuckDB"): READS,
    ("AES_GCM_CTR_V1", "pyarrow"): WRITES_TOO,
    ("AES_GCM_CTR_V1", "parquet-java"): WRITES_TOO,
    ("AES_GCM_CTR_V1", "Polars"): NO,
    **{(f"keys of {bits} bits", peer): WRITES_TOO for bits in (128, 192, 256) for peer in ("pyarrow", "parquet-java")},
    **{(f"keys of {bits} bits", "Polars"): WRITES_TOO for bits in (128, 256)},
    ("keys of 192 bits", "Polars"): NO,
    # iceberg-rust with DataFusion 54.1 (tests/catalogs/test_iceberg_writing.py)
    **{
        (feature, "parquet-rs"): READS
        for feature in (
            "one key for footer and columns", "AAD prefix", "keys of 256 bits", "pages V2, layout of arrow",
            "data files of encrypted Iceberg tables",
        )
    },
    ("pages V2, layout of arrow", "pyarrow"): WRITES_TOO,
    ("pages V2, layout of arrow", "Polars"): READS,
    ("pages V2, layout of parquet-java", "pyarrow"): NO,
    ("pages V2, layout of parquet-java", "parquet-java"): WRITES_TOO,
    ("pages V2, layout of parquet-java", "Polars"): NO,
    ("keys in a key service", "pyarrow"): WRITES_TOO,
    ("keys in a key service", "parquet-java"): WRITES_TOO,
}

_ARROW_RS, _DUCKDB = "https://github.com/apache/arrow-rs/issues/", "https://duckdb.org/docs/stable/data/parquet/encryption"
# Support by feature and library, with the address of the project's statement.
CITED: dict[tuple[str, str], tuple[str, str]] = {
    ("keys of single columns", "parquet-rs"): (WRITES_TOO, _ARROW_RS + "7327"),
    ("signed plaintext footer", "parquet-rs"): (WRITES_TOO, _ARROW_RS + "7278"),
    ("AES_GCM_V1", "parquet-rs"): (WRITES_TOO, _ARROW_RS + "7258"),
    ("AES_GCM_CTR_V1", "parquet-rs"): (NO, _ARROW_RS + "7258"),
    ("keys of 128 bits", "parquet-rs"): (WRITES_TOO, _ARROW_RS + "9202"),
    ("keys of 192 bits", "parquet-rs"): (NO, _ARROW_RS + "9202"),
    ("keys of single columns", "DuckDB"): (NO, _DUCKDB),
    **{(f"keys of {bits} bits", "DuckDB"): (WRITES_TOO, _DUCKDB) for bits in (128, 192, 256)},
}

NOTES = {
    "INT96": (
        "deprecated; it holds timestamps. A column is read in nanoseconds; in microseconds or milliseconds where a value read "
        'does not fit (`coerce_int96_timestamp_unit="auto"`).'
    ),
    "STRING": (
        'text that is not UTF-8 is refused by readers and writers. `invalid_utf8="replace"` puts U+FFFD in the place of each '
        'wrong sequence, and `"binary"` gives the bytes. Filters and bounds are about the stored bytes.'
    ),
    "DATE": (
        "Spark 2, and later versions with `datetimeRebaseModeInWrite=LEGACY`, store dates and timestamps in the Julian calendar "
        "before 1582-10-15, and say so in the key-value metadata. Such dates keep their year, month and day, also in filters and "
        "bounds. Timestamps before 1900, INT96 too, would need the rules of a time zone. They are refused. "
        '`legacy_calendar="keep"` gives the stored values.'
    ),
    "INTERVAL": "has a ConvertedType and no LogicalType.",
    "ALP": "a preview of the specification. fastpq writes it where `column_encoding` asks for it.",
    "LZO": "fastpq needs the extra `lzo`.",
    "LZ4": "deprecated, in Hadoop's framing; `compression=\"lz4_hadoop\"`.",
    "LZ4_RAW": "`compression=\"lz4\"`.",
    "row groups left out by statistics": "`pyarrow.dataset` was tested; the status page means the C++ library.",
    "any encryption": "DuckDB's files leave out parts of the specification: [its dialect](encryption.md#duckdb).",
    "one key for footer and columns": "DuckDB writes such files in its dialect. fastpq reads them.",
    "pages V2, layout of arrow": "the specification can be read in two ways. fastpq writes either layout.",
    "keys of 256 bits": "parquet-rs was tested in DataFusion 54.1.",
    "data files of encrypted Iceberg tables": "parquet-rs reads them in iceberg-rust. [Iceberg](iceberg.md) has more.",
}


def cell(feature: str, peer: str) -> tuple[str, str | None]:
    """Support of a feature by a library; and ``"tested"``, a cited address, or None for the status page."""
    if (feature, peer) in FOUND:
        return FOUND[feature, peer], "tested"
    if (feature, peer) in CITED:
        return CITED[feature, peer]
    if feature in STATUS:
        return dict(zip(PEERS, STATUS[feature].split(), strict=True))[peer], None
    return UNKNOWN, None
