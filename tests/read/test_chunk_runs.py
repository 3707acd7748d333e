"""Consecutive chunks of a flat column, decoded by one reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq import format as fmt
from fastpq.column.chunk_reader import ChunkReader
from fastpq.column.column_output import ColumnOutput
from fastpq.encryption.cipher import ModuleCipher
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.read import chunk_run
from fastpq.read.chunk_plan import ChunkPlan
from fastpq.read.chunk_run import ChunkRun, RunPlan, cut_runs
from fastpq.read.opener import ChunkOpener

ROWS, GROUP = 1000, 70          # the last row group is shorter
KEY = b"0123456789012345"


def table() -> pa.Table:
    rng = np.random.default_rng(5)
    numbers = rng.integers(-9, 9, ROWS)
    words = [None if n < -7 else "a value longer than a view holds " + str(n) for n in numbers]
    return pa.table({
        "numbers": pa.array(numbers, mask=numbers == 3),
        "required": pa.array(rng.random(ROWS)),
        "booleans": pa.array(numbers > 0),
        "words": words,
        "plain": [None if word is None else f"{word} {number}" for number, word in enumerate(words)],
        "decimals": pa.array(numbers.tolist(), pa.decimal128(20, 2)),
        "nulls": pa.nulls(ROWS, pa.float32()),
    })


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of chunks of each run."""
    found: list[int] = []

    def counted(reader: ChunkReader, plan: RunPlan, *others: Any) -> ChunkRun:
        found.append(len(plan.chunks))
        return ChunkRun(reader, plan, *others)

    monkeypatch.setattr(chunk_run, "ChunkRun", counted)
    return found


def write(path: Path, **options: Any) -> pa.Table:
    """A file of pyarrow with many row groups; values of the column "plain" are in no dictionary."""
    made = table()
    names = [name for name in made.column_names if name != "plain"]
    pq.write_table(made, path, row_group_size=GROUP, use_dictionary=names, **options)
    return made


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("threads", [1, 2])
def test_runs_have_the_values_of_their_chunks(
    tmp_path: Path, runs: list[int], threads: int, version: str, compression: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastpq.read.scan.WORTH_A_THREAD", 0)
    monkeypatch.setattr("fastpq.read.scan.WORTH_A_TASK", 0)
    made = write(tmp_path / "file", compression=compression, data_page_version=version, write_batch_size=16, data_page_size=64)
    read = fastpq.read_table(tmp_path / "file", threads=threads)
    assert pa.table(read).cast(made.schema).equals(made)
    assert max(runs) > 1 if threads > 1 else runs == [-(-ROWS // GROUP)] * made.num_columns


def test_runs_of_encrypted_chunks(tmp_path: Path, runs: list[int]) -> None:
    made = table()
    fastpq.write_table(
        made, tmp_path / "file", row_group_size=GROUP, encryption_properties=fastpq.FileEncryptionProperties(KEY))
    read = fastpq.read_table(tmp_path / "file", decryption_properties=fastpq.FileDecryptionProperties(KEY), threads=1)
    assert pa.table(read).cast(made.schema).equals(made)
    assert runs == [-(-ROWS // GROUP)] * made.num_columns


def test_an_ordinal_outside_of_the_format_names_the_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fastpq.write_table(
        table(), tmp_path / "file", row_group_size=GROUP, encryption_properties=fastpq.FileEncryptionProperties(KEY))
    for wrong, message in ((1 << 15, "ordinal 32768"), (-1, "ordinal -1"), (9, "does not authenticate")):
        numbers = [0, 1, 2, wrong, *range(4, -(-ROWS // GROUP))]
        monkeypatch.setattr(FileMetaData, "row_group_ordinals", numbers)
        with pytest.raises(fastpq.CryptoError, match=message) as caught:
            fastpq.read_table(
                tmp_path / "file", columns=["required"], decryption_properties=fastpq.FileDecryptionProperties(KEY), threads=1)
        row_group = 3 if "ordinal" in message else wrong        # a tag belongs to an ordinal
        assert (caught.value.context["column"], caught.value.context["row_group"]) == ("required", row_group)


def test_runs_end_at_a_number_of_bytes(tmp_path: Path, runs: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    made = write(tmp_path / "file", compression="none")
    size = pq.read_metadata(tmp_path / "file").row_group(0).column(1).total_compressed_size + 8 * GROUP
    monkeypatch.setattr("fastpq.read.scan.LARGEST_RUN", 4 * size)
    read = fastpq.read_table(tmp_path / "file", columns=["required"], threads=1)
    assert pa.table(read).cast(made.select(["required"]).schema).equals(made.select(["required"]))
    assert runs[0] == 4
    assert sum(runs) == -(-ROWS // GROUP)


def test_chosen_rows_are_read_chunk_by_chunk_and_codes_in_runs(tmp_path: Path, runs: list[int]) -> None:
    made = write(tmp_path / "file")
    with fastpq.ParquetFile(tmp_path / "file", threads=1) as file:
        assert file.read(["required"], row_ranges=[(3, 900)])["required"].to_pylist() == made["required"].to_pylist()[3:900]
    read = fastpq.read_table(tmp_path / "file", columns=["words"], strings="dictionary", threads=1)
    assert read["words"].to_pylist() == made["words"].to_pylist()
    assert runs == [900 // GROUP - 1, -(-ROWS // GROUP)]        # of the rows, all row groups without the first and the last


@pytest.mark.parametrize("broken", [0, 6, 14])
def test_an_error_names_the_chunk(tmp_path: Path, broken: int, runs: list[int]) -> None:
    write(tmp_path / "file", compression="none", write_page_checksum=True)
    place = pq.read_metadata(tmp_path / "file").row_group(broken).column(1)
    stored = bytearray((tmp_path / "file").read_bytes())
    stored[(place.dictionary_page_offset or place.data_page_offset) + place.total_compressed_size - 1] ^= 1
    (tmp_path / "file").write_bytes(stored)
    with pytest.raises(fastpq.FormatError, match="CRC-32") as caught:
        fastpq.read_table(tmp_path / "file", columns=["required"], threads=1)
    assert (caught.value.context["column"], caught.value.context["row_group"]) == ("required", broken)
    assert runs == [-(-ROWS // GROUP)]


def test_an_error_of_an_unopened_chunk_names_the_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"required": b"0123456789012346"}
    properties = fastpq.FileEncryptionProperties(KEY, column_keys=own)
    fastpq.write_table(table(), tmp_path / "file", row_group_size=GROUP, encryption_properties=properties)
    calls = iter(range(1000))
    cipher_of = ChunkOpener._cipher

    def failing(*arguments: Any) -> ModuleCipher:
        if next(calls) == 4:
            raise fastpq.UnsupportedError("a chunk of the future")
        return cipher_of(*arguments)

    monkeypatch.setattr(ChunkOpener, "_cipher", failing)
    keys = fastpq.FileDecryptionProperties(KEY, column_keys=own)
    with pytest.raises(fastpq.UnsupportedError, match="future") as caught:
        fastpq.read_table(tmp_path / "file", columns=["required"], threads=1, decryption_properties=keys)
    assert caught.value.context["row_group"] == 4


def test_an_encrypted_chunk_among_others_is_refused(tmp_path: Path) -> None:
    """By the footer; no writer encrypts some chunks of a column alone."""
    fastpq.write_table({"a": range(ROWS)}, tmp_path / "file", row_group_size=GROUP)
    stored = (tmp_path / "file").read_bytes()
    size = int.from_bytes(stored[-8:-4], "little")
    footer = fmt.decode(fmt.FileMetaData, stored[-8 - size:-8])[0]
    crypto = fmt.ColumnCryptoMetaData(ENCRYPTION_WITH_FOOTER_KEY=fmt.EncryptionWithFooterKey())
    footer.row_groups[3].columns[0].crypto_metadata = crypto
    changed = fmt.encode(footer)
    (tmp_path / "file").write_bytes(stored[:-8 - size] + changed + len(changed).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(fastpq.KeyAccessError) as caught:
        fastpq.read_table(tmp_path / "file", threads=1)
    assert (caught.value.context["column"], caught.value.context["row_group"]) == ("a", 3)


class Unread:
    """A run whose values are not read."""

    def __init__(self, run: ChunkRun, plan: RunPlan, reader: ChunkReader) -> None:
        self.run, self.plan, self.reader = run, plan, reader
        self.current = 0

    def read(self, output: ColumnOutput, offset: int) -> int:
        self.output = output
        return offset


def unread(path: Path, column: str, monkeypatch: pytest.MonkeyPatch) -> Unread:
    """The run of all chunks of a column before their first values, and the output."""
    given: list[Unread] = []

    def kept(reader: ChunkReader, plan: RunPlan, *others: Any) -> Unread:
        given.append(Unread(ChunkRun(reader, plan, *others), plan, reader))
        return given[-1]

    with monkeypatch.context() as patch:
        patch.setattr(chunk_run, "ChunkRun", kept)
        fastpq.read_table(path, columns=[column], threads=1)
    return given[0]


def test_bad_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = write(tmp_path / "file")
    found = unread(tmp_path / "file", "required", monkeypatch)
    run, output, reader = found.run, found.output, found.reader
    for target, offset in ((output, 1), (output, -1), (ColumnOutput(ROWS - 1, 8, False), 0), (ColumnOutput(ROWS, 4, False), 0)):
        with pytest.raises(ValueError, match=r"rows at|an output for values"):
            run.read(target, offset)
    [one] = cut_runs(found.plan.chunks[:1], 8, False, -1, 1)
    [all_but_one] = cut_runs(found.plan.chunks[1:], 8, False, 1 << 20, 256)
    with pytest.raises(ValueError, match="0 ciphers for 1"):
        ChunkRun(reader, one, False, [])
    with pytest.raises(ValueError, match="a chunk of"):
        ChunkRun(reader, all_but_one, True)         # the reader has the bytes of the chunks alone
    with pytest.raises(TypeError, match="cipher"):
        ChunkRun(reader, one, False, ["none"])      # type: ignore[list-item]
    with pytest.raises(TypeError):
        cut_runs([None], 8, False, -1, 1)           # type: ignore[list-item]
    assert cut_runs([], 8, False, -1, 1) == []
    for _ in range(2):
        assert run.read(output, 0) == 0
        assert output.values.view(np.float64).tolist() == made["required"].to_pylist()
        output.values[:] = 0


def test_readers_of_verdicts_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "file")
    opened: list[ChunkReader] = []
    chunks: list[ChunkPlan] = []
    flat_reader = ChunkOpener.flat

    def kept(self: ChunkOpener, *arguments: Any) -> ChunkReader:
        chunk, stored, layout = arguments[:3]
        chunks.append(chunk)
        opened.append(flat_reader(self, chunk, stored, layout, lambda values, buffers: np.zeros(len(values), np.uint8)))
        return opened[-1]

    monkeypatch.setattr(ChunkOpener, "flat", kept)
    with fastpq.ParquetFile(tmp_path / "file", threads=1) as file, pytest.raises(ValueError, match="an output for values with"):
        file.read(["words"], row_groups=[0])
    with pytest.raises(TypeError, match="verdicts"):
        ChunkRun(opened[0], cut_runs(chunks, 16, True, -1, 1)[0], False)


def test_chunks_of_several_codecs(tmp_path: Path, runs: list[int]) -> None:
    made = table()
    parts = []
    for number, codec in enumerate(("snappy", "zstd", "none", "snappy")):
        parts.append(tmp_path / f"{number}")
        pq.write_table(made.slice(number * 250, 250), parts[-1], compression=codec, row_group_size=GROUP)
    fastpq.merge_files(parts, tmp_path / "all")
    read = pa.table(fastpq.read_table(tmp_path / "all", threads=1))
    assert read.cast(made.schema).equals(made)
    assert runs == [-(-250 // GROUP)] * 4 * made.num_columns        # one of each codec
