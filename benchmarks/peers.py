"""fastpq and its peers: each library reads into its own in-memory table, and writes from its own table."""

from __future__ import annotations

import importlib.util
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from benchmarks import keys
from benchmarks.jobs import Job
from fastpq.version import VERSION

ROW_GROUP_SIZE = 1 << 20    # rows of a row group, for every writer with the option


class Peer(ABC):
    """A library under measurement.

    Args:
        threads: most threads of the library.

    Attributes:
        name: name in tools/bench --peers.
        distribution: name on PyPI, for the recorded version.
        module: module to import.
        parallel: whether the library uses several threads for one file.
        importing: program that imports all that reading a file needs.
        reading: program that imports the library and reads ``columns`` (None for all) of ``path``; empty without one.
    """

    name: ClassVar[str]
    distribution: ClassVar[str]
    module: ClassVar[str]
    parallel: ClassVar[bool] = True
    importing: ClassVar[str] = ""
    reading: ClassVar[str] = ""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    @classmethod
    def installed(cls) -> str | None:
        """The library's version; None if not installed."""
        return version(cls.distribution) if importlib.util.find_spec(cls.module.partition(".")[0]) else None

    @classmethod
    def does(cls, job: Job) -> bool:
        """Whether the library supports a job."""
        return bool(cls.reading) if job.is_process else not job.encrypted

    @abstractmethod
    def read(self, path: Path, job: Job) -> Any:
        """Read the job's columns of a file into the library's own table."""

    @abstractmethod
    def write(self, table: Any, path: Path, job: Job) -> None:
        """Write a table of ``take`` with the job's compression and encryption."""

    @abstractmethod
    def open_footer(self, path: Path) -> int:
        """Open the metadata of a file; returns the number of columns."""

    def program(self, path: Path, job: Job) -> str:
        """The program of a job that is a process; its threads are those of ``environment``."""
        if job.kind == "import":
            return self.importing
        return self.reading.format(path=str(path), columns=list(job.columns) if job.columns else None, threads=self.threads)

    def to_arrow(self, table: Any) -> pa.Table:
        """A table of the library as an Arrow table, for the comparison."""
        return pa.table(table)

    def take(self, path: Path, job: Job) -> Any:
        """The library's own table of a file, as input for ``write``."""
        return self.read(path, Job("source", "read"))


class Fastpq(Peer):
    name = distribution = module = "fastpq"
    importing = "import fastpq; fastpq.read_table"
    reading = "import fastpq; table = fastpq.read_table({path!r}, {columns!r}, threads={threads})"

    @classmethod
    def installed(cls) -> str | None:
        """Version of the working tree, installed or not."""
        return VERSION

    @classmethod
    def does(cls, job: Job) -> bool:
        return True

    def read(self, path: Path, job: Job) -> Any:
        import fastpq

        columns = list(job.columns) if job.columns else None
        return fastpq.read_table(path, columns, threads=self.threads, decryption_properties=keys.for_fastpq_to_read(job))

    def write(self, table: Any, path: Path, job: Job) -> None:
        import fastpq

        fastpq.write_table(
            table,
            path,
            compression=job.compression,
            row_group_size=ROW_GROUP_SIZE,
            threads=self.threads,
            encryption_properties=keys.for_fastpq_to_write(job),
        )

    def open_footer(self, path: Path) -> int:
        import fastpq

        return fastpq.read_metadata(path).num_columns


class PyArrow(Peer):
    name = distribution = module = "pyarrow"
    importing = "import pyarrow.parquet"
    reading = "import pyarrow.parquet; table = pyarrow.parquet.read_table({path!r}, columns={columns!r})"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        pa.set_cpu_count(threads)
        pa.set_io_thread_count(threads)

    @classmethod
    def does(cls, job: Job) -> bool:
        return True

    def read(self, path: Path, job: Job) -> Any:
        import pyarrow.parquet as pq

        columns = list(job.columns) if job.columns else None
        parallel = self.threads > 1
        return pq.read_table(
            path,
            columns=columns,
            use_threads=parallel,
            pre_buffer=parallel,
            memory_map=True,
            decryption_properties=keys.for_pyarrow_to_read(job),
        )

    def write(self, table: Any, path: Path, job: Job) -> None:
        import pyarrow.parquet as pq

        pq.write_table(
            table,
            path,
            compression=job.compression,
            row_group_size=ROW_GROUP_SIZE,
            store_decimal_as_integer=True,
            encryption_properties=keys.for_pyarrow_to_write(job),
        )

    def open_footer(self, path: Path) -> int:
        import pyarrow.parquet as pq

        return int(pq.read_metadata(path).num_columns)


class Polars(Peer):
    name = distribution = module = "polars"     # POLARS_MAX_THREADS sets the threads, at import
    importing = "import polars"
    reading = "import polars; table = polars.read_parquet({path!r}, columns={columns!r})"

    @classmethod
    def does(cls, job: Job) -> bool:
        return job.algorithm == "AES_GCM_V1"

    def read(self, path: Path, job: Job) -> Any:
        import polars as pl

        columns = list(job.columns) if job.columns else None
        with unstable():
            return pl.read_parquet(path, columns=columns, decryption=keys.for_polars_to_read(job))

    def write(self, table: Any, path: Path, job: Job) -> None:
        compression = "uncompressed" if job.compression == "none" else job.compression
        with unstable():
            encryption = keys.for_polars_to_write(job)
            table.write_parquet(path, compression=compression, row_group_size=ROW_GROUP_SIZE, encryption=encryption)

    def open_footer(self, path: Path) -> int:
        import polars as pl

        return len(pl.read_parquet_schema(path))

    def to_arrow(self, table: Any) -> pa.Table:
        return table.to_arrow()


class DuckDB(Peer):
    name = distribution = module = "duckdb"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        import duckdb

        self.connection = duckdb.connect(config={"threads": threads})

    @classmethod
    def does(cls, job: Job) -> bool:
        """DuckDB reads encrypted files only with one page a chunk, and writes encrypted files unreadable to others."""
        return job.data == "encrypted-one-page" or not (job.encrypted or job.is_process or job.kind == "footer")

    def read(self, path: Path, job: Job) -> Any:
        """Read as an Arrow table: three times faster than into a table of DuckDB."""
        columns = ", ".join(job.columns) if job.columns else "*"
        return self.connection.sql(f"SELECT {columns} FROM read_parquet('{path}'{keys.for_duckdb(job)})").to_arrow_table()

    def take(self, path: Path, job: Job) -> str:
        self.connection.execute(f"CREATE TABLE source AS SELECT * FROM read_parquet('{path}')")
        return "source"

    def write(self, table: Any, path: Path, job: Job) -> None:
        compression = "uncompressed" if job.compression == "none" else job.compression
        self.connection.execute(
            f"COPY {table} TO '{path}' (FORMAT parquet, COMPRESSION {compression}, ROW_GROUP_SIZE {ROW_GROUP_SIZE})"
        )

    def open_footer(self, path: Path) -> int:
        raise NotImplementedError


class FastParquet(Peer):
    name = distribution = module = "fastparquet"
    parallel = False

    def read(self, path: Path, job: Job) -> Any:
        import fastparquet

        return fastparquet.ParquetFile(str(path)).to_pandas(columns=list(job.columns) if job.columns else None)

    def write(self, table: Any, path: Path, job: Job) -> None:
        import fastparquet

        codec = None if job.compression == "none" else job.compression.upper()
        fastparquet.write(str(path), table, compression=codec, row_group_offsets=ROW_GROUP_SIZE, write_index=False)

    def open_footer(self, path: Path) -> int:
        import fastparquet

        return len(fastparquet.ParquetFile(str(path)).columns)

    def to_arrow(self, table: Any) -> pa.Table:
        return pa.Table.from_pandas(table, preserve_index=False)


class Arro3(Peer):
    name = "arro3"
    distribution = module = "arro3-io"
    parallel = False

    @classmethod
    def installed(cls) -> str | None:
        return version(cls.distribution) if importlib.util.find_spec("arro3") else None

    @classmethod
    def does(cls, job: Job) -> bool:
        return not job.encrypted and not job.is_process and not job.columns     # no projection

    def read(self, path: Path, job: Job) -> Any:
        import arro3.io

        return arro3.io.read_parquet(path).read_all()

    def write(self, table: Any, path: Path, job: Job) -> None:
        import arro3.io

        compression = {"snappy": "snappy", "zstd": "zstd(1)", "none": "uncompressed"}[job.compression]
        arro3.io.write_parquet(table, path, compression=compression, max_row_group_size=ROW_GROUP_SIZE)

    def open_footer(self, path: Path) -> int:
        """Open a reader without reading rows."""
        import arro3.io

        return len(arro3.io.read_parquet(path).schema)


PEERS: dict[str, type[Peer]] = {
    peer.name: peer for peer in (Fastpq, PyArrow, Polars, DuckDB, FastParquet, Arro3)
}


def environment(threads: int) -> dict[str, str]:
    """Environment variables to set the number of threads of libraries at import."""
    count = str(threads)
    names = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "RAYON_NUM_THREADS", "TOKIO_WORKER_THREADS", "ARROW_IO_THREADS")
    return {**os.environ, **dict.fromkeys(names, count)}


@contextmanager
def unstable() -> Iterator[None]:
    """Ignore Polars' warning about possible changes of its encryption."""
    with warnings.catch_warnings(action="ignore"):
        yield

