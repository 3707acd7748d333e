"""Files on an HTTP server and on an S3 server (moto): which requests are made, and how many at a time."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import s3fs

import fastpq
from fastpq.io.location import Remote
from fastpq.io.remote_source import FsspecSource
from fastpq.io.source_opening import open_source
from fastpq.options import DEFAULT_TAIL_READ
from tests.io.range_server import GUARD, RangeServer, serving

ROWS, GROUP = 200_000, 50_000
CREDENTIALS = {"key": "test", "secret": "test"}


def table() -> pa.Table:
    random = np.random.default_rng(1)
    columns: dict[str, Any] = {"id": np.arange(ROWS)}
    columns |= {f"number_{i}": random.random(ROWS) for i in range(6)}
    columns["tags"] = pa.array([[str(i)] * (i % 3) for i in range(ROWS)])
    return pa.table(columns)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("remote") / "data.parquet"
    pq.write_table(
        table(), path, row_group_size=GROUP, max_rows_per_page=2500, write_page_index=True, use_dictionary=False,
        compression="none",
    )
    return path


@pytest.fixture(scope="module")
def server(path: Path) -> Iterator[RangeServer]:
    with serving(path.parent) as state:
        yield state


@pytest.fixture
def counted(server: RangeServer) -> RangeServer:
    server.reset()
    return server


@pytest.fixture(scope="module")
def s3(moto_url: str, path: Path) -> tuple[str, Any]:
    """A file in a bucket, and the filesystem of it."""
    filesystem = s3fs.S3FileSystem(**CREDENTIALS, client_kwargs={"endpoint_url": moto_url}, skip_instance_cache=True)
    bucket = f"bucket-{uuid.uuid4().hex}"
    filesystem.mkdir(bucket)
    filesystem.put(str(path), f"{bucket}/data.parquet")
    return f"{bucket}/data.parquet", filesystem


class Opened:
    """What open_source takes for a file of a filesystem that is there already."""

    def __init__(self, path: str, fs: Any) -> None:
        self.path, self.fs = path, fs


def test_footer_and_indexes_take_one_request(counted: RangeServer) -> None:
    with fastpq.ParquetFile(f"{counted.url}/data.parquet") as file:
        assert file.explain([("id", "==", 77_777)]).row_groups[1].rows == 2500
        assert file.io.requests == counted.requests == 1
        assert file.io.bytes_read == counted.bytes_sent <= 1 << 16


def test_a_footer_longer_than_the_first_request_takes_one_more(path: Path, server: RangeServer) -> None:
    long = path.parent / "long.parquet"
    columns = {f"column number {number}": np.arange(8) for number in range(2000)}
    fastpq.write_table(columns, long, row_group_size=4)
    server.reset()
    with fastpq.ParquetFile(f"{server.url}/long.parquet") as file:
        assert file.metadata.num_columns == 2000
        assert server.requests == 2
        assert server.bytes_sent > 4 * DEFAULT_TAIL_READ


def test_a_point_lookup_reads_the_pages_of_its_row(counted: RangeServer, path: Path) -> None:
    counted.hold_until(8)       # all columns at the same time: the index tells that the row is on one page
    with fastpq.ParquetFile(f"{counted.url}/data.parquet") as file:
        row = file.read(filters=[("id", "==", 77_777)])
        assert pa.table(row).to_pylist() == table().slice(77_777, 1).to_pylist()
        assert (file.io.requests, file.io.bytes_read) == (counted.requests, counted.bytes_sent)
        assert counted.bytes_sent < path.stat().st_size / 20
        assert counted.at_once >= 8


@pytest.mark.parametrize("in_vain", [0, 1 << 30])
def test_bytes_buy_round_trips(path: Path, server: RangeServer, in_vain: int) -> None:
    """The value is in one row group of four, on any page of it, as the bloom filters know."""
    token = np.random.default_rng(2).permutation(ROWS)
    beside = path.parent / "tokens.parquet"
    fastpq.write_table(
        {"token": token, "id": np.arange(ROWS)}, beside, row_group_size=GROUP, bloom_filter={"token": True}, use_dictionary=False,
        compression=None,
    )
    server.reset()
    properties = fastpq.ReaderProperties(round_trip_bytes=in_vain)
    with fastpq.ParquetFile(f"{server.url}/tokens.parquet", properties=properties) as file:
        assert file.read(filters=[("token", "==", int(token[123_456]))])["id"].to_pylist() == [123_456]
    if in_vain:     # the footer; the columns of each row group, between which are the bloom filters
        assert server.bytes_sent > beside.stat().st_size * 0.7
        assert server.requests == 1 + ROWS // GROUP
    else:           # the footer; blocks of bloom filters; the tokens of a row group; the page of the row
        assert server.bytes_sent < beside.stat().st_size / 3
        assert server.requests >= 4


def test_ranges_are_read_at_the_same_time(counted: RangeServer) -> None:
    rows = list(range(0, ROWS, 10_000))
    counted.hold_until(4)
    properties = fastpq.ReaderProperties(coalesce_gap=0)
    with fastpq.ParquetFile(f"{counted.url}/data.parquet", properties=properties) as file:
        assert file.take(rows, ["id"])["id"].to_pylist() == rows
    assert counted.requests >= len(rows)
    assert counted.at_once >= 4


def test_gap_and_size_are_the_callers(counted: RangeServer) -> None:
    rows = [5, 12_500]      # with pages of 20 kB between them
    requests = []
    for gap in (0, 1 << 20):
        counted.reset()
        properties = fastpq.ReaderProperties(coalesce_gap=gap)
        with fastpq.ParquetFile(f"{counted.url}/data.parquet", properties=properties) as file:
            assert file.take(rows, ["id"])["id"].to_pylist() == rows
        requests.append((counted.requests, counted.bytes_sent))
    assert [count for count, _ in requests] == [3, 2]
    assert requests[0][1] < requests[1][1]
    counted.reset()
    small = fastpq.ReaderProperties(coalesce_size=50_000, coalesce_gap=1 << 20)
    with fastpq.ParquetFile(f"{counted.url}/data.parquet", properties=small) as file:
        assert file.take(rows, ["id"])["id"].to_pylist() == rows
    assert counted.requests == 3


def started(server: RangeServer) -> set[int]:
    """Where the ranges begin that were asked for."""
    return {start for start, _ in server.ranges}


def test_dictionaries_of_all_row_groups_are_read_at_the_same_time(path: Path, server: RangeServer) -> None:
    """The order of Arrow's dictionaries takes one round of requests, not one for each column or row group."""
    names, groups = ("low", "high", "flat"), 4
    entries = pa.array([f"entry {i}" for i in range(100)])
    codes = [pa.array(np.arange(40_000) % modulus) for modulus in (100, 99, 98)]
    arrays = [
        pa.DictionaryArray.from_arrays(part, entries, ordered=name != "flat") for name, part in zip(names, codes, strict=True)
    ]
    numbers = pa.array(np.random.default_rng(4).random(40_000))
    expected = pa.table({"n": numbers, **dict(zip(names, arrays, strict=True))})
    pq.write_table(expected, path.parent / "orders.parquet", row_group_size=10_000, use_dictionary=[*names])
    together = groups * len(names) - len(names)     # the last row group came with the footer
    server.reset()
    properties = fastpq.ReaderProperties(coalesce_gap=0)
    with fastpq.ParquetFile(f"{server.url}/orders.parquet", properties=properties) as file:
        server.gate = lambda _: len(server.ranges) == 2 or server.wait_for(lambda state: state.at_once >= together)
        got = file.read(row_groups=[0])
        assert (server.requests, server.at_once) == (2 + together, together)    # footer, row group, dictionaries
        server.gate = None
        rest = file.read(row_groups=[1, 2, 3])
        assert server.requests <= 2 + together + groups - 1     # dictionaries are known
    for table, theirs in ((got, expected.slice(0, 10_000)), (rest, expected.slice(10_000))):
        whole = pa.table(table)
        assert [whole.schema.field(name).type.ordered for name in names] == [True, True, False]
        assert whole["low"].chunk(0).dictionary.equals(entries)
        assert whole.to_pylist() == theirs.to_pylist()


@pytest.mark.parametrize("prefetch", [True, False])
def test_batches_are_those_of_the_file(counted: RangeServer, prefetch: bool) -> None:
    properties = fastpq.ReaderProperties(prefetch=prefetch)
    with fastpq.ParquetFile(f"{counted.url}/data.parquet", properties=properties) as file:
        batches = file.iter_batches(30_000)
        first = next(batches)
        chunks = [file.metadata.row_group(group).column(0).byte_range[0] for group in range(4)]
        # the next row group is on its way before a row of it is asked for, the last one not yet
        if prefetch:
            assert counted.wait_for(lambda server: chunks[1] in started(server))
        assert (chunks[1] in started(counted)) == prefetch
        assert chunks[3] not in started(counted)
        whole = fastpq.Table.concat([first, *batches])
        assert pa.table(whole).equals(table().cast(pa.table(whole).schema))


def test_decoding_overlaps_reading(counted: RangeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the first row group is decoded, the next two are on their way."""
    from fastpq.read import flat as readings

    begins: list[int] = []      # of the columns in each row group
    seen: list[set[int]] = []
    decode = readings.FlatReading._decode

    def watched(self: Any, *task: Any) -> None:
        decode(self, *task)
        if not seen:        # before the next chunk is asked for
            assert counted.wait_for(lambda server: set(begins[:3]) <= started(server))
        seen.append(started(counted))

    monkeypatch.setattr(readings.FlatReading, "_decode", watched)
    properties = fastpq.ReaderProperties(coalesce_size=1 << 20)
    with fastpq.ParquetFile(f"{counted.url}/data.parquet", properties=properties, threads=1) as file:
        begins += [file.metadata.row_group(group).column(0).byte_range[0] for group in range(4)]
        assert file.read(["id", "number_0"]).num_rows == ROWS
    assert len(seen) == 8
    assert begins[3] not in seen[0]     # not all had been asked for when the first chunk was decoded
    assert begins[3] in seen[-1]


def test_an_object_in_s3(s3: tuple[str, Any]) -> None:
    place, filesystem = s3
    with fastpq.ParquetFile(Opened(place, filesystem)) as file:
        assert pa.table(file.take([3, 190_000, 4])).to_pylist() == table().take([3, 190_000, 4]).to_pylist()
        assert file.read(["id"], filters=[("id", ">=", ROWS - 3)])["id"].to_pylist() == [ROWS - 3, ROWS - 2, ROWS - 1]
        assert np.array_equal(file.read(["number_3"])["number_3"].to_numpy(nulls="nan"), table()["number_3"].to_numpy())


def test_s3_ranges_are_read_at_the_same_time(s3: tuple[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests of the filesystem wait until there are four of them."""
    place, filesystem = s3
    fetch, asked, enough = filesystem._call_s3, 0, asyncio.Event()

    async def held(*arguments: Any, **options: Any) -> Any:
        nonlocal asked
        asked += 1
        if asked == 4:
            enough.set()
        await asyncio.wait_for(enough.wait(), GUARD)
        return await fetch(*arguments, **options)

    rows = list(range(0, ROWS, 20_000))
    with fastpq.ParquetFile(Opened(place, filesystem), properties=fastpq.ReaderProperties(coalesce_gap=0)) as file:
        monkeypatch.setattr(filesystem, "_call_s3", held)
        assert file.take(rows, ["id"])["id"].to_pylist() == rows
    assert asked >= 4


def test_the_end_of_the_file_is_kept(counted: RangeServer) -> None:
    import fsspec

    filesystem = fsspec.filesystem("http")
    url = f"{counted.url}/data.parquet"
    with FsspecSource(Remote(filesystem, url, url)) as source:
        assert source.counts == (1, DEFAULT_TAIL_READ)
        tail = source.read(source.size - 1000, 1000)
        assert source.read(source.size - 10, 5).tobytes() == tail[-10:-5].tobytes()
        assert [part.tobytes() for part in source.read_ranges([(source.size - 4, 4), (0, 4)])] == [b"PAR1", b"PAR1"]
        assert source.counts == (2, DEFAULT_TAIL_READ + 4)


def test_the_end_of_a_file_is_kept_up_to_a_bound() -> None:
    """The end is kept for footer and indexes; a whole file that was read is not."""
    filesystem = fsspec.filesystem("memory")
    filesystem.pipe("/kept/x", bytes(range(256)) * 1000)
    with open_source("memory://kept/x") as source:
        whole = source.read(0, source.size)
        assert whole.nbytes == 256_000
        assert source.counts == (1, 256_000)
        source.read(source.size - 1000, 1000)
        assert source.counts == (2, 257_000)
        source.read(source.size - 10, 10)
        assert source.counts == (2, 257_000)
