"""Each verb on plaintext and encrypted files, without the key, on bad files, on a full disk, and interrupted in mid-write.

A verb without a row in VERB_ROWS fails ``test_each_verb_has_a_row``.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.running import PASSPHRASE, PRICE_KEY, Runner, keys_as_json
from tests.cli.test_examples import VERBS

REFUSED, DIFFERENT, USAGE, BROKEN, KEYS = (3, 4, 5), 1, 2, 3, 4
TARGET = "target"
MASTER = "--keyring keyring.json --footer-key kf"


class VerbRow(NamedTuple):
    """What one verb does.

    Attributes:
        line: its words and arguments. ``{file}`` stands for the file, and TARGET for the new file.
        sealed: options that the verb needs with the encrypted file, beside its keys.
        encrypted: its exit code for the encrypted file with keys.
        keyless: its exit code for the encrypted file without keys: 0 if it tells what can be known.
        bad: its exit codes for a file that was cut off.
        flipped: its exit code for a file with a flipped bit in a page: 0 if it does not read that page.
        writes: the path that it writes, or "".
    """

    line: str
    sealed: str = ""
    encrypted: int = 0
    keyless: int = KEYS
    bad: tuple[int, ...] = (BROKEN,)
    flipped: int = BROKEN
    writes: str = ""


def rewriting(line: str, *, flipped: int = BROKEN, sealed: str = "") -> VerbRow:
    """Return the row of a verb that makes a file of a file. Copied pages are compared with their checksums too."""
    return VerbRow(f"{line} -o {TARGET} --force", sealed=sealed, flipped=flipped, writes=TARGET)


VERB_ROWS = {
    # the row of a verb without a file has no {file}
    "columns": VerbRow("columns {file}", flipped=0),
    "index": VerbRow("index {file} --columns id --probe 7", flipped=0),
    "inspect": VerbRow("inspect {file}", keyless=0, flipped=0),
    "layout": VerbRow(f"layout {{file}} -f svg -o {TARGET} --force", keyless=0, flipped=0, writes=TARGET),
    "meta": VerbRow("meta {file}", keyless=0, flipped=0),
    "pages": VerbRow("pages {file}", flipped=0),
    "schema": VerbRow("schema {file}", flipped=0),
    "cat": VerbRow(f"cat {{file}} -o {TARGET} -f csv --force", writes=TARGET),
    "count": VerbRow('count {file} --where "id < 500"'),
    "dict": VerbRow("dict {file} name", flipped=0),
    "head": VerbRow(f"head {{file}} -o {TARGET} -f jsonl --force", writes=TARGET),
    "sample": VerbRow(f"sample {{file}} -o {TARGET} -f csv --seed 1 --force", writes=TARGET),
    "stats": VerbRow("stats {file}"),
    "tail": VerbRow(f"tail {{file}} -o {TARGET} -f csv --force", flipped=0, writes=TARGET),
    "diff": VerbRow("diff {file} {file}"),
    "doctor": VerbRow(f"doctor {{file}} --for archive -o {TARGET} --force", writes=TARGET),
    "verify": VerbRow("verify {file}", flipped=DIFFERENT),
    "why": VerbRow('why {file} --where "id == 5" --count'),
    "add-indexes": rewriting("add-indexes {file} --bloom-filter id"),
    "append": VerbRow("append growing.parquet {file}", encrypted=KEYS, writes="growing.parquet"),
    "compact": VerbRow("compact days", writes="days"),
    "convert": VerbRow(f"convert {{file}} --to csv -o {TARGET} --force", sealed="--plaintext", writes=TARGET),
    "decrypt": VerbRow(f"decrypt {{file}} -o {TARGET} --force", bad=(BROKEN, KEYS), flipped=KEYS, writes=TARGET),
    "delete": rewriting('delete {file} --where "id < 50"'),
    "encrypt": rewriting(f"encrypt {{file}} {MASTER}"),
    "evolve": rewriting("evolve {file} --rename price:cost"),
    "merge": rewriting("merge {file} {file}", sealed="--plaintext"),
    "project": rewriting("project {file} -c id"),
    "rechunk": rewriting("rechunk {file} --row-group-size 700"),
    "recompress": rewriting("recompress {file} --compression gzip"),
    "recover": rewriting("recover {file}", flipped=DIFFERENT, sealed="--plaintext"),
    "redact": rewriting("redact {file} --columns name"),
    "rewrite": rewriting("rewrite {file}", sealed="--plaintext"),
    "sort": rewriting("sort {file} --by user"),
    "split": VerbRow("split {file} -o part-{{number}} --rows 600", writes="part-0"),
    "strip": rewriting("strip {file}"),
    "keys inspect": VerbRow("keys inspect {file}", keyless=0, flipped=0),
    "keys create": VerbRow("keys create keyring.json another", writes="keyring.json"),
    "keys list": VerbRow("keys list keyring.json"),
    "keys passphrase": VerbRow("keys passphrase keyring.json", writes="keyring.json"),
    "keys rotate": VerbRow("keys rotate kf --keyring keyring.json", writes="keyring.json"),
    "keys versions": VerbRow("keys versions kf --enable 1 --keyring keyring.json", writes="keyring.json"),
    "keys test": VerbRow("keys test kf --keyring keyring.json"),
    "rotate": VerbRow("rotate sealed --keyring keyring.json --trusted-keys kf,kc --table-id items", writes="sealed"),
    "revoke": VerbRow(
        "revoke sealed -c price --master-key kn --keyring keyring.json --trusted-keys kf,kc,kn --table-id items", writes="sealed"
    ),
    "bench": VerbRow("bench --megabytes 1"),
    "completion": VerbRow("completion bash"),
}
# Verbs that need a terminal, and the tests that have one for them.
IN_TERMINALS = {"browse": ("test_browse.py", "encrypted", "damaged", "secret.parquet")}
WITH_FILES = [name for name, row in VERB_ROWS.items() if "{file}" in row.line]
WRITING = [name for name, row in VERB_ROWS.items() if row.writes]


@pytest.fixture
def folder(example_files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example files as the working directory, and a folder of small ones."""
    for path in example_files.iterdir():
        if path.is_file():
            shutil.copy2(path, tmp_path)
    shutil.copytree(example_files / "folder", tmp_path / "days")
    shutil.copytree(example_files / "sealed", tmp_path / "sealed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FASTPQ_PASSPHRASE", PASSPHRASE)
    monkeypatch.setenv("FASTPQ_NEW_PASSPHRASE", PASSPHRASE)
    return tmp_path


def words(name: str, file: str, sealed: bool = False) -> list[str]:
    row = VERB_ROWS[name]
    return shlex.split(row.line.format(file=file) + (f" {row.sealed}" if sealed else ""))


def test_each_verb_has_a_row() -> None:
    assert {*VERB_ROWS, *IN_TERMINALS} == {*VERBS}
    for file, *subjects in IN_TERMINALS.values():
        text = Path(__file__).with_name(file).read_text()
        assert all(subject in text for subject in subjects), file
    with_output = {name for name, verb in VERBS.items() if any("--output" in option.opts for option in verb.params)}
    assert with_output <= {*WRITING}
    with_keys = {name for name, verb in VERBS.items() if any("--keys-fd" in option.opts for option in verb.params)}
    of_folders = {"compact", "rotate", "revoke"}
    of_keyrings = {"keys create", "keys list", "keys passphrase", "keys rotate", "keys versions", "keys test"}
    assert with_keys - {*WITH_FILES} <= {*IN_TERMINALS, *of_folders, *of_keyrings}


@pytest.mark.parametrize("name", VERB_ROWS)
def test_a_plaintext_file(name: str, folder: Path, command: Runner) -> None:
    file = "secret.parquet" if name == "decrypt" else "items.parquet"
    with pytest.MonkeyPatch.context() as patch:
        if name == "decrypt":
            patch.setenv("FASTPQ_KEYS", keys_as_json(price=PRICE_KEY))
        code, _, err = command(*words(name, file))
    assert code == 0, err
    assert not VERB_ROWS[name].writes or Path(VERB_ROWS[name].writes).exists()


@pytest.mark.parametrize("name", WITH_FILES)
def test_an_encrypted_file_with_keys_and_without(
    name: str, folder: Path, command: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = VERB_ROWS[name]
    code, out, err = command(*words(name, "secret.parquet", sealed=True))
    assert code == row.keyless, (out, err)
    assert code == 0 or (len(err.splitlines()) <= 2 and "Traceback" not in err)
    if code and row.writes == TARGET:
        assert not Path(TARGET).exists()
    monkeypatch.setenv("FASTPQ_KEYS", keys_as_json(price=PRICE_KEY))
    code, out, err = command(*words(name, "secret.parquet", sealed=True), *without_keyring(name))
    assert code == row.encrypted, (out, err)


def without_keyring(name: str) -> list[str]:
    """Return options with which a verb opens a plaintext target although there are keys."""
    return ["--allow", "plaintext-files"] if name == "append" else []


@pytest.mark.parametrize("name", WITH_FILES)
def test_bad_files(name: str, folder: Path, command: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    row = VERB_ROWS[name]
    if name == "decrypt":
        monkeypatch.setenv("FASTPQ_KEYS", keys_as_json(price=PRICE_KEY))
    Path("empty.parquet").touch()
    Path("noise.parquet").write_bytes(b"PAR1" + os.urandom(1000) + b"PAR1")
    before = Path("growing.parquet").read_bytes()
    for file in ("cut.parquet", "empty.parquet", "noise.parquet"):
        code, _, err = command(*words(name, file))
        assert code in (*row.bad, DIFFERENT if name == "verify" else BROKEN), (file, code, err)
        assert len(err.splitlines()) <= 2, err
    code, _, err = command(*words(name, "nothing.parquet"))
    assert code == 6, err
    if name != "decrypt":
        code, _, err = command(*words(name, "damaged.parquet"))
        assert code == row.flipped, err
    assert Path("growing.parquet").read_bytes() == before
    assert leftovers(folder) == []


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.name.startswith(".")]


def state(place: Path) -> dict[str, bytes] | None:
    """Return the bytes of a file, or of all files in a folder. None if there is none."""
    if place.is_dir():
        return {str(path): path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file()}
    return {"": place.read_bytes()} if place.exists() else None


def environment(name: str) -> dict[str, str]:
    """Return variables of a process that runs a verb."""
    variables = {**os.environ, "FASTPQ_PASSPHRASE": PASSPHRASE, "PYTHONDONTWRITEBYTECODE": "1"}
    if name == "decrypt":
        variables["FASTPQ_KEYS"] = keys_as_json(price=PRICE_KEY)
    return variables


def prepared(name: str, folder: Path) -> tuple[list[str], Path]:
    """Return the words of a verb that writes, and its target, which exists already."""
    target = folder / VERB_ROWS[name].writes
    if not target.exists():
        target.write_bytes(b"old")
    return words(name, "secret.parquet" if name == "decrypt" else "items.parquet"), target


@pytest.mark.linux
@pytest.mark.parametrize("name", WRITING)
def test_a_full_disk_leaves_the_old_state(name: str, folder: Path) -> None:
    """A limit of the file size stands for a full disk: no write to a file succeeds."""
    arguments, target = prepared(name, folder)
    if name == "split":
        target.unlink()         # it refuses nothing, and writes new files
    before = state(target)
    line = shlex.join([sys.executable, "-m", "fastpq", *arguments])
    shell = ["bash", "-c", f"trap '' XFSZ; ulimit -f 0; {line}"]
    result = subprocess.run(shell, capture_output=True, text=True, check=False, env=environment(name), timeout=120)
    assert result.returncode == 6, (result.stdout, result.stderr)
    assert result.stderr.startswith("fastpq: ")
    assert len(result.stderr.splitlines()) <= 2
    assert state(target) == before
    assert leftovers(folder) == []


# Sends SIGINT when the first bytes reach the new file.
INTERRUPTED = """
import os, signal, sys
from fastpq.io import sink
put = sink.Sink._put

def interrupted(self, view):
    os.kill(os.getpid(), signal.SIGINT)
    put(self, view)

sink.Sink._put = interrupted
from fastpq.cli import main
sys.argv = ["fastpq", *sys.argv[1:]]
sys.exit(main())
"""


@pytest.mark.linux
@pytest.mark.parametrize("name", WRITING)
def test_ctrl_c_in_mid_write_leaves_the_old_state(name: str, folder: Path) -> None:
    arguments, target = prepared(name, folder)
    before = state(target)
    line = [sys.executable, "-c", INTERRUPTED, *arguments]
    result = subprocess.run(line, capture_output=True, text=True, check=False, env=environment(name), timeout=120)
    assert result.returncode in (130, -signal.SIGINT), (result.stdout, result.stderr)
    assert result.stderr.strip().splitlines()[-1] == "fastpq: interrupted"
    assert state(target) == before
    assert leftovers(folder) == []
