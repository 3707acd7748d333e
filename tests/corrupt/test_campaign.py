"""A short campaign over real files, and proof that a campaign notices what it is there to notice."""

from __future__ import annotations

import ctypes
import io
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fastpq
from fastpq import format as fmt
from fastpq.codecs.catalogue import codec_for_write
from fastpq.codecs.codec import PackageCodec
from tests.corrupt import codec_corpus, ledger
from tests.corrupt.__main__ import main
from tests.corrupt.anatomy import signed_crc, take_apart
from tests.corrupt.campaign import Settings, run
from tests.corrupt.codec_corpus import codecs
from tests.corrupt.corpus import corpus
from tests.corrupt.mutate import MUTATIONS, mutate
from tests.corrupt.paths import WAYS, Case, Reading, Reference, WrongValueError, mutate_seed, paths, references
from tests.corrupt.seeds import MODES, Seed, load, seeds, store
from tests.corrupt.structured import Mutant, Subject, finished
from tests.encryption.module_walk import open_file
from tests.narrowing import present
from tests.varints import varint


@pytest.mark.parametrize("target", ["read", "select", "rewrite"])
def test_mutated_files_give_a_table_or_a_typed_error(target: str) -> None:
    findings = run(Settings(count=400, seed=20_261, workers=1, target=target))
    assert not findings.failures, findings.failures[0]
    assert findings.outcomes["FormatError"] > 50
    assert findings.outcomes["ok"] > 20


def test_mutated_nested_files() -> None:
    findings = run(Settings(count=400, seed=20_261, workers=1, target="nested"))
    assert not findings.failures, findings.failures[0]
    assert findings.outcomes["FormatError"] > 50
    assert findings.outcomes["ok"] > 20


@pytest.mark.parametrize("target", ["kernel", "codecs", "arrow_schema"])
def test_mutated_streams_and_schemas(target: str) -> None:
    findings = run(Settings(count=3000, seed=20_261, workers=1, target=target))
    assert not findings.failures, findings.failures[0]
    assert findings.outcomes["FormatError"] > 100
    assert findings.outcomes["ok"] > 100


def test_codecs_that_differ_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    page = b"".join(b"%d and %d " % (i, i % 7) for i in range(100))
    altered, short = codec_for_write("snappy"), bytes(codec_for_write("zstd").compress(page))
    header = bytes([0]) + len(page).to_bytes(4, "little")
    stream = bytes(altered.compress(page))
    codecs(header + stream, 1)

    def with_fault(change: Callable[[Any], None]) -> None:
        def decompress_into(source: Any, target: Any) -> None:
            altered.decompress_into(source, target)
            change(target)

        made = PackageCodec(altered.number, "snappy", altered.most_expansion, altered.compress, decompress_into)
        monkeypatch.setattr(codec_corpus, "implementations", lambda *_: (made, altered))

    def behind(target: Any) -> None:
        ctypes.memset(np.frombuffer(target, np.uint8).ctypes.data + len(target), 0, 1)

    def alter(target: Any) -> None:
        target[0] ^= 1

    def refuse(target: Any) -> None:
        raise fastpq.FormatError("refused")

    for change, index, message in ((alter, 1, "here, "), (refuse, 1, "refused here"), (behind, 2, "writes outside of its page")):
        with_fault(change)
        with pytest.raises(AssertionError, match=message):
            codecs(header + stream, index)
    monkeypatch.undo()
    with pytest.raises(fastpq.FormatError):
        codecs(header + short, 1)


@pytest.mark.parametrize("target", ["variant", "wkb"])
def test_mutated_values_give_a_value_or_a_typed_error(target: str) -> None:
    findings = run(Settings(count=3000, seed=20_261, workers=1, target=target))
    assert not findings.failures, findings.failures[0]
    assert findings.outcomes["FormatError" if target == "variant" else "SchemaError"] > 1000
    assert findings.outcomes["ok"] > 20


@pytest.mark.parametrize(
    ("target", "patience", "outcome", "detail"),
    [
        ("crash", 300, "death", "ended with -11"),
        ("sleep", 8, "death", "no answer within 8 s"),
        ("spin", 300, "death", "no answer within 1 s of processor time"),
        ("greedy", 300, "unexpected", "MemoryError"),
        ("bare", 300, "unexpected", "IndexError: not a ParquetError"),
        ("lie", 300, "unexpected", "WrongValueError: another value"),
    ],
)
def test_a_campaign_notices(target: str, patience: float, outcome: str, detail: str) -> None:
    findings = run(Settings(count=5, workers=1, time_limit=1, patience=patience, target=target))
    assert findings.outcomes == {outcome: 1, "ok": 4}
    assert findings.failures[0][:2] == (3, outcome)
    assert detail in findings.failures[0][2]


def test_typed_errors_are_not_findings() -> None:
    findings = run(Settings(count=5, workers=1, target="refuse"))
    assert findings.outcomes == {"FormatError": 5}
    assert not findings.failures


def test_mutations_change_files_and_can_be_made_again() -> None:
    samples = corpus()
    for index in range(200):
        what, data = mutate(samples, 7, index)
        assert (what, data) == mutate(samples, 7, index)
    for mutation in set(MUTATIONS):
        changed = [mutation(samples[0], Random(seed)) != samples[0].data for seed in range(20)]
        assert sum(changed) > 10, mutation


def test_varints() -> None:
    assert [varint(number) for number in (0, 127, 128, 300)] == [b"\x00", b"\x7f", b"\x80\x01", b"\xac\x02"]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of seeds."""
    folder = tmp_path_factory.mktemp("seeds")
    store(folder)
    return folder


def test_mutants_read_in_every_way(stored: Path) -> None:
    findings = run(Settings(count=1500, seed=20_261, workers=1, target="paths", corpus=stored))
    assert not findings.failures, findings.failures[0]
    assert findings.done == 1500
    assert findings.outcomes["FormatError"] > 300
    assert findings.outcomes["ok"] > 300
    assert set(findings.kinds) >= {"footer", "page header", "page body", "pages moved", "index", "bloom filter"}


@pytest.mark.parametrize("target", ["key_material", "keyring"])
def test_mutated_keys(target: str, tmp_path: Path) -> None:
    main(["--campaign", "--target", target, "--seconds", "1", "--workers", "1", "--folder", str(tmp_path)])
    [entry] = ledger.entries(tmp_path)
    assert not entry.findings
    assert entry.outcomes["FormatError"] > 5


def test_seeds_cover_the_format(stored: Path) -> None:
    encodings, codecs, versions = set(), set(), set()
    for seed in load(stored):
        if seed.mode is None and not seed.name.startswith(("wild", "empty")):
            footer = open_file(seed.data, None).metadata
            for chunk in (chunk.meta_data for group in footer.row_groups for chunk in group.columns):
                assert chunk is not None
                encodings |= set(chunk.encodings)
                codecs.add(chunk.codec)
                versions.add(fmt.decode(fmt.PageHeader, seed.data, chunk.data_page_offset)[0].type)
    assert encodings >= set(fmt.Encoding) - {fmt.Encoding.PLAIN_DICTIONARY, fmt.Encoding.BIT_PACKED}
    assert codecs >= set(fmt.CompressionCodec) - {fmt.CompressionCodec.LZO}
    assert versions >= fmt.DATA_PAGE_TYPES
    assert {seed.mode for seed in load(stored)} == {None, *MODES}


def test_seeds_put_together_again_read_as_before(stored: Path) -> None:
    apart = 0
    for reference in references(stored):
        parts = reference.subject.parts
        if parts is None or reference.table is None:
            continue
        body, footer = parts.lay(Random(1))
        data = parts.closed(body, fmt.decode(fmt.FileMetaData, footer)[0], Random(2))
        paths(Case(Mutant("", data, 0, same_values=True, true_claims=True), reference), 6)
        apart += 1
    assert apart > 100


def test_mutants_can_be_made_again(stored: Path) -> None:
    once, again = references(stored), references(stored)
    for number in range(300):
        assert mutate_seed(once, 3, number)[1].mutant == mutate_seed(again, 3, number)[1].mutant


def flat_seed() -> Seed:
    sink = io.BytesIO()
    fastpq.write_table({"a": list(range(20)), "b": list(range(20))}, sink, compression=None, use_dictionary=False)
    return Seed("flat", sink.getvalue())


def with_value(data: bytes, *, checksum: bool) -> bytes:
    """A file with another value on its first page, with or without its checksum made anew."""
    chunk = open_file(data, None).metadata.row_groups[0].columns[0].meta_data
    assert chunk is not None
    header, size = fmt.decode(fmt.PageHeader, data, chunk.data_page_offset)
    start = chunk.data_page_offset + size
    body = bytearray(data[start : start + header.compressed_page_size])
    body[-1] ^= 1
    header.crc = signed_crc(bytes(body)) if checksum else None
    made = fmt.encode(header)
    assert len(made) == size or not checksum
    return data[: start - size] + made.ljust(size, b"\0")[:size] + bytes(body) + data[start + len(body) :]


def test_a_wrong_value_is_noticed() -> None:
    seed = flat_seed()
    reference = Reference(Subject(seed))
    altered = with_value(seed.data, checksum=True)
    paths(Case(Mutant("", altered, 0), reference), 0)       # nothing vouches for these bytes
    with pytest.raises(WrongValueError, match="other values than the original's"):
        paths(Case(Mutant("", altered, 0, same_values=True), reference), 0)


COMPARING = [place for place, way in enumerate(WAYS) if way.__name__ not in ("export", "statistics", "tolerant", "pylist")]


@pytest.mark.parametrize("way", COMPARING, ids=lambda way: WAYS[way].__name__)
def test_a_path_that_reads_other_values_is_noticed(way: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seed = flat_seed()
    reference = Reference(Subject(seed))
    case = Case(Mutant("", seed.data, 0, true_claims=True), reference)
    paths(case, way)
    read, calls = fastpq.ParquetFile.read, list[fastpq.ParquetFile]()
    sink = io.BytesIO()
    fastpq.write_table({name: np.arange(100, 120) for name in ("a", "b")}, sink)
    other = fastpq.read_table(sink.getvalue())
    falsifies_first = WAYS[way].__name__ in ("batches", "take", "recovery")      # which do not call read again

    def read_another(file: fastpq.ParquetFile, *arguments: Any, **options: Any) -> fastpq.Table:
        calls.append(file)
        return other if (len(calls) == 1) == falsifies_first else read(file, *arguments, **options)

    monkeypatch.setattr(fastpq.ParquetFile, "read", read_another)
    with pytest.raises(WrongValueError):
        paths(case, way)


@pytest.mark.parametrize("nested", [False, True])
def test_an_offset_index_that_is_false_about_unread_pages_is_no_finding(nested: bool) -> None:
    sink = io.BytesIO()
    values = pa.array([[row, row + 1] for row in range(12)]) if nested else pa.array(range(12))
    fastpq.write_table(pa.table({"a": values}), sink, use_dictionary=False, data_page_rows=5, data_page_version="1.0")
    parts = take_apart(Seed("", sink.getvalue()))
    moved = finished(parts.with_chunk(0, pages=parts.chunks[0].pages[::-1]), Random(0))     # of 2, 5 and 5 rows
    reading = Reading(Mutant("", moved, 0), Reference(Subject(Seed("", moved))), 0)
    with reading.open() as file:
        found = file.read(row_ranges=[(6, 8)])
        assert file.read(row_ranges=[(3, 8)]).equals(present(reading.whole).slice(3, 8))       # the first page contradicts
    with pytest.raises(WrongValueError):
        reading.check(found, reading.part(slice(6, 8)), "row_ranges")
    reading.check_rows(found, slice(6, 8), "row_ranges")
    reading.check_rows(found, [6, 7], "take")
    with pytest.raises(WrongValueError):
        reading.check_rows(found, slice(3, 8), "row_ranges")


def test_a_campaign_goes_on_behind_the_last_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["--campaign", "--target", "wkb", "--seconds", "1", "--workers", "1", "--folder", str(tmp_path)]
    assert main(command) == 0
    assert main(command) == 0
    first, second = ledger.entries(tmp_path)
    assert (first.first, second.first) == (0, first.count)
    assert first.count == sum(first.outcomes.values()) == sum(first.kinds.values())
    assert main(["--summary", "--folder", str(tmp_path)]) == 0
    assert f"| all | | {first.count + second.count:,} |" in capsys.readouterr().out


def test_every_seed_of_our_own_is_readable() -> None:
    for seed in seeds():
        if not seed.name.startswith("wild"):
            fastpq.read_table(seed.data, decryption_properties=seed.keys)
