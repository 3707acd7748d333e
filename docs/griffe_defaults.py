"""For the API reference: a default that is a named constant is shown as the value of the constant."""

from __future__ import annotations

from typing import Any

import griffe

PREFIX = "DEFAULT_"


class NamedDefaults(griffe.Extension):
    """Replaces ``size: int = DEFAULT_SIZE`` by ``size: int = 64 * 1024``."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Before the parameters of dataclasses are made of their attributes."""
        self._replace(pkg)

    def _replace(self, object_: griffe.Object) -> None:
        for member in object_.members.values():
            if member.is_alias:
                continue
            if isinstance(member, griffe.Function):
                for parameter in member.parameters:
                    parameter.default = _value(parameter.default, member)
            elif isinstance(member, griffe.Attribute) and object_.is_class:
                member.value = _value(member.value, member)
            if isinstance(member, griffe.Class | griffe.Module):
                self._replace(member)


def _value(default: Any, where: griffe.Object) -> Any:
    """The value of a constant, alone or as the default of a dataclass's field; anything else as it is."""
    if isinstance(default, griffe.ExprCall):
        for argument in default.arguments:
            if isinstance(argument, griffe.ExprKeyword) and argument.name == "default":
                argument.value = _value(argument.value, where)
        return default
    if not isinstance(default, griffe.ExprName) or not default.name.startswith(PREFIX):
        return default
    constant = where.module.modules_collection[where.module.resolve(default.name)]
    return constant.final_target.value if constant.is_alias else constant.value
