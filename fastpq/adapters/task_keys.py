"""TaskKeys: how the processes of an engine get keys. A pickle of it holds at most the name of a function."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, TypeAlias

from fastpq.datasets.keys_of_files import DatasetDecryption
from fastpq.encryption.properties import FileDecryptionProperties
from fastpq.encryption.tracebacks import hides_arguments
from fastpq.errors import KeyAccessError, SchemaError, UnsupportedError

TaskDecryption: TypeAlias = DatasetDecryption | str


class TaskKeys:
    """Keys of a dataset's files, for this process, or for others by the name of a function.

    Args:
        decryption: keys, or a function that returns the keys for a file's path, or the name ``"package.module:function"`` of such
            a function. None for files without keys.

    Raises:
        SchemaError: a text that is not such a name. It is not shown, because it may be a key.
        TypeError: the argument is none of these.
    """

    __slots__ = ("_decryption", "_name")

    @hides_arguments
    def __init__(self, decryption: TaskDecryption = None) -> None:
        self._decryption: DatasetDecryption = None
        self._name: str | None = None
        if isinstance(decryption, str):
            module, _, function = decryption.partition(":")
            if not all(part.isidentifier() for part in [*module.split("."), *function.split(".")]):
                raise SchemaError(
                    'decryption_properties as text must be the name of a function, as "package.module:function", that takes the '
                    "path of a file and returns its FileDecryptionProperties"
                )
            self._name = decryption
        elif decryption is None or isinstance(decryption, FileDecryptionProperties) or callable(decryption):
            self._decryption = decryption
        else:
            raise TypeError(
                "decryption_properties must be FileDecryptionProperties, a function of a file's path, or the name of one, not a "
                f"{type(decryption).__name__}"
            )

    @property
    def decryption(self) -> DatasetDecryption:
        """The keys, or a function that returns the keys for a path. A function that has a name is imported now.

        Raises:
            KeyAccessError: the function cannot be imported in this process.
        """
        return self._decryption if self._name is None else _function_of(self._name)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the name of a function.

        Raises:
            UnsupportedError: there are keys, or a function that another process cannot import.
        """
        name = self._name or _name_of(self._decryption)
        if self._decryption is not None and name is None:
            raise UnsupportedError(
                "the tasks of this plan go to other processes, and keys never enter a task: pass decryption_properties as the "
                'name of a function, "package.module:function". It takes the path of a file and returns its '
                "FileDecryptionProperties. Each process imports its module, so that it cannot be in a script or a notebook"
            )
        return (TaskKeys, (name,))

    def __repr__(self) -> str:
        return f"<TaskKeys: {'no keys' if self._name is None and self._decryption is None else self._name or 'keys'}>"


def _name_of(decryption: DatasetDecryption) -> str | None:
    """Return the name by which another process can import a function, or None."""
    module, function = getattr(decryption, "__module__", None), getattr(decryption, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(function, str) or module == "__main__":
        return None
    member: Any = sys.modules.get(module)
    for part in function.split("."):
        member = getattr(member, part, None)
    return f"{module}:{function}" if member is decryption else None


def _function_of(name: str) -> Any:
    """Import a function by its name.

    Raises:
        KeyAccessError: this process does not have it.
    """
    module, _, function = name.partition(":")
    try:
        member: Any = import_module(module)
        for part in function.split("."):
            member = getattr(member, part)
    except (ImportError, AttributeError) as error:
        raise KeyAccessError(
            f"the function {name}, which decryption_properties names, cannot be imported in this process "
            f"({type(error).__name__}): install its module wherever tasks run"
        ) from error
    if not callable(member):
        raise KeyAccessError(f"{name}, which decryption_properties names, is not a function")
    return member
