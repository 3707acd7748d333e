"""encrypt, decrypt, rotate and revoke over folders: results, refusals, keys that are bound to a table."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import fastpq
from fastpq.encryption import DatasetEncryptionProperties
from tests.cli.running import FOOTER_KEY, PASSPHRASE, PRICE_KEY, Runner, keys_as_json

RING = ("--keyring", "keyring.json")
TABLE = ("--table-id", "items")
TRUSTED = ("--trusted-keys", "kf,kc,kn")
SEALING = ("--footer-key", "kf", "--column-key", "kc:price", "--new-table-id", "items")
BROKEN, KEYS, USAGE = 3, 4, 2


@pytest.fixture
def folder(example_files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("plain", "sealed"):
        shutil.copytree(example_files / name, tmp_path / name)
    shutil.copy(example_files / "keyring.json", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FASTPQ_PASSPHRASE", PASSPHRASE)
    return tmp_path


def test_a_folder_goes_through_all_verbs(folder: Path, command: Runner) -> None:
    code, out, err = command("encrypt", "plain", *RING, *SEALING, "--dry-run")
    assert (code, err) == (0, "plain: 2 files would be changed, 0 unchanged\n")
    assert out.splitlines() == [f"plain/part-{number}.parquet: plaintext becomes encrypted" for number in range(2)]
    assert fastpq.read_table("plain").num_rows == 1000
    facts = command("encrypt", "plain", *RING, *SEALING, "--json").json
    assert facts["changed_files"] == ["plain/part-0.parquet", "plain/part-1.parquet"]
    assert (facts["file"], facts["unchanged_files"], facts["is_dry_run"], facts["is_resumed"]) == ("plain", [], False, False)
    assert command("count", "plain", *RING, *TABLE).out.strip() == "1000"
    code, out, _ = command("rotate", "plain", *RING, *TABLE, *TRUSTED, "--json")
    assert code == 0
    assert '"is_resumed": false' in out
    code, _, err = command("revoke", "plain", "-c", "price", "--master-key", "kn", *RING, *TABLE, *TRUSTED)
    assert (code, err) == (0, "plain: 2 files changed, 0 unchanged\n")
    assert command("keys", "inspect", "plain/part-0.parquet", "--json").json["aad_prefix"] == b"items|file|part-0.parquet|".hex()
    facts = command("decrypt", "plain", *RING, *TABLE, "--dry-run", "--json").json
    assert (len(facts["changed_files"]), facts["is_dry_run"]) == (2, True)
    code, _, err = command("decrypt", "plain", *RING, *TABLE)
    assert (code, err) == (0, "plain: 2 files changed, 0 unchanged\n")
    assert fastpq.read_table("plain").num_rows == 1000


def test_exchanged_files_and_forged_ones(folder: Path, command: Runner) -> None:
    one, other, aside = (folder / "sealed" / name for name in ("part-0.parquet", "part-1.parquet", "aside"))
    for source, target in ((one, aside), (other, one), (aside, other)):
        source.rename(target)
    assert command("count", "sealed", *RING, "--where", "id < 5").code == 0      # nobody asked for the table
    assert command("count", "sealed", *RING, *TABLE, "--where", "id < 5").code == KEYS
    assert command("decrypt", "sealed", *RING, *TABLE).code == KEYS
    shutil.copy(folder / "plain" / "part-0.parquet", one)
    for line in (
        ("encrypt", "sealed", *RING, *SEALING), ("decrypt", "sealed", *RING), ("rotate", "sealed", *RING, *TRUSTED),
        ("revoke", "sealed", "-c", "price", "--master-key", "kn", *RING, *TRUSTED),
    ):
        code, _, err = command(*line)
        assert code == KEYS, err
        assert "plaintext" in err
    code, _, err = command("decrypt", "sealed", *RING, "--allow", "plaintext-files")
    assert (code, err) == (0, "sealed: 1 file changed, 1 unchanged\n")


@pytest.mark.parametrize(("line", "words"), [
    (("rotate", "sealed", *RING, *TABLE), "trusted"),
    (("rotate", "sealed/part-0.parquet", *RING, *TRUSTED), "is not a folder"),
    (("revoke", "sealed", "-c", "price", "--master-key", "other", *RING, *TRUSTED, *TABLE), "new master key"),
    (("revoke", "sealed", "-c", "nope", "--master-key", "kn", *RING, *TRUSTED, *TABLE), "no file has the columns nope"),
    (("encrypt", "plain", "-o", "x", *RING, *SEALING), "takes no --output"),
    (("encrypt", "plain/part-0.parquet", *RING, *SEALING), "needs --output"),
    (("encrypt", "plain/part-0.parquet", "-o", "x", "--dry-run", *RING, *SEALING), "--dry-run"),
    (("encrypt", "plain", *RING), "no key for the new files"),
    (("encrypt", "plain", *RING, "--footer-key", "kf", "--new-aad-prefix", "x"), "share an AAD prefix"),
    (("encrypt", "plain", *RING, "--footer-key", "kf", "--new-table-root", "x"), "--new-table-id"),
    (("decrypt", "sealed"), "no keys are named"),
    (("decrypt", "sealed", *RING, *TABLE, "--aad-prefix", "x"), "cannot stand with"),
    (("count", "sealed", *RING, "--table-root", "sealed"), "needs --table-id"),
    (("rotate", "sealed", *RING, *TABLE), "--trusted-keys has to list the right ones"),
    (("revoke", "sealed", "-c", "price", "--master-key", "other", *RING, *TRUSTED, *TABLE), "not among --trusted-keys"),
    (("encrypt", "plain", *RING, *SEALING, "--unlisted", "raise"), "--column-key, or name them in --plaintext-column"),
    (("keys", "rotate", "kf", "--files", "sealed", *RING), "fastpq rotate sealed writes the files of a folder again"),
])
def test_refusals_change_nothing(folder: Path, command: Runner, line: tuple[str, ...], words: str) -> None:
    before = {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    code, _, err = command(*line)
    assert code in (USAGE, BROKEN, KEYS, 5), err
    assert words in err
    assert "Traceback" not in err
    python_names = (
        "trusted_master_keys", "plaintext_columns", "unlisted=", "Configuration", "rotate_dataset", "root=", "column_keys",
    )
    assert not any(name in err for name in python_names), err
    assert {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()} == before


def test_one_file_is_bound_to_its_name_and_path(folder: Path, command: Runner) -> None:
    new = ("--footer-key", "kf", "--new-table-id", "t", "--new-table-root", "out")
    Path("out/p=1").mkdir(parents=True)
    target = "out/p=1/x.parquet"
    assert command("encrypt", "plain/part-0.parquet", "-o", target, *RING, *new).code == 0
    read = ("--table-id", "t", "--table-root", "out", *RING)
    assert command("count", target, *read).out.strip() == "500"
    Path("out/p=1").rename("out/p=2")
    assert command("count", "out/p=2/x.parquet", *read, "--where", "id < 5").code == KEYS


def test_verbs_of_keyrings_have_only_their_options(folder: Path, command: Runner) -> None:
    assert "--passphrase-fd" in command("keys", "create", "--help").out
    for verb, foreign_options in {
        "create": ("--keyring", "--kms", "--keys-fd", "--aad-prefix", "--table-id", "--allow"),
        "list": ("--keyring", "--kms", "--keys-fd", "--aad-prefix", "--table-id", "--allow"),
        "passphrase": ("--keyring", "--kms", "--keys-fd", "--aad-prefix", "--table-id", "--allow"),
        "rotate": ("--keys-fd", "--aad-prefix", "--table-id", "--allow"),
        "test": ("--keys-fd", "--aad-prefix", "--table-id", "--allow"),
    }.items():
        out = command("keys", verb, "--help").out
        assert [option for option in foreign_options if f"  {option} " in out] == []


@pytest.mark.parametrize("verb", ["head", "tail", "cat", "sample"])
def test_rows_without_the_key_of_a_column(
    folder: Path, example_files: Path, command: Runner, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setenv("FASTPQ_KEYS", keys_as_json())
    rows = () if verb == "cat" else ("-n", "2")
    file = str(example_files / "secret.parquet")
    columns = ("-c", "id,price", "-f", "jsonl")
    code, _, err = command(verb, file, *rows, *columns)
    assert code == KEYS
    assert "--on-missing-key null of head, tail, cat and sample reads nulls, skip of doctor leaves columns out" in err
    assert "on_missing_key" not in err
    for condition in ((), ("-w", "id < 3"))[: 1 if verb == "sample" else 2]:
        code, out, err = command(verb, file, *rows, *columns, *condition, "--on-missing-key", "null")
        assert (code, err) == (0, "! null, because their keys are missing: price\n")
        assert {row["price"] for row in map(json.loads, out.splitlines())} == {None}
    code, out, err = command(verb, file, *rows, "-c", "id", "--on-missing-key", "null")
    assert (code, err) == (0, "")


def test_advice_without_the_key_of_a_column(
    folder: Path, example_files: Path, command: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FASTPQ_KEYS", keys_as_json())
    file = str(example_files / "secret.parquet")
    assert command("doctor", file).code == KEYS
    code, out, err = command("doctor", file, "--on-missing-key", "skip")
    assert (code, err) == (KEYS, "")
    assert "! not looked at, because keys are missing: price" in out
    assert "nothing to change in what was read for scan" in out
    code, out, _ = command("doctor", file, "--on-missing-key", "skip", "--json")
    facts = json.loads(out)
    assert (code, facts["unread_columns"], facts["recipe"], facts["error"]) == (KEYS, ["price"], {}, None)
    code, _, err = command("doctor", file, "--on-missing-key", "skip", "-o", "recipe.json")
    assert code == KEYS
    assert "a recipe writes all columns" in err
    assert not Path("recipe.json").exists()
    keys = fastpq.FileEncryptionProperties(FOOTER_KEY, {"price": PRICE_KEY})
    rows = {"id": range(5000), "price": [0.5] * 5000}
    fastpq.write_table(rows, "large.parquet", compression=None, use_dictionary=False, encryption_properties=keys)
    assert command("doctor", "large.parquet", "--on-missing-key", "skip").code == KEYS
    assert command("doctor", "large.parquet", "--on-missing-key", "skip", "--check").code == 1
    assert command("doctor", "large.parquet", "--on-missing-key", "skip", "--for", "lookup", "--key", "price").code == KEYS


@pytest.mark.parametrize("verb", ["verify", "index"])
def test_columns_that_were_not_checked_are_told_in_words_of_the_command(
    folder: Path, example_files: Path, command: Runner, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setenv("FASTPQ_KEYS", keys_as_json())
    file = str(example_files / "secret.parquet")
    assert '"the column is encrypted, and there is no key for it"' in command(verb, file, "--json").out
    assert "on_missing_key" not in command(verb, file).out


def test_a_folder_without_the_key_of_a_column(folder: Path, command: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        keys = fastpq.FileEncryptionProperties(FOOTER_KEY, {"price": PRICE_KEY})
        Path("days").mkdir(exist_ok=True)
        fastpq.write_table({"id": [1, 2], "price": [0.5, 1.5]}, f"days/{name}.parquet", encryption_properties=keys)
    monkeypatch.setenv("FASTPQ_KEYS", keys_as_json())
    code, out, err = command("cat", "days", "--on-missing-key", "null")
    assert (code, err) == (0, "! null, because their keys are missing: price\n")
    assert out.splitlines() == ["id,price", "1,", "2,", "1,", "2,"]


def test_an_interrupted_encryption_is_named_in_words_of_the_command(
    folder: Path, command: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = DatasetEncryptionProperties(fastpq.FileEncryptionProperties(FOOTER_KEY))

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fastpq.encrypt_dataset("plain", keys, progress=stop)
    monkeypatch.setenv("FASTPQ_KEYS", keys_as_json())
    monkeypatch.setenv("FASTPQ_NEW_KEYS", keys_as_json())
    for line in (("decrypt", "plain"), ("rotate", "plain")):
        code, _, err = command(*line)
        assert code == KEYS, err
        assert "an interrupted fastpq encrypt has left" in err
        assert "call it again" in err
        assert "--allow plaintext-files goes on anyway" in err
        assert "_dataset" not in err
    code, _, err = command("encrypt", "plain")
    assert (code, err) == (0, "plain: 1 file changed, 1 unchanged, after an interrupted call\n")
    code, _, err = command("rotate", "no-folder")
    assert (code, err) == (6, "fastpq: there is no such file: no-folder\n")
