"""Verbs that write: what they write, encryption, full disks, Ctrl-C, and that nothing half written stays."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastpq
from tests.cli.running import FOOTER_KEY, PASSPHRASE, PRICE_KEY, Runner, items, keys_as_json
from tests.read.test_stored_int96 import int96_table, stored
from tests.requirements import peer

pa = peer("pyarrow")

PLAIN = "items.parquet"


@pytest.fixture
def folder(example_files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the example files, as the working directory."""
    for path in example_files.iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
            (tmp_path / path.name).chmod(path.stat().st_mode)       # nobody else reads the keyring
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FASTPQ_PASSPHRASE", PASSPHRASE)
    return tmp_path


def same_rows(path: str, **options: Any) -> bool:
    return fastpq.read_table(path, **options).equals(fastpq.read_table(PLAIN))


@pytest.mark.parametrize("ending", ["csv", "jsonl", "arrow", "npz"])
def test_a_round_trip_through_each_format(ending: str, folder: Path, command: Runner) -> None:
    assert command("convert", PLAIN, "-o", f"x.{ending}").code == 0
    assert command("convert", f"x.{ending}", "-o", "back.parquet").code == 0
    expected, actual = fastpq.read_table(PLAIN), fastpq.read_table("back.parquet")
    for name in expected.names:
        one, other = expected[name].to_pylist(), actual[name].to_pylist()
        if ending == "jsonl" and name == "day":
            other = [type(one[0]).fromisoformat(value) for value in other]
        assert one == other, (ending, name)


def test_nulls_and_types_of_csv(folder: Path, command: Runner) -> None:
    lines = [
        "whole,number,flag,day,moment,code,text",
        "1,1.5,true,2024-01-02,2024-01-02 03:04:05,007,a",
        ",,,,,,",
        '-2,3,false,2024-01-03,2024-01-02T03:04,8,"b,',
        '"',
    ]
    (folder / "x.csv").write_text("\n".join(lines) + "\n")
    assert command("convert", "x.csv", "-o", "x.parquet").code == 0
    table = fastpq.read_table("x.parquet")
    assert [str(table.flat(name).type) for name in ("whole", "number", "flag")] == ["INT64", "DOUBLE", "BOOLEAN"]
    assert table["code"].to_pylist() == ["007", None, "8"]
    assert table["text"].to_pylist() == ["a", None, "b,\n"]
    assert [str(value) for value in table["moment"].to_pylist()] == ["2024-01-02 03:04:05", "None", "2024-01-02 03:04:00"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no heading"),
        ("a,a\n1,2\n", "names a column twice"),
        ("a,b\n1\n", "line 2: 1 fields, but the heading has 2"),
        ('a\n"open\n', "line 2"),
        ("a\n" + "1\n" * 5 + "x\n", "began as int64"),
    ],
)
def test_bad_csv_is_one_line(text: str, message: str, folder: Path, command: Runner) -> None:
    (folder / "x.csv").write_text(text)
    code, _, err = command("convert", "x.csv", "-o", "x.parquet", "--infer-rows", "3")
    assert (code, message in err) == (3, True), err
    assert not (folder / "x.parquet").exists()


@pytest.mark.parametrize("text", ["[1]\n", "{\n", '{"a": 1}\n{"b": 2}\n', ""])
def test_bad_json_lines_are_one_line(text: str, folder: Path, command: Runner) -> None:
    (folder / "x.jsonl").write_text(text)
    code, _, err = command("convert", "x.jsonl", "-o", "x.parquet", "--infer-rows", "1")
    assert code == 3
    assert len(err.splitlines()) <= 2
    assert not (folder / "x.parquet").exists()


def test_pipes_in_and_out(folder: Path, command: Runner) -> None:
    data = command.binary("rewrite", PLAIN, "-o", "-")
    assert fastpq.read_table(data).equals(fastpq.read_table(PLAIN))
    result = command("count", "-", stdin=data)
    assert result.out == "100000\n"
    assert command("inspect", "-", "--json", stdin=data).json["file"] == "standard input"
    (folder / "piped.parquet").write_bytes(command.binary("convert", "rows.jsonl", "-o", "-", "--to", "parquet"))
    assert fastpq.read_table("piped.parquet").to_pylist() == [{"a": 1, "b": ["x"]}, {"a": None, "b": []}]


def test_rewrite_keeps_values_and_takes_options(folder: Path, command: Runner) -> None:
    (folder / "recipe.json").write_text('{"data_page_version": "2.0"}')
    line = ("rewrite", PLAIN, "-o", "x.parquet", "--compression", "gzip", "--row-group-size", "30000", "--recipe", "recipe.json")
    assert command(*line).code == 0
    assert same_rows("x.parquet")
    metadata = fastpq.read_metadata("x.parquet")
    assert metadata.row_counts == [30_000, 30_000, 30_000, 10_000]
    assert metadata.key_value_metadata["owner"] == "sales"
    assert command("rewrite", "x.parquet", "-o", "x.parquet", "--sort-by", "-user").code == 0
    first = fastpq.ParquetFile("x.parquet").read(["user"], row_groups=[0])
    assert (np.diff(first["user"].to_numpy()) <= 0).all()
    assert command("rewrite", PLAIN, "-o", "x.parquet", "--recipe", "items.parquet").code == 2
    (folder / "recipe.json").write_text('{"compresion": "zstd"}')
    assert "compression" in command("rewrite", PLAIN, "-o", "x.parquet", "--recipe", "recipe.json").err


def test_encrypt_and_decrypt_with_a_keyring(folder: Path, command: Runner) -> None:
    line = ("encrypt", PLAIN, "-o", "x.parquet", "--keyring", "keyring.json", "--footer-key", "kf", "--column-key", "kc:price")
    assert command(*line).code == 0
    facts = command("keys", "inspect", "x.parquet", "--json").json
    assert facts["footer"] == "encrypted"
    assert command("count", "x.parquet").code == 4
    assert (
        command("count", "x.parquet", "--keyring", "keyring.json", "-w", "price < 1").out
        == command("count", PLAIN, "-w", "price < 1").out
    )
    assert command("decrypt", "x.parquet", "-o", "y.parquet", "--keyring", "keyring.json").code == 0
    assert same_rows("y.parquet")


def test_unlisted_columns_are_encrypted_unless_the_user_says_otherwise(folder: Path, command: Runner) -> None:
    common = ("--keyring", "keyring.json", "--footer-key", "kf", "--column-key", "kc:price")
    signed = (*common, "--plaintext-footer")
    refused = command("encrypt", PLAIN, "-o", "x.parquet", *signed)
    assert refused.code != 0
    assert "id, name, user, day" in refused.err
    refused = command("encrypt", PLAIN, "-o", "x.parquet", *common, "--unlisted", "raise")
    assert refused.code != 0
    assert "id, name, user, day" in refused.err
    assert command("encrypt", PLAIN, "-o", "x.parquet", *common[:4], "--unlisted", "plaintext").code == 2
    assert command("encrypt", PLAIN, "-o", "x.parquet", *common[:4], "--plaintext-column", "id").code == 2
    assert not Path("x.parquet").exists()
    assert command("encrypt", PLAIN, "-o", "x.parquet", *signed, "--unlisted", "footer-key").code == 0
    keys = {each["column"]: each["key"] for each in command("keys", "inspect", "x.parquet", "--json").json["keys"]}
    assert keys == {"footer": "footer", "id": "footer", "price": "column", "name": "footer", "user": "footer", "day": "footer"}
    assert command("encrypt", PLAIN, "-o", "x.parquet", *signed, "--unlisted", "plaintext").code == 0
    keys = {each["column"]: each["key"] for each in command("keys", "inspect", "x.parquet", "--json").json["keys"]}
    assert keys["id"] == "none"
    result = command("inspect", "x.parquet", "--keyring", "keyring.json")
    assert "In the clear: id, name, user and 1 more." in result.out
    in_clear = [word for name in ("id", "day") for word in ("--plaintext-column", name)]
    refused = command("encrypt", PLAIN, "-o", "x.parquet", *signed, *in_clear, "--unlisted", "raise")
    assert "own: name, user " in refused.err
    assert command("encrypt", PLAIN, "-o", "x.parquet", *signed, *in_clear, "--unlisted", "footer-key").code == 0
    keys = {each["column"]: each["key"] for each in command("keys", "inspect", "x.parquet", "--json").json["keys"]}
    assert keys == {"footer": "footer", "id": "none", "price": "column", "name": "footer", "user": "footer", "day": "none"}


def test_explicit_keys_for_a_new_file(folder: Path, command: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTPQ_NEW_KEYS", keys_as_json(price=PRICE_KEY))
    assert command("encrypt", PLAIN, "-o", "x.parquet", "--new-aad-prefix", "sales").code == 0
    monkeypatch.delenv("FASTPQ_NEW_KEYS")
    keys = fastpq.FileDecryptionProperties(FOOTER_KEY, {"price": PRICE_KEY})
    assert same_rows("x.parquet", decryption_properties=keys)
    monkeypatch.setenv("FASTPQ_KEYS", keys_as_json(price=PRICE_KEY))
    assert command("head", "x.parquet", "--aad-prefix", "other").code == 4
    assert command("head", "x.parquet", "--aad-prefix", "sales").code == 0


def test_keys_from_a_file_descriptor(folder: Path) -> None:
    (folder / "keys.json").write_text(keys_as_json(price=PRICE_KEY))
    line = f"{sys.executable} -m fastpq count secret.parquet --keys-fd 3 3<keys.json"
    assert subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False).stdout == "100000\n"
    (folder / "passphrase").write_text(PASSPHRASE + "\n")
    line = f"{sys.executable} -m fastpq keys list keyring.json --passphrase-fd 3 3<passphrase"
    environment = {name: value for name, value in os.environ.items() if name != "FASTPQ_PASSPHRASE"}
    result = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, env=environment)
    assert result.stdout == "kc\nkf\nkn\n"


@pytest.mark.parametrize("verb", ["rewrite", "merge", "convert", "recover"])
def test_an_encrypted_source_is_not_written_as_plaintext_by_chance(
    verb: str, folder: Path, command: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FASTPQ_KEYS", keys_as_json(price=PRICE_KEY))
    target = "x.csv" if verb == "convert" else "x.parquet"
    code, _, err = command(verb, "secret.parquet", "-o", target)
    assert (code, "the new file would not be" in err) == (4, True), err
    assert not (folder / target).exists()
    assert command(verb, "secret.parquet", "-o", target, "--plaintext").code == 0
    assert (folder / target).exists()


def test_keys_are_created_listed_tested_and_rotated(folder: Path, command: Runner) -> None:
    assert command("keys", "create", "new.json", "a", "b").out == "a\nb\n"
    assert (folder / "new.json").stat().st_mode & 0o077 == 0
    assert command("keys", "create", "new.json").code == 6
    assert command("keys", "create", "new.json", "a").code == 2
    assert command("keys", "list", "new.json").out == "a\nb\n"
    assert command("keys", "test", "a", "--keyring", "new.json").out.startswith("ok  a wraps in ")
    assert command("keys", "test", "none", "--keyring", "new.json").code == 4
    line = ("encrypt", PLAIN, "-o", "x.parquet", "--keyring", "new.json", "--footer-key", "a", "--external-keys")
    assert command(*line).code == 0
    before = (folder / "_KEY_MATERIAL_FOR_x.parquet.json").read_bytes()
    assert command("keys", "rotate", "a", "--files", "x.parquet", "--keyring", "new.json").out.startswith("a: version 2\n")
    assert (folder / "_KEY_MATERIAL_FOR_x.parquet.json").read_bytes() != before
    assert command("count", "x.parquet", "--keyring", "new.json").out == "100000\n"
    assert command("keys", "rotate", "--keyring", "new.json").code == 2


def test_versions_are_disabled_enabled_and_destroyed(folder: Path, command: Runner) -> None:
    line = ("keys", "versions", "kf", "--keyring", "keyring.json")
    assert command(*line).out == "1 enabled\n"
    assert command(*line, "--disable", "1").out == "1 disabled\n"
    code, _, err = command(*line, "--destroy", "1")
    assert (code, "is the newest one" in err) == (2, True)
    assert command(*line, "--enable", "1").out == "1 enabled\n"
    assert command("keys", "rotate", "kf", "--keyring", "keyring.json").code == 0
    code, _, err = command(*line, "--destroy", "1")
    assert (code, "disable version 1" in err) == (2, True)
    assert command(*line, "--disable", "1", "--destroy", "1").code == 2
    assert command(*line).out == "1 enabled\n2 enabled\n"
    assert command(*line, "--disable", "1").code == 0
    assert command(*line, "--destroy", "1").out == "1 destroyed\n2 enabled\n"
    assert command(*line, "--enable", "1").code == 4
    facts = json.loads(command(*line, "--json").out)
    assert facts["versions"] == [{"number": 1, "state": "destroyed"}, {"number": 2, "state": "enabled"}]
    assert command("keys", "versions", "none", "--keyring", "keyring.json").code == 4


def test_a_changed_passphrase(folder: Path, command: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    line = ("keys", "passphrase", "keyring.json")
    code, _, err = command(*line)
    assert (code, "--new-passphrase-fd N, or FASTPQ_NEW_PASSPHRASE" in err) == (4, True)
    monkeypatch.setenv("FASTPQ_NEW_PASSPHRASE", "open barley")
    code, out, err = command(*line)
    assert (code, out) == (0, "keyring.json has the new passphrase\n"), err
    assert "open barley" not in err
    assert command("keys", "list", "keyring.json").code == 4
    monkeypatch.setenv("FASTPQ_PASSPHRASE", "open barley")
    assert command("keys", "list", "keyring.json").out == "kc\nkf\nkn\n"
    assert command("count", "sealed.parquet", "--keyring", "keyring.json").out == "100000\n"
    monkeypatch.setenv("FASTPQ_NEW_PASSPHRASE", "")
    assert command(*line).code == 2
    (folder / "new").write_text("third one\n")
    descriptor = os.open(folder / "new", os.O_RDONLY)
    try:
        assert command(*line, "--new-passphrase-fd", str(descriptor), "--json").json["master_key_ids"] == ["kc", "kf", "kn"]
    finally:
        os.close(descriptor)
    monkeypatch.setenv("FASTPQ_PASSPHRASE", "third one")
    assert command("keys", "list", "keyring.json").code == 0


def test_a_wrong_passphrase_and_a_missing_one(folder: Path, command: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTPQ_PASSPHRASE", "wrong secret")
    code, out, err = command("keys", "list", "keyring.json", "--debug")
    assert (code, "wrong secret" in out + err) == (4, False)
    monkeypatch.delenv("FASTPQ_PASSPHRASE")
    code, _, err = command("keys", "list", "keyring.json")
    assert code == 4
    assert "--passphrase-fd N" in err


def test_recover_reports_and_writes_the_rest(folder: Path, command: Runner) -> None:
    code, out, _ = command("recover", "damaged.parquet", "-o", "rest.parquet", "--json")
    assert code == 1

    facts = json.loads(out)
    (loss,) = facts["losses"]
    assert (loss["column"], loss["row_group"]) == ("id", 0)
    assert fastpq.ParquetFile("rest.parquet").null_count("id") == loss["rows"]
    assert command("recover", PLAIN).code == 0


def test_merge_joins_row_groups(folder: Path, command: Runner) -> None:
    assert command("merge", PLAIN, PLAIN, "-o", "x.parquet").code == 0
    assert fastpq.read_metadata("x.parquet").num_rows == 200_000
    assert command("merge", "-", "-o", "y.parquet").code == 2


WRITING_LINES = [
    ("rewrite", PLAIN),
    ("convert", PLAIN, "--to", "csv"),
    ("convert", PLAIN, "--to", "arrow"),
    ("cat", PLAIN),
    ("encrypt", PLAIN, "--keyring", "keyring.json", "--footer-key", "kf"),
    ("merge", PLAIN),
    ("recover", PLAIN),
]


@pytest.mark.linux
@pytest.mark.parametrize("line", WRITING_LINES, ids=" ".join)
def test_a_full_disk_leaves_the_old_file(line: tuple[str, ...], folder: Path) -> None:
    """A limit of the file size stands for a full disk: the write fails in the middle."""
    target = folder / "target"
    target.write_bytes(b"old")
    command_line = " ".join(map(str, (sys.executable, "-m", "fastpq", *line, "-o", "target", "--force")))
    shell = f"trap '' XFSZ; ulimit -f 50; {command_line}"
    result = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False)
    assert result.returncode == 6, result.stderr
    assert result.stderr.startswith("fastpq: ")
    assert len(result.stderr.splitlines()) <= 2
    assert target.read_bytes() == b"old"
    assert not [path.name for path in folder.iterdir() if path.name.startswith(".")]


@pytest.mark.linux
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_mid_write_leaves_the_old_file(number: int, folder: Path) -> None:
    """JSON lines come slowly through a pipe, so that the writer is at work when the signal comes."""
    target = folder / "x.parquet"
    target.write_bytes(b"old")
    line = [sys.executable, "-m", "fastpq", "convert", "-", "--from", "jsonl", "-o", str(target), "--infer-rows", "1", "--force"]
    running = subprocess.Popen(line, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert running.stdin is not None
    running.stdin.write(b'{"a": 1}\n' * 200_000)
    running.stdin.flush()
    time.sleep(1)
    running.send_signal(number)
    _, err = running.communicate(timeout=60)
    assert (running.returncode, err.decode().strip()) == (130, "fastpq: interrupted")
    assert target.read_bytes() == b"old"
    assert not [path.name for path in folder.iterdir() if path.name.startswith(".")]


def test_diff_finds_what_differs(folder: Path, command: Runner) -> None:
    assert command("diff", PLAIN, PLAIN).out == "equal\n"
    facts = command("diff", PLAIN, "changed.parquet", "--json").json
    assert facts["values"]["columns"] == {"price": 2}
    assert [each["row"] for each in facts["values"]["first"]] == [5, 70_000]
    assert not facts["schema"]
    facts = command("diff", PLAIN, "changed.parquet", "--json", "--key", "id", "--tolerance", "1e-9").json
    assert facts["values"]["columns"] == {"price": 1}
    assert command("diff", PLAIN, "changed.parquet", "--only", "schema").code == 0
    assert command("diff", PLAIN, "changed.parquet", "--ignore-order", "--json").json["values"]["only_in_one"] == 2
    assert command("diff", PLAIN, "changed.parquet", "--key", "name").code == 2


def test_diff_of_other_orders_lengths_and_schemas(folder: Path, command: Runner) -> None:
    table = items(1000)
    backwards = {name: values[::-1].copy() for name, values in table.items()}
    fastpq.write_table(table, "one.parquet")
    fastpq.write_table(backwards, "two.parquet", row_group_size=300)
    assert command("diff", "one.parquet", "two.parquet").code == 1
    for options in (("--key", "id"), ("--ignore-order",)):
        assert command("diff", "one.parquet", "two.parquet", *options).code == 0
    assert command("diff", "one.parquet", "two.parquet", "--key", "id", "--strict").code == 1
    short = {name: values[:990] for name, values in table.items()}
    fastpq.write_table({**short, "id": short["id"].astype(np.int32), "more": short["id"]}, "three.parquet")
    facts = command("diff", "one.parquet", "three.parquet", "--json").json
    assert {each["column"]: each["problem"] for each in facts["schema"]} == {
        "id": "another type",
        "more": "the contract does not list it",
    }
    assert (facts["values"]["only_in_one"], facts["values"]["only_in_other"], facts["values"]["differing_rows"]) == (10, 0, 0)
    facts = command("diff", "three.parquet", "one.parquet", "--json", "--key", "id").json
    assert facts["values"]["first_only_in_other"] == list(range(990, 1000))


def test_diff_looks_into_lists_and_structs(folder: Path, command: Runner) -> None:
    rows: list[dict[str, Any]] = [{"a": [1.0, 2.0], "s": {"x": 1, "y": "b"}}, {"a": [], "s": {"x": 2, "y": None}}]
    fastpq.write_table({name: [row[name] for row in rows] for name in rows[0]}, "one.parquet")
    rows[0]["a"] = [1.0, 2.0 + 1e-12]
    rows[1]["s"] = {"x": 2, "y": "c"}
    fastpq.write_table({name: [row[name] for row in rows] for name in rows[0]}, "two.parquet")
    facts = command("diff", "one.parquet", "two.parquet", "--json").json
    assert [(each["column"], each["path"]) for each in facts["values"]["first"]] == [("a", "[1]"), ("s", ".y")]
    facts = command("diff", "one.parquet", "two.parquet", "--json", "--tolerance", "1e-9").json
    assert [(each["column"], each["path"]) for each in facts["values"]["first"]] == [("s", ".y")]


def test_nan_equals_nan(folder: Path, command: Runner) -> None:
    for name in ("one", "two"):
        fastpq.write_table({"a": np.array([np.nan, 1.0]), "b": np.array([1, 2 if name == "one" else 3])}, f"{name}.parquet")
    facts = command("diff", "one.parquet", "two.parquet", "--json").json
    assert facts["values"]["columns"] == {"b": 1}
    assert command("diff", "one.parquet", "two.parquet", "--ignore-order", "-c", "a").code == 0


def test_arrow_output_is_read_by_pyarrow(folder: Path, command: Runner) -> None:
    data = command.binary("cat", PLAIN, "-f", "arrow")
    assert pa.ipc.open_stream(io.BytesIO(data)).read_all().num_rows == 100_000


def test_appending(folder: Path, command: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = fastpq.read_table(PLAIN).num_rows
    assert command("append", "growing.parquet", PLAIN, "changed.parquet").code == 0
    assert fastpq.read_table("growing.parquet").num_rows == 3 * rows
    before = Path("growing.parquet").read_bytes()
    monkeypatch.setenv("FASTPQ_KEYS", keys_as_json(price=PRICE_KEY))
    refused = command("append", "growing.parquet", "secret.parquet")
    monkeypatch.delenv("FASTPQ_KEYS")
    assert (refused.code, "encrypted" in refused.err) == (4, True)
    assert command("append", "growing.parquet", "folder", "rows.jsonl").code != 0
    assert Path("growing.parquet").read_bytes() == before
    keys = ("--keyring", "keyring.json", "--allow", "plaintext-files")
    result = command("append", "sealed.parquet", PLAIN, "--in-place", *keys, "--json")
    assert result.code == 0
    assert '"file": "sealed.parquet"' in result.out
    assert command("count", "sealed.parquet", "--keyring", "keyring.json").out.strip().replace(",", "") == str(2 * rows)


def test_a_file_of_another_format_is_replaced_only_by_force(folder: Path, command: Runner) -> None:
    notes = folder / "notes.txt"
    notes.write_text("important")
    for line in (
        ("rewrite", PLAIN), ("merge", PLAIN), ("recover", PLAIN), ("sort", PLAIN, "--by", "id"), ("delete", PLAIN, "--rows", "1"),
        ("convert", "rows.jsonl", "--to", "parquet"), ("add-indexes", PLAIN), ("project", PLAIN, "-c", "id"),
    ):
        code, _, err = command(*line, "-o", "notes.txt")
        assert (code, "exists and is not a Parquet file" in err, "--force" in err) == (2, True, True), (line, err)
        assert notes.read_text() == "important"
    for url in (f"file://{notes}", f"local://{notes}", notes.as_uri()):
        code, _, err = command("rewrite", PLAIN, "-o", url)
        assert (code, "exists and is not a Parquet file" in err, notes.read_text()) == (2, True, "important"), (url, err)
        code, _, err = command("cat", "growing.parquet", "-f", "csv", "-o", f"file://{folder / PLAIN}")
        assert (code, "exists and is a Parquet file" in err) == (2, True), err
    whole = Path(PLAIN).read_bytes()
    for line in (
        ("cat", "growing.parquet", "-f", "csv"), ("head", "growing.parquet", "-f", "jsonl"), ("doctor", "growing.parquet"),
        ("convert", "growing.parquet", "--to", "csv"), ("layout", "growing.parquet", "-f", "svg"),
    ):
        code, _, err = command(*line, "-o", PLAIN)
        assert (code, "exists and is a Parquet file" in err) == (2, True), (line, err)
        assert Path(PLAIN).read_bytes() == whole
    assert command("rewrite", PLAIN, "-o", "notes.txt", "--force").code == 0
    assert same_rows("notes.txt")
    (folder / "empty").touch()
    assert command("rewrite", PLAIN, "-o", "empty").code == 0
    assert command("cat", PLAIN, "-o", "x.csv").code == command("head", PLAIN, "-o", "x.csv").code == 0


def test_compact_joins_the_files_of_a_folder(folder: Path, command: Runner, example_files: Path) -> None:
    shutil.copytree(example_files / "folder", "days")
    result = command("compact", "days")
    assert (result.code, result.err) == (0, "days: 2 files became 1, 1,000 rows; 0 row groups copied, 2 joined\n")
    (path,) = Path("days").iterdir()
    assert fastpq.read_table(path).num_rows == 1000
    assert command("compact", "days").err == "days: there is nothing to join\n"
    facts = command("compact", "days", "--json").json
    assert (facts["replaced_files"], facts["new_files"], facts["rows"]) == ([], [], 0)
    assert command("compact", PLAIN).code == 2
    assert command("compact", "days/*.parquet").code == 2
    shutil.copy("sealed.parquet", "days")
    code, _, err = command("compact", "days", "--keyring", "keyring.json")
    assert (code, "encrypted" in err) == (2, True)


def test_rows_of_a_folder_are_deleted(folder: Path, command: Runner, example_files: Path) -> None:
    shutil.copytree(example_files / "folder", "days")
    whole = Path("days/part-1.parquet").read_bytes()
    facts = command("delete", "days", "-w", "id < 100", "--json").json
    assert (facts["file"], facts["deleted_rows"], facts["left_out"]) == ("days", 100, [])
    assert Path("days/part-1.parquet").read_bytes() == whole
    assert fastpq.read_table("days/part-0.parquet").num_rows == 400
    assert command("delete", "days", "-w", "id < 500").err == (
        "days: 400 rows deleted; 0 files rewritten, 1 removed, 1 unchanged\n"
    )
    for options in (("days", "--rows", "1"), ("days", "-w", "id < 5", "-o", "x"), (PLAIN, "--rows", "1")):
        assert command("delete", *options).code == 2
    facts = command("delete", PLAIN, "-o", "x.parquet", "--rows", "1", "--json").json
    assert (facts["file"], facts["deleted_rows"]) == ("x.parquet", 1)


def test_recover_names_its_output(folder: Path, command: Runner) -> None:
    assert command("recover", "damaged.parquet", "-o", "rest.parquet").err.startswith("rest.parquet: ")
    assert command("recover", "damaged.parquet", "-o", "rest.parquet", "--json").json["output"] == "rest.parquet"
    assert command("recover", "damaged.parquet", "--json").json["output"] is None
    result = command("recover", "damaged.parquet")
    assert (result.err, "rest.parquet" in result.out) == ("", False)


@pytest.mark.parametrize(
    "line", [(), ("--where", "id >= 0"), ("--columns", "at"), ("--compression", "zstd", "--data-page-rows", "9")]
)
def test_rewrite_keeps_the_bytes_of_int96(line: tuple[str, ...], tmp_path: Path, command: Runner) -> None:
    source, target = tmp_path / "a.parquet", tmp_path / "b.parquet"
    fastpq.write_table(int96_table(), source)
    assert command("rewrite", str(source), "-o", str(target), *line).code == 0
    assert stored(target) == stored(source)


def test_no_verb_cuts_digits_of_int96(tmp_path: Path, command: Runner) -> None:
    source, target = tmp_path / "a.parquet", tmp_path / "b.parquet"
    for path in (source, target):
        fastpq.write_table(int96_table(), path)
    before = target.read_bytes()
    for line in (
        ("rewrite", str(source), "-o", str(target), "--where", "at > '1970-01-01'"),
        ("rewrite", str(source), str(source), "-o", str(target)),
        ("append", str(target), str(source)),
    ):
        result = command(*line)
        assert result.code == 5
        assert "would lose digits: fastpq delete, sort, rechunk and compact keep their bytes [" in result.err
        assert target.read_bytes() == before
