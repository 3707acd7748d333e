"""The screenshots of the documentation: the verbs inspect, layout and browse over a file that this tool makes.

python -m tools.screenshots [FOLDER]        write screenshot-*.svg, into docs/pages unless a folder is named
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

import fastpq

PAGES = Path(__file__).resolve().parent.parent / "docs" / "pages"
NAME = "items.parquet"
ROWS = 100_000
WIDTH, HEIGHT = 92, 22      # of the terminal, in characters
CONDITION = "price < 2.5 and name == 'bb'"
# Grey on dark, like a terminal, which reads well on light and dark pages.
THEME = TerminalTheme(
    (22, 27, 34),
    (209, 215, 224),
    [
        (33, 38, 45), (255, 123, 114), (86, 211, 100), (227, 179, 65), (121, 192, 255), (210, 168, 255), (118, 227, 234),
        (209, 215, 224),
    ],
)
# The format of rich without its title and its fonts, which a browser would load from elsewhere.
FORMAT = """<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font: {char_height}px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre; }}
.{unique_id}-title {{ font: 18px system-ui, sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def write_file(folder: Path) -> None:
    """Write the file that the screenshots show."""
    random = np.random.default_rng(1)
    table = {
        "id": np.arange(ROWS),
        "price": np.round(random.random(ROWS) * 100, 2),
        "name": np.array(["a", "bb", "ccc", "dddd"])[random.integers(0, 4, ROWS)],
        "user": random.integers(0, 10**12, ROWS),
        "day": np.array("2024-01-01", "M8[D]") + np.arange(ROWS) // 1000,
    }
    options: Any = {"compression": "zstd", "row_group_size": 50_000, "key_value_metadata": {"owner": "sales"}}
    fastpq.write_table(table, folder / NAME, bloom_filter={"user": True}, **options)


@contextlib.contextmanager
def terminal() -> Iterator[Any]:
    """Catch what a command prints, with the colours and the width of a terminal."""
    from unittest import mock

    stream = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    variables = {"FORCE_COLOR": "1", "COLUMNS": str(WIDTH), "NO_COLOR": "", "TERM": "xterm-256color"}
    with mock.patch.dict(os.environ, variables), contextlib.redirect_stdout(stream):
        yield stream


def screenshot(lines: Sequence[Text], title: str) -> str:
    """Return lines of a terminal as SVG."""
    console = Console(width=WIDTH, file=io.StringIO(), record=True, force_terminal=True, color_system="truecolor")
    for line in lines:
        console.print(line, no_wrap=True, overflow="crop", highlight=False)
    return console.export_svg(title=title, theme=THEME, code_format=FORMAT, unique_id=title.split()[1])


def command_screenshot(*arguments: str) -> str:
    """Return what a command prints as SVG."""
    from fastpq.cli.program import run_command

    with terminal() as stream:
        code = run_command([*arguments])
    if code:
        raise SystemExit(f"fastpq {' '.join(arguments)} ended with {code}")
    printed_text = stream.buffer.getvalue().decode()
    return screenshot([Text.from_ansi(line) for line in printed_text.splitlines()], f"fastpq {' '.join(arguments)}")


async def browser_screenshot() -> str:
    """Return the browser with filtered values as SVG."""
    from textual.widgets import Input

    from fastpq.cli.browser.browsed_file import BrowsedFile
    from fastpq.cli.browser.browser_app import BrowserApp
    from fastpq.cli.browser.file_sheets import file_sheet

    viewed_file = BrowsedFile(fastpq.ParquetFile(NAME), NAME, NAME)
    app = BrowserApp(partial(file_sheet, viewed_file), NAME)
    async with app.run_test(size=(WIDTH, HEIGHT)) as pilot:

        async def press(key: str) -> None:
            await pilot.press(key)
            await pilot.pause()
            while app.jobs.is_busy:
                await asyncio.sleep(0.01)
                await pilot.pause()

        await press("enter")
        await press("f")
        app.query_one(Input).value = CONDITION
        for key in ("enter", "down", "down", "down", "right"):
            await press(key)
        lines = [Text.assemble(*((each.text, each.style or "") for each in strip)) for strip in _strips(app)]
    viewed_file.close()
    return screenshot(lines, f"fastpq browse {NAME}")


def _strips(app: Any) -> Any:
    return app.screen._compositor.render_strips()


def screenshots() -> dict[str, str]:
    """Return each picture by its file name. The working folder has the file that they show."""
    with fastpq.ParquetFile(NAME) as file:
        layout = file.layout([("id", "<", 12_000)], ["price"]).to_svg("pruning")
    return {
        "screenshot-inspect.svg": command_screenshot("inspect", NAME),
        "screenshot-layout.svg": layout + "\n",
        "screenshot-browse.svg": asyncio.run(browser_screenshot()),
    }


def main() -> int:
    """Write the screenshots."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=PAGES, help="where to write (default: docs/pages)")
    target = parser.parse_args().folder.resolve()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        write_file(Path(folder))
        for name, text in screenshots().items():
            (target / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
