"""PromptField: the line in which the user answers a prompt."""

from __future__ import annotations

from collections.abc import Callable

from textual.widgets import Input


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
