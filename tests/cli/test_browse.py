"""The verb browse: every sheet, the keys, search, filter, encrypted and damaged files, hostile names, large files.

The sheets are tested through textual's pilot, which presses keys in a program without a terminal.
"""

from __future__ import annotations

import asyncio
import os
import pty
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import fastpq
from fastpq.cli.browser.browsed_file import BrowsedFile
from fastpq.cli.browser.chunk_sheets import GroupChunksSheet
from fastpq.cli.browser.file_sheets import file_sheet
from fastpq.cli.browser.sheet import FactSheet, Sheet, TextSheet
from fastpq.cli.browser.value_sheets import FilteredSheet
from fastpq.cli.failures import CommandFailure
from fastpq.cli.key_sources import KeySource
from fastpq.cli.verb import Session
from fastpq.cli.verbs.browse import browsed_file
from tests.cli.running import FOOTER_KEY, PRICE_KEY, Runner, keys_as_json
from tests.requirements import needs, peer

if TYPE_CHECKING:
    from fastpq.cli.browser.browser_app import BrowserApp

needs(peer("textual"))

SIZES = [(80, 24), (200, 50)]


class Pilot:
    """A program whose keys a test presses, and whose lines it reads.

    Args:
        app: the program.
        pilot: textual's pilot.
    """

    def __init__(self, app: BrowserApp, pilot: Any) -> None:
        self.app, self._pilot = app, pilot

    async def settle(self) -> None:
        """Wait until nothing is read any more."""
        await self._pilot.pause()
        while self.app.jobs.is_busy:
            await asyncio.sleep(0.001)
            await self._pilot.pause()

    async def press(self, *keys: str) -> None:
        """Press keys, and wait after each."""
        for key in keys:
            await self._pilot.press(key)
            await self.settle()

    async def burst(self, *keys: str, paste: str = "") -> None:
        """Press keys, then paste a text, and wait only after all of them."""
        from textual.events import Key, Paste

        for key in keys:
            self.app.post_message(Key(key, key if len(key) == 1 else None))
        if paste:
            self.app.post_message(Paste(paste))
        await self.settle()

    @property
    def prompt(self) -> str:
        """The text in the prompt."""
        return self.app.field.value

    async def type(self, text: str) -> None:
        """Type a text into the prompt, and press Enter."""
        from textual.widgets import Input

        self.app.query_one(Input).value = text
        await self.press("enter")

    async def go(self, label: str) -> None:
        """Open the sheet behind a line of facts."""
        sheet = self.app.sheet
        assert isinstance(sheet, FactSheet)
        row = next(row for row in range(len(sheet)) if self.cell(row, 0) == label)
        self.app.view.move_to(self.app.view.place._replace(row=row))
        await self.press("enter")

    def cell(self, row: int, column: int) -> str:
        """Return a cell's text."""
        assert self.app.sheet is not None
        part = self.app.sheet.cell(row, column)
        return part if isinstance(part, str) else part.text

    def row(self, row: int) -> list[str]:
        """Return the cells of a row."""
        assert self.app.sheet is not None
        return [self.cell(row, column) for column in range(self.app.sheet.num_columns)]

    @property
    def path(self) -> list[str]:
        """Titles of the open sheets."""
        return [each.sheet.title for each in self.app.stack]

    @property
    def lines(self) -> list[str]:
        """The lines on the screen."""
        width = self.app.size.width
        strips = self.app.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip).ljust(width) for strip in strips]

    @property
    def note(self) -> str:
        """The line below the sheet."""
        return self.app._note().plain

    @property
    def keys(self) -> set[str]:
        """The keys that the last line names."""
        return {each.key for each in self.app.working_keys()}


Steps = Callable[[Pilot], Awaitable[None]]


def browse(browsed: BrowsedFile, steps: Steps, size: tuple[int, int] = (80, 24)) -> None:
    """Open a file in the program and do some steps. An error in the program fails the test."""

    from fastpq.cli.browser.browser_app import BrowserApp

    async def run() -> BrowserApp:
        app = BrowserApp(partial(file_sheet, browsed), browsed.name)
        async with app.run_test(size=size) as textual_pilot:
            pilot = Pilot(app, textual_pilot)
            await pilot.settle()
            await steps(pilot)
        return app

    thread = asyncio.run(run()).jobs.close()
    browsed.close()
    assert thread is not None
    thread.join(60)
    assert not thread.is_alive()


def opened(path: Path | str, **options: Any) -> BrowsedFile:
    """Return a file without keys."""
    return BrowsedFile(fastpq.ParquetFile(path, **options), str(path), str(path))


@pytest.mark.parametrize("size", SIZES)
def test_every_sheet_opens_and_closes(in_examples: Path, size: tuple[int, int]) -> None:
    """Every sheet is opened in two sizes, down to the last one. No line is wider than the terminal."""
    seen: set[tuple[str, str]] = set()

    async def walk(pilot: Pilot) -> None:
        sheet = pilot.app.sheet
        assert sheet is not None
        lines = pilot.lines
        assert len(lines) == size[1]
        assert max(map(len, lines)) == size[0]
        assert "error" not in pilot.path, pilot.lines
        for row in range(len(sheet)) if isinstance(sheet, FactSheet | GroupChunksSheet) else [0]:
            if sheet.opens(row, sheet.start().column):
                pilot.app.view.move_to(sheet.start()._replace(row=row))
                await pilot.press("enter")
                if (name := (type(pilot.app.sheet).__name__, pilot.path[-1])) not in seen:
                    seen.add(name)
                    await walk(pilot)
                await pilot.press("escape")
                assert pilot.app.sheet is sheet
                assert pilot.app.view.place.row == row

    browse(opened("items.parquet"), walk, size)
    assert {
        "FactSheet", "ValueSheet", "SchemaSheet", "ColumnSheet", "RowGroupSheet", "IndexSheet", "KeyValueSheet", "ByteKindSheet",
        "ByteSpanSheet", "GroupChunksSheet", "ColumnChunksSheet", "PageSheet", "PageIndexSheet", "DictionarySheet", "TextSheet",
        "BloomFilterSheet",
    } <= {name for name, _ in seen}


def test_values_are_those_of_the_file(in_examples: Path) -> None:
    table = fastpq.read_table("items.parquet")

    async def steps(pilot: Pilot) -> None:
        await pilot.go("values")
        assert pilot.row(3) == ["3", *(str(table[name].to_pylist()[3]) for name in table.names)]
        await pilot.press("end")
        assert pilot.cell(99_999, 1) == "99999"
        assert "100,000 of 100,000" in pilot.note
        await pilot.press("home", "right", "enter")
        assert pilot.path[-1] == "price of row 0"
        assert pilot.cell(0, 0) == str(table["price"].to_pylist()[0])
        await pilot.press("escape", "g")
        await pilot.type("70,000")
        assert pilot.app.view.place == (70_000, 2)
        assert pilot.cell(70_000, 1) == "70000"
        await pilot.press("g")
        await pilot.type("USER")
        assert pilot.app.view.place == (70_000, 4)
        await pilot.press("g")
        await pilot.type("100000")
        assert "the last row is 99,999" in pilot.note
        await pilot.press("g")
        await pilot.type("nothing")
        assert "no column has 'nothing'" in pilot.note

    browsed = opened("items.parquet")
    browse(browsed, steps)


def test_only_the_rows_in_view_are_read(tmp_path: Path) -> None:
    path = tmp_path / "long.parquet"
    fastpq.write_table({f"c{number}": np.arange(400_000) for number in range(4)}, path, data_page_rows=2000, use_dictionary=False)
    browsed = opened(path, memory_map=False)

    async def steps(pilot: Pilot) -> None:
        await pilot.go("values")
        await pilot.press("pagedown", "end")

    browse(browsed, steps)
    assert browsed.file.io.bytes_read < path.stat().st_size / 10


def test_only_keys_that_work_are_shown(in_examples: Path) -> None:
    async def steps(pilot: Pilot) -> None:
        assert pilot.keys == {"enter", "/", "?", "q"}
        await pilot.go("values")
        assert pilot.keys == {"enter", "esc", "/", "f", "g", "?", "q"}
        await pilot.press("s", "p")      # they do nothing here
        assert pilot.path == ["items.parquet", "values"]
        await pilot.press("escape")
        await pilot.go("columns")
        assert {"s", "←→"} < pilot.keys
        assert "f" not in pilot.keys
        assert all(f"{key} " in pilot.lines[-1] for key in pilot.keys)
        await pilot.press("question_mark")
        assert pilot.path[-1] == "help"
        assert "?" not in pilot.keys
        await pilot.press("escape", "escape")
        await pilot.go("encryption")     # it opens nothing
        assert pilot.path == ["items.parquet"]
        await pilot._pilot.press("q")
        assert not pilot.app.is_running

    browse(opened("items.parquet"), steps)


def test_search_goes_forwards_backwards_and_around(in_examples: Path) -> None:
    async def steps(pilot: Pilot) -> None:
        await pilot.go("values")
        await pilot.press("slash")
        await pilot.type("4-04-09")
        assert pilot.app.view.place == (99_000, 5)
        await pilot.press("n")
        assert pilot.app.view.place == (99_001, 5)
        await pilot.press("N", "N")
        assert pilot.app.view.place == (99_999, 5)      # around the end
        await pilot.press("slash")
        await pilot.type("DDDD")
        assert pilot.cell(*pilot.app.view.place) == "dddd"
        assert pilot.app.view.place.row < 10
        await pilot.press("slash")
        await pilot.type("no such text")
        assert "nothing has 'no such text' in it" in pilot.note
        await pilot.press("slash", "escape", "escape")
        assert pilot.path == ["items.parquet"]
        await pilot.press("slash")
        await pilot.type("bloom")
        assert pilot.cell(pilot.app.view.place.row, 0) == "indexes"

    browse(opened("items.parquet"), steps)


def test_a_search_can_be_stopped(tmp_path: Path) -> None:
    path = tmp_path / "long.parquet"
    fastpq.write_table({"a": np.arange(2_000_000)}, path)

    async def steps(pilot: Pilot) -> None:
        await pilot.go("values")
        await pilot._pilot.press("slash", "x", "enter")
        while "searching from row" not in pilot.note:
            await asyncio.sleep(0.01)
        assert "esc" in pilot.keys
        await pilot.press("escape")
        assert pilot.path == ["long.parquet", "values"]
        assert "searching" not in pilot.note

    browse(opened(path), steps)


def test_a_filter_keeps_matching_rows(in_examples: Path) -> None:
    table = fastpq.read_table("items.parquet", filters=[("price", "<", 0.5)])

    async def steps(pilot: Pilot) -> None:
        await pilot.go("values")
        await pilot.press("f")
        await pilot.type("price < 0.5")
        await pilot.press("end", "end")
        sheet = pilot.app.sheet
        assert sheet is not None
        assert len(sheet) == table.num_rows
        assert f"{table.num_rows} rows match" in pilot.note
        assert "filter: price < 0.5" in pilot.note
        last = table.num_rows - 1
        assert pilot.row(last)[1:] == [str(table[name].to_pylist()[last]) for name in table.names]
        await pilot.press("enter")
        assert pilot.path[-1] == f"id of row {table['id'].to_pylist()[last]:,}"
        await pilot.press("escape", "f")
        await pilot.type("price <")
        assert "a value is expected" in pilot.note
        assert len(sheet) == table.num_rows
        await pilot.press("f")
        await pilot.type("wrong == 1")
        assert "there is no column 'wrong'" in pilot.note
        await pilot.press("f")
        await pilot.type("price < -1")
        assert "no rows" in pilot.note
        assert "enter" not in pilot.keys
        await pilot.press("f")
        await pilot.type("")
        assert pilot.app.sheet is not None
        assert len(pilot.app.sheet) == 100_000

    browse(opened("items.parquet"), steps)


def test_a_filter_searches_row_groups_when_their_rows_come_into_view(tmp_path: Path) -> None:
    path = tmp_path / "groups.parquet"
    fastpq.write_table({"a": np.arange(30_000) % 1000}, path, row_group_size=1000)

    async def steps(pilot: Pilot) -> None:
        await pilot.go("values")
        await pilot.press("f")
        await pilot.type("a < 10")
        assert "row groups to search" in pilot.note
        sheet = pilot.app.sheet
        assert sheet is not None
        while "to search" in pilot.note:
            await pilot.press("end")
        assert len(sheet) == 300
        assert pilot.row(299) == ["29,009", "9"]

    browse(opened(path), steps)


def test_keys_in_one_burst_do_what_they_do_one_by_one(in_examples: Path) -> None:
    async def steps(pilot: Pilot) -> None:
        await pilot.go("values")
        await pilot.burst("f", *"old", "ctrl+u", *"new")
        assert pilot.prompt == "new"
        await pilot.burst("backspace", "z", "home", "a", "right", "b")
        assert pilot.prompt == "anbez"
        await pilot.burst("ctrl+u", "ctrl+k", paste="id == 70000\nsecond line")
        assert pilot.prompt == "id == 70000"
        await pilot.burst("enter", "down", "up")
        assert pilot.row(0)[:2] == ["70,000", "70000"]
        await pilot.burst("f", "ctrl+u", *"id", "escape", "right")
        assert pilot.app.view.place == (0, 2)
        await pilot.burst("g", "3", "enter", "f", "ctrl+u", "enter")
        assert pilot.app.sheet is not None
        assert len(pilot.app.sheet) == 100_000
        await pilot.burst(paste="no prompt is open")
        assert pilot.path[-1] == "values"

    browse(opened("items.parquet"), steps)


def test_escape_clears_an_error_before_it_goes_back(in_examples: Path) -> None:
    async def steps(pilot: Pilot) -> None:
        await pilot.go("values")
        await pilot.press("f")
        await pilot.type("price <")
        assert "a value is expected" in pilot.note
        await pilot.press("escape")
        assert pilot.path == ["items.parquet", "values"]
        assert "a value is expected" not in pilot.note
        await pilot.press("escape", "slash")
        await pilot.type("no such text")
        assert "esc" in pilot.keys      # on the first sheet, too
        await pilot.press("escape")
        assert "no such text" not in pilot.note
        assert "esc" not in pilot.keys

    browse(opened("items.parquet"), steps)


def test_one_row_matches(in_examples: Path) -> None:
    async def steps(pilot: Pilot) -> None:
        await pilot.go("values")
        await pilot.press("f")
        await pilot.type("id == 70000")
        await pilot.press("end")
        assert "1 row matches" in pilot.note

    browse(opened("items.parquet"), steps)


def test_end_searches_all_row_groups_under_a_filter(tmp_path: Path) -> None:
    path = tmp_path / "groups.parquet"
    fastpq.write_table({"a": np.arange(30_000) % 1000}, path, row_group_size=1000)

    async def steps(pilot: Pilot) -> None:
        await pilot.go("values")
        await pilot.press("f")
        await pilot.type("a < 10")
        sheet = pilot.app.sheet
        assert sheet is not None
        await pilot.press("end")
        assert pilot.app.view.place.row == 299
        assert pilot.row(299) == ["29,009", "9"]
        assert "300 of 300" in pilot.note
        assert "300 rows match" in pilot.note

    browse(opened(path), steps)


def test_the_way_to_the_end_can_be_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "groups.parquet"
    fastpq.write_table({"a": np.arange(30_000) % 1000}, path, row_group_size=100)
    find = FilteredSheet.find_more_rows

    def find_slowly(sheet: FilteredSheet) -> None:
        time.sleep(0.01)
        find(sheet)

    monkeypatch.setattr(FilteredSheet, "find_more_rows", find_slowly)

    async def steps(pilot: Pilot) -> None:
        await pilot.go("values")
        await pilot.press("f")
        await pilot.type("a < 10")
        pilot.app.simulate_key("end")
        while "searching to the end: " not in pilot.note:
            await asyncio.sleep(0.001)
        assert "row groups to search" in pilot.note
        await pilot.press("escape")
        assert pilot.path == ["groups.parquet", "values"]
        assert "searching" not in pilot.note
        assert "row groups to search" in pilot.note
        await pilot.press("end")
        assert pilot.row(pilot.app.view.place.row) == ["29,009", "9"]

    browse(opened(path), steps)


def test_a_match_that_is_cut_off_is_shown_below(tmp_path: Path) -> None:
    path = tmp_path / "long.parquet"
    texts = ["short needle", "x" * 60 + " before the Needle after " + "y" * 60, "z" * 100]
    fastpq.write_table({"text": texts}, path)

    async def steps(pilot: Pilot) -> None:
        await pilot.go("values")
        await pilot.press("slash")
        await pilot.type("needle")
        assert pilot.app.view.place == (1, 1)
        assert "match: …xxxxxxxx before the Needle after yyyyyyyyyyyyy…" in pilot.note
        assert "before the Needle after" in "".join(pilot.lines)
        await pilot.press("n")
        assert pilot.app.view.place == (0, 1)
        assert "match:" not in pilot.note       # the cell shows it
        await pilot.press("n")
        assert "match:" in pilot.note
        await pilot.press("down")
        assert "match:" not in pilot.note

    browse(opened(path), steps)


def test_row_groups_under_a_filter_tell_why(in_examples: Path) -> None:
    async def steps(pilot: Pilot) -> None:
        await pilot.go("row groups")
        await pilot.press("f")
        await pilot.type("id == 70000")
        assert pilot.row(0)[1] == "dropped"
        assert pilot.row(1)[1] == "kept"
        assert "reads 1 of 2 row groups" in pilot.note
        await pilot.press("enter")
        assert "statistics" in [pilot.cell(row, 0) for row in range(4)]
        await pilot.press("escape", "f")
        await pilot.type("")
        assert pilot.row(0)[1] == "50,000"

    browse(opened("items.parquet"), steps)


def test_columns_are_sorted(in_examples: Path) -> None:
    async def steps(pilot: Pilot) -> None:
        await pilot.go("columns")
        assert pilot.cell(0, 0) == "id"
        await pilot.press("s")
        assert [pilot.cell(row, 0) for row in range(5)] == ["user", "price", "id", "name", "day"]
        await pilot.press("s")
        assert pilot.cell(0, 0) == "id"
        await pilot.press("s")
        assert [pilot.cell(row, 0) for row in range(5)] == ["day", "id", "name", "price", "user"]

    browse(opened("items.parquet"), steps)


def test_indexes_are_probed(in_examples: Path) -> None:
    async def steps(pilot: Pilot) -> None:
        await pilot.go("indexes")
        await pilot.press("down", "down", "down", "p")
        await pilot.type("12345")
        assert pilot.path[-1] == "user == 12345"
        assert [pilot.row(group)[1] for group in range(2)] == ["dropped", "dropped"]
        await pilot.press("escape", "p")
        await pilot.type("text")
        assert "'text' is not a value of the column 'user'" in pilot.note

    browse(opened("items.parquet"), steps)


def test_bytes_add_up_to_the_file(in_examples: Path) -> None:
    async def steps(pilot: Pilot) -> None:
        await pilot.go("bytes")
        sheet = pilot.app.sheet
        assert sheet is not None
        sizes = [int(pilot.cell(row, 1).replace(",", "")) for row in range(len(sheet))]
        assert sum(sizes[:-1]) == sizes[-1] == Path("items.parquet").stat().st_size

    browse(opened("items.parquet"), steps)


def session_for(place: str, patch: pytest.MonkeyPatch, **keys: str) -> BrowsedFile:
    for name, value in keys.items():
        patch.setenv(name, value)
    return browsed_file(Session(False, KeySource()), place)


def test_an_encrypted_footer_without_a_key_tells_what_can_be_told(in_examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def steps(pilot: Pilot) -> None:
        text = "\n".join(pilot.lines)
        assert "there is no key for the footer" in text
        await pilot.go("encryption")
        assert "AES_GCM_V1" in "\n".join(pilot.lines)
        assert "kf" in "\n".join(pilot.lines)
        await pilot.go("keys")
        assert pilot.row(0)[:3] == ["footer", "footer key", "kf"]
        await pilot.press("escape", "escape")
        await pilot.go("bytes")
        assert "sealed: no key" in [pilot.cell(row, 0) for row in range(3)]

    browse(session_for("sealed.parquet", monkeypatch), steps)


def test_a_missing_column_key_closes_one_column(in_examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def steps(pilot: Pilot) -> None:
        await pilot.go("values")
        assert pilot.row(5)[1:4] == ["5", "no key", "bb"]
        await pilot.press("right")
        assert "there is no key for it" in pilot.note
        await pilot.press("enter")
        assert pilot.path[-1] == "error"
        assert "--keyring, --kms or FASTPQ_KEYS" in " ".join(" ".join(pilot.lines).split())
        await pilot.press("escape", "f")
        await pilot.type("price < 1")
        assert "there is no key for it" in pilot.note
        await pilot.press("escape", "escape")
        await pilot.go("row groups")
        await pilot.press("f")
        await pilot.type("id < 1")
        assert pilot.row(0)[1] == "kept"
        await pilot.press("escape")
        for label in ("columns", "indexes"):
            await pilot.go(label)
            assert {"no key", "error"} & {*pilot.row(1)}
            await pilot.press("down")
            assert "key" in pilot.note
            await pilot.press("escape")

    browse(session_for("secret.parquet", monkeypatch, FASTPQ_KEYS=keys_as_json(FOOTER_KEY)), steps)


def test_with_keys_an_encrypted_file_is_as_open_as_a_plain_one(in_examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def steps(pilot: Pilot) -> None:
        await pilot.go("values")
        assert pilot.row(1)[2] == "95.05"
        await pilot.press("f")
        await pilot.type("price < 1")
        assert float(pilot.row(0)[2]) < 1
        await pilot.press("escape")
        await pilot.go("columns")
        await pilot.press("down", "enter")
        await pilot.go("chunks")
        await pilot.press("enter")
        await pilot.go("pages")
        assert "data" in pilot.row(1)

    browse(session_for("secret.parquet", monkeypatch, FASTPQ_KEYS=keys_as_json(price=PRICE_KEY)), steps)


def test_with_keys_an_encrypted_footer_is_not_hidden(in_examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def steps(pilot: Pilot) -> None:
        await pilot.go("encryption")
        text = " ".join("\n".join(pilot.lines).split())
        assert "listed in the encrypted footer, which a key has opened" in text
        assert "hidden" not in text
        await pilot.go("keys")
        assert [pilot.row(row)[:2] for row in range(6)] == [
            ["footer", "footer key"], ["id", "footer key"], ["price", "own key"], ["name", "footer key"], ["user", "footer key"],
            ["day", "footer key"],
        ]

    browse(session_for("secret.parquet", monkeypatch, FASTPQ_KEYS=keys_as_json(price=PRICE_KEY)), steps)


def test_a_wrong_key_is_an_error_before_the_program_begins(in_examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(fastpq.TagVerificationError):
        session_for("secret.parquet", monkeypatch, FASTPQ_KEYS=keys_as_json(b"9" * 16))


def test_a_flipped_bit_shows_in_its_column(in_examples: Path) -> None:
    async def steps(pilot: Pilot) -> None:
        await pilot.go("values")
        assert pilot.row(0)[1:3] == ["error", "51.18"]
        assert "CRC-32 does not match" in pilot.note
        await pilot.press("g")
        await pilot.type("20000")       # the next page is sound
        assert pilot.row(20_000)[1] == "20000"
        await pilot.press("home", "enter")
        assert pilot.path[-1] == "error"
        assert "fastpq recover" in "\n".join(pilot.lines)

    browse(opened("damaged.parquet"), steps)


def test_broken_bytes_anywhere_never_end_the_program(in_examples: Path, tmp_path: Path) -> None:
    """One byte in each part of the file is another one. Each sheet then shows values or an error."""
    data = Path("items.parquet").read_bytes()
    browsed = opened("items.parquet")
    owners = browsed.byte_map
    browsed.close()
    for kind in sorted({*owners.kinds.tolist()}):
        span = int(np.flatnonzero(owners.kinds == kind)[0])
        place = int(owners.starts[span]) + int(owners.lengths[span]) // 2
        path = tmp_path / f"broken-{kind}.parquet"
        path.write_bytes(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :])
        try:
            broken = opened(path)
        except fastpq.ParquetError:
            continue

        async def steps(pilot: Pilot) -> None:
            if pilot.cell(0, 0) == "error":     # the footer is broken, and the first sheet says so
                return
            for label in ("values", "columns", "indexes", "bytes"):
                await pilot.go(label)
                await pilot.press("enter", "enter", "enter")
                while len(pilot.path) > 1:
                    await pilot.press("escape")
                assert pilot.app.is_running

        browse(broken, steps)


def test_hostile_names_and_values_are_escaped(tmp_path: Path) -> None:
    name, value = "a\x1b]0;owned\x07[bold]", "[red]\x1b[2J\u202e[/]\n"
    path = tmp_path / "evil.parquet"
    fastpq.write_table({name: np.array([value])}, path, key_value_metadata={"\x1b[bold]k": "\x1bv[/]"})

    async def steps(pilot: Pilot) -> None:
        for label in ("values", "schema", "columns", "row groups", "indexes", "key-values", "bytes"):
            await pilot.go(label)
            for _ in range(3):
                assert not set("".join(pilot.lines)) & {"\x1b", "\x07", "\u202e", "\x9b", "\n"}, label
                await pilot.press("enter")
            while len(pilot.path) > 1:
                await pilot.press("escape")
        await pilot.go("values")
        assert "[red]\\x1b[2J\\u202e[/]\\n" in "\n".join(pilot.lines)
        assert "a\\x1b]0;owned\\x07[bold]" in "\n".join(pilot.lines)
        await pilot.press("f")
        await pilot.type("\x1b[red] == 1")
        assert "\x1b" not in "".join(pilot.lines)

    browse(opened(path), steps)


def test_nested_and_large_values_open_whole(tmp_path: Path) -> None:
    path = tmp_path / "nested.parquet"
    text = "long " * 10_000
    fastpq.write_table(
        {"list": [[1, 2, None], [*range(1000)]], "text": [text, "a\nb"], "bytes": [bytes(range(40)), None]}, path
    )

    async def steps(pilot: Pilot) -> None:
        await pilot.go("values")
        assert pilot.row(0)[1] == "[1, 2, null]"
        assert pilot.row(1)[1].endswith("1,000 items]")
        assert len(pilot.row(0)[2]) < 400
        await pilot.press("down", "enter")
        assert pilot.cell(999, 0).strip() == "998,"
        await pilot.press("escape", "right", "enter")
        assert [pilot.cell(row, 0) for row in range(2)] == ["a", "b"]
        await pilot.press("escape", "up", "enter")
        sheet = pilot.app.sheet
        assert isinstance(sheet, TextSheet)
        assert " ".join(pilot.cell(row, 0) for row in range(len(sheet))).split() == text.split()
        await pilot.press("escape", "right", "enter")
        assert pilot.cell(0, 0).startswith("00000000  00 01 02")
        await pilot.press("escape", "down")
        assert pilot.row(1)[3] == "null"

    browse(opened(path), steps)


def test_keys_before_the_first_sheet_do_nothing(in_examples: Path) -> None:
    """A slow server may take seconds to give the footer."""
    from fastpq.cli.browser.browser_app import BrowserApp

    released = threading.Event()
    viewed_file = opened("items.parquet")

    def first_sheet() -> Sheet:
        released.wait()
        return file_sheet(viewed_file)

    async def run() -> None:
        app = BrowserApp(first_sheet, "items.parquet")
        async with app.run_test() as textual_pilot:
            keys = ("down", "end", "pageup", "right", "enter", "escape", "slash", "n", "f", "s", "p", "g", "question_mark")
            await textual_pilot.press(*keys)
            pilot = Pilot(app, textual_pilot)
            assert pilot.lines[0].strip() == "items.parquet"
            assert "opening…" in "".join(pilot.lines)
            released.set()
            await pilot.settle()
            await pilot.go("values")
            assert pilot.row(1)[1] == "1"

    asyncio.run(run())
    viewed_file.close()


def test_an_empty_file_opens(tmp_path: Path) -> None:
    path = tmp_path / "empty.parquet"
    fastpq.write_table({"a": np.empty(0, np.int64)}, path)

    async def steps(pilot: Pilot) -> None:
        for label in ("values", "columns", "row groups", "indexes"):
            await pilot.go(label)
            assert pilot.path[-1] == label
            await pilot.press("down", "end", "right", "enter")
            while len(pilot.path) > 1:
                await pilot.press("escape")
        assert pilot.path == ["empty.parquet"]

    browse(opened(path), steps)


def test_small_terminals_and_resizing(in_examples: Path) -> None:
    async def steps(pilot: Pilot) -> None:
        await pilot.go("values")
        await pilot.press("right", "right", "right", "right")
        assert "2024-01-01" in "".join(pilot.lines)     # the cursor's column comes into view
        await pilot._pilot.resize_terminal(100, 30)
        await pilot.settle()
        assert len(pilot.lines[0]) == 100
        assert pilot.lines[-1].strip().endswith("q quit")

    browse(opened("items.parquet"), steps, (40, 10))


def test_without_a_terminal_it_is_an_error(command: Runner, in_examples: Path) -> None:
    code, out, err = command("browse", "items.parquet")
    assert (code, out) == (2, "")
    assert "browse needs a terminal" in err
    assert "fastpq inspect items.parquet" in err


def test_one_file_is_needed(in_examples: Path) -> None:
    for place in ("folder", "folder/*.parquet", "-"):
        with pytest.raises(CommandFailure):
            browsed_file(Session(False, KeySource()), place)


def test_no_other_verb_imports_textual(in_examples: Path) -> None:
    program = "import sys; from fastpq.cli.program import run_command; run_command(sys.argv[1:]); "
    program += "print([name for name in sys.modules if name.partition('.')[0] == 'textual'], file=sys.stderr)"
    for arguments in (["--help"], ["meta", "items.parquet"], ["inspect", "items.parquet"], ["browse", "--help"]):
        result = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
        assert result.stderr == "[]\n"


def run_in_terminal(arguments: list[str], keys: bytes, **environment: str) -> tuple[int, bytes]:
    """Run the command in a pseudo terminal, press keys, and return the exit code and all output."""
    parent, child = pty.openpty()
    variables = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24", **environment}
    line = [sys.executable, "-m", "fastpq", *arguments]
    process = subprocess.Popen(line, stdin=child, stdout=child, stderr=child, env=variables, start_new_session=True)
    os.close(child)
    output = b""
    deadline = time.monotonic() + 60
    pressed = False
    while time.monotonic() < deadline:
        try:
            output += os.read(parent, 65536)
        except OSError:     # the program has ended
            break
        if not pressed and b"quit" in output:
            os.write(parent, keys)
            pressed = True
    os.close(parent)
    return process.wait(timeout=60), output


@pytest.mark.parametrize("keys", [b"q", b"\x03"], ids=["q", "ctrl-c"])
def test_it_ends_cleanly(keys: bytes, in_examples: Path) -> None:
    code, output = run_in_terminal(["browse", "items.parquet"], keys)
    assert code == 0
    assert b"Traceback" not in output
    assert output.rstrip().endswith((b"\x1b[?1049l\x1b[?25h", b"h", b"l"))      # the screen before it is back
    assert b"\x1b[?1049l" in output


def test_it_says_at_once_what_it_opens(in_examples: Path) -> None:
    _, output = run_in_terminal(["browse", "items.parquet"], b"q")
    assert output.startswith("opening items.parquet…\r\x1b[K".encode())


def test_no_color_has_no_colours(in_examples: Path) -> None:
    """Bold and reverse stay, which are no colours."""
    _, output = run_in_terminal(["browse", "items.parquet"], b"q", NO_COLOR="1")
    import re

    codes = {code for found in re.findall(rb"\x1b\[([\d;]*)m", output) for code in found.split(b";")}
    assert codes <= {b"", b"0", b"1", b"2", b"3", b"4", b"7", b"22", b"24", b"27", b"39", b"49"}, codes


@pytest.fixture(scope="module")
def large_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with 50,000 columns, and one with 30,000 column chunks."""
    folder = tmp_path_factory.mktemp("large")
    fastpq.write_table({f"column_{number}": [number] for number in range(50_000)}, folder / "wide.parquet")
    columns = {f"c{number}": np.arange(3000) for number in range(10)}
    fastpq.write_table(columns, folder / "chunks.parquet", row_group_size=1)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wide", "chunks"])
def test_large_files_open_within_a_second(name: str, large_files: Path) -> None:
    """Processor time from the key to the drawn sheet, in the program's thread. Facts about every chunk follow from another."""

    async def steps(pilot: Pilot) -> None:
        for row, label in enumerate(("values", "schema", "columns", "row groups", "indexes")):
            assert pilot.cell(row, 0) == label
            pilot.app.view.move_to(pilot.app.view.place._replace(row=row))
            start = time.thread_time()
            await pilot._pilot.press("enter")
            while len(pilot.path) < 2:
                await asyncio.sleep(0.001)
            assert time.thread_time() - start < 1, label
            await pilot.settle()
            await pilot.press("end", "escape")

    start = time.thread_time()
    viewed_file = opened(large_files / f"{name}.parquet")
    file_sheet(viewed_file)
    assert time.thread_time() - start < 1
    browse(viewed_file, steps)
