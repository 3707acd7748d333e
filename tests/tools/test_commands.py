"""The commands that the documents for developers name: each is taken by the program that it calls."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.requirements import needs, peer
from tools import checks, command_lines

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs/pages").rglob("*.md")))

SHELL_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`([^`\n]+)`")
SETTING = re.compile(r"[A-Z_]+=\S*")
PLACEHOLDERS = {"N": "1", "JOB": "read-flat", "FOLDER": ".", "FILE": "out.json", "PATH": "tests/tools/test_checks.py", "...": ""}

# Modules that run in a second are run as they stand. The others are asked for their help.
QUICK = ("tools.prose", "tools.rooms", "tools.walk")
# Modules without arguments of their own, which a test of their own runs.
TESTED_ELSEWHERE = {"fastpq.spark.example": "tests/spark", "tools.format_support": "tests/tools/test_format_support.py"}


def commands() -> Iterator[tuple[Path, str]]:
    """Yield each command of ours on each page: lines of shell blocks, and code in a sentence."""
    for page in PAGES:
        text = page.read_text()
        lines = [line for block in SHELL_BLOCK.findall(text) for line in block.splitlines()]
        for line in [*lines, *INLINE.findall(SHELL_BLOCK.sub("", text))]:
            words = [word for word in line.split("#")[0].split() if not SETTING.fullmatch(word)]
            if words and (words[0] in {f"tools/{name}" for name in command_lines.COMMANDS} or words[:2] == ["python", "-m"]):
                yield page, " ".join(PLACEHOLDERS.get(word, word) for word in words)


COMMANDS = sorted({command for _, command in commands()})


def program_of(command: str) -> list[str]:
    """Return the arguments of Python for a command ``python -m MODULE ...``."""
    _, _, module, *arguments = shlex.split(command)
    if module in TESTED_ELSEWHERE:
        assert (ROOT / TESTED_ELSEWHERE[module]).exists()
        return ["-c", f"import importlib.util; assert importlib.util.find_spec({module!r})"]
    if module == "pytest":
        return ["-m", "pytest", "--collect-only", "-q", *arguments]
    return ["-m", module, *(arguments if module in QUICK else ["--help"])]


@pytest.mark.parametrize("command", [command for command in COMMANDS if command.startswith("tools/")])
def test_a_command_of_tools_takes_its_arguments(command: str) -> None:
    name, *arguments = shlex.split(command.removeprefix("tools/"))
    assert os.access(ROOT / "tools" / name, os.X_OK)
    if name == "test" and arguments[:1] == ["fast"]:
        selected = run("-m", "pytest", "--collect-only", "-q", "-p", "no:randomly", "-m", "not slow", *arguments[1:])
        assert selected.returncode == 0, selected.stdout[-500:]     # 5 where no test is selected
    elif name == "test" and "--help" not in arguments:
        assert checks.parse(arguments).stages
    elif "--help" not in arguments:
        command_lines.COMMANDS[name]().parse_args(arguments)


@pytest.mark.parametrize("command", [command for command in COMMANDS if command.startswith("python -m")])
def test_a_module_runs(command: str) -> None:
    if " mkdocs " in command:
        needs(peer("mkdocs", "'fastpq[docs]'"))
    done = run(*program_of(command))
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


@pytest.mark.parametrize("name", command_lines.COMMANDS)
def test_help_needs_neither_packages_nor_a_set_up(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-m", "tools.command_lines", name, "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(f"usage: tools/{name} ")
    assert "command_lines" in (ROOT / "tools/setup.sh").read_text()


@pytest.mark.parametrize(
    "arguments", [("tools/test", "no-such-stage"), ("tools/bench", "--peer"), ("tools/fuzz", "--target", "x")]
)
def test_a_mistyped_argument_is_told_before_the_set_up(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """The folder has no ``.venv``, and a set-up would take minutes."""
    for part in ("tools", "benchmarks"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("usage: ")
    assert arguments[-1].lstrip("-") in done.stderr
    assert not (tmp_path / ".venv").exists()


def test_there_are_commands() -> None:
    assert {"tools/demo", "tools/test", "tools/test fast tests/encodings", "python -m tools.rooms"} <= {*COMMANDS}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
