"""The documentation: every example runs as it stands, links lead somewhere, and commands exist."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fastpq.cli.program import run_command
from tests.requirements import needs, peer

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "pages"
README = ROOT / "README.md"
CONFIGURATION = ROOT / "docs" / "mkdocs.yml"
LONGEST_LINE = 115      # of an example; a longer one is cut off on the page

# ```python spark in README.md, which is read on its own; ``` { .python .spark } in pages, as MkDocs has it
FENCE = re.compile(r"^``` *(?P<info>[^\n]*)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
MODULES = (
    "fastpq", "fastpq.adapters", "fastpq.catalogs.ducklake", "fastpq.catalogs.iceberg", "fastpq.encryption", "fastpq.spark",
    "fastpq.variant", "fastpq.memory", "fastpq.file_reference",
)
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


def run_commands(block: Block) -> None:
    """Run the lines of a shell block that call the command fastpq."""
    for line in block.body.splitlines():
        if line.startswith("fastpq "):
            assert run_command(shlex.split(line, comments=True)[1:]) == 0, line


def test_pages_with_commands_are_run() -> None:
    with_commands = {page.name for page in with_blocks("sh") if "\nfastpq " in page.read_text()}
    assert with_commands <= {page.name for page in with_blocks("python")} | {"command.md"}


@pytest.mark.parametrize("page", with_blocks("python"), ids=name_of)
def test_python_examples(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All of a page in one namespace, in order, in an empty folder; a text block behind one is what the example prints.

    Lines of shell blocks that begin with ``fastpq`` are run too. tests/cli/test_examples.py runs those of the command's own page.
    """
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
        elif block.words == {"sh"} and page.name != "command.md":
            run_commands(block)
            capsys.readouterr()


def test_blocks_are_of_a_known_kind_and_fit_the_page() -> None:
    kinds_of_python = ("spark", "engines", "ducklake", "example")
    known = [{"python"}, *({"python", kind} for kind in kinds_of_python), {"sh"}, {"text"}]
    for page in pages():
        for block in blocks(page):
            assert block.words in known, f"{name_of(page)}, line {block.line}"
            for number, line in enumerate(block.body.splitlines(), block.line):
                assert len(line) <= LONGEST_LINE, f"{name_of(page)}, line {number}"


def programs() -> list[tuple[str, str | None]]:
    """Return each program of docs/examples that the page of examples shows, with what it prints by the page."""
    found = blocks(PAGES / "examples.md")
    pairs = []
    for block, after in zip(found, [*found[1:], None], strict=True):
        if block.words == {"python", "example"}:
            included = re.fullmatch(r'--8<-- "(docs/examples/\w+\.py)"\n', block.body)
            assert included is not None
            pairs.append((included[1], after.body if after is not None and after.words == {"text"} else None))
    return pairs


@pytest.mark.parametrize(("name", "output"), programs(), ids=[name for name, _ in programs()])
def test_programs_print_what_the_page_shows(name: str, output: str | None, tmp_path: Path) -> None:
    code = (ROOT / name).read_text()
    for package in set(re.findall(r"^(?:import|from) (\w+)", code, re.MULTILINE)) - {"make_data"}:
        needs(peer(package))
    if "s3://" in code:
        needs(peer("s3fs"))
    assert max(map(len, code.splitlines())) <= LONGEST_LINE
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": ""}
    command = [sys.executable, str(ROOT / name)]
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert not result.returncode, result.stderr
    assert output is None or result.stdout == output


def test_the_page_shows_every_program() -> None:
    assert sorted(name for name, _ in programs()) == sorted(
        str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "examples").glob("*.py")
    )


def test_there_are_examples() -> None:
    assert {"README.md", "docs/pages/numpy.md", "docs/pages/encryption.md"} <= {name_of(page) for page in with_blocks("python")}
    assert {"README.md", "docs/pages/spark.md"} <= {name_of(page) for page in with_blocks("python", "spark")}


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text())
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        assert target.startswith(("https://", "mailto:")) or (page.parent / target).exists(), target


def anchor(heading: str) -> str:
    """The anchor of a heading, as GitHub and MkDocs make it."""
    return re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-")


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_links_lead_to_headings(page: Path) -> None:
    for target, heading in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", FENCE.sub("", page.read_text())):
        other = page.parent / target if target else page
        if other.suffix == ".md" and "://" not in target:
            text = other.read_text()
            if included := re.match(r'--8<-- "(.+)"', text):        # a file of the top folder
                text = (ROOT / included[1]).read_text()
            headings = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE)
            documented = re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE)
            assert heading in {*map(anchor, headings), *documented}, f"{target}#{heading}"


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


def test_the_tables_of_equal_work_agree() -> None:
    """README's rows of equal work are in docs/pages/performance.md too, and stand before the tables of own tables."""
    from benchmarks.report import BEGIN, EQUAL_BEGIN, EQUAL_END, PERFORMANCE, README_EQUAL

    def rows(page: Path) -> list[str]:
        text = page.read_text()
        assert text.index(EQUAL_BEGIN) < text.index(EQUAL_END) < text.index(BEGIN)
        return [line for line in text[text.index(EQUAL_BEGIN) : text.index(EQUAL_END)].splitlines() if line.startswith("|")]

    everything, chosen = rows(PERFORMANCE), rows(README)
    assert chosen[:2] == everything[:2]
    assert [tuple(row.split(" | ")[:2]) for row in chosen[2:]] == [(f"| {job}", run) for job, run in README_EQUAL]
    assert set(chosen) <= set(everything)


def test_the_table_of_the_floor_has_all_its_reads() -> None:
    """Before the first run there is no table."""
    from benchmarks.floor import CODECS, FloorRecord
    from benchmarks.report import FLOOR_BEGIN, FLOOR_END, PERFORMANCE, floor_markdown
    from benchmarks.results import Results

    text = PERFORMANCE.read_text()
    rows = [line for line in text[text.index(FLOOR_BEGIN) : text.index(FLOOR_END)].splitlines() if line.startswith("|")]
    results = Results(1, {"processor": "p", "cores": "2", "python": "3"})
    results.floor = [vars(FloorRecord("lz4", 2, 0.3, 0.125, 0.0625, 1.6, 1.5, 1.75, 1.7))]
    made = floor_markdown(results).splitlines()
    assert made[-1] == "| lz4 | 2 | 0.300 | 0.125 | 0.062 | 1.60 | 1.50 to 1.75 | 1.70 |"
    if rows:
        assert rows[:2] == made[-3:-1]
        assert [row.split(" | ")[:2] for row in rows[2:]] == [[f"| {codec}", threads] for codec in CODECS for threads in "12"]


def test_the_plots_of_the_benchmarks_show_the_tables() -> None:
    """tools/bench --publish draws each plot from the table that it writes."""
    from benchmarks.plots import ratio_plot, ratios_of_table
    from benchmarks.report import BEGIN, LARGEST_SHAPE, PERFORMANCE, RATIOS, SHAPES, SHAPES_BEGIN

    text = PERFORMANCE.read_text()
    ratios = ratios_of_table(text[text.index(BEGIN) :])
    assert len(ratios) > 40
    assert ("import", 1) in {ratio[:2] for ratio in ratios}
    assert RATIOS.read_text() == ratio_plot(ratios)
    shapes = ratios_of_table(text[text.index(SHAPES_BEGIN) :])
    assert len(shapes) > 40
    assert ("read list-int64", 1) in {ratio[:2] for ratio in shapes}
    assert SHAPES.read_text() == ratio_plot(shapes, LARGEST_SHAPE)


def test_the_plots_of_sizes_show_the_table() -> None:
    """tools/bench --publish draws the plots from the table that it writes. Before the first run there are neither."""
    from benchmarks.report import PERFORMANCE, SIZE_BEGIN, SIZE_END, SIZE_READ, SIZE_WRITE
    from benchmarks.size_plots import points_of_table, size_plot

    text = PERFORMANCE.read_text()
    points = points_of_table(text[text.index(SIZE_BEGIN) : text.index(SIZE_END)])
    assert bool(points) == SIZE_WRITE.exists() == SIZE_READ.exists() == ("size-write.svg" in text)
    if points:
        assert SIZE_WRITE.read_text() == size_plot(points, "write")
        assert SIZE_READ.read_text() == size_plot(points, "read")


def test_a_plot_of_sizes_has_a_mark_for_each_file() -> None:
    from xml.etree import ElementTree

    from benchmarks.report import size_markdown
    from benchmarks.results import Results
    from benchmarks.size_plots import points_of_table, size_plot

    results = Results(1, {"processor": "p", "python": "3"}, {"pyarrow": "1"})
    results.file_size = [
        {"table": table, "writer": writer, "bytes": 10**6 * (2 + len(writer)), "write": 0.1 * len(table), "read": 0.05}
        for table in ("taxi", "<logs>") for writer in ("fastpq", "fastpq auto", "pyarrow", "DuckDB")
    ]
    points = points_of_table(size_markdown(results))
    assert [(point.table, point.writer, point.megabytes) for point in points[:2]] == [
        ("taxi", "fastpq", 8.0), ("taxi", "fastpq auto", 13.0)
    ]
    for measure in ("write", "read"):
        picture = size_plot(points, measure)
        titles = [each.text or "" for each in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}title")]
        assert len(titles) == len(points) + 4
        assert sum("mean" in title for title in titles) == 4
        assert any(title.startswith("<logs>, fastpq auto: 13 MB") for title in titles)
        assert "prefers-color-scheme:dark" in picture


def test_the_page_of_indexes_lists_each_check() -> None:
    from fastpq.index.consistency_checks import CHECKS

    rows = "\n".join(f"| {check.part.value} | {check.claim} | {check.against} |" for check in CHECKS)
    assert f"| --- | --- | --- |\n{rows}\n\n" in (PAGES / "indexes.md").read_text()
