"""The verb verify: sound, damaged, encrypted and other files, folders, exit codes and JSON."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fastpq
from tests.cli.running import PASSPHRASE, PRICE_KEY, Runner, keys_as_json
from tests.requirements import DATA, needs_data


def test_sound_file(command: Runner, in_examples: Path) -> None:
    result = command("verify", "items.parquet")
    assert result.code == 0
    assert "no violation" in result.out
    facts = command("verify", "items.parquet", "--json").json
    assert facts["sound"]
    assert facts["complete"]
    assert facts["rows"] == 100_000
    assert facts["column_chunks"] == 10
    assert not facts["violations"]


def test_damaged_file(command: Runner, in_examples: Path) -> None:
    result = command("verify", "damaged.parquet")
    assert result.code == 1
    assert "the CRC-32 of the page does not match" in result.out
    assert "README.md, Checksumming" in result.out
    facts = command("verify", "damaged.parquet", "--json", "--quick").json
    (violation,) = facts["violations"]
    assert facts["quick"]
    assert violation["part"] == "page"
    assert violation["offset"] == 4
    (loss,) = command("recover", "damaged.parquet", "--json").json["losses"]
    assert loss["reason"].endswith("[page 0, offset 4]")
    assert (violation["row_group"], violation["column"], violation["page"]) == (0, "id", 0)
    assert "pyarrow" in violation["readers"]


def test_one_broken_file_in_a_folder(command: Runner, in_examples: Path, tmp_path: Path) -> None:
    whole = Path("items.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(whole)
    (tmp_path / "b.parquet").write_bytes(whole[:1000])
    (tmp_path / "c.parquet").write_bytes(Path("secret.parquet").read_bytes())
    result = command("verify", "--quick", str(tmp_path))
    assert result.code == 1
    assert result.out.index("a.parquet") < result.out.index("b.parquet") < result.out.index("c.parquet")
    assert "this Parquet file is incomplete" in result.out
    assert "not checked: the footer is encrypted" in result.out


def test_exit_codes_without_keys(command: Runner, in_examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command("verify", "secret.parquet").code == 4
    monkeypatch.setenv("FASTPQ_KEYS", keys_as_json())
    result = command("verify", "secret.parquet")
    assert result.code == 4
    assert "not checked: column chunk of price" in result.out
    assert "no violation in what was checked" in result.out
    monkeypatch.setenv("FASTPQ_KEYS", keys_as_json(price=PRICE_KEY))
    assert command("verify", "secret.parquet").code == 0
    monkeypatch.setenv("FASTPQ_PASSPHRASE", PASSPHRASE)
    monkeypatch.delenv("FASTPQ_KEYS")
    assert command("verify", "sealed.parquet", "--keyring", "keyring.json").code == 0
    assert command("verify", "nothing.parquet").code == 6


def test_names_are_escaped(command: Runner, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    fastpq.write_table({"a\x1b[31mb": np.arange(100)}, path, compression="none")
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    assert "\x1b[31m" not in command("verify", str(path)).out


def test_the_list_is_cut(command: Runner, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    fastpq.write_table({"a": np.arange(100)}, path, row_group_size=10, compression="none")
    with fastpq.ParquetFile(path) as file:
        ends = [sum(group.column(0).byte_range) for group in file.metadata.row_groups]
    data = bytearray(path.read_bytes())
    for end in ends:
        data[end - 1] ^= 1
    path.write_bytes(data)
    result = command("verify", str(path), "--most", "2")
    assert "and 8 violations more" in result.out
    assert "10 violations" in result.out
    assert len(command("verify", str(path), "--most", "2", "--json").json["violations"]) == 2


@needs_data
def test_readers_that_differ(command: Runner) -> None:
    result = command("verify", str(DATA / "strangers/alltypes_agg_bitpacked_def_levels.parquet"))
    assert result.code == 0
    assert "levels in the deprecated encoding BIT_PACKED in id, bool_col, tinyint_col and 11 more columns" in result.out
    assert "harmless row group  row group 0\n    total_byte_size is 205782" in result.out


@needs_data
def test_what_is_not_supported_has_a_code_of_its_own(command: Runner) -> None:
    result = command("verify", str(DATA / "parquet-testing/data/large_string_map.brotli.parquet"))
    assert result.code == 5
    assert "over max_dictionary_size" in result.out


def test_an_empty_file_among_others(command: Runner, in_examples: Path) -> None:
    Path("empty.parquet").write_bytes(b"")
    result = command("verify", "empty.parquet", "items.parquet")
    assert result.code == 1
    assert "it is empty" in result.out
    assert "no violation" in result.out     # the next file is checked all the same
