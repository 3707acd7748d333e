"""BrowserApp: the terminal program. It holds the stack of open sheets, and the keys that open and close them."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar, NamedTuple

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.events import Event, Key, Paste
from textual.widgets import Input, Static

from fastpq.cli.browser.background_jobs import BackgroundJobs, Job
from fastpq.cli.browser.sheet import CellPlace, Fact, FactSheet, Sheet, failure_sheet
from fastpq.cli.browser.sheet_view import STYLES, SheetView
from fastpq.cli.failures import Failure, failure_of
from fastpq.cli.terminal import escape_text, shortened, width_of

MOST_SEARCHED_COLUMNS = 64      # A sheet with more columns is searched only in those in view.
KEY_GAP = "  "
HELP = "help"       # title of the sheet that lists the keys


class PromptField(Input):
    """A line of text.

    Args:
        submit: called with the text when the user presses Enter.
    """

    def __init__(self, submit: Callable[[str], None]) -> None:
        super().__init__(compact=True, select_on_focus=False)
        self._submit = submit

    def ask(self, text: str) -> None:
        """Begin with a text that is selected, so that a key replaces it."""
        self.value = text
        self.action_select_all()

    async def action_submit(self) -> None:
        """Hand over the text at once. A message would come after the keys that follow."""
        self._submit(self.value)

    def add_text(self, text: str) -> None:
        """Write a text at the cursor, instead of the selected text."""
        self.replace(text, *self.selection)


class OpenSheet(NamedTuple):
    """A sheet on the stack, and where its view was when another one was opened from it."""

    sheet: Sheet
    place: CellPlace
    top: int = 0
    first_column: int | None = None


class KeyHelp(NamedTuple):
    """A key for the line at the bottom.

    Attributes:
        action: the app's action. The key is left out while it does nothing.
        key: the key.
        label: what it does, in one word.
        meaning: what it does, in one sentence.
    """

    action: str
    key: str
    label: str
    meaning: str


KEYS = (
    KeyHelp("open", "enter", "open", "open what the cursor is on"),
    KeyHelp("close", "esc", "back", "go back to the sheet before, stop a search, or clear a message"),
    KeyHelp("search", "/", "search", "look for a text in the cells"),
    KeyHelp("repeat(1)", "n", "next", "go to the next match; N goes to the one before"),
    KeyHelp("filter", "f", "filter", "keep rows by a condition, as --where takes it: price < 2.5 and name == 'a'"),
    KeyHelp("sort", "s", "sort", "sort the rows in another way"),
    KeyHelp("probe", "p", "probe", "ask the indexes where a value may be"),
    KeyHelp("go", "g", "go to", "go to a row by its number, or to a column by letters in its name"),
    KeyHelp("sideways", "←→", "columns", "move to columns beside those in view"),
    KeyHelp("keys", "?", "keys", "list the keys"),
    KeyHelp("quit", "q", "quit", "end the program; Ctrl-C does too"),
)
OWN_ACTIONS = {each.action.partition("(")[0] for each in KEYS} - {"quit"}
MOVING_KEYS = (
    ("↑ ↓", "move by one row; k and j do too"),
    ("PgUp PgDn", "move by a page"),
    ("Home End", "go to the first or the last row"),
)
PROMPTS = {
    "search": "search",
    "filter": "filter",
    "probe": "value",
    "go": "row or column",
}


class BrowserApp(App[None]):
    """The browser for one file.

    Args:
        first_sheet: makes the first sheet.
        name: the file, which stands in the path while the first sheet is made.
    """

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { background: ansi_default; }
    #path, #keys { height: 1; width: 1fr; }
    #note { height: auto; min-height: 1; max-height: 3; width: 1fr; }
    #prompt { height: 1; display: none; }
    #prompt Static { width: auto; height: 1; }
    #prompt Input { width: 1fr; height: 1; border: none; padding: 0; background: ansi_default; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", show=False),
        Binding("end", "last_row", show=False),
        Binding("escape,backspace", "close", show=False),
        Binding("slash", "search", show=False),
        Binding("n", "repeat(1)", show=False),
        Binding("N", "repeat(-1)", show=False),
        Binding("f", "filter", show=False),
        Binding("s", "sort", show=False),
        Binding("p", "probe", show=False),
        Binding("g", "go", show=False),
        Binding("question_mark", "keys", show=False),
        Binding("q", "quit", show=False),
        Binding("ctrl+c", "quit", show=False, priority=True),
    ]

    def __init__(self, first_sheet: Callable[[], Sheet], name: str) -> None:
        super().__init__(ansi_color=True)
        self._first_sheet, self._file_name = first_sheet, name
        self.stack: list[OpenSheet] = []
        self.view = SheetView()
        self.field = PromptField(self._submit)
        self.jobs = BackgroundJobs(self.call_from_thread)
        self._searched_text = ""
        self._match: tuple[Sheet | None, CellPlace] | None = None       # where the last search ended
        self._prompt = ""
        self._task_number = 0      # the task whose result the user waits for
        self._is_waiting = self._is_loading = False
        self._word = ""     # what the program does at the moment, or what went wrong

    def compose(self) -> ComposeResult:
        """Lay out the screen."""
        yield Static(id="path")
        yield self.view
        yield Static(id="note")
        with Horizontal(id="prompt"):
            yield Static(id="question")
            yield self.field
        yield Static(id="keys")

    def on_mount(self) -> None:
        """Make the first sheet."""
        self.theme = "ansi-dark"
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.exit)
        self.view.focus()
        self._open(self._first_sheet, self._file_name, "opening…")

    # --- sheets ---------------------------------------------------------------------------------------------------------------

    @property
    def sheet(self) -> Sheet | None:
        """The sheet in view."""
        return self.view.sheet

    def _open(self, make: Callable[[], Sheet], title: str, word: str = "reading…") -> None:
        """Open a sheet that is made in the background. If it cannot be made, a sheet shows why."""
        self._begin(word, make, self._push, lambda error: self._push(failure_sheet(title, failure_of(error))))

    def _begin(
        self, word: str, work: Callable[[], Any], done: Callable[[Any], None], failed: Callable[[Exception], None]
    ) -> None:
        """Begin a task that the user waits for. Its result is dropped if the user stops waiting."""
        self._task_number += 1
        own_task, self._is_waiting, self._word = self._task_number, True, word
        self.jobs.add(Job(work, partial(self._finish, own_task, done), partial(self._finish, own_task, failed)))
        self._show_lines()

    def _finish(self, task: int, function: Callable[..., None], result: object) -> None:
        if task == self._task_number:
            self._is_waiting, self._word = False, ""
            function(result)
        self._show_lines()

    def _push(self, sheet: Sheet) -> None:
        """Show a sheet above the current one."""
        self._remember()
        self.stack.append(OpenSheet(sheet, sheet.start()))
        self._show_top()

    def _replace(self, sheet: Sheet) -> None:
        """Show a sheet instead of the current one."""
        self.stack[-1] = OpenSheet(sheet, sheet.start())
        self._show_top()

    def _remember(self) -> None:
        if self.stack:
            self.stack[-1] = OpenSheet(self.stack[-1].sheet, self.view.place, self.view.top, self.view.first_column)

    def _show_top(self) -> None:
        top = self.stack[-1]
        self.view.show_sheet(top.sheet, top.place, top.top, top.first_column)

    def on_unmount(self) -> None:
        """Let the thread end."""
        self.jobs.close()

    def on_sheet_view_changed(self) -> None:
        """Load what came into view."""
        sheet = self.sheet
        if sheet is not None and not self._is_loading and sheet.is_missing(self._rows_in_view(sheet), self.view.columns):
            self._is_loading = True
            work = partial(sheet.load, self._rows_in_view(sheet), self.view.columns)
            self.jobs.add(Job(work, partial(self._loaded, sheet), partial(self._failed_load, sheet)))
        self._show_lines()

    def _rows_in_view(self, sheet: Sheet) -> range:
        """Return the rows in view that exist, and one more if the view shows the sheet's end."""
        return range(self.view.rows.start, min(self.view.rows.stop, len(sheet)))

    def _loaded(self, sheet: Sheet, result: object) -> None:
        self._is_loading = False
        if sheet is self.sheet:
            self.view.show_changes()

    def _failed_load(self, sheet: Sheet, error: Exception) -> None:
        """Show an error that concerns the whole sheet. It is loaded again when the cursor moves."""
        self._is_loading = False
        if sheet is self.sheet:
            self._word = failure_of(error).message
            self._show_lines()

    # --- lines above and below ------------------------------------------------------------------------------------------------

    def _show_lines(self) -> None:
        """Show the path, the note and the keys."""
        if not self.is_running:
            return
        width = self.size.width
        path = " › ".join(map(escape_text, [each.sheet.title for each in self.stack] or [self._file_name]))
        self.query_one("#path", Static).update(Text(shortened(path, width, keeps_end=True), STYLES["strong"], no_wrap=True))
        self.query_one("#note", Static).update(self._note())
        self.query_one("#keys", Static).update(self._key_line(width))

    def _note(self) -> Text:
        """Return the line below the sheet: the place, the filter, and what there is to say."""
        sheet, place = self.sheet, self.view.place
        if sheet is None:       # the first one is not made yet
            return Text(self._word, STYLES["dim"])
        parts = []
        if not isinstance(sheet, FactSheet) and len(sheet) > 1:
            parts.append(f"{place.row + 1:,} of {len(sheet):,}")
        if sheet.condition:
            parts.append(f"filter: {sheet.condition}")
        message = self._word or sheet.message(*place) if place.row < len(sheet) else self._word
        style = "error" if message and not self._is_waiting else "dim"
        if not len(sheet) and not message:
            parts.append("no rows")
        elif not message:
            context = self.view.cut_match(self._searched_text) if self._match == (sheet, place) else ""
            parts += [each for each in (f"match: {context}" if context else "", sheet.note) if each]
        text = Text("  ".join(map(escape_text, parts)), STYLES["dim"])
        if message:
            text.append(("  " if parts else "") + escape_text(message), STYLES[style])
        return text

    def working_keys(self) -> Iterator[KeyHelp]:
        """Yield the keys that do something now."""
        for each in KEYS:
            name, _, rest = each.action.partition("(")
            if self.check_action(name, (rest.rstrip(")"),) if rest else ()):
                yield each

    def _key_line(self, width: int) -> Text:
        """Return the last line. What does not fit is left out, but never the keys that list all others and end the program."""
        keys = list(self.working_keys())
        while len(keys) > 2 and sum(width_of(f"{each.key} {each.label}{KEY_GAP}") for each in keys) > width + len(KEY_GAP):
            del keys[-3]
        text = Text(no_wrap=True)
        for each in keys:
            text.append(each.key, STYLES["key"])
            text.append(f" {each.label}{KEY_GAP}")
        return text

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action does something now."""
        sheet, place = self.view.sheet, self.view.place
        if sheet is None:       # the first one is not made yet
            return action not in OWN_ACTIONS
        has_rows = len(sheet) > 0
        answers = {
            "keys": lambda: sheet.title != HELP,
            "open": lambda: has_rows and not self._is_waiting and sheet.opens(*place),
            "close": lambda: len(self.stack) > 1 or bool(self._prompt or self._word),
            "search": lambda: has_rows,
            "repeat": lambda: has_rows and bool(self._searched_text),
            "filter": lambda: sheet.can_filter,
            "sort": lambda: len(sheet.orders) > 1,
            "probe": lambda: sheet.can_probe and has_rows,
            "go": lambda: sheet.can_go and has_rows,
            "sideways": lambda: self.view.has_hidden_columns,
        }
        return answers[action]() if action in answers else True

    # --- keys -----------------------------------------------------------------------------------------------------------------

    async def on_event(self, event: Event) -> None:
        """Handle keys and pasted text here, one after another.

        Textual passes them on to the widget with the focus, and handles its bindings later. If keys come in one burst, a text
        then overtakes the keys before it: Ctrl-U deletes what was typed after it.
        """
        if isinstance(event, Key) and not event.is_forwarded:
            await self._press(event)
        elif isinstance(event, Paste) and not event.is_forwarded:
            if self._prompt and event.text:
                self.field.add_text(event.text.splitlines()[0])
        else:
            await super().on_event(event)

    async def _press(self, event: Key) -> None:
        """Do what a key is bound to, or write its character into the prompt."""
        self.app_focus = True
        if self._prompt and event.is_printable and event.character:
            self.field.add_text(event.character)
        elif (active := self.screen.active_bindings.get(event.key)) is not None:
            await self.run_action(active.binding.action, active.node)

    def action_open(self) -> None:
        """Open what the cursor is on."""
        sheet, place = self.sheet, self.view.place
        if sheet is not None:
            self._open(partial(sheet.open, *place), "error")

    def action_close(self) -> None:
        """Close the prompt, stop waiting, clear a message, or close the sheet."""
        if self._prompt:
            self._close_prompt()
        elif self._word:
            self._task_number += self._is_waiting
            self._is_waiting, self._word = False, ""
        elif len(self.stack) > 1:
            self.stack.pop()
            self._show_top()
        self._show_lines()

    def action_last_row(self) -> None:
        """Go to the last row. If a filter has row groups left, it searches them before."""
        sheet = self.sheet
        if sheet is None:
            return
        if not sheet.has_more_rows:
            self.view.move_to(CellPlace(len(sheet) - 1, self.view.place.column))
            return

        def go_on(_: None) -> None:
            if sheet is self.sheet:
                self.action_last_row()

        self._begin(f"searching to the end: {sheet.note}", sheet.find_more_rows, go_on, self._say_failure)

    def action_keys(self) -> None:
        """List the keys."""
        facts = [Fact(key, meaning) for key, meaning in MOVING_KEYS]
        self._push(FactSheet(HELP, [*facts, *(Fact(each.key, each.meaning) for each in KEYS)]))

    def action_sort(self) -> None:
        """Sort the rows in the next way."""
        sheet = self.sheet
        assert sheet is not None
        order = sheet.orders[(list(sheet.orders).index(sheet.order) + 1) % len(sheet.orders)]
        self._begin("sorting…", partial(sheet.sorted_by, order), self._replace, self._say_failure)

    def action_search(self) -> None:
        """Ask for a text."""
        self._ask("search", self._searched_text)

    def action_filter(self) -> None:
        """Ask for a condition."""
        assert self.sheet is not None
        self._ask("filter", self.sheet.condition)

    def action_probe(self) -> None:
        """Ask for a value."""
        self._ask("probe", "")

    def action_go(self) -> None:
        """Ask for a row or a column."""
        self._ask("go", "")

    def action_repeat(self, step: int) -> None:
        """Go to the next match, or to the one before."""
        sheet, view = self.sheet, self.view
        assert sheet is not None
        has_few_columns = sheet.num_columns <= MOST_SEARCHED_COLUMNS
        columns = range(sheet.num_columns) if has_few_columns else view.columns
        self._search_on(sheet.search(self._searched_text, view.place, step, columns))

    def _search_on(self, places: Iterator[CellPlace | int], row: int | None = None) -> None:
        """Search some rows in the background, then the rows after them, until there is a match."""
        word = "searching…" if row is None else f"searching from row {row:,} on…"

        def take_result(result: CellPlace | int | None) -> None:
            if isinstance(result, CellPlace):
                self.view.move_to(result)
                self._match = self.sheet, self.view.place
            elif result is None:
                self._word = f"nothing has {self._searched_text!r} in it"
            else:
                self._search_on(places, result)

        self._begin(word, partial(next, places, None), take_result, self._say_failure)

    # --- prompt ---------------------------------------------------------------------------------------------------------------

    def _ask(self, prompt: str, text: str) -> None:
        self._prompt, self._word = prompt, ""
        self.query_one("#question", Static).update(Text(f"{PROMPTS[prompt]}: ", STYLES["key"]))
        self.query_one("#prompt").display = True
        self.query_one("#note").display = False
        self.field.ask(text)
        self.screen.set_focus(self.field)
        self._show_lines()

    def _close_prompt(self) -> None:
        self._prompt = ""
        self.query_one("#prompt").display = False
        self.query_one("#note").display = True
        self.screen.set_focus(self.view)

    def _submit(self, text: str) -> None:
        """Do what the prompt asked for."""
        prompt, text, sheet = self._prompt, text.strip(), self.sheet
        self._close_prompt()
        assert sheet is not None
        if prompt == "filter":
            self._begin("filtering…", partial(sheet.filtered, text), self._replace, self._say_failure)
        elif not text:
            self._show_lines()
        elif prompt == "search":
            self._searched_text = text
            self.action_repeat(1)
        elif prompt == "probe":
            self._begin("probing…", partial(sheet.probed, text, self.view.place.row), self._push, self._say_failure)
        else:
            self._go_to(sheet, text)

    def _go_to(self, sheet: Sheet, text: str) -> None:
        try:
            self.view.move_to(sheet.place_of(text, self.view.place))
        except Exception as error:
            self._say_failure(error)
        self._show_lines()

    def _say_failure(self, error: Exception) -> None:
        """Show an error below the sheet, which stays."""
        failure: Failure = failure_of(error)
        self._word = failure.message.removeprefix("--where: ")
