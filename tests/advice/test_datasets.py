"""Advice on datasets: the three laws with planted faults over many files, the steps of recipes, and what other readers read."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.advice.recipe_steps import replay, steps_of
from fastpq.common.progress import Meter
from fastpq.datasets.consolidation import consolidate
from tests.advice.test_laws import SAME, CountingFile
from tests.cli.conftest import command  # noqa: F401  # a fixture
from tests.cli.running import Runner

ROWS, FILES = 3000, 12
USES: list[Any] = ["scan", "lookup", "web", "archive", "gpu"]
KEY = "id"


def table(number: int, rows: int = ROWS) -> dict[str, Any]:
    """Return the rows of one file. The ids of all files are mixed."""
    random = np.random.default_rng(number)
    words = np.array(["north", "south west", "east of the river", "centre"])
    return {
        "id": random.permutation(rows) * FILES + number,
        "price": np.round(random.random(rows) * 20, 2),
        "place": words[random.integers(0, 4, rows)],
        "path": np.array([f"/var/log/service/2024/{value:08d}.txt" for value in range(rows)]),
    }


def write_files(
    folder: Path, options: Callable[[int], Mapping[str, Any]] = lambda _: {}, *, rows: int = ROWS, files: int = FILES,
    change: Callable[[int, dict[str, Any]], dict[str, Any]] = lambda _, columns: columns, in_partitions: bool = False,
) -> None:
    """Write the files of a dataset."""
    for number in range(files):
        place = folder / f"part={number}" if in_partitions else folder
        place.mkdir(parents=True, exist_ok=True)
        columns: Any = change(number, table(number, rows))
        fastpq.write_table(columns, place / f"file-{number:02}.parquet", **options(number))


def write_years(folder: Path, *years: int) -> None:
    """Write partitions of several files each."""
    for year in years:
        write_files(folder / f"year={year}", files=4)


class PlantedFault(NamedTuple):
    """A dataset with a fault.

    Attributes:
        name: what is wrong.
        make: writes the files to a folder.
        use: the use that the fault harms.
        topic: topic of the advice.
        columns: columns of the advice. Empty if any columns are right.
    """

    name: str
    make: Callable[[Path], object]
    use: Any
    topic: str
    columns: tuple[str, ...] = ()


def narrow(number: int, columns: dict[str, Any]) -> dict[str, Any]:
    return {**columns, "id": columns["id"].astype(np.int32)} if number % 3 == 0 else columns


def apart(number: int, columns: dict[str, Any]) -> dict[str, Any]:
    return {**columns, "id": columns["id"] + number * 10_000_000}


def with_noise(number: int, columns: dict[str, Any]) -> dict[str, Any]:
    noise = np.random.default_rng(number).random(len(columns["id"]))
    return {**columns, "noise": noise, "more": noise * 1.1}


def unequal(folder: Path) -> None:
    """Write one file of large and small row groups."""
    folder.mkdir(parents=True, exist_ok=True)
    with fastpq.ParquetWriter(folder / "file.parquet") as writer:
        for number, rows in enumerate((40_000, 10, 40_000, 20, 30)):
            writer.write_table(table(number, rows))


FAULTS = [
    PlantedFault("many small files", write_files, "scan", "files"),
    PlantedFault(
        "many small files in each partition",
        lambda folder: write_years(folder, 2023, 2024, 2025), "scan", "files"),
    PlantedFault("small row groups", lambda folder: write_files(folder, lambda _: {"row_group_size": 100}), "scan", "files"),
    PlantedFault("unequal row groups", unequal, "scan", "row groups"),
    PlantedFault(
        "small row groups in partitions",
        lambda folder: write_files(folder, lambda _: {"row_group_size": 100}, in_partitions=True), "scan", "row groups"),
    PlantedFault("other types in some files", lambda folder: write_files(folder, change=narrow), "scan", "schema", ("id",)),
    PlantedFault(
        "some files are not compressed",
        lambda folder: write_files(folder, lambda number: {"compression": None if number % 2 else "snappy"}), "scan",
        "compression"),
    PlantedFault(
        "mixed codecs in partitions",
        lambda folder: write_files(
            folder, lambda number: {"compression": ("gzip", "snappy", "zstd")[number % 3]}, rows=20_000, in_partitions=True),
        "web", "compression"),
    PlantedFault(
        "no dictionaries in partitions",
        lambda folder: write_files(folder, lambda _: {"use_dictionary": False}, rows=20_000, in_partitions=True), "scan",
        "encoding"),
    PlantedFault(
        "no statistics", lambda folder: write_files(
            folder, lambda _: {"write_statistics": False, "write_page_index": False}, rows=30_000, files=6, in_partitions=True,
            change=apart),
        "lookup", "statistics"),
    PlantedFault(
        "no page index", lambda folder: write_files(
            folder, lambda _: {"write_page_index": False, "sort_by": ["id"]}, rows=60_000, files=3, in_partitions=True),
        "lookup", "page index"),
    PlantedFault("rows without order", lambda folder: write_files(folder, rows=20_000, files=6), "lookup", "sorting", ("id",)),
    PlantedFault(
        "partitions whose bounds overlap",
        lambda folder: write_files(folder, rows=20_000, in_partitions=True, change=with_noise), "lookup", "bloom filter",
        ("id",)),
]


def files_of(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.parquet"))


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in files_of(folder))


def bytes_for_one_lookup(folder: Path, keys: list[int]) -> float:
    """Return the bytes of opening all files and of looking up one id, counted by the file objects."""
    count = 0
    for path in files_of(folder):
        data = path.read_bytes()
        for key in keys:
            source = CountingFile(data)
            with fastpq.ParquetFile(source) as file:
                file.read(filters=[("id", "=", key)])
            count += source.count
    return count / len(keys)


def measure(folder: Path, unit: str) -> float:
    """Return what an advice counts, by other means than the advisor."""
    if unit == "files to open":
        return len(files_of(folder))
    if unit == "row groups":
        return sum(fastpq.read_metadata(path).num_row_groups for path in files_of(folder))
    if unit == "files with another type":
        return sum(str(fastpq.read_schema(path).column("id").type) != "INT64" for path in files_of(folder))
    if unit == "stored bytes":
        return size_of(folder)
    keys = [table(number, 100)["id"].tolist() for number in range(3)]
    present = [int(value) for part in keys for value in part[:4]]
    return bytes_for_one_lookup(folder, present)


def same_rows(one: Path, other: Path) -> bool:
    tables = [fastpq.read_table(folder).to_pandas() for folder in (one, other)]
    names = sorted(tables[0].columns)
    sorted_tables = [each[names].sort_values(["id", "price"]).reset_index(drop=True) for each in tables]
    return bool(sorted_tables[0].astype(str).equals(sorted_tables[1].astype(str)))


@pytest.mark.parametrize("in_partitions", [False, True])
def test_a_default_dataset_has_no_advice_for_scan(in_partitions: bool, tmp_path: Path) -> None:
    columns = {**table(1, 50_000), "day": np.arange(50_000) // 10_000}
    fastpq.write_dataset(columns, tmp_path / "x", partition_by=["day"] if in_partitions else [])
    report = fastpq.advise(tmp_path / "x")
    assert not report.advice, report
    assert report.recipe == {}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_fault_is_found_with_its_gain(fault: PlantedFault, tmp_path: Path) -> None:
    folder = tmp_path / "source"
    fault.make(folder)
    report = fastpq.advise(folder, fault.use, key=KEY if fault.use == "lookup" else None)
    matching = [each for each in report.advice if each.topic == fault.topic and {*fault.columns} <= {*each.columns}]
    assert matching, report
    for number, advice in enumerate(matching):
        target = tmp_path / str(number)
        replay(folder, target, advice.recipe)
        assert same_rows(folder, target)
        is_first = advice is report.advice[0]
        if is_first or advice.unit in ("files to open", "row groups", "files with another type"):
            gain = measure(folder, advice.unit) - measure(target, advice.unit)
            assert advice.gain == pytest.approx(gain, rel=SAME, abs=2000 if "bytes" in advice.unit else 0)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_nothing_is_left_after_the_recipe(fault: PlantedFault, command: Runner, tmp_path: Path) -> None:  # noqa: F811
    folder = tmp_path / "source"
    fault.make(folder)
    before = size_of(folder)
    for use in dict.fromkeys(("scan", fault.use)):
        report = fastpq.advise(folder, use, key=KEY if use == "lookup" else None)
        if not report.advice:
            continue
        recipe, target = tmp_path / f"{use}.json", tmp_path / use
        recipe.write_text(json.dumps(report.recipe))
        result = command("rewrite", str(folder), "-o", str(target), "--recipe", str(recipe))
        assert result.code == 0, result.err
        assert size_of(folder) == before
        assert same_rows(folder, target)
        left = fastpq.advise(target, use, key=report.key)
        assert not left.advice, left


@pytest.mark.parametrize("use", USES)
def test_other_readers_read_what_a_recipe_makes(use: Any, tmp_path: Path) -> None:
    write_files(tmp_path / "source", lambda number: {"compression": "gzip" if number % 2 else None, "row_group_size": 300},
                change=narrow)
    report = fastpq.advise(tmp_path / "source", use)
    replay(tmp_path / "source", tmp_path / "target", report.recipe)
    pattern = f"{tmp_path}/target/**/*.parquet"
    expected = (ROWS * FILES, sum(range(ROWS * FILES)))
    assert duckdb.sql(f"select count(*), sum(id) from '{pattern}'").fetchall() == [expected]     # type: ignore[union-attr]
    frame = pl.read_parquet(pattern)
    assert (frame.height, frame["id"].sum()) == expected
    arrow = ds.dataset(tmp_path / "target").to_table()
    assert (arrow.num_rows, sum(arrow["id"].to_pylist())) == expected


def test_steps_in_place_replace_the_folder_in_one_step(tmp_path: Path) -> None:
    folder = tmp_path / "x"
    write_files(folder, files=4)
    (folder / "README.txt").write_text("rows")
    old = {path: path.stat().st_ino for path in files_of(folder)}
    with pytest.raises(fastpq.SchemaError, match="nothing"):
        replay(folder, folder, {"steps": [{"verb": "sort", "options": {"by": ["id"]}}, {"verb": "evolve",
            "options": {"names": {"nothing": "x"}}}]})
    assert {path: path.stat().st_ino for path in files_of(folder)} == old
    replay(folder, folder, {"steps": [{"verb": "sort", "options": {"by": ["id"]}}]})
    assert (folder / "README.txt").read_text() == "rows"
    assert len(files_of(folder)) == 4
    assert not [path for path in tmp_path.iterdir() if path != folder]
    ids = [fastpq.read_table(path)["id"].to_pylist() for path in files_of(folder)]
    joined = [value for part in ids for value in part]
    assert joined == sorted(joined)
    with pytest.raises(FileExistsError):
        replay(folder, tmp_path, {"steps": []})


LEGACY = {"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyDateTime": ""}
SORT: dict[str, Any] = {"steps": [{"verb": "sort", "options": {"by": ["id"]}}]}


def two_schemas(*columns: pa.Array) -> list[pa.Table]:
    return [pa.table({"id": [2, 1], "x": column}) for column in columns]


DIFFERENT_FILES = {
    "timestamp units": two_schemas(*(pa.array([10**9, 2 * 10**9], pa.timestamp(unit)) for unit in ("us", "ns"))),
    "decimal scales": two_schemas(*(pa.array([1, 2], pa.decimal128(9, scale)) for scale in (2, 3))),
    "signed and unsigned": two_schemas(pa.array([1, 2], pa.int32()), pa.array([4 * 10**9] * 2, pa.uint32())),
    "nullability": [
        each.cast(pa.schema([pa.field("id", pa.int64(), nullable=null), each.schema.field("x")]))
        for null, each in zip((True, False), two_schemas(pa.array([1, 2]), pa.array([1, 2])), strict=True)
    ],
    "durations": two_schemas(*(pa.array([1, 2], pa.duration(unit)) for unit in ("s", "ms"))),
    "columns": [*two_schemas(pa.array([1, 2])), pa.table({"id": [4, 3]})],
    "calendars": [
        each.replace_schema_metadata(metadata)
        for metadata, each in zip(({}, LEGACY), two_schemas(*[pa.array([-10**6, 1], pa.date32())] * 2), strict=True)
    ],
}


@pytest.mark.parametrize("difference", DIFFERENT_FILES)
def test_files_with_different_schemas_are_not_sorted_together(
    difference: str, command: Runner, tmp_path: Path  # noqa: F811
) -> None:
    """Their pages would be read with the types of the first file."""
    folder = tmp_path / "x"
    folder.mkdir()
    for number, rows in enumerate(DIFFERENT_FILES[difference]):
        pq.write_table(rows, folder / f"{number}.parquet", version="2.6")
    before = {path.name: path.read_bytes() for path in files_of(folder)}
    for target in (folder, tmp_path / "y"):
        with pytest.raises(fastpq.SchemaError, match="differs from the first") as error:
            replay(folder, target, SORT)
        assert str(error.value.context["path"]).endswith("1.parquet")
        assert {path.name: path.read_bytes() for path in files_of(folder)} == before
        assert [path.name for path in tmp_path.iterdir()] == ["x"]
    (tmp_path / "r.json").write_text(json.dumps(SORT))
    assert command("rewrite", str(folder), "-o", str(folder), "--recipe", str(tmp_path / "r.json")).code == 2
    target = tmp_path / "joined.parquet"
    with pytest.raises(fastpq.SchemaError, match="differs from the first"):
        consolidate(
            [str(path) for path in files_of(folder)], str(target), least_bytes=0, keys=None, keys_of=lambda _: None, options={},
            threads=None, meter=Meter(None))
    assert not target.exists()


def test_an_encrypted_file_among_others_is_not_sorted(tmp_path: Path) -> None:
    write_files(tmp_path / "x", files=2, rows=10)
    keys = fastpq.FileEncryptionProperties(b"0123456789012345", plaintext_footer=True)
    fastpq.write_table(table(3, 10), tmp_path / "x" / "z.parquet", encryption_properties=keys)
    with pytest.raises(fastpq.UnsupportedError, match="without its keys"):
        replay(tmp_path / "x", tmp_path / "x", SORT)


@pytest.mark.parametrize("difference", ["unit", "column", "nullability"])
def test_a_recipe_for_lookups_sorts_no_files_with_different_schemas(difference: str, tmp_path: Path) -> None:
    """Only one file of many differs, so that the sample may lack it."""
    ids = np.random.default_rng(1).permutation(40_000 * 3)
    for number, part in enumerate(np.split(ids, 3)):
        columns = pa.table({"id": part, "t": pa.array(part).cast(pa.timestamp("ns" if number == 1 else "us"))})
        if difference == "column":
            columns = columns.set_column(1, "t" if number == 1 else "other", pa.array(part))
        elif difference == "nullability":
            columns = columns.set_column(1, pa.field("t", pa.int64(), nullable=number == 1), pa.array(part))
        pq.write_table(columns, tmp_path / f"{number}.parquet")
    before = [pq.read_table(path).to_pylist() for path in files_of(tmp_path)]
    report = fastpq.advise(tmp_path, "lookup", key="id")
    assert "sort" not in [step.verb for step in steps_of(report.recipe)]
    replay(tmp_path, tmp_path, report.recipe)
    after = [pq.read_table(path).to_pylist() for path in files_of(tmp_path)]
    assert sorted(map(str, (row for part in before for row in part))) == sorted(map(str, (row for part in after for row in part)))


def test_files_are_sorted_after_columns_were_widened(tmp_path: Path) -> None:
    write_files(tmp_path / "x", files=6, rows=20_000, change=narrow)
    report = fastpq.advise(tmp_path / "x", "lookup", key=KEY)
    assert {"evolve", "sort"} <= {step.verb for step in steps_of(report.recipe)}
    replay(tmp_path / "x", tmp_path / "y", report.recipe)
    assert same_rows(tmp_path / "x", tmp_path / "y")


@pytest.mark.parametrize("name", ["k={a}", "k={number}", "k=}{", "k={{}}"])
def test_a_folder_name_with_braces(name: str, tmp_path: Path) -> None:
    write_files(tmp_path / "x" / name, files=2, rows=10)
    replay(tmp_path / "x", tmp_path / "x", SORT)
    assert [path.parent.name for path in files_of(tmp_path)] == [name] * 2
    ids = [value for path in files_of(tmp_path) for value in fastpq.ParquetFile(path).read()["id"].to_pylist()]
    assert len(ids) == 20
    assert ids == sorted(ids)


RECOMPRESS = {"steps": [{"verb": "recompress", "options": {"compression": "gzip"}}]}


@pytest.mark.parametrize("is_relative", [False, True])
@pytest.mark.parametrize("name", ["file-01.parquet", "_metadata", "_common_metadata"])
def test_steps_in_place_follow_no_links(name: str, is_relative: bool, tmp_path: Path) -> None:
    folder, shared = tmp_path / "x", tmp_path / "shared.parquet"
    write_files(folder, files=2, rows=10)
    fastpq.write_table(table(1, 10), shared)
    before = shared.read_bytes()
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to("../shared.parquet" if is_relative else shared)
    with pytest.raises(fastpq.UnsupportedError, match="symbolic link") as error:
        replay(folder, folder, RECOMPRESS)
    assert error.value.context["path"] == str(folder / name)
    assert (shared.read_bytes(), sorted(os.listdir(tmp_path))) == (before, ["shared.parquet", "x"])
    replay(folder, tmp_path / "y", RECOMPRESS)
    assert shared.read_bytes() == before
    assert not (tmp_path / "y" / name).is_symlink()
    assert same_rows(folder, tmp_path / "y")


def test_links_to_notes_and_to_the_folder_stay(tmp_path: Path) -> None:
    write_files(tmp_path / "x", files=2, rows=10)
    (tmp_path / "notes").write_text("rows")
    (tmp_path / "x" / "README.md").symlink_to("../notes")
    (tmp_path / "link").symlink_to("x")
    replay(tmp_path / "link", tmp_path / "link", RECOMPRESS)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "x" / "README.md").is_symlink()
    assert (tmp_path / "x" / "README.md").read_text() == "rows"
    codec = fastpq.read_metadata(tmp_path / "x" / "file-00.parquet").row_group(0).column(0).codec
    assert codec == fastpq.format.CompressionCodec.GZIP


@pytest.mark.parametrize("target", ["x/new", "x/k=1/new", "link/new"])
def test_a_target_inside_the_source_is_refused(target: str, tmp_path: Path) -> None:
    write_files(tmp_path / "x" / "k=1", files=2, rows=10)
    (tmp_path / "link").symlink_to("x")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ValueError, match="inside the old one"):
        replay(tmp_path / "x", tmp_path / target, RECOMPRESS)
    assert sorted(tmp_path.rglob("*")) == before


def test_steps_on_one_file(command: Runner, tmp_path: Path) -> None:  # noqa: F811
    source, target, recipe = (tmp_path / name for name in ("a.parquet", "b.parquet", "steps.json"))
    fastpq.write_table(table(1), source, write_page_index=False, row_group_size=1000)
    steps = [
        {"verb": "sort", "options": {"by": [{"path": "id", "descending": True}]}},
        {"verb": "add-indexes", "options": {"bloom_filter": {"id": True}}},
        {"verb": "recompress", "options": {"compression": "zstd"}},
        {"verb": "rewrite", "options": {"compression": "gzip", "bloom_filter": {"id": True, "no column": True}}},
        {"verb": "rechunk", "options": {"row_group_size": 500}},
    ]
    recipe.write_text(json.dumps({"steps": steps}))
    assert command("rewrite", str(source), "-o", str(target), "--recipe", str(recipe)).code == 0
    metadata = fastpq.read_metadata(target)
    assert metadata.row_counts == [500] * 6
    chunk = metadata.row_group(0).column(0)
    assert chunk.metadata.bloom_filter_offset is not None
    assert fastpq.read_table(target)["id"].to_pylist() == sorted(table(1)["id"].tolist(), reverse=True)


@pytest.mark.parametrize("recipe", [{"steps": []}, {}])
def test_a_recipe_without_steps_copies_a_file(recipe: Any, tmp_path: Path) -> None:
    source, target = tmp_path / "a.parquet", tmp_path / "b.parquet"
    fastpq.write_table(table(1), source)
    replay(source, target, recipe)
    assert target.read_bytes() == source.read_bytes()
    replay(source, source, recipe)
    assert target.read_bytes() == source.read_bytes()
    source.write_text("a,b")
    with pytest.raises(fastpq.FormatError):
        replay(source, tmp_path / "c.parquet", recipe)
    assert sorted(os.listdir(tmp_path)) == ["a.parquet", "b.parquet"]


def test_the_command_copies_what_a_recipe_without_steps_is_for(command: Runner, tmp_path: Path) -> None:  # noqa: F811
    write_files(tmp_path / "x", files=1, rows=10)
    source = tmp_path / "x" / "file-00.parquet"
    (tmp_path / "r.json").write_text('{"steps": []}')
    for place, copied in ((source, tmp_path / "y.parquet"), (tmp_path / "x", tmp_path / "z" / source.name)):
        target = copied if place == source else copied.parent
        code, out, _ = command("rewrite", str(place), "-o", str(target), "--recipe", str(tmp_path / "r.json"))
        assert (code, copied.read_bytes()) == (0, source.read_bytes()), out


def test_a_folder_is_made_where_a_url_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path / "x", files=1, rows=10)
    monkeypatch.chdir(tmp_path)
    replay("x", f"file://{tmp_path}/y", {"steps": []})
    with pytest.raises(fastpq.UnsupportedError, match="local folder"):
        replay("x", "memory://y", {"steps": []})
    assert sorted(os.listdir(tmp_path)) == ["x", "y"]


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ({"steps": [{"verb": "vacuum"}]}, "the verbs of steps are"),
        ({"steps": [{"verb": "sort", "by": ["id"]}]}, "its members are options and files"),
        ({"steps": {}}, "list of objects"),
        ({"steps": [], "compression": "zstd"}, "options belong to a step"),
        ({"steps": [{"verb": "sort", "options": []}]}, "needs an object"),
        ({"steps": [{"verb": "sort", "options": {"colour": 1, "by": ["id"]}}]}, "colour"),
        ({"steps": [{"verb": "sort", "files": ["none.parquet"], "options": {"by": ["id"]}}]}, "is not a file of the dataset"),
    ],
)
def test_wrong_recipes_are_refused(
    recipe: Any, message: str, command: Runner, tmp_path: Path  # noqa: F811
) -> None:
    write_files(tmp_path / "x", files=2, rows=10)
    (tmp_path / "r.json").write_text(json.dumps(recipe))
    code, _, err = command("rewrite", str(tmp_path / "x"), "-o", str(tmp_path / "y"), "--recipe", str(tmp_path / "r.json"))
    assert (code, message in err) == (2, True), err
    assert not (tmp_path / "y").exists()
    assert sorted(os.listdir(tmp_path)) == ["r.json", "x"]


def test_options_beside_steps_are_refused(command: Runner, tmp_path: Path) -> None:  # noqa: F811
    write_files(tmp_path / "x", files=2, rows=10)
    (tmp_path / "r.json").write_text('{"steps": [{"verb": "compact"}]}')
    line = ["-o", str(tmp_path / "y"), "--recipe", str(tmp_path / "r.json")]
    assert command("rewrite", str(tmp_path / "x"), *line, "--compression", "zstd").code == 2
    assert command("rewrite", f"{tmp_path}/x/*.parquet", *line).code == 2
    assert command("rewrite", str(tmp_path / "x" / "file-00.parquet"), *line).code == 5
    assert command("convert", str(tmp_path / "x" / "file-00.parquet"), "-o", str(tmp_path / "y.csv"), *line[2:]).code in (0, 2)
    assert not (tmp_path / "y").exists()


def test_encrypted_datasets_are_refused_and_missing_columns_are_cautions(tmp_path: Path) -> None:
    keys = fastpq.FileEncryptionProperties(b"0123456789012345")
    write_files(tmp_path / "x", lambda _: {"encryption_properties": keys}, files=2, rows=10)
    with pytest.raises(fastpq.UnsupportedError, match="one by one"):
        fastpq.advise(tmp_path / "x", decryption_properties=fastpq.FileDecryptionProperties(b"0123456789012345"))
    write_files(
        tmp_path / "y", files=3, rows=10,
        change=lambda number, columns: {**columns, "more": [1] * 10, "id": ["x"] * 10} if number else columns)
    cautions = fastpq.advise(tmp_path / "y").cautions
    assert {each.columns for each in cautions if each.topic == "schema"} == {("id",), ("more",)}


def broken_dataset(folder: Path, broken: int) -> Path:
    """Write five small files. A bit in a page of one of them is flipped. Return its path."""
    write_files(folder, files=5)
    path = files_of(folder)[broken]
    with fastpq.ParquetFile(path) as file:
        place = file.metadata.row_group(0).column(0).data_page_offset
    data = bytearray(path.read_bytes())
    data[place + 60] ^= 4
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("use", ["scan", "lookup"])
@pytest.mark.parametrize("broken", [0, 3])
def test_the_error_names_the_broken_file(use: Any, broken: int, tmp_path: Path) -> None:
    path = broken_dataset(tmp_path, broken)
    with pytest.raises(fastpq.FormatError, match="CRC-32") as of_file:
        fastpq.read_table(path)
    with pytest.raises(fastpq.FormatError, match="CRC-32") as of_dataset:
        fastpq.advise(tmp_path, use, key="id" if use == "lookup" else None)
    assert of_dataset.value.context == of_file.value.context
    assert of_dataset.value.context["path"] == str(path)


def test_each_goes_on_after_files_that_cannot_be_read(command: Runner, tmp_path: Path) -> None:  # noqa: F811
    path = broken_dataset(tmp_path, 1)
    code, out, _ = command("doctor", "--each", str(tmp_path))
    assert code == 1        # as verify has it
    assert out.count("for scan,") == 4
    assert "no advice: the page's CRC-32 does not match" in out
    assert f"fastpq recover {path}" in " ".join(out.split())
    facts = [json.loads(line) for line in command("doctor", "--each", str(tmp_path), "--json").out.splitlines()]
    assert ["CRC-32" in (each["error"] or "") for each in facts] == [False, True, False, False, False]
    properties = fastpq.FileEncryptionProperties(b"0123456789012345")
    fastpq.write_table(table(0), path, encryption_properties=properties)
    code, out, _ = command("doctor", "--each", str(tmp_path))
    assert code == 4
    assert out.count("for scan,") == 4
    assert command("doctor", "--each", str(path)).code == 4


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_the_hint_for_an_encrypted_file_in_a_folder_is_each(
    plaintext_footer: bool, command: Runner, tmp_path: Path  # noqa: F811
) -> None:
    properties = fastpq.FileEncryptionProperties(b"0123456789012345", plaintext_footer=plaintext_footer)
    write_files(tmp_path, lambda number: {"encryption_properties": properties} if number == 1 else {}, files=3)
    code, _, err = command("doctor", str(tmp_path))
    assert code == (5 if plaintext_footer else 4)
    assert "--each looks at each file by itself" in " ".join(err.split())


def test_unrelated_tables_are_a_caution(command: Runner, tmp_path: Path) -> None:  # noqa: F811
    for number in range(3):
        fastpq.write_table({f"a{number}": np.arange(100), f"b{number}": np.arange(100)}, tmp_path / f"{number}.parquet")
    (caution,) = fastpq.advise(tmp_path).cautions
    assert caution.text.startswith("No column is in all files")
    assert caution.columns == ()
    out = " ".join(command("doctor", str(tmp_path)).out.split())
    assert "No column is in all files, so that they look like different tables. --each looks at each file by itself." in out


def test_globs_lists_and_reports(tmp_path: Path) -> None:
    write_files(tmp_path, files=4)
    by_glob = fastpq.advise(f"{tmp_path}/*.parquet")
    by_list = fastpq.advise([str(path) for path in files_of(tmp_path)])
    assert [str(each) for each in by_glob.advice] == [str(each) for each in by_list.advice]
    assert by_glob.num_files == 4
    assert "4 files" in repr(by_glob)
    assert "files to open: 4 -> 1" in str(by_glob)
    assert "<table" in by_list._repr_html_()
    assert [step.verb for step in steps_of(by_glob.recipe)] == ["compact"]
    with pytest.raises(fastpq.SchemaError, match="lookups need a column"):
        fastpq.advise(tmp_path, "lookup", key="nothing")


def test_a_file_object_is_no_dataset() -> None:
    target = io.BytesIO()
    fastpq.write_table(table(1), target)
    assert fastpq.advise(target).num_files == 1
    assert not fastpq.advise(target.getvalue()).advice
