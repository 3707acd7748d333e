"""Errors and hints name what the user of the command has: the source, its options and its variables."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import numpy as np
import pytest

import fastpq
from tests.cli.running import FOOTER_KEY, PASSPHRASE, Runner, keys_as_json


@pytest.mark.parametrize("option", ["--sort-by", "--bloom-filter"])
@pytest.mark.parametrize("source", ["items.parquet", "a.csv", "-"])
def test_an_unknown_column_is_one_of_the_source(
    option: str, source: str, command: Runner, in_examples: Path, tmp_path: Path
) -> None:
    target = str(tmp_path / "new.parquet")
    if source == "a.csv":
        source = str(tmp_path / "a.csv")
        Path(source).write_text("a,b\n1,2\n")
        code, _, err = command("convert", source, "-o", target, option, "nope")
    else:
        data = (in_examples / "items.parquet").read_bytes() if source == "-" else b""
        code, _, err = command("rewrite", source, "-o", target, option, "nope", stdin=data)
    assert (code, "new.parquet" in err, "bloom_filter" in err, Path(target).exists()) == (2, False, False, False)
    if source != "-":
        assert f"[path {source}]" in err
        assert "hint: " in err


def test_recover_does_not_advise_itself(command: Runner, in_examples: Path, tmp_path: Path) -> None:
    code, _, err = command("recover", "cut.parquet", "-o", str(tmp_path / "rest.parquet"))
    assert (code, len(err.splitlines())) == (3, 1)
    assert "With --sibling FILE, its pages can be searched for" in err
    assert "fastpq recover cut.parquet" in command("head", "cut.parquet").err


def test_hints_about_keyrings(command: Runner, in_examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = str(tmp_path / "x.parquet")
    monkeypatch.setenv("FASTPQ_PASSPHRASE", "wrong")
    for line in (("keys", "list", "keyring.json"), ("head", "sealed.parquet", "--keyring", "keyring.json")):
        code, _, err = command(*line)
        assert (code, "keys inspect" in err) == (4, False)
        assert "fastpq keys list keyring.json" in err
    monkeypatch.setenv("FASTPQ_PASSPHRASE", PASSPHRASE)
    code, _, err = command("encrypt", "items.parquet", "-o", target, "--keyring", "keyring.json", "--footer-key", "zz")
    assert (code, "keys inspect" in err) == (4, False)
    assert "fastpq keys list KEYRING" in err


def test_the_passphrase_under_its_name_for_spark(command: Runner, in_examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FASTPQ_PASSPHRASE", raising=False)
    monkeypatch.setenv("FASTPQ_KEYRING_PASSPHRASE", PASSPHRASE)
    assert command("keys", "list", "keyring.json").out.split() == ["kc", "kf", "kn"]
    monkeypatch.setenv("FASTPQ_PASSPHRASE", "wrong")
    assert command("keys", "list", "keyring.json").code == 4


@pytest.mark.parametrize("size", [16, 24, 32])
def test_digits_without_hex(size: int, command: Runner, in_examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digits = bytes(range(size)).hex()
    monkeypatch.setenv("FASTPQ_KEYS", json.dumps({"footer_key": digits}))
    code, _, err = command("head", "secret.parquet")
    assert (code, digits in err) == (4, False)
    assert "looks like hexadecimal digits" in err
    assert "hex: before" in err


def test_another_member_is_named_unless_it_is_a_key(command: Runner, in_examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTPQ_KEYS", '{"footer": "x"}')
    code, _, err = command("head", "secret.parquet")
    assert (code, "'footer'" in err) == (4, True)
    for name in (FOOTER_KEY.hex(), "hex:" + FOOTER_KEY.hex(), base64.b64encode(FOOTER_KEY).decode()):
        monkeypatch.setenv("FASTPQ_KEYS", json.dumps({name: ""}))
        code, _, err = command("head", "secret.parquet")
        assert (code, name in err) == (4, False)


def test_other_formats_are_to_be_converted(command: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("a,b\n1,2\n3,4\n")
    Path("one.csv").write_text("a\n1234567\n1234567\n")
    Path("a.txt").write_text("a,b\n1,2\n3,4\n")
    Path("a.jsonl").write_text('{"a": 1}\n{"a": 2}\n')
    np.savez("a.npz", a=np.arange(3))
    for name, source in (("a.txt", "a.txt --from csv"), *((name, name) for name in ("a.csv", "one.csv", "a.jsonl", "a.npz"))):
        code, _, err = command("head", name)
        assert code == 3
        assert f"hint: fastpq convert {source} -o OUT.parquet" in err
        assert "pandas" not in err
        assert "numpy" not in err
    assert "fastpq convert - --from csv" in command("head", "-", stdin=Path("a.csv").read_bytes()).err


def test_options_of_python_are_those_of_the_command(
    command: Runner, in_examples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "decryption_properties" not in command("head", "secret.parquet").err
    monkeypatch.setenv("FASTPQ_KEYS", keys_as_json())
    err = command("head", "items.parquet").err
    assert "_" not in err
    assert "--allow plaintext-files" in err


def test_chunks_in_another_order(command: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.metadata.test_chunk_order import permuted, table

    monkeypatch.chdir(tmp_path)
    Path("x.parquet").write_bytes(permuted(0))
    code, _, err = command("cat", "x.parquet", "-f", "jsonl")
    assert (code, "chunk_order" in err, "recover" in err) == (3, False, False)
    assert "--chunk-order path" in err
    rows = [json.loads(line) for line in command("cat", "x.parquet", "-f", "jsonl", "--chunk-order", "path").out.splitlines()]
    assert rows == table().to_pylist()
    for line in (
        ("rewrite", "x.parquet", "-o", "y.parquet"),
        ("merge", "x.parquet", "-o", "y.parquet"),
        ("recover", "x.parquet", "-o", "y.parquet"),
        ("convert", "x.parquet", "-o", "y.arrow"),
        ("inspect", "x.parquet"),
        ("meta", "x.parquet"),
        ("columns", "x.parquet"),
        ("layout", "x.parquet"),
    ):
        result = command(*line, "--chunk-order", "path")
        assert result.code == 0, (line, result.err)
        if "y.parquet" in line:
            assert fastpq.read_table("y.parquet").to_pylist() == rows, line


def test_why_advises_nothing_that_cannot_help(command: Runner, in_examples: Path) -> None:
    def help_for(where: str, *options: str) -> list[list[str]]:
        facts = command("why", "items.parquet", "-w", where, "--json", *options).json
        return [each["would_help"] for each in facts["row_groups"]]

    assert help_for("id >= 0") == [[], []]
    assert help_for("id >= 0 and name == 'a'") == [["the whole file sorted by name"]] * 2  # the smallest value of each row group
    assert help_for("name == 'bb'", "--count") == [["the whole file sorted by name"]] * 2
    assert help_for("id == 50", "--count") == [[], []]
    assert all("has no match" in phrase for phrase in help_for("id == 50")[0])
    assert "every row matches" in command("why", "items.parquet", "-w", "id >= 0").out
    assert "with rows that match" in command("why", "items.parquet", "-w", "name == 'bb'", "--count").out


def test_a_bloom_filter_is_advised_where_rows_are_missing(command: Runner, tmp_path: Path) -> None:
    path = str(tmp_path / "x.parquet")
    fastpq.write_table({"id": np.arange(0, 200_000, 2)}, path, use_dictionary=False)
    facts = command("why", path, "-w", "id == 50001", "--count", "--json").json
    (phrases,) = (each["would_help"] for each in facts["row_groups"])
    assert any(phrase.startswith("a bloom filter") and phrase.endswith("for id") for phrase in phrases)
