"""KeyValues: a footer's key-value metadata as a mapping."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from functools import cached_property


class KeyValues(Mapping[str, str]):
    """Key-value metadata, decoded on first use. Keys without a value are left out.

    Args:
        decode: function that returns a footer's key-value metadata.
        hidden_keys: keys that are left out too.
    """

    def __init__(self, decode: Callable[[], Mapping[str, str | None]], hidden_keys: Set[str]) -> None:
        self._decode = decode
        self._hidden_keys = hidden_keys

    @cached_property
    def _texts(self) -> dict[str, str]:
        return {key: value for key, value in self._decode().items() if value is not None and key not in self._hidden_keys}

    def __getitem__(self, key: str) -> str:
        return self._texts[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def __repr__(self) -> str:
        return repr(self._texts)
