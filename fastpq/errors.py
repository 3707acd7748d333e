"""Error classes of fastpq, one for each meaning."""

from __future__ import annotations

from typing import Any, Self

HIDDEN = "(hidden)"     # stands in a message for a value from an encrypted file


class ParquetError(Exception):
    """Base class of all errors that fastpq raises on purpose.

    Args:
        message: what is wrong.
        **context: where it is wrong: any of ``path``, ``row_group``, ``column``, ``page``, ``module``, ``offset``.
    """

    _values: tuple[str, ...] = ()
    ORDER = ("path", "row_group", "column", "page", "module", "offset")

    def __init__(self, message: str, **context: Any) -> None:
        super().__init__(message)
        self.message = message
        self.context = {key: value for key, value in context.items() if value is not None}

    def at(self, **context: Any) -> Self:
        """Add to the context, which says where the error is. Entries that are there already stay.

        Args:
            **context: any of ``path``, ``row_group``, ``column``, ``page``, ``module``, ``offset``.
        """
        for key, value in context.items():
            if value is not None:
                self.context.setdefault(key, value)
        return self

    def __str__(self) -> str:
        keys = [key for key in self.ORDER if key in self.context]
        where = ", ".join(f"{key.replace('_', ' ')} {self.context[key]}" for key in keys)
        return f"{self.message} [{where}]" if where else self.message

    def showing(self, *values: object) -> Self:
        """Note which column values stand in the message, for ``hide_values``.

        Args:
            *values: the values. Each must stand in the message as ``str`` prints it.
        """
        self._values += tuple(map(str, values))
        return self

    def hide_values(self) -> None:
        """Replace the column values in the message by ``(hidden)``. Writers of encrypted files call this."""
        for value in sorted(filter(None, self._values), key=len, reverse=True):
            self.message = self.message.replace(value, HIDDEN)
        self.args = (self.message,)
        if isinstance(self.__cause__, UnicodeError):        # it shows a part of the value
            self.__cause__ = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.context)


def _rebuild(kind: type[ParquetError], message: str, context: dict[str, Any]) -> ParquetError:
    return kind(message, **context)


class FormatError(ParquetError, ValueError):
    """The bytes break the specification."""


class UnsupportedError(ParquetError, NotImplementedError):
    """The Parquet is valid, but fastpq does not support it, or this installation does not."""


class LimitError(ParquetError, MemoryError):
    """A bound of ReaderProperties or WriterProperties was reached."""


class SchemaError(ParquetError, ValueError):
    """A request or a value from the caller does not fit the schema."""


class RemoteError(ParquetError, OSError):
    """A server refused a request, could not be reached, broke off its answer, or sent other bytes than the requested ones.

    ``__cause__`` is the filesystem's error, if there is one.
    """


class CryptoError(ParquetError):
    """Encryption or decryption failed."""


class TagVerificationError(CryptoError):
    """A module is not authentic: the key or the AAD is wrong, or bytes were altered."""


class KeyAccessError(CryptoError):
    """There is no key for a module.

    Attributes:
        is_denied: whether the reader lacks the key: the caller did not give it, or the key service refused it.
        is_unavailable: whether the key service gave no answer, or none in time. The same call may succeed later.
    """

    is_denied = False
    is_unavailable = False

    @classmethod
    def denied(cls, message: str, **context: Any) -> Self:
        """Return an error that says that the reader lacks the key.

        Args:
            message: what is wrong.
            **context: where it is wrong, as for the class.
        """
        error = cls(message, **context)
        error.is_denied = True
        return error

    def __reduce__(self) -> tuple[Any, ...]:
        return *super().__reduce__(), {"is_denied": self.is_denied, "is_unavailable": self.is_unavailable}
