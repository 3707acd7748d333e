"""Results of the benchmark as tables on the console, tables and a plot in the documentation, and a chart."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from rich.console import Console
from rich.table import Table as Grid

from benchmarks.equal_work import PEERS as EQUAL_PEERS
from benchmarks.equal_work import EqualRecord
from benchmarks.floor import HEAD as FLOOR_HEAD
from benchmarks.floor import FloorRecord, row_of
from benchmarks.jobs import BY_NAME, JOBS
from benchmarks.peers import PEERS
from benchmarks.plots import ratio_plot, ratios_of_table
from benchmarks.results import Record, Results
from benchmarks.shapes import ShapeRecord
from benchmarks.shapes import markdown as shapes_markdown
from benchmarks.size_plots import points_of_table, size_plot

ROOT = Path(__file__).resolve().parent.parent
README, PERFORMANCE = ROOT / "README.md", ROOT / "docs" / "pages" / "performance.md"
RATIOS = PERFORMANCE.with_name("ratios.svg")
SHAPES = PERFORMANCE.with_name("shapes.svg")
LARGEST_SHAPE = 3.0     # ratio at the right edge of the plot of shapes
SIZE_WRITE, SIZE_READ = PERFORMANCE.with_name("size-write.svg"), PERFORMANCE.with_name("size-read.svg")
SIZE_PICTURES = """![size of files against the time to write them: left is smaller, down is quicker](size-write.svg)

![size of files against the time to read them: left is smaller, down is quicker](size-read.svg)"""
BEGIN, END = "<!-- benchmarks: written by tools/bench --publish -->", "<!-- end of benchmarks -->"
EQUAL_BEGIN, EQUAL_END = "<!-- equal work: written by tools/bench --publish -->", "<!-- end of equal work -->"
SIZE_BEGIN, SIZE_END = "<!-- file size: written by tools/bench --publish -->", "<!-- end of file size -->"
SHAPES_BEGIN, SHAPES_END = "<!-- shapes: written by tools/bench --publish -->", "<!-- end of shapes -->"
FLOOR_BEGIN, FLOOR_END = "<!-- floor: written by tools/bench --publish -->", "<!-- end of floor -->"
OURS = "fastpq"
# Jobs of equal work in README's table.
README_EQUAL = (
    ("read into Arrow: all", "in a row"),
    ("read into Polars: all", "in a row"),
    ("read into NumPy: numbers", "in a row"),
    ("read into NumPy: text", "in a row"),
    ("write from Arrow: all", "in a row"),
    ("write from Arrow chunks: all", "in a row"),
    ("write from Polars: all", "in a row"),
    ("write from NumPy: numbers", "in a row"),
)
# Jobs in README's table, with the text of their rows; measured with the largest number of threads.
README_JOBS = {
    "read-snappy-all": "read 16 columns, Snappy",
    "read-snappy-numeric": "read the 11 columns of numbers and dates",
    "read-snappy-strings": "read the 5 columns of text",
    "read-zstd-all": "read 16 columns, Zstandard",
    "read-nulls-all": "read 16 columns with nulls",
    "read-encrypted-all": "read 16 encrypted columns",
    "read-list_string": "read a column of lists of text",
    "write-zstd": "write 16 columns, Zstandard",
    "write-encrypted": "write 16 encrypted columns",
    "footer-10000-columns": "open a file of 10,000 columns",
}
README_PEERS = (OURS, "pyarrow", "polars", "duckdb")
Line: TypeAlias = tuple[str, int, dict[str, float], float | None]
Measure: TypeAlias = Callable[[Record], float]
VALUE_WIDTH = re.compile(r"(\d+)-byte values")


def thread_counts(results: Results) -> list[int]:
    return sorted({record.threads for record in results.records.values()})


def measured_peers(results: Results) -> list[str]:
    return [name for name in PEERS if any(record.peer == name for record in results.records.values())]


def seconds_of(record: Record) -> float:
    return record.best


def megabytes_of(record: Record) -> float:
    return record.memory / 1e6


def rows(results: Results, measure: Measure = seconds_of) -> list[Line]:
    """(job, threads, figures by peer, fastpq's figure over the best peer's) for each measured job and number of threads."""
    lines = []
    for job in JOBS:
        for threads in thread_counts(results):
            if not any(key[0] == job.name and key[2] == threads for key in results.records):
                continue
            records = {peer: results.record(job.name, peer, threads) for peer in measured_peers(results)}
            figures = {peer: figure for peer, record in records.items() if record and (figure := measure(record))}
            others = [figure for peer, figure in figures.items() if peer != OURS]
            ratio = figures[OURS] / min(others) if OURS in figures and others else None
            lines.append((job.name, threads, figures, ratio))
    return lines


def figures_grid(results: Results, measure: Measure, title: str, digits: int) -> Grid:
    """A figure of every job by peer, the best in bold, with the ratio and, of times, its goal."""
    goals = ["goal"] if measure is seconds_of else []
    grid = Grid("job", "threads", *measured_peers(results), "ratio", *goals, title=title)
    for column in grid.columns[1:]:
        column.justify = "right"
    grid.columns[0].no_wrap = True
    for job, threads, figures, ratio in rows(results, measure):
        best = min(figures.values(), default=0)
        cells = []
        for peer in measured_peers(results):
            text = f"{figures[peer]:.{digits}f}" if peer in figures else ""
            cells.append(f"[bold]{text}[/bold]" if figures.get(peer) == best else text)
        goal = BY_NAME[job].goal
        wanted = [f"{goal:.2f}" if goal else ""] if goals else []
        grid.add_row(job, str(threads), *cells, f"{ratio:.2f}" if ratio else "", *wanted)
    return grid


def print_tables(results: Results, console: Console) -> None:
    if results.records:
        console.print(figures_grid(results, seconds_of, f"seconds, scale factor {results.scale:g}", 3))
        console.print(figures_grid(results, megabytes_of, "memory, MB: growth of the process; all of it for processes", 0))
        console.print("ratio: fastpq's figure over the best peer's; smaller is better")
    if results.selective:
        console.print(selective_grid(results.selective))
    if results.kernels:
        kernels = Grid("kernel", "GB/s", "of memcpy", "million values/s", title="kernels, one thread")
        for name, rate in results.kernels.items():
            width = VALUE_WIDTH.search(name)
            values = f"{rate * 1000 / int(width[1]):.0f}" if width else ""
            kernels.add_row(name, f"{rate:.2f}", f"{rate / results.kernels['memcpy']:.2f}", values)
        console.print(kernels)
    if results.file_size:
        console.print(size_grid(results.file_size))
    if results.floor:
        console.print(floor_markdown(results), highlight=False)
    for what, reason in results.refused.items():
        console.print(f"[red]not timed[/red]: {what}: {reason}", highlight=False)


def lookups(found: list[dict[str, Any]]) -> tuple[list[str], dict[tuple[str, str], dict[str, str]]]:
    """Names of the peers, and milliseconds and kilobytes of each peer by job and place, as text."""
    peers = list(dict.fromkeys(lookup["peer"] for lookup in found))
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for lookup in found:
        text = f"{lookup['seconds'] * 1000:.1f} ms, {lookup['bytes_read'] / 1000:.0f} kB"
        cells.setdefault((lookup["job"], lookup["place"]), {})[lookup["peer"]] = text
    return peers, cells


def selective_grid(found: list[dict[str, Any]]) -> Grid:
    peers, cells = lookups(found)
    grid = Grid("lookup", "place", *peers, title="a few rows of a file")
    for (job, place), by_peer in cells.items():
        grid.add_row(job, place, *(by_peer.get(peer, "") for peer in peers))
    return grid


def selective_markdown(lookups_found: list[dict[str, Any]]) -> list[str]:
    peers, cells = lookups(lookups_found)
    lines = ["", f"| lookup | place | {' | '.join(peers)} |", "| --- | --- |" + " ---: |" * len(peers)]
    for (job, place), by_peer in cells.items():
        found = [by_peer.get(peer, "").replace(", ", "<br>") for peer in peers]      # two lines: the table must fit the page
        lines.append(f"| {job} | {place} | {' | '.join(found)} |")
    return lines


def markdown(results: Results) -> str:
    """All measurements as Markdown, for docs/pages/performance.md."""
    peers = measured_peers(results)
    lines = [setting(results), "", *head("job", "threads", peers=peers)]
    lines += [row(job, str(threads), peers=peers, figures=found, ratio=ratio) for job, threads, found, ratio in rows(results)]
    lines += ["", "Memory in MB: the growth of the process; of jobs that are processes, all of it.", ""]
    lines += head("job", "threads", peers=peers)
    lines += [
        row(job, str(threads), peers=peers, figures=found, ratio=ratio, digits=0)
        for job, threads, found, ratio in rows(results, megabytes_of)
        if found
    ]
    return "\n".join(lines + (selective_markdown(results.selective) if results.selective else []))


def readme_markdown(results: Results) -> str:
    """README's table: some jobs and peers, with the same figures."""
    most = max(thread_counts(results), default=0)
    found = {job: (figures, ratio) for job, threads, figures, ratio in rows(results) if threads == most}
    if missing := [job for job in README_JOBS if job not in found]:
        raise SystemExit(f"bench: README's table needs {', '.join(missing)} with {most} threads")
    lines = [
        f"Seconds; the table lineitem of TPC-H at scale factor {results.scale:g}, {results.machine['processor']}, "
        f"{most} threads. The command `tools/bench` measured them.",
        "",
        *head("job", "it does", peers=README_PEERS),
    ]
    for job, what in README_JOBS.items():
        figures, ratio = found[job]
        lines.append(row(job, what, peers=README_PEERS, figures=figures, ratio=ratio))
    return "\n".join(lines)


def setting(results: Results) -> str:
    """The sentence before the figures: machine, versions and command."""
    versions = ", ".join(f"{peer} {results.versions[peer]}" for peer in measured_peers(results) if peer in results.versions)
    machine = results.machine
    return (
        f"Seconds, the shortest of several runs; lineitem at scale factor {results.scale:g}; {machine['processor']}, "
        f"{machine['cores']} cores, Python {machine['python']}; {versions}. `tools/bench` measured, and "
        "`tools/bench --publish` wrote these tables."
    )


def head(*columns: str, peers: Sequence[str]) -> list[str]:
    """The head of a table of seconds."""
    return [
        f"| {' | '.join([*columns, *peers])} | fastpq / best peer |",
        "|" + " --- |" * len(columns) + " ---: |" * (len(peers) + 1),
    ]


def row(
    *columns: str, peers: Sequence[str], figures: dict[str, float], ratio: float | None, digits: int = 3
) -> str:
    """A row of a table of figures; the ratio is over all peers, shown or not."""
    cells = [f"{figures[peer]:.{digits}f}" if peer in figures else "" for peer in peers]
    return f"| {' | '.join([*columns, *cells])} | {f'{ratio:.2f}' if ratio else ''} |"


def publish(results: Results) -> None:
    """Put the tables that were measured between their marks in docs/pages/performance.md and README.md, and draw the plot."""
    if results.equal_work:
        put(PERFORMANCE, equal_markdown(results), EQUAL_BEGIN, EQUAL_END)
        put(README, readme_equal_markdown(results), EQUAL_BEGIN, EQUAL_END)
    if results.floor:
        put(PERFORMANCE, floor_markdown(results), FLOOR_BEGIN, FLOOR_END)
    if results.shapes:
        table = shapes_markdown([ShapeRecord(**record) for record in results.shapes])
        put(PERFORMANCE, table, SHAPES_BEGIN, SHAPES_END)
        SHAPES.write_text(ratio_plot(ratios_of_table(table), LARGEST_SHAPE))
    if results.file_size:
        table = size_markdown(results)
        put(PERFORMANCE, f"{SIZE_PICTURES}\n\n{table}", SIZE_BEGIN, SIZE_END)
        points = points_of_table(table)
        SIZE_WRITE.write_text(size_plot(points, "write"))
        SIZE_READ.write_text(size_plot(points, "read"))
    if results.records:
        tables = markdown(results)
        put(PERFORMANCE, tables, BEGIN, END)
        RATIOS.write_text(ratio_plot(ratios_of_table(tables)))
        put(README, readme_markdown(results), BEGIN, END)


def put(page: Path, tables: str, begin: str, end: str) -> None:
    """Replace the text between two marks of a page."""
    text = page.read_text()
    pattern = re.compile(f"{re.escape(begin)}.*{re.escape(end)}", re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"bench: {page.relative_to(ROOT)} has no place for the table ({begin})")
    page.write_text(pattern.sub(lambda _: f"{begin}\n\n{tables}\n\n{end}", text))


def size_rows(found: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return the writers, and a row for each table: its name, then MB and processor seconds of each writer.

    The last cell is the size with ``encoding="auto"``, divided by the smallest size of the peers.
    """
    writers = list(dict.fromkeys(record["writer"] for record in found))
    by_table: dict[str, dict[str, dict[str, Any]]] = {}
    for record in found:
        by_table.setdefault(record["table"], {})[record["writer"]] = record
    lines = []
    for table, records in by_table.items():
        cells = [f"{each['bytes'] / 1e6:.3f} MB, {each['write']:.3f} s, {each['read']:.3f} s" for each in records.values()]
        peers = [each["bytes"] for writer, each in records.items() if not writer.startswith(OURS)]
        lines.append([table, *cells, f"{records[f'{OURS} auto']['bytes'] / min(peers):.2f}"])
    return writers, lines


def size_grid(found: list[dict[str, Any]]) -> Grid:
    writers, lines = size_rows(found)
    title = "files with ZSTD: size, processor seconds to write and to read"
    grid = Grid("table", *writers, "auto / smallest peer", title=title)
    for line in lines:
        grid.add_row(*line)
    return grid


def size_markdown(results: Results) -> str:
    """The sizes and times of files that nobody tuned as Markdown, for docs/pages/performance.md."""
    writers, lines = size_rows(results.file_size)
    peers = ", ".join(f"{name} {results.versions[name]}" for name in EQUAL_PEERS if name in results.versions)
    setting = f"One thread, {results.machine['processor']}, Python {results.machine['python']}; {peers}."
    head_lines = [f"| table | {' | '.join(writers)} | auto / smallest peer |", "| --- |" + " ---: |" * (len(writers) + 1)]
    return "\n".join([setting, "", *head_lines, *(f"| {' | '.join(line)} |".replace(", ", "<br>") for line in lines)])


def equal_lines(results: Results, threads: int | None = None) -> dict[tuple[str, str, int], str]:
    """Rows of the table of equal work, by job, way of running and number of threads. None has all numbers of threads."""
    by_job: dict[tuple[str, str, int], dict[str, EqualRecord]] = {}
    for fields in results.equal_work:
        record = EqualRecord(**fields)
        if threads in (None, record.threads):
            by_job.setdefault((record.job, record.run, record.threads), {})[record.peer] = record
    lines = {}
    for (job, run, count), records in by_job.items():
        cells = [f"{records[peer].processor:.3f}" if peer in records else "" for peer in EQUAL_PEERS]
        others = [record for peer, record in records.items() if peer != OURS]
        if OURS not in records or not others:
            continue
        used = records[OURS].processor / min(record.processor for record in others)
        elapsed = records[OURS].seconds / min(record.seconds for record in others)
        lines[job, run, count] = f"| {' | '.join([job, run, str(count), *cells])} | {used:.2f} | {elapsed:.2f} |"
    return lines


def equal_head() -> list[str]:
    """The head of a table of equal work."""
    peers = " | ".join(EQUAL_PEERS)
    return [
        f"| job | run | threads | {peers} | fastpq / best peer | in elapsed time |",
        "| --- | --- | --- |" + " ---: |" * (len(EQUAL_PEERS) + 2),
    ]


def equal_markdown(results: Results) -> str:
    """All measurements of equal work as Markdown, for docs/pages/performance.md."""
    versions = ", ".join(f"{peer} {results.versions[peer]}" for peer in EQUAL_PEERS if peer in results.versions)
    machine = results.machine
    setting = (
        f"Processor seconds; lineitem at scale factor {results.scale:g}; {machine['processor']}, {machine['cores']} cores, "
        f"Python {machine['python']}; {versions}."
    )
    return "\n".join([setting, "", *equal_head(), *equal_lines(results).values()])


def floor_markdown(results: Results) -> str:
    """All distances from the floor as Markdown, for docs/pages/performance.md."""
    machine = results.machine
    setting = (
        f"Processor seconds; lineitem at scale factor {results.scale:g}; {machine['processor']}, {machine['cores']} cores, "
        f"Python {machine['python']}."
    )
    return "\n".join([setting, "", *FLOOR_HEAD, *(row_of(FloorRecord(**fields)) for fields in results.floor)])


def readme_equal_markdown(results: Results) -> str:
    """README's table of equal work: some jobs, with the smallest number of threads that they were measured with."""
    lines = equal_lines(results)
    chosen = []
    for job, run in README_EQUAL:
        counts = [count for name, way, count in lines if (name, way) == (job, run)]
        if not counts:
            raise SystemExit(f"bench: README's table of equal work needs {job}, {run}")
        chosen.append(lines[job, run, min(counts)])
    setting = f"Processor seconds; lineitem of TPC-H at scale factor {results.scale:g}, {results.machine['processor']}."
    return "\n".join([setting, "", *equal_head(), *chosen])


def draw(results: Results) -> Path | None:
    """Draw every job's time by peer for each number of threads; returns the path of the PNG, beside the JSON."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    counts = thread_counts(results)
    if not counts:
        return None
    peers = measured_peers(results)
    figure, axes = plt.subplots(1, len(counts), figsize=(7 * len(counts), 9), sharey=True, squeeze=False)
    for axis, threads in zip(axes[0], counts, strict=True):
        lines = [line for line in rows(results) if line[1] == threads]
        height = 0.8 / len(peers)
        for place, peer in enumerate(peers):
            known = [(index, seconds[peer]) for index, (_, _, seconds, _) in enumerate(lines) if peer in seconds]
            axis.barh([index + place * height for index, _ in known], [time for _, time in known], height, label=peer)
        axis.set_xscale("log")
        axis.set_yticks([index + 0.4 - height / 2 for index in range(len(lines))], [line[0] for line in lines])
        axis.set_xlabel("seconds, logarithmic; shorter is faster")
        axis.set_title(f"{threads} thread{'s' if threads > 1 else ''}")
        axis.grid(axis="x", alpha=0.3)
    axes[0][0].invert_yaxis()
    axes[0][-1].legend()
    figure.suptitle(f"lineitem, scale factor {results.scale:g}, {results.machine['processor']}")
    figure.tight_layout()
    target = results.path.with_suffix(".png")
    figure.savefig(target, dpi=110)
    plt.close(figure)
    return target
