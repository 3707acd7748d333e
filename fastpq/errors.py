"""Error classes of fastpq, one for each meaning."""

from __future__ import annotations

from typing import Any, Self

HIDDEN = "(hidden)"     # in messages, in the place of a value of an encrypted file


class ParquetError(Exception):
    """Base class of all errors raised deliberately by fastpq.

    Args:
        message: the problem.
        **context: place of the problem: any of ``path``, ``row_group``, ``column``, ``page``, ``module``, ``offset``.
    """

    _values: tuple[str, ...] = ()
    ORDER = ("path", "row_group", "column", "page", "module", "offset")

    def __init__(self, message: str, **context: Any) -> None:
        super().__init__(message)
        self.message = message
        self.context = {key: value for key, value in context.items() if value is not None}

    def at(self, **context: Any) -> Self:
        """Add parts to the context of the error, the place of the problem; parts already known stay.

        Args:
            **context: any of ``path``, ``row_group``, ``column``, ``page``, ``module``, ``offset``.
        """
        for key, value in context.items():
            if value is not None:
                self.context.setdefault(key, value)
        return self

    def __str__(self) -> str:
        known = [key for key in self.ORDER if key in self.context]
        where = ", ".join(f"{key.replace('_', ' ')} {self.context[key]}" for key in known)
        return f"{self.message} [{where}]" if where else self.message

    def showing(self, *values: object) -> Self:
        """Note values of a column whose texts are in the message: writers of encrypted files hide them.

        Args:
            *values: the values, in the form in which the message has them by ``str``.
        """
        self._values += tuple(map(str, values))
        return self

    def hide_values(self) -> None:
        """Replace the values noted by ``showing``, since they are values of an encrypted file."""
        for value in sorted(filter(None, self._values), key=len, reverse=True):
            self.message = self.message.replace(value, HIDDEN)
        self.args = (self.message,)
        if isinstance(self.__cause__, UnicodeError):        # shows a part of the value
            self.__cause__ = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.context)


def _rebuild(kind: type[ParquetError], message: str, context: dict[str, Any]) -> ParquetError:
    return kind(message, **context)


class FormatError(ParquetError, ValueError):
    """The bytes break the specification."""


class UnsupportedError(ParquetError, NotImplementedError):
    """Valid Parquet beyond the abilities of fastpq, or of this installation."""


class LimitError(ParquetError, MemoryError):
    """A bound of ReaderProperties or WriterProperties was reached."""


class SchemaError(ParquetError, ValueError):
    """A request or value of the caller does not fit the schema."""


class RemoteError(ParquetError, OSError):
    """A server refused a request, was out of reach, or broke off its answer; ``__cause__`` is the error of the filesystem."""


class CryptoError(ParquetError):
    """Encryption or decryption failed."""


class TagVerificationError(CryptoError):
    """A module did not authenticate: wrong key, wrong AAD, or altered bytes."""


class KeyAccessError(CryptoError):
    """The key of a module is not available."""
