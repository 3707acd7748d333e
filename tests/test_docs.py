"""The documentation: every example runs as it stands, links lead somewhere, and commands exist."""

from __future__ import annotations

import importlib
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.requirements import needs, peer

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "pages"
README = ROOT / "README.md"
CONFIGURATION = ROOT / "docs" / "mkdocs.yml"
LONGEST_LINE = 115      # of an example; a longer one is cut off on the page

# ```python spark in README.md, which is read on its own; ``` { .python .spark } in pages, as MkDocs has it
FENCE = re.compile(r"^``` *(?P<info>[^\n]*)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
MODULES = ("fastpq", "fastpq.encryption", "fastpq.spark", "fastpq.variant", "fastpq.memory", "fastpq.file_reference")
# a module without __all__: its documented members
MEMBERS = {
    "fastpq.memory": ("idle_bytes", "release", "set_idle_limit"),
    "fastpq.file_reference": ("ByteRange", "FileReference", "file_column"),
}


class Block(NamedTuple):
    """A fenced block of a page.

    Attributes:
        words: of its first line: ``{"python"}``, ``{"python", "spark"}``, ``{"sh"}``, ``{"text"}``.
        body: its lines.
        line: number of its first line in the page.
    """

    words: frozenset[str]
    body: str
    line: int


def pages() -> list[Path]:
    """README.md and every page of the documentation."""
    return [README, *sorted(PAGES.rglob("*.md"))]


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text()
    return [
        Block(frozenset(re.findall(r"[\w-]+", found["info"])), found["body"], text.count("\n", 0, found.start("body")) + 1)
        for found in FENCE.finditer(text)
    ]


def with_blocks(*words: str) -> list[Path]:
    """Pages that have blocks of exactly these words."""
    return [page for page in pages() if any(block.words == {*words} for block in blocks(page))]


def run(page: Path, block: Block, namespace: dict[str, Any]) -> None:
    """Run a block; the lines of a traceback are those of the page."""
    exec(compile("\n" * (block.line - 1) + block.body, str(page), "exec"), namespace)


def needed(page: Path) -> set[str]:
    """Packages that the examples of a page import."""
    code = "".join(block.body for block in blocks(page) if block.words == {"python"})
    return set(re.findall(r"^(?:import|from) (\w+)", code, re.MULTILINE)) | ({"fsspec"} if "://" in code else set())


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", with_blocks("python"), ids=name_of)
def test_python_examples(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All of a page in one namespace, in order, in an empty folder; a text block behind one is what the example prints."""
    found = [block for block in blocks(page) if "spark" not in block.words]
    for package in needed(page):
        needs(peer(package))
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {}
    for block, after in zip(found, [*found[1:], None], strict=True):
        if block.words == {"python"}:
            run(page, block, namespace)
            printed = capsys.readouterr().out
            if after is not None and after.words == {"text"}:
                assert printed == after.body


def test_blocks_are_of_a_known_kind_and_fit_the_page() -> None:
    known = [{"python"}, {"python", "spark"}, {"sh"}, {"text"}]
    for page in pages():
        for block in blocks(page):
            assert block.words in known, f"{name_of(page)}, line {block.line}"
            for number, line in enumerate(block.body.splitlines(), block.line):
                assert len(line) <= LONGEST_LINE, f"{name_of(page)}, line {number}"


def test_there_are_examples() -> None:
    assert {"README.md", "docs/pages/numpy.md", "docs/pages/encryption.md"} <= {name_of(page) for page in with_blocks("python")}
    assert {"README.md", "docs/pages/spark.md"} <= {name_of(page) for page in with_blocks("python", "spark")}


def test_commands_exist() -> None:
    """A command below tools/ is an executable file; its options stand in its code."""
    seen = set()
    for page in pages():
        for block in blocks(page):
            for line in block.body.splitlines() if block.words == {"sh"} else ():
                command, *arguments = line.split("#")[0].split() or [""]
                if command.startswith("tools/"):
                    seen.add(command)
                    assert os.access(ROOT / command, os.X_OK), f"{name_of(page)}: {command}"
                    code = source_of(command)
                    for option in (argument for argument in arguments if argument.startswith("--")):
                        assert option == "--help" or f'"{option}"' in code, f"{name_of(page)}: {line}"
    assert {"tools/demo", "tools/test"} <= seen


def source_of(command: str) -> str:
    """The Python that a command of tools/ runs."""
    module = re.search(r"-m ([\w.]+)", (ROOT / command).read_text())
    assert module is not None
    path = ROOT / module[1].replace(".", "/")
    return (path / "__main__.py" if path.is_dir() else path.with_suffix(".py")).read_text()


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text())
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        assert target.startswith(("https://", "mailto:")) or (page.parent / target).exists(), target


def test_every_page_is_in_the_navigation() -> None:
    navigation = CONFIGURATION.read_text().partition("\nnav:")[2]
    assert sorted(re.findall(r"([\w/-]+\.md)$", navigation, re.MULTILINE)) == sorted(
        str(page.relative_to(PAGES)) for page in PAGES.rglob("*.md")
    )


def test_pages_begin_with_a_heading_and_a_sentence() -> None:
    for page in PAGES.rglob("*.md"):
        first, blank, sentence, *_ = [*page.read_text().splitlines(), "", ""]
        if not first.startswith("--8<--"):      # a file of the top folder
            assert first.startswith("# "), name_of(page)
            assert not blank, name_of(page)
            assert sentence[:1].isalpha(), name_of(page)


def test_tables_of_docstrings_become_markdown(monkeypatch: pytest.MonkeyPatch) -> None:
    needs(peer("griffe", "'fastpq[docs]'"))
    monkeypatch.syspath_prepend(CONFIGURATION.parent)
    text = "Types:\n\n====  =====\na     b\n====  =====\nx|y   long text\n      goes on\n====  =====\n\nEnd."
    table = "| a | b |\n| --- | --- |\n| x\\|y | long text goes on |"
    assert importlib.import_module("griffe_extensions").in_markdown(text) == f"Types:\n\n{table}\n\nEnd."


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_in_the_reference(module: str) -> None:
    names = MEMBERS[module] if module in MEMBERS else importlib.import_module(module).__all__
    reference = "\n".join(page.read_text() for page in (PAGES / "api").glob("*.md"))
    documented = set(re.findall(r"^::: ([\w.]+)$", reference, re.MULTILINE))
    assert not [name for name in names if f"{module}.{name}" not in documented and f"fastpq.{name}" not in documented]


def test_inherited_members_are_in_the_reference() -> None:
    """Bases of public classes are no public names: their members stand with the class."""
    reference = "\n".join(page.read_text() for page in (PAGES / "api").glob("*.md"))
    with_bases = set(re.findall(r"^::: fastpq\.(\w+)\n    options:\n      inherited_members: true$", reference, re.MULTILINE))
    for name in importlib.import_module("fastpq").__all__:
        found = getattr(importlib.import_module("fastpq"), name)
        if isinstance(found, type) and not issubclass(found, Exception):
            bases = [base for base in found.__mro__[1:] if base.__module__.startswith("fastpq.")]
            inherited = {member for base in bases for member in vars(base) if not member.startswith("_")} - vars(found).keys()
            assert not inherited or name in with_bases, (name, inherited)


def test_the_tables_of_the_benchmarks_agree() -> None:
    """README's figures are those of docs/pages/performance.md, and stand where tools/bench --publish puts them."""
    from benchmarks.report import BEGIN, END, PERFORMANCE, README_JOBS

    def figures(page: Path) -> list[list[str]]:
        text = page.read_text()
        lines = text[text.index(BEGIN) : text.index(END)].splitlines()
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]

    everything = figures(PERFORMANCE)
    head, _, *rows = figures(README)
    assert [row[:2] for row in rows] == [[*item] for item in README_JOBS.items()]
    assert len(rows) == 10
    threads = max(line[1] for line in everything[2:] if line[1].isdecimal())
    for row in rows:
        whole = next(line for line in everything if line[:2] == [row[0], threads])      # seconds; a later table has bytes
        for column, figure in zip(head[2:], row[2:], strict=True):
            assert whole[everything[0].index(column)] == figure, (row[0], column)


def test_the_page_of_indexes_lists_each_check() -> None:
    from fastpq.index.contradictions import CHECKS

    rows = "\n".join(f"| {check.part.value} | {check.claim} | {check.against} |" for check in CHECKS)
    assert f"| --- | --- | --- |\n{rows}\n\n" in (PAGES / "indexes.md").read_text()
