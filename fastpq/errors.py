"""Error classes of fastpq, one for each meaning."""

from __future__ import annotations

from typing import Any, Self


class ParquetError(Exception):
    """Base class of all errors raised deliberately by fastpq.

    Args:
        message: the problem.
        **context: place of the problem: any of ``path``, ``row_group``, ``column``, ``page``, ``module``, ``offset``.
    """

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
