"""The page of the command and its man pages say what ``--help`` says."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tools import command_pages


def test_the_page_is_what_the_tool_writes() -> None:
    assert command_pages.PAGE.read_text() == command_pages.page(), "python -m tools.command_pages writes it"


def test_each_verb_has_its_options_and_examples_on_the_page() -> None:
    text = command_pages.page()
    for words, _, verb in command_pages.verbs():
        part = text.partition(f"\n### {words}\n")[2].partition("\n### ")[0]
        for option in command_pages.own_options(verb):
            assert f"`{option.opts[-1]}`" in part, (words, option.opts)
        for line, _ in verb.examples:
            assert line in part


@pytest.mark.skipif(shutil.which("man") is None and shutil.which("groff") is None, reason="needs man or groff")
def test_man_pages_are_formatted_without_warnings(tmp_path: Path) -> None:
    for name, text in command_pages.man_pages().items():
        (tmp_path / name).write_text(text)
        line = ["groff", "-man", "-Tascii", "-ww", str(tmp_path / name)]
        if shutil.which("groff") is not None:
            assert subprocess.run(line, capture_output=True, text=True, check=True).stderr == ""


def test_man_pages_have_no_line_that_roff_takes_for_a_command() -> None:
    known = re.compile(r"\.(TH|SH|TP|B)\b")
    for name, text in command_pages.man_pages().items():
        for line in text.splitlines():
            assert not line.startswith("'"), name
            assert not line.startswith(".") or known.match(line), (name, line)
