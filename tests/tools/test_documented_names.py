"""tools/documented_names: names in docstrings that the code does not have."""

from __future__ import annotations

from pathlib import Path

from tools import documented_names

PYTHON = '''
class Window(NamedTuple):
    """A window.

    Attributes:
        first, last: its rows.
        color: its color,
            with a note: the paint.
    """

    first: int
    end: int

    @property
    def color(self): ...


class Child(Window):
    """A child.

    Attributes:
        anything: may be inherited.
    """


class Maker:
    """A maker.

    Args:
        tool: its tool.
        metal: what it is made of.

    Attributes:
        made: a number.
    """

    def __init__(self, tool, *, material):
        self.made = 0

    async def run(self, *items, **options):
        """Run.

        Args:
            *items: the items.
            **options: the options.
            speed: the speed.

        Returns:
            nothing: at all.
        """
'''


def test_a_name_that_the_code_lacks_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "example.py"
    path.write_text(PYTHON)
    messages = [message.partition(": ")[2] for message in documented_names.wrong_names(path)]
    assert messages == [
        "Window has no 'last', which its docstring documents",
        "Maker has no 'metal', which its docstring documents",
        "run has no 'speed', which its docstring documents",
    ]


def test_the_package_documents_what_it_has() -> None:
    assert documented_names.messages() == []
