"""Plots of the measurements, as SVG for docs/pages/performance.md: fastpq's time over the best peer's, by job and threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TypeAlias

# job, threads, fastpq's figure over the best peer's
Ratio: TypeAlias = tuple[str, int, float]

LABELS, WIDTH, LINE, TOP, MARGIN = 190, 460, 17, 46, 16     # units of the drawing
LARGEST = 1.2       # ratio at the right edge, unless the plot has another; larger ones stand there
STYLE = (
    "text{fill:#1f2328;font:11px system-ui,-apple-system,'Segoe UI',sans-serif}.m{fill:#59636e}.e{text-anchor:end}"
    ".c{text-anchor:middle}path{stroke:#d0d7de}.z{stroke:#b3470c;stroke-width:1.5}.t0{fill:#8fb5da}.t1{fill:#1f5fa8}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.m{fill:#9198a1}path{stroke:#3d444d}.z{stroke:#f0883e}"
    ".t0{fill:#3f7fb8}.t1{fill:#a9d0f7}}"
)


def ratio_plot(ratios: Sequence[Ratio], largest: float = LARGEST) -> str:
    """Return the plot: a line for each job, and a dot for the smallest and the largest number of threads.

    Args:
        ratios: job, threads and ratio of each dot.
        largest: ratio at the right edge; larger ones stand there.
    """
    jobs = list(dict.fromkeys(job for job, _, _ in ratios))
    height = TOP + LINE * len(jobs) + MARGIN
    text = f"fastpq's time divided by the time of the best peer, for {len(jobs)} jobs"
    body = "\n".join(_shapes(jobs, ratios, height, largest))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LABELS + WIDTH + 2 * MARGIN} {height}" role="img" '
        f'aria-label="{escape(text)}">\n<style>{STYLE}</style>\n{body}\n</svg>\n'
    )


def _shapes(jobs: list[str], ratios: Sequence[Ratio], height: int, largest: float) -> Iterator[str]:
    counts = sorted({threads for _, threads, _ in ratios})
    ends = dict.fromkeys((counts[0], counts[-1]))
    for place, threads in enumerate(ends):
        x = MARGIN + 12 + 100 * place
        name = "1 thread" if threads == 1 else f"{threads} threads"
        yield f'<circle class="t{min(place, 1)}" cx="{x}" cy="14" r="4.5"/><text x="{x + 10}" y="18">{name}</text>'
    step = 0.25 if largest <= LARGEST else 0.5
    for tick in (step * number for number in range(int(largest / step) + 1)):
        x = _x(tick, largest)
        css_class = ' class="z"' if tick == 1 else ""
        yield f'<path{css_class} d="M{x} {TOP - 6}V{height - MARGIN + 4}"/>'
        label = "best peer" if tick == 1 else f"{tick:g}"
        yield f'<text class="m c" x="{x}" y="{TOP - 12}">{label}</text>'
    for row, job in enumerate(jobs):
        middle = TOP + LINE * row + LINE // 2
        yield f'<text class="e" x="{MARGIN + LABELS - 10}" y="{middle + 4}">{escape(job)}</text>'
        for place, threads in enumerate(ends):
            for ratio in (ratio for name, count, ratio in ratios if (name, count) == (job, threads)):
                title = f"{job}, {threads} threads: {ratio:.2f}"
                circle = f'<circle class="t{min(place, 1)}" cx="{_x(ratio, largest)}" cy="{middle}" r="4.5">'
                yield f"{circle}<title>{escape(title)}</title></circle>"


def _x(ratio: float, largest: float) -> int:
    return MARGIN + LABELS + round(WIDTH * min(ratio, largest) / largest)


def ratios_of_table(markdown: str) -> list[Ratio]:
    """Return the ratios of the first table in a Markdown text. Its columns begin with job and threads, and end with the ratio."""
    ratios: list[Ratio] = []
    for line in markdown.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if ratios and not line.startswith("|"):
            break
        if line.startswith("|") and cells[1].isdecimal() and cells[-1]:
            ratios.append((cells[0], int(cells[1]), float(cells[-1])))
    return ratios
