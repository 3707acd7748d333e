"""Verbs that look into files: what they print about known files, encrypted ones, folders, globs and URLs."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastpq
from fastpq.cli.format_names import column_type_text
from fastpq.cli.verbs.schema import fields_of, schema_facts, schema_text
from fastpq.encryption import ColumnEncryptionProperties
from fastpq.types import (
    ColumnType,
    Date,
    Decimal,
    Enum,
    Float16,
    Integer,
    Interval,
    Json,
    String,
    Time,
    Timestamp,
    Type,
    Unknown,
    Uuid,
)
from tests.cli.running import PASSPHRASE, PRICE_KEY, Runner, items, keys_as_json
from tests.requirements import DATA, needs_data, peer

pa, pq, pl, duckdb, pandas = map(peer, ("pyarrow", "pyarrow.parquet", "polars", "duckdb", "pandas"))

FIXED = Type.FIXED_LEN_BYTE_ARRAY
FLAT_TYPES: dict[str, ColumnType] = {
    "b": ColumnType(Type.BOOLEAN),
    "i8": ColumnType(Type.INT32, None, Integer(8, True)),
    "i16": ColumnType(Type.INT32, None, Integer(16, True)),
    "i32": ColumnType(Type.INT32),
    "i64": ColumnType(Type.INT64),
    "u8": ColumnType(Type.INT32, None, Integer(8, False)),
    "u16": ColumnType(Type.INT32, None, Integer(16, False)),
    "u32": ColumnType(Type.INT32, None, Integer(32, False)),
    "u64": ColumnType(Type.INT64, None, Integer(64, False)),
    "f16": ColumnType(FIXED, 2, Float16()),
    "f32": ColumnType(Type.FLOAT),
    "f64": ColumnType(Type.DOUBLE),
    "bytes": ColumnType(Type.BYTE_ARRAY),
    "fixed": ColumnType(FIXED, 5),
    "text": ColumnType(Type.BYTE_ARRAY, None, String()),
    "enum": ColumnType(Type.BYTE_ARRAY, None, Enum()),
    "json": ColumnType(Type.BYTE_ARRAY, None, Json()),
    "uuid": ColumnType(FIXED, 16, Uuid()),
    "dec9": ColumnType(Type.INT32, None, Decimal(9, 2)),
    "dec38": ColumnType(FIXED, 16, Decimal(38, 4)),
    "dec50": ColumnType(FIXED, 22, Decimal(50, 4)),
    "date": ColumnType(Type.INT32, None, Date()),
    "time_ms": ColumnType(Type.INT32, None, Time("ms")),
    "time_us": ColumnType(Type.INT64, None, Time("us")),
    "time_ns": ColumnType(Type.INT64, None, Time("ns")),
    "stamp_ms": ColumnType(Type.INT64, None, Timestamp("ms")),
    "stamp_us": ColumnType(Type.INT64, None, Timestamp("us")),
    "stamp_ns": ColumnType(Type.INT64, None, Timestamp("ns")),
    "utc_us": ColumnType(Type.INT64, None, Timestamp("us", True)),
    "utc_ns": ColumnType(Type.INT64, None, Timestamp("ns", True)),
    "int96": ColumnType(Type.INT96),
    "interval": ColumnType(FIXED, 12, Interval()),
    "null": ColumnType(Type.INT32, None, Unknown()),
}
REFUSED = {("interval", "Polars"), ("interval", "Spark"), ("dec50", "Spark")}


@pytest.fixture(scope="module")
def typed_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with one column of each flat type."""
    path = tmp_path_factory.mktemp("types") / "types.parquet"
    fastpq.write_table({name: [None] for name in FLAT_TYPES}, path, schema=FLAT_TYPES)
    return path


@pytest.fixture(scope="module")
def nested_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with lists, structs and a map, written by pyarrow."""
    path = tmp_path_factory.mktemp("types") / "nested.parquet"
    schema = pa.schema(
        [
            ("l", pa.list_(pa.int32())),
            ("s", pa.struct([("x", pa.int64()), ("odd name", pa.string())])),
            ("m", pa.map_(pa.string(), pa.float64())),
        ]
    )
    pq.write_table(pa.table({name: pa.nulls(1, schema.field(name).type) for name in schema.names}, schema=schema), path)
    return path


@pytest.mark.parametrize("name", FLAT_TYPES)
def test_engines_see_the_types_that_the_table_says(name: str, typed_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "one.parquet"
    fastpq.write_table({name: [None]}, path, schema={name: FLAT_TYPES[name]})
    said = schema_facts(fastpq.read_schema(path), "")["engines"][name]
    assert said["Arrow"] == str(pq.read_schema(path).field(0).type)
    assert (said["Spark"] == "<refused>") == ((name, "Spark") in REFUSED)
    assert (said["Polars"] == "<refused>") == ((name, "Polars") in REFUSED)
    if said["Polars"] != "<refused>":  # Polars panics otherwise
        assert said["Polars"] == str(pl.read_parquet_schema(path)[name])
    assert said["DuckDB"] == duckdb.sql(f"describe select * from '{path}'").fetchall()[0][1]


def test_duckdb_refuses_bson(tmp_path: Path) -> None:
    from fastpq.types import Bson

    path = tmp_path / "one.parquet"
    fastpq.write_table({"a": [None]}, path, schema={"a": ColumnType(Type.BYTE_ARRAY, None, Bson())})
    assert schema_facts(fastpq.read_schema(path), "")["engines"]["a"]["DuckDB"] == "<refused>"
    with pytest.raises(duckdb.Error):
        duckdb.sql(f"select * from '{path}'").fetchall()


def test_engines_see_nested_types(nested_file: Path) -> None:
    said = schema_facts(fastpq.read_schema(nested_file), "")["engines"]
    described = {row[0]: row[1] for row in duckdb.sql(f"describe select * from '{nested_file}'").fetchall()}
    assert {name: each["DuckDB"].replace('"x"', "x") for name, each in said.items()} == described
    assert said["s"]["Spark"] == "STRUCT<x: BIGINT, `odd name`: STRING>"
    assert {name: each["Polars"] for name, each in said.items()} == {
        name: str(type_) for name, type_ in pl.read_parquet_schema(nested_file).items()
    }


@pytest.mark.parametrize("kind", ["flat", "nested"])
def test_python_and_polars_code_makes_the_same_schema(kind: str, typed_file: Path, nested_file: Path, tmp_path: Path) -> None:
    path = typed_file if kind == "flat" else nested_file
    schema = fastpq.read_schema(path)
    namespace: dict[str, Any] = {}
    exec(schema_text(schema, "python", "x"), namespace)
    fastpq.write_table({name: [None] for name in schema.names}, tmp_path / "x.parquet", schema=namespace["schema"])
    again = fastpq.read_schema(tmp_path / "x.parquet")
    assert [each.type for each in fields_of(again)] == [each.type for each in fields_of(schema)]
    if kind == "nested":
        exec(schema_text(schema, "polars", "x"), namespace)
        assert namespace["schema"] == pl.read_parquet_schema(path)


def test_sql_creates_the_table_in_duckdb(typed_file: Path) -> None:
    names = [name for name in FLAT_TYPES if name not in ("dec50", "bytes", "fixed", "interval")]
    fields = fastpq.ParquetSchema.of([(name, FLAT_TYPES[name], True) for name in names])
    connection = duckdb.connect()
    connection.execute(schema_text(fields, "sql", "some table.parquet"))
    ((table,),) = connection.execute("select table_name from duckdb_tables()").fetchall()
    columns = connection.execute(f'describe "{table}"').fetchall()
    assert [column[0] for column in columns] == names


def test_a_contract_holds_and_breaks(command: Runner, in_examples: Path, tmp_path: Path) -> None:
    contract = command("schema", "items.parquet", "--json").json
    path = tmp_path / "contract.json"
    for change, code in (
        ({}, 0),
        ({"columns": contract["columns"][1:]}, 1),
        ({"columns": contract["columns"][1:], "extra": "allow"}, 0),
        ({"columns": [*contract["columns"], {"column": "more"}]}, 1),
        ({"columns": [{"column": "id", "type": "INT32"}], "extra": "allow"}, 1),
        ({"columns": "id"}, 2),
        ({"extra": "perhaps"}, 2),
    ):
        path.write_text(json.dumps({**contract, **change}))
        assert command("schema", "items.parquet", "--check", str(path)).code == code, change
    path.write_text("{")
    assert command("schema", "items.parquet", "--check", str(path)).code == 2


def test_columns_tell_what_the_file_is(command: Runner, in_examples: Path) -> None:
    facts = {each["column"]: each for each in command("columns", "items.parquet", "--json", "--distinct").json["columns"]}
    metadata = fastpq.read_metadata("items.parquet")
    for place, each in enumerate(facts.values()):
        chunks = [metadata.row_group(group).column(place) for group in range(2)]
        assert each["stored_bytes"] == sum(chunk.total_compressed_size for chunk in chunks)
        assert (each["values"], each["nulls"]) == (100_000, 0)
    assert (facts["id"]["sorted_row_groups"], facts["id"]["row_groups_per_value"]) == ("ascending", 1.0)
    assert (facts["name"]["dictionary"], facts["name"]["distinct"], facts["name"]["row_groups_per_value"]) == ("all", 4, 2.0)
    assert facts["user"]["chunks_with_bloom_filter"] == 2
    out = command("columns", "items.parquet", "--sort", "stored").out.splitlines()
    assert out[2].startswith("user")


def test_groups_a_value_counts_all_row_groups_that_a_lookup_reads(command: Runner, tmp_path: Path) -> None:
    """Row groups with nearly the same bounds are all read, though their smallest values differ."""
    low, high = np.arange(12), np.arange(60_000 - 12, 60_000)
    rows = np.concatenate([np.array([low[group], *range(100, 5_100), high[group]]) for group in range(12)])
    sorted_ids = np.arange(len(rows))
    path = tmp_path / "wide.parquet"
    fastpq.write_table({"customer": rows, "id": sorted_ids}, path, row_group_size=5_002)
    facts = {each["column"]: each for each in command("columns", str(path), "--json").json["columns"]}
    assert (facts["customer"]["row_groups_per_value"], facts["id"]["row_groups_per_value"]) == (12.0, 1.0)


def test_pages_cover_the_chunks(command: Runner, in_examples: Path) -> None:
    pages = command("pages", "items.parquet", "--json", "--most", "100000").json["pages"]
    metadata = fastpq.read_metadata("items.parquet")
    for place, column in enumerate(metadata.schema.columns):
        for group in range(2):
            own = [each for each in pages if (each["column"], each["row_group"]) == (column.name, group)]
            start, size = metadata.row_group(group).column(place).byte_range
            assert own[0]["offset"] == start
            assert sum(each["stored_bytes"] for each in own) == size
            assert sum(each["values"] for each in own if each["page"] is not None) == 50_000
    assert command("pages", "items.parquet", "-g", "2").code == 2


def test_dictionary_pages_hold_the_values(command: Runner, in_examples: Path) -> None:
    for each in command("dict", "items.parquet", "name", "--json").json["dictionaries"]:
        assert sorted(each["values"]) == ["a", "bb", "ccc", "dddd"]
    assert command("dict", "items.parquet", "id", "--json").json["dictionaries"] == []


def test_statistics_are_those_of_numpy(command: Runner, tmp_path: Path) -> None:
    values = np.array([1.5, np.nan, -2.0, 4.0, 4.0])
    mask = np.array([False, False, False, False, True])
    path = str(tmp_path / "x.parquet")
    fastpq.write_table(
        {"a": np.ma.MaskedArray(values, mask), "b": np.array(["x", "yy", "x", "", "z"]), "c": [[1], [], None, [1, 2], [3]]}, path
    )
    a, b, c = command("stats", path, "--json").json["columns"]
    known = values[[0, 2, 3]]
    assert (a["values"], a["nulls"], a["nans"], a["min"], a["max"], a["distinct"]) == (4, 1, 1, -2.0, 4.0, 3)
    assert (a["mean"], a["deviation"]) == pytest.approx((known.mean(), known.std()))
    assert (b["min"], b["max"], b["distinct"], b["mean_length"]) == ("", "z", 4, 1.0)
    assert (c["values"], c["nulls"], c["distinct"], c["mean_length"]) == (4, 1, None, 1.0)


def test_a_file_without_a_key_tells_what_can_be_told(command: Runner, in_examples: Path) -> None:
    for verb in ("inspect", "meta"):
        code, out, err = command(verb, "secret.parquet")
        assert (code, err) == (0, "")
        assert "AES_GCM_V1" in out
        assert "hidden in the encrypted footer" in out
    code, out, err = command("columns", "secret.parquet")
    assert (code, out) == (4, "")
    assert "fastpq keys inspect secret.parquet" in err


def test_with_keys_each_column_has_its_protection(
    command: Runner, in_examples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys that open an encrypted footer show what is under which key. Nothing is said to be hidden then."""
    monkeypatch.setenv("FASTPQ_PASSPHRASE", PASSPHRASE)
    out = command("inspect", "sealed.parquet", "--keyring", "keyring.json").out
    assert "hidden" not in out
    facts = command("inspect", "sealed.parquet", "--keyring", "keyring.json", "--json").json["encryption"]
    assert not facts["columns_hidden"]
    assert (facts["keys"][0]["part"], facts["keys"][0]["column"]) == ("footer", "footer")
    assert {each["part"] for each in facts["keys"][1:]} == {"column"}
    assert all(each["master_key_id"] for each in facts["keys"] if each["key"] != "none")
    monkeypatch.delenv("FASTPQ_PASSPHRASE")
    sealed = command("inspect", "sealed.parquet", "--json").json["encryption"]
    assert (sealed["columns_hidden"], len(sealed["keys"])) == (True, 1)


def test_a_folder_is_one_table(command: Runner, tmp_path: Path) -> None:
    """A file that datasets leave out is told and does not make the folder broken. A torn Parquet file does."""
    keys = fastpq.FileEncryptionProperties(bytes(16), footer_key_metadata=b"name", plaintext_footer=True)
    fastpq.write_table({"a": [1]}, tmp_path / "secret.parquet", encryption_properties=keys)
    fastpq.write_table({"a": [1], "b": [2]}, tmp_path / "plain.parquet")
    (tmp_path / "README.txt").write_text("a text beside the data")
    code, out, err = command("keys", "inspect", str(tmp_path))
    assert (code, "README.txt" in err) == (0, True)
    heading, *rows = [line.split() for line in out.splitlines()]
    assert heading[:2] == ["file", "footer"]
    assert [(row[1], row[-3:]) for row in rows] == [("plaintext", ["2", "of", "2"]), ("signed", ["0", "of", "1"])]
    lines = [json.loads(line) for line in command("keys", "inspect", str(tmp_path), "--json").out.splitlines()]
    assert [each["footer"] for each in lines] == ["plaintext", "signed"]
    (tmp_path / "torn.parquet").write_bytes(b"PAR1")
    assert command("keys", "inspect", str(tmp_path)).code == 3


def test_key_material_names_all_master_keys(
    command: Runner, in_examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FASTPQ_PASSPHRASE", PASSPHRASE)
    common = ("--keyring", "keyring.json", "--footer-key", "kf", "--column-key", "kc:price")
    for options, is_hidden in (((), True), (("--external-keys",), False)):
        target = str(tmp_path / f"{is_hidden}.parquet")
        assert command("encrypt", "items.parquet", "-o", target, *common, *options).code == 0
        out = command("keys", "inspect", target).out
        assert ("if they have others" in out) is is_hidden
        assert ("kf, kc" in out) is not is_hidden


def test_a_missing_column_key_is_shown_and_not_an_error(
    command: Runner, in_examples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {"footer_key": base64.b64encode(b"0123456789012345").decode()}
    monkeypatch.setenv("FASTPQ_KEYS", json.dumps(keys))
    facts = {each["column"]: each for each in command("columns", "secret.parquet", "--json").json["columns"]}
    assert (facts["price"]["readable"], facts["price"]["encrypted"], facts["id"]["readable"]) == (False, True, True)
    assert "No key for price." in command("inspect", "secret.parquet").out
    assert "no key" in command("columns", "secret.parquet").out
    assert command("head", "secret.parquet").code == 4
    assert command("head", "secret.parquet", "-c", "id").code == 0


def test_with_keys_an_encrypted_file_is_as_open_as_a_plain_one(
    command: Runner, in_examples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = command("stats", "items.parquet").out
    monkeypatch.setenv("FASTPQ_KEYS", keys_as_json(price=PRICE_KEY))
    assert command("stats", "secret.parquet").out == plain
    for verb in (
        ("pages",),
        ("index",),
        ("columns", "--distinct"),
        ("why", "-w", "price < 1"),
        ("dict", "secret.parquet", "name"),
    ):
        arguments = verb if "secret.parquet" in verb else (verb[0], "secret.parquet", *verb[1:])
        assert command(*arguments).code == 0, verb
    code, _, err = command("head", "items.parquet")
    assert code == 4
    assert "--allow plaintext-files" in err
    assert command("head", "items.parquet", "--allow", "plaintext-files").code == 0


@needs_data
def test_encrypted_fixtures_of_other_writers(command: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file with its explicit keys, through every verb that looks."""
    folder = DATA / "encryption" / "fixtures"
    for entry in json.loads((folder / "manifest.json").read_text())["files"][::4]:
        if entry["algorithm"] is None:
            continue
        encode = lambda text: base64.b64encode(bytes.fromhex(text)).decode()  # noqa: E731
        columns = {name: encode(key) for name, key in entry["keys"]["columns"].items()}
        monkeypatch.setenv("FASTPQ_KEYS", json.dumps({"footer_key": encode(entry["keys"]["footer"]), "column_keys": columns}))
        options = ["--allow", "ctr", "--allow", "duckdb"]
        if entry["aad_prefix"] is not None and not entry["aad_prefix_stored"]:
            options += ["--aad-prefix", entry["aad_prefix"]]
        for verb in ("inspect", "columns", "pages", "index", "stats"):
            code, _, err = command(verb, str(folder / entry["file"]), *options)
            assert code == 0, (entry["name"], verb, err)


def test_folders_globs_and_urls(command: Runner, in_examples: Path) -> None:
    for place in ("folder", "folder/*.parquet", f"file://{in_examples}/folder/*.parquet"):
        assert command("count", place).out == "1000\n", place
        assert len([*filter(None, command("meta", place, "--json").out.split("\n"))]) == 2, place
    assert command("head", "folder", "-n", "1", "-f", "csv").out.splitlines()[1].startswith("0,")
    assert command("tail", "folder", "-n", "1", "-f", "csv").out.splitlines()[1].startswith("999,")
    assert command("count", "nothing/*.parquet").code == 6
    assert command("pages", "folder").code == 2


def test_head_and_tail_with_a_condition(command: Runner, in_examples: Path) -> None:
    table = items()
    matches = table["id"][table["price"] < 1]
    for verb, expected in (("head", matches[:3]), ("tail", matches[-3:])):
        out = command(verb, "items.parquet", "-w", "price < 1", "-n", "3", "-c", "id", "-f", "csv").out
        assert [int(line) for line in out.splitlines()[1:]] == expected.tolist()
    assert command("head", "items.parquet", "-w", "price < -1", "-f", "csv").out == "id,price,name,user,day\n"


@pytest.mark.parametrize("columns", [100, 300])
def test_why_says_once_what_would_help_several_row_groups(
    command: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    path = tmp_path / "shuffled.parquet"
    rows = np.random.default_rng(4).permutation(8_000)
    fastpq.write_table({"customer": rows}, path, row_group_size=2_000, write_page_index=False)
    out = " ".join(command("why", str(path), "-w", "customer == 5").out.split())
    facts = command("why", str(path), "-w", "customer == 5", "--json").json
    phrases = [phrase for group in facts["row_groups"] for phrase in group["would_help"]]
    assert max(map(phrases.count, phrases)) > 1
    for phrase in set(phrases):
        assert out.count(f"{phrase} ({phrases.count(phrase)} row group") == out.count(f"{phrase} (") == 1
        assert out.count("would help") == 1


def test_why_tells_what_is_dropped_and_what_would_help(command: Runner, in_examples: Path) -> None:
    facts = command("why", "items.parquet", "-w", "id == 70000", "--count", "--json").json
    assert [(each["is_read"], each["matches"]) for each in facts["row_groups"]] == [(False, 0), (True, 1)]
    assert facts["row_groups"][0]["evidence"][0]["kind"] == "statistics"
    facts = command("why", "items.parquet", "-w", "price == 3.001", "--count", "--json").json
    kept = [each for each in facts["row_groups"] if each["is_read"]]
    assert all("the whole file sorted by price" in each["would_help"] for each in kept)
    facts = command("index", "items.parquet", "-c", "user", "--probe", "12345", "--json").json
    assert facts["probe"]["row_groups_read"] == 0
    assert command("index", "items.parquet", "--probe", "1").code == 2
    assert command("index", "items.parquet", "-c", "user", "--probe", "x").code == 2


def test_types_in_short() -> None:
    schema = fastpq.ParquetSchema.of(
        [("a", FLAT_TYPES["utc_us"], True), ("b", FLAT_TYPES["dec9"], True), ("c", FLAT_TYPES["fixed"], True)]
    )
    assert [column_type_text(each) for each in schema] == [
        "INT64 TIMESTAMP(us, UTC)",
        "INT32 DECIMAL(9, 2)",
        "FIXED_LEN_BYTE_ARRAY(5)",
    ]


KEY_NAMES = {"pay": b"hr-key", "ssn": b"\xff\x00"}


def test_names_of_explicit_keys(command: Runner, tmp_path: Path) -> None:
    """Key metadata that no key service wrote are shown as text or digits."""
    columns = {name: ColumnEncryptionProperties(bytes(16), key_metadata=value) for name, value in KEY_NAMES.items()}
    keys = fastpq.FileEncryptionProperties(bytes(16), columns, footer_key_metadata=b"footer-key", plaintext_footer=True)
    fastpq.write_table({"pay": [1], "ssn": [2]}, tmp_path / "x.parquet", encryption_properties=keys)
    out = command("keys", "inspect", str(tmp_path / "x.parquet")).out
    assert all(name in out for name in ("footer-key", "hr-key", "0xff00"))
    facts = command("keys", "inspect", str(tmp_path / "x.parquet"), "--json").json
    assert [(each["column"], each["key_name"], each["problem"]) for each in facts["keys"]] == [
        ("footer", "footer-key", None), ("pay", "hr-key", None), ("ssn", "0xff00", None),
    ]
