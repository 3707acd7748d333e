"""The command as a whole: help, errors, exit codes, escapes, colours, start."""

from __future__ import annotations

import fcntl
import io
import os
import re
import shlex
import signal
import statistics
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastpq
from fastpq.cli import verb_registry
from fastpq.cli.failures import EXIT_CODES, failure_of
from fastpq.cli.terminal import Screen, Styled, escape_text, shortened, width_of
from fastpq.cli.verb import Verb
from tests.cli.running import FOOTER_KEY, Runner, keys_as_json
from tests.requirements import DATA, needs_data

ROUNDS = 7
# What is promised is 3 times click and 2 times numpy. A shared machine adds noise.
SLACK = 1.35


def process(*arguments: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "fastpq", *arguments], capture_output=True, text=True, timeout=120, **settings)


def test_help_names_every_verb_and_imports_none() -> None:
    program = "import sys; from fastpq.cli.program import run_command; run_command(['--help']); "
    program += "print([name for name in sys.modules if 'cli.verbs.' in name])"
    text = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert text.endswith("[]\n")
    for each in verb_registry.summaries():
        assert re.search(rf"^  {each.name} ", text, re.MULTILINE), each.name
        assert each.section in text
    for code in EXIT_CODES:
        assert re.search(rf"^  {code} ", text, re.MULTILINE)


def test_every_verb_has_a_summary_a_section_and_examples() -> None:
    for each in verb_registry.summaries():
        assert each.summary, each.name
        assert len(each.summary) <= 66, each.name
        assert each.section in verb_registry.SECTIONS, each.name
        verb = verb_registry.load(each.name)
        if isinstance(verb, Verb) and not hasattr(verb, "commands"):
            assert verb.examples, each.name
            assert verb.help, each.name


def test_an_unknown_verb_names_similar_ones(command: Runner) -> None:
    code, out, err = command("cuont")
    assert (code, out) == (2, "")
    assert "did you mean count" in err


def test_an_error_is_one_line_with_a_hint(command: Runner, in_examples: Path) -> None:
    code, out, err = command("head", "nothing.parquet")
    assert (code, out, err) == (6, "", "fastpq: there is no such file: nothing.parquet\n")
    for verb in ("doctor", "layout"):
        assert command(verb, "items.parquet", "nothing.parquet").err == "fastpq: there is no file at nothing.parquet\n"
    code, _, err = command("head", "items.parquet", "-c", "wrong")
    assert code == 2
    assert err.splitlines()[0].startswith("fastpq: there is no column 'wrong'")
    assert err.splitlines()[1] == "  hint: fastpq schema items.parquet lists the columns"
    assert len(err.splitlines()) == 2


def test_debug_shows_the_traceback(command: Runner) -> None:
    _, _, err = command("head", "nothing.parquet", "--debug")
    assert "Traceback (most recent call last):" in err
    assert err.endswith("fastpq: there is no such file: nothing.parquet\n")


def test_wrong_options_are_errors_of_usage(command: Runner, in_examples: Path) -> None:
    assert command("head", "items.parquet", "--nothing").code == 2
    assert command("head").code == 2
    assert command("head", "-n", "-1", "items.parquet").code == 2


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (fastpq.FormatError("x"), 3),
        (fastpq.LimitError("x"), 3),
        (fastpq.KeyAccessError("x"), 4),
        (fastpq.TagVerificationError("x"), 4),
        (fastpq.UnsupportedError("x"), 5),
        (fastpq.SchemaError("x"), 2),
        (fastpq.RemoteError("x"), 6),
        (OSError(28, "No space left on device", "f"), 6),
        (MemoryError(), 6),
        (ZeroDivisionError(), 70),
    ],
)
def test_each_kind_of_error_has_its_exit_code(error: Exception, code: int) -> None:
    assert failure_of(error).code == code


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\u202etxt.exe", "\\u202etxt.exe"),
        ("a\u200bb", "a\\u200bb"),
        ("\x9b31m", "\\x9b31m"),
        ("half \ud800", "half \\ud800"),
        ("[bold]markup[/bold]", "[bold]markup[/bold]"),
        ("größe 表", "größe 表"),
    ],
)
def test_what_acts_on_a_terminal_is_escaped(text: str, shown: str) -> None:
    assert escape_text(text) == shown


def test_names_and_values_from_files_are_escaped(command: Runner, tmp_path: Path) -> None:
    name, value = "a\x1b]0;owned\x07", "\x1b[2J\u202e"
    path = str(tmp_path / "evil.parquet")
    fastpq.write_table({name: np.array([value])}, path, key_value_metadata={"\x1bk": "\x1bv"})
    for arguments in (
        ("inspect", path),
        ("meta", path),
        ("schema", path),
        ("columns", path),
        ("pages", path),
        ("head", path),
        ("dict", path, name),
        ("stats", path),
        ("index", path),
        ("inspect", path, "--json"),
        ("columns", path, "--json"),
        ("schema", path, "--engines"),
        ("schema", path, "--format", "sql"),
        ("schema", path, "--format", "python"),
        ("head", path, "-c", "\x1bno"),
    ):
        _, out, err = command(*arguments)
        for text in (out, err):
            assert not set(text) & {"\x1b", "\x07", "\u202e", "\x9b"}, arguments


def test_data_for_other_programs_stay_as_they_are(command: Runner, tmp_path: Path) -> None:
    path = str(tmp_path / "x.parquet")
    fastpq.write_table({"a": np.array(["\x1b[2J"])}, path)
    assert command("cat", path).out == "a\n\x1b[2J\n"


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("variables", "has_colour"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({"TERM": "xterm"}, True)],
)
def test_colours(variables: dict[str, str], has_colour: bool) -> None:
    stream = Terminal()
    Screen(stream, variables).line(Styled("x", "error"))
    assert ("\x1b" in stream.getvalue()) == has_colour


def test_a_pipe_has_no_colour_and_no_width() -> None:
    screen = Screen(io.StringIO(), {})
    assert not screen.has_colour
    assert screen.width > 10_000
    assert Screen(io.StringIO(), {"FORCE_COLOR": "1"}).has_colour
    assert Screen(io.StringIO(), {"COLUMNS": "80"}).width == 80


def test_widths_of_wide_characters() -> None:
    assert width_of("表a") == 3
    assert shortened("表表表", 4) == "表…"
    assert shortened("abcdef", 4) == "abc…"
    assert shortened("list.element.x", 6, keeps_end=True) == "…ent.x"


@pytest.mark.parametrize("columns", [80, 200])
def test_no_line_is_wider_than_the_terminal(
    columns: int, command: Runner, in_examples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for arguments in (
        ("inspect", "items.parquet"),
        ("columns", "items.parquet", "--distinct"),
        ("pages", "items.parquet"),
        ("index", "items.parquet"),
        ("meta", "items.parquet"),
        ("head", "items.parquet"),
        ("stats", "items.parquet"),
        ("why", "items.parquet", "-w", "user == 5 and price < 3"),
        ("inspect", "secret.parquet"),
        ("schema", "items.parquet", "--engines"),
    ):
        result = command(*arguments)
        assert result.code == 0, result.err
        assert max(map(width_of, result.out.splitlines())) <= columns, arguments


def hard_files(folder: Path) -> dict[str, Path]:
    """Write files whose output is hard to fit: many columns, long names and values, nested columns, hostile names."""
    long_name = "a_very_long_column_name_" * 6
    tables: dict[str, Any] = {
        "wide": {f"column_{number:05}": np.arange(10) + number for number in range(5000)},
        "long": {**{f"{long_name}{number}": ["some very long value " * 20] * 20 for number in range(3)}, "表" * 30: [1] * 20},
        "nested": {"a": [{"b": [{"c": {"d": [1, 2], "e": "x"}}]}] * 20, "l": [[[1], [2, 3]]] * 20},
        "hostile": {"\x1b[31mred\n\u202e": [1, 2], "<script>": ["\x07", "\x1b]0;x\x07"], " ": [1, 2], "[bold]": [1, 2]},
    }
    for name, columns in tables.items():
        fastpq.write_table(columns, folder / f"{name}.parquet")
    return {name: folder / f"{name}.parquet" for name in tables}


@pytest.mark.parametrize("columns", [80, 200])
def test_hard_files_fit_the_terminal(
    columns: int, command: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    files = hard_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in files:
        verbs = ["inspect", "columns", "pages", "index", "meta", "schema --engines"]
        verbs += [] if name == "wide" else ["stats", "layout", "head", "verify", "recover"]
        for verb in verbs:
            start = time.process_time()
            result = command(*verb.split(), f"{name}.parquet")
            assert result.code == 0, result.err
            assert max(map(width_of, result.out.splitlines())) <= columns, (verb, name)
            assert not set(result.out) & {"\x1b", "\x07", "\u202e"}
            assert time.process_time() - start < 20, (verb, name)
    start = time.process_time()
    out = command("head", "wide.parquet").out
    assert time.process_time() - start < 5
    assert re.search(r"not shown at this width: column_\d+.* and 4,\d+ more", out.replace("\n", " "))
    assert "' '" in command("columns", "hostile.parquet").out


def test_long_sentences_go_on_below(command: Runner, in_examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for line in (
        "doctor items.parquet --for archive", "doctor folder", "verify damaged.parquet", "recover damaged.parquet",
        "bench --megabytes 1", "keys inspect secret.parquet", "diff items.parquet changed.parquet", "dict items.parquet name",
        'why items.parquet --where "id == 50001"', "why folder --where 'id == 5'", "schema items.parquet",
    ):
        out = command(*shlex.split(line)).out
        assert max(map(width_of, out.splitlines())) <= 80, line
        assert "…" not in out, line


def test_completion_lists_verbs() -> None:
    variables = {**os.environ, "_FASTPQ_COMPLETE": "bash_complete", "COMP_WORDS": "fastpq co", "COMP_CWORD": "1"}
    out = process(env=variables).stdout
    assert "plain,columns" in out
    assert "plain,count" in out


def test_a_broken_pipe_is_quiet(example_files: Path) -> None:
    line = f"{sys.executable} -m fastpq cat {example_files / 'items.parquet'} | head -n 1; exit ${{PIPESTATUS[0]}}"
    result = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert (result.stdout, result.stderr, result.returncode) == ("id,price,name,user,day\n", "", 0)


def test_a_closed_output_is_an_error(example_files: Path) -> None:
    line = f"{sys.executable} -m fastpq cat {example_files / 'items.parquet'} >&-"
    result = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert result.returncode == 6
    assert "standard output is closed" in result.stderr


def test_ctrl_c_ends_in_one_line_and_leaves_nothing(example_files: Path, tmp_path: Path) -> None:
    """The rest of the input never comes: the command waits in the middle of its work."""
    target = tmp_path / "out.csv"
    running = subprocess.Popen(
        [sys.executable, "-m", "fastpq", "cat", "-", "-o", str(target)], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stdin is not None
    running.stdin.write("PAR1")
    running.stdin.flush()
    while int.from_bytes(fcntl.ioctl(running.stdin, termios.FIONREAD, bytes(4)), sys.byteorder):      # bytes that it has not read
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert err.strip() == "fastpq: interrupted"  # click ends the line of ^C first
    assert not target.exists()


def test_python_without_click_says_what_to_install() -> None:
    program = "import sys; sys.modules['click'] = None; from fastpq.cli import main; main()"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 5
    assert "pip install click rich" in result.stderr


def test_no_key_shows_in_errors(command: Runner, in_examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTPQ_KEYS", keys_as_json())
    code, out, err = command("head", "secret.parquet", "--debug")
    assert code == 4
    assert "price" in err
    assert FOOTER_KEY.hex() not in out + err
    assert FOOTER_KEY.decode() not in out + err
    monkeypatch.setenv("FASTPQ_KEYS", '{"footer_key": "secret-and-wrong"}')
    code, out, err = command("head", "secret.parquet", "--debug")
    assert code == 4
    assert "secret-and-wrong" not in out + err


def seconds(*arguments: str) -> float:
    start = os.times()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    end = os.times()
    return end.children_user - start.children_user + end.children_system - start.children_system


@pytest.mark.slow
def test_start_is_quick(example_files: Path) -> None:
    """Processor time, interleaved: --help against click, meta against numpy."""
    lines = {
        "help": ("-m", "fastpq", "--help"),
        "click": ("-c", "import click"),
        "meta": ("-m", "fastpq", "meta", str(example_files / "items.parquet")),
        "numpy": ("-c", "import numpy"),
    }
    times: dict[str, list[float]] = {name: [] for name in lines}
    for _ in range(ROUNDS):
        for name, line in lines.items():
            times[name].append(seconds(*line))
    median = {name: statistics.median(each) for name, each in times.items()}
    assert median["help"] <= 3 * SLACK * median["click"], median
    assert median["meta"] <= 2 * SLACK * median["numpy"], median


@needs_data
@pytest.mark.parametrize("verb", ["inspect", "meta", "schema", "columns", "pages", "index", "stats", "head"])
def test_strangers_files_never_end_in_a_defect(verb: str, command: Runner) -> None:
    """Every tenth of the files from other repositories, sound and broken ones, and all bad files of parquet-testing."""
    paths = sorted((DATA / "wild" / "files").rglob("*.parquet"))[::10]
    paths += sorted((DATA / "parquet-testing" / "bad_data").glob("*.parquet")) + sorted((DATA / "strangers").glob("*.parquet"))
    for path in paths:
        code, _, err = command(verb, str(path))
        assert code in (0, 3, 4, 5), (path.name, code, err)
        assert len(err.splitlines()) <= 2, (path.name, err)
        assert (code == 0) == (err == ""), (path.name, err)


def test_a_bloom_filter_is_advised_only_where_it_can_rule_out_rows(command: Runner, tmp_path: Path) -> None:
    """It tells nothing about values that a row must not have."""
    rng = np.random.default_rng(1)
    path = tmp_path / "ids.parquet"
    fastpq.write_table({"id": rng.permutation(200_000)}, path, use_dictionary=False, write_page_index=False)
    for condition, helps in (("id == 5", True), ("id in (5, 6)", True), ("id != 5", False), ("id not in (5, 6)", False)):
        assert ("bloom filter" in command("why", str(path), "--where", condition).out) is helps
