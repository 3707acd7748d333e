"""Names and modules imported on first use: ``import fastpq`` and a plain read load little.

Threads may look up one name at the same time: the import system loads the module once, and all find the same object.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn


def lazy_names(
    package: str, module_of: Mapping[str, str], advice: Callable[[str], str] = lambda name: ""
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a package whose names are looked up in its modules (PEP 562).

    Modules of the package are attributes, too, imported before or not.

    Args:
        package: the package's ``__name__``.
        module_of: defining module of each public name.
        advice: what to use in the place of an unknown name, as the end of a message; empty without advice.
    """

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

                if not isinstance(error, UnsupportedError):     # a package of an extra is not installed
                    raise
                raise AttributeError(f"{message}: {error}", name=name, obj=sys.modules[package]) from error
        advised = advice(name)
        if advised and sys._getframe(1).f_code.co_name == "_handle_fromlist":
            # ``from package import name`` takes an AttributeError for an ImportError of its own, without the advice
            raise ImportError(f"cannot import name {name!r} from {package!r}{advised}", name=package)
        raise AttributeError(message + advised, name=name, obj=sys.modules[package])

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *module_of})

    return look_up, names


def _is_module(package: str, name: str) -> bool:
    """Whether a package has a public module of a name. Folders of headers do not count: their specifications have no loader."""
    if name.startswith("_") or not name.isidentifier():
        return False
    from importlib.util import find_spec

    specification = find_spec(f"{package}.{name}")
    return specification is not None and specification.loader is not None


class _NoFunction(ModuleType):
    """A module of a name that other libraries give to a function."""

    def __call__(self, *arguments: object, **options: object) -> NoReturn:
        from fastpq.common.foreign_names import advice_for_call

        raise TypeError(f"{self.__name__} is a module, no function{advice_for_call(self.__name__.rpartition('.')[2])}")


def refuse_calls(module: str) -> None:
    """Let the error of a call of a module say which functions there are.

    Args:
        module: name of the module.
    """
    sys.modules[module].__class__ = _NoFunction


class LazyModule:
    """A module, imported at the first use of an attribute.

    Attributes are kept after the first look-up: later uses cost as much as with an imported module.
    """

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self.__name__), name)
        setattr(self, name, value)
        return value


def package(name: str, purpose: str) -> Any:
    """Import an optional package, no dependency of fastpq.

    Args:
        name: name of the package, for import and for pip.
        purpose: subject of the message.

    Raises:
        UnsupportedError: the package is not installed.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        from fastpq.errors import UnsupportedError

        raise UnsupportedError(f"{purpose} needs the package {name} (pip install {name})") from error
