"""The jobs of the benchmark: files to read, files to write, footers to open, processes to start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# Columns of the files "encodings" and "nested"; an encoding stands before the first underscore.
ENCODED = (
    "plain_int32", "plain_int64", "plain_double", "plain_string", "delta_int32", "delta_int64", "split_float", "split_double",
    "split_int64", "dictionary_int64", "dictionary_string", "lengths_string", "prefixes_string", "rle_boolean",
)
NESTED = ("list_int64", "list_string", "map", "struct")

NUMERIC = (
    "l_orderkey", "l_partkey", "l_suppkey", "l_linenumber", "l_quantity", "l_extendedprice", "l_discount", "l_tax",
    "l_shipdate", "l_commitdate", "l_receiptdate",
)
STRINGS = ("l_returnflag", "l_linestatus", "l_shipinstruct", "l_shipmode", "l_comment")

SECRET_COLUMNS = ("l_extendedprice", "l_comment")

Algorithm = Literal["AES_GCM_V1", "AES_GCM_CTR_V1"]
Kind = Literal["read", "write", "footer", "import", "process"]


@dataclass(frozen=True)
class Job:
    """One task, the same for every peer.

    Attributes:
        name: name in tools/bench --jobs.
        kind: read a file into the library's own table, write a table to a file, open a footer; or a process of its own that
            imports the library, or imports it and reads a file.
        data: name of the input file in benchmarks.data.
        columns: columns to read; None for all.
        compression: codec of a file to write.
        encrypted: with 128-bit keys: ``"uniform"``, one key for footer and all columns; ``"columns"``, one for the footer and
            one for each column of SECRET_COLUMNS, other columns in plaintext.
        algorithm: algorithm of the encryption.
        goal: fastpq's time over the best peer's is to be at most this; None without a goal.
    """

    name: str
    kind: Kind
    data: str = "lineitem"
    columns: tuple[str, ...] | None = None
    compression: Literal["snappy", "zstd", "none"] = "snappy"
    encrypted: Literal["uniform", "columns"] | None = None
    algorithm: Algorithm = "AES_GCM_V1"
    goal: float | None = None

    @property
    def is_process(self) -> bool:
        """Whether a run is a process: the median counts, since starting one varies more than decoding."""
        return self.kind in {"import", "process"}


JOBS = (
    Job("read-snappy-all", "read", goal=0.75),
    Job("read-snappy-numeric", "read", columns=NUMERIC, goal=0.75),
    Job("read-snappy-strings", "read", columns=STRINGS, goal=0.75),
    Job("read-zstd-all", "read", data="zstd", goal=0.75),
    Job("read-nulls-all", "read", data="nulls", goal=0.75),
    Job("read-plain-numeric", "read", data="plain", columns=NUMERIC, goal=0.75),
    Job("read-unencrypted", "read", data="snappy"),
    Job("read-encrypted-all", "read", data="encrypted", encrypted="uniform"),
    Job("read-encrypted-ctr", "read", data="encrypted-ctr", encrypted="uniform", algorithm="AES_GCM_CTR_V1"),
    Job("read-encrypted-columns", "read", data="encrypted-columns", encrypted="columns"),
    Job("read-encrypted-one-page", "read", data="encrypted-one-page", encrypted="uniform"),
    Job("write-snappy", "write", goal=0.5),
    Job("write-zstd", "write", compression="zstd", goal=0.5),
    Job("write-uncompressed", "write", compression="none"),
    Job("write-encrypted", "write", encrypted="uniform"),
    Job("write-encrypted-ctr", "write", encrypted="uniform", algorithm="AES_GCM_CTR_V1"),
    Job("write-encrypted-columns", "write", encrypted="columns"),
    Job("import", "import"),
    Job("process-all", "process", goal=0.75),
    Job("process-one-column", "process", columns=("l_orderkey",), goal=0.75),
    Job("footer-10000-columns", "footer", data="wide"),
    Job("footer-100000-chunks", "footer", data="wide-100000"),
    Job("read-2-of-100000-chunks", "read", data="wide-100000", columns=("column_00017", "column_09321")),
    *(Job(f"read-{name}", "read", data="encodings", columns=(name,)) for name in ENCODED),
    *(Job(f"read-{name}", "read", data="nested", columns=(name,)) for name in NESTED),
)
PEER_NAMES = ("fastpq", "pyarrow", "polars", "duckdb", "fastparquet", "arro3")
BY_NAME = {job.name: job for job in JOBS}
KERNELS = "kernels"     # the kernel grid: no peers but memcpy
ENCODINGS = "encodings"     # each encoding of each type beside peers, by processor time
EQUAL_WORK = "equal-work"     # reads and writes of lineitem with the same input and result for all
SHAPES = "shapes"           # tables of many shapes, with equal work for all; only by name, it takes half an hour
OVERHEAD = "overhead"       # encrypted files beside plaintext files, in pairs, which prints its table itself
REWRITING = "rewriting"     # functions from files to files beside cp, pyarrow and DuckDB, which prints its table itself
SPARK = "spark"             # fastpq.spark beside Spark's native source, with bars; only by name, it takes half an hour
FLOOR = "floor"             # reads of lineitem beside decompression and one copy of the result; only by name
FILE_SIZE = "file-size"     # eleven tables with ZSTD: bytes and processor time, beside peers; only by name
SELECTIVE = "selective"     # a few rows of a file, local and over HTTP, with its own peers and measures
