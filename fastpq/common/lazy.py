"""Names and modules that are imported on first use, so that ``import fastpq`` and a plain read load little.

Several threads may look up a name at the same time. The import system loads the module once, and all get the same object.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn


def lazy_names(
    package: str, names_of: Mapping[str, Sequence[str]], advice: Callable[[str], str] = lambda name: ""
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package that looks up its names in its modules (PEP 562).

    The package's modules are attributes too, whether they were imported before or not. ``dir`` lists the names in ``__all__``.

    Args:
        package: the package's ``__name__``.
        names_of: the public names that each module defines.
        advice: returns what to use in place of an unknown name, as the end of a message, or an empty text without advice.
    """
    module_of = {name: module for module, names in names_of.items() for name in names}

    def look_up(name: str) -> Any:
        module = module_of.get(name)
        if module is not None:
            value = getattr(import_module(module), name)
            setattr(sys.modules[package], name, value)
            return value
        message = f"module {package!r} has no attribute {name!r}"
        if _is_module(package, name):
            try:
                return import_module(f"{package}.{name}")
            except Exception as error:
                from fastpq.errors import UnsupportedError

                if not isinstance(error, UnsupportedError):     # the package for an extra is not installed
                    raise
                raise AttributeError(f"{message}: {error}", name=name, obj=sys.modules[package]) from error
        suggestion = advice(name)
        if suggestion and sys._getframe(1).f_code.co_name == "_handle_fromlist":
            # ``from package import name`` would replace an AttributeError by its own ImportError, which has no advice
            raise ImportError(f"cannot import name {name!r} from {package!r}{suggestion}", name=package)
        raise AttributeError(message + suggestion, name=name, obj=sys.modules[package])

    return look_up, lambda: sorted(sys.modules[package].__all__)


def _is_module(package: str, name: str) -> bool:
    """Return whether a package has a public module that has this name.

    A folder with C headers is not a module, because its specification has no loader.
    """
    if name.startswith("_") or not name.isidentifier():
        return False
    from importlib.util import find_spec

    specification = find_spec(f"{package}.{name}")
    return specification is not None and specification.loader is not None


class _NoFunction(ModuleType):
    """A module whose name is a function's name in other libraries."""

    def __call__(self, *arguments: object, **options: object) -> NoReturn:
        from fastpq.common.foreign_names import advice_for_call

        raise TypeError(f"{self.__name__} is a module, not a function{advice_for_call(self.__name__.rpartition('.')[2])}")


def refuse_calls(module: str) -> None:
    """Make a module explain which functions there are, if somebody calls it.

    Args:
        module: module name.
    """
    sys.modules[module].__class__ = _NoFunction


class LazyModule:
    """A module that is imported when one of its attributes is first used.

    Attributes are kept. Therefore later uses cost as much as with an imported module.
    """

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self.__name__), name)
        setattr(self, name, value)
        return value


def package(name: str, purpose: str, distribution: str | None = None) -> Any:
    """Import an optional package, on which fastpq does not depend.

    Args:
        name: package name for import.
        purpose: what needs the package. It is the subject of the error message.
        distribution: package name for pip. None means the same name.

    Raises:
        UnsupportedError: the package is not installed, or is broken.
    """
    try:
        return import_module(name)
    except ImportError as error:
        from fastpq.errors import UnsupportedError

        distribution = distribution or name
        if not isinstance(error, ModuleNotFoundError):
            raise UnsupportedError(f"{purpose} needs the package {distribution}, whose import failed: {error}") from error
        raise UnsupportedError(f"{purpose} needs the package {distribution} (pip install {distribution})") from error
