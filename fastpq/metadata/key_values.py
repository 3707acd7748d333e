"""Key-value metadata of a file as texts by key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property


class KeyValues(Mapping[str, str]):
    """Texts by key, decoded on first use; keys without a value are left out.

    Args:
        stored: gives the texts of a footer.
        hidden: a key left out.
    """

    def __init__(self, stored: Callable[[], Mapping[str, str | None]], hidden: str) -> None:
        self._stored = stored
        self._hidden = hidden

    @cached_property
    def _texts(self) -> dict[str, str]:
        return {key: value for key, value in self._stored().items() if value is not None and key != self._hidden}

    def __getitem__(self, key: str) -> str:
        return self._texts[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def __repr__(self) -> str:
        return repr(self._texts)
