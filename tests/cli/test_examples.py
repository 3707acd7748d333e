"""Every example in the help of a verb runs, and its JSON keeps the verb's schema."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from fastpq.cli import verb_registry
from fastpq.cli.json_schema import json_schema_of
from fastpq.cli.verb import Verb
from tests.cli.running import PASSPHRASE, PRICE_KEY, Runner, keys_as_json, write_example_files
from tests.requirements import has_font, peer

jsonschema = peer("jsonschema")


def verbs() -> dict[str, Verb]:
    """Return every verb that does something, by its words. Verbs of a group stand behind the group's name."""
    found: dict[str, Verb] = {}
    verb: Any
    for each in verb_registry.summaries():
        verb = verb_registry.load(each.name)
        assert verb is not None
        inner = getattr(verb, "commands", None)
        if inner is None:
            found[each.name] = verb
        else:
            found |= {f"{each.name} {name}": command for name, command in inner.items()}
    return found


VERBS = verbs()
WITH_FACTS = [name for name, verb in VERBS.items() if verb.facts is not None]
# Verbs that write, and refuse to write plaintext from an encrypted file.
WRITING = ("append", "convert", "merge", "rewrite", "recover", "encrypt")
# Examples that end with another code than 0, by the words behind ``fastpq``.
OTHER_CODES = {
    "browse items.parquet": 2,      # without a terminal
    "browse secret.parquet": 2,
    "diff items.parquet changed.parquet": 1,
    "diff items.parquet changed.parquet --key id --tolerance 1e-9": 1,
    "verify damaged.parquet": 1,
    "verify damaged.parquet --json": 1,
    "recover damaged.parquet": 1,
    "recover damaged.parquet --json": 1,
    "recover damaged.parquet -o rest.parquet": 1,
    "recover cut.parquet -o rest.parquet --sibling items.parquet": 1,
}


def test_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Runner) -> None:
    """All in one folder, in order: an example may use what another made."""
    write_example_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FASTPQ_PASSPHRASE", PASSPHRASE)
    monkeypatch.setenv("FASTPQ_NEW_PASSPHRASE", PASSPHRASE)
    for name, verb in VERBS.items():
        for line, _ in verb.examples:
            run_example(line, name, command, monkeypatch)


def run_example(line: str, name: str, command: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run one example line. It may set variables, read a file and write one."""
    words = shlex.split(line)
    with monkeypatch.context() as patch:
        while "=" in words[0]:
            patch.setenv(*words.pop(0).partition("=")[::2])
        assert words[0] == "fastpq", line
        assert " ".join(words[1:]).startswith(name), line
        if "secret.parquet" in line and "--keyring" not in line and "inspect" not in name:
            patch.setenv("FASTPQ_KEYS", keys_as_json(price=PRICE_KEY))
        stdin = b""
        if "<" in words:
            place = words.index("<")
            stdin = Path(words[place + 1]).read_bytes()
            del words[place : place + 2]
        target = None
        if ">" in words:
            place = words.index(">")
            target = words[place + 1]
            del words[place : place + 2]
        result = command(*words[1:], stdin=stdin)
        without_font = line.endswith(".png") and not has_font()
        assert result.code == (5 if without_font else OTHER_CODES.get(" ".join(words[1:]), 0)), (line, result)
        if target is not None:
            Path(target).write_text(result.out)
        if "--json" in words:
            check_json(VERBS[name], result.out)


def check_json(verb: Verb, text: str) -> None:
    """Compare JSON output with the verb's schema."""
    assert verb.facts is not None
    decoder, position = json.JSONDecoder(), 0
    while position < len(text.rstrip()):
        value, position = decoder.raw_decode(text, position)
        jsonschema.validate(value, json_schema_of(verb.facts))
        while position < len(text) and text[position].isspace():
            position += 1


@pytest.mark.parametrize("name", WITH_FACTS)
def test_the_schema_is_a_schema_and_describes_every_member(name: str, command: Runner) -> None:
    result = command(*name.split(), "--json-schema")
    assert result.code == 0
    jsonschema.Draft202012Validator.check_schema(result.json)
    for part in (result.json, *result.json.get("$defs", {}).values()):
        for member, description in part.get("properties", {}).items():
            assert description.get("description"), (name, member)


@pytest.mark.parametrize("name", WITH_FACTS)
def test_facts_keep_the_schema(
    name: str, tmp_path: Path, example_files: Path, monkeypatch: pytest.MonkeyPatch, command: Runner
) -> None:
    """Each verb with facts prints them for its first example that does not print JSON already."""
    shutil.copytree(example_files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FASTPQ_PASSPHRASE", PASSPHRASE)
    monkeypatch.setenv("FASTPQ_NEW_PASSPHRASE", PASSPHRASE)
    line = next((line for line, _ in VERBS[name].examples if not {"--json", ">", "-"} & {*line.split()}), None)
    if line is None:
        return
    run_example(line + " --json", name, command, monkeypatch)
    if "items.parquet" in line and "--keyring" not in line and name not in WRITING:
        run_example(line.replace("items.parquet", "secret.parquet") + " --json", name, command, monkeypatch)


def test_a_schema_of_every_kind_of_member() -> None:
    from fastpq.cli.file_facts import FileFacts

    schema: dict[str, Any] = json_schema_of(FileFacts)
    assert schema["required"] == ["file", "size", "encryption", "notes"]
    assert schema["properties"]["size"]["anyOf"] == [{"type": "integer"}, {"type": "null"}]
    assert schema["$defs"]["KeyFacts"]["properties"]["master_key_id"]["description"]
