"""Speeds of codecs, encodings and encryption on this machine, measured on files in memory."""

from __future__ import annotations

import io
from collections.abc import Callable
from time import perf_counter
from typing import Any, TypedDict

from fastpq.errors import ParquetError

ROUNDS = 3  # the shortest time counts


class Measurement(TypedDict):
    """One job.

    Attributes:
        name: codec, encoding or mode.
        write: decoded megabytes in a second when writing.
        read: decoded megabytes in a second when reading.
        ratio: decoded bytes to stored bytes.
    """

    name: str
    write: float
    read: float
    ratio: float


class MeasurementGroup(TypedDict):
    """Jobs that differ in one thing.

    Attributes:
        name: what differs, and the data.
        measurements: the jobs.
    """

    name: str
    measurements: list[Measurement]


def measured_groups(size: int, threads: int, progress: Callable[[int, int], object]) -> list[MeasurementGroup]:
    """Measure all jobs.

    Args:
        size: bytes of the data in memory.
        threads: threads of each job.
        progress: called as ``progress(done, total)``, in jobs.
    """
    import numpy as np

    random = np.random.default_rng(0)
    count = size // 8
    prices = np.round(random.lognormal(3, 1, count), 2)
    times = np.cumsum(random.integers(0, 2000, count))
    key = bytes(range(16))
    plain: dict[str, Any] = {"use_dictionary": False, "compression": None}
    jobs: list[tuple[str, str, Any, dict[str, Any], bytes | None]] = [
        *(
            ("codec, on prices", name, prices, {"use_dictionary": False, "compression": name}, None)
            for name in ("none", "snappy", "lz4", "zstd", "gzip", "brotli")
        ),
        *(
            ("encoding, on timestamps", name, times, {"compression": None, "column_encoding": {"x": name}}, None)
            for name in ("PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT")
        ),
        ("encoding, on timestamps", "RLE_DICTIONARY (1,000 values)", times % 1000, {"compression": None}, None),
        *(
            ("encryption, not compressed", name, prices, plain, key if name != "none" else None)
            for name in ("none", "AES_GCM_V1", "AES_GCM_CTR_V1")
        ),
    ]
    groups: dict[str, MeasurementGroup] = {}
    for number, (group, name, values, options, footer_key) in enumerate(jobs):
        progress(number, len(jobs))
        measurement = _measure(name, values, threads, options, footer_key)
        if measurement is not None:
            groups.setdefault(group, MeasurementGroup(name=group, measurements=[]))["measurements"].append(measurement)
    progress(len(jobs), len(jobs))
    return list(groups.values())


def _measure(name: str, values: Any, threads: int, options: dict[str, Any], footer_key: bytes | None) -> Measurement | None:
    """Return the speeds of one job, or None if this installation does not have the codec."""
    from fastpq.api.functions import read_table, write_table
    from fastpq.encryption.properties import FileDecryptionProperties, FileEncryptionProperties

    encryption: Any = None
    decryption: Any = None
    if footer_key is not None:
        algorithm: Any = name
        encryption = FileEncryptionProperties(footer_key, algorithm=algorithm)
        decryption = FileDecryptionProperties(footer_key, allowed_algorithms=[algorithm])
    data = b""

    def write() -> None:
        nonlocal data
        buffer = io.BytesIO()
        write_table({"x": values}, buffer, threads=threads, encryption_properties=encryption, **options)
        data = buffer.getvalue()

    try:
        write_seconds = _shortest(write)
    except ParquetError:
        return None
    read_seconds = _shortest(lambda: read_table(data, threads=threads, decryption_properties=decryption))
    megabytes = values.nbytes / 1e6
    return Measurement(name=name, write=megabytes / write_seconds, read=megabytes / read_seconds, ratio=values.nbytes / len(data))


def _shortest(job: Callable[[], object]) -> float:
    """Return the shortest duration of a job, in seconds."""
    durations = []
    for _ in range(ROUNDS):
        start = perf_counter()
        job()
        durations.append(perf_counter() - start)
    return min(durations)
