"""JSON schemas of the command's output, made from the TypedDict classes that the verbs fill."""

from __future__ import annotations

import inspect
import re
import types
import typing
from typing import Any, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def json_schema_of(facts: type[Any]) -> dict[str, Any]:
    """Return the JSON schema for a TypedDict class, with all classes in it."""
    definitions: dict[str, Any] = {}
    schema = {"$schema": DIALECT, "title": facts.__name__, **_object_schema(facts, definitions)}
    if definitions:
        schema["$defs"] = definitions
    return schema


def members_of(facts: type[Any]) -> dict[str, str]:
    """Return each member of a TypedDict class with its description, from the section ``Attributes`` of the docstring."""
    section = inspect.cleandoc(facts.__doc__ or "").partition("Attributes:\n")[2]
    descriptions = re.findall(r"^    ([\w, ]+): (.*(?:\n        .*)*)", section, re.MULTILINE)
    texts = {name.strip(): re.sub(r"\s+", " ", text) for names, text in descriptions for name in names.split(",")}
    return {name: texts.get(name, "") for name in get_type_hints(facts, localns=_lazy_classes())}


def _lazy_classes() -> dict[str, Any]:
    """Return the classes that verbs name in their facts, and do not import because they have to start quickly."""
    from fastpq.cli.file_facts import EncryptionFacts

    return {"EncryptionFacts": EncryptionFacts}


def _object_schema(facts: type[Any], definitions: dict[str, Any]) -> dict[str, Any]:
    descriptions = members_of(facts)
    optional = {
        name
        for name, hint in get_type_hints(facts, localns=_lazy_classes(), include_extras=True).items()
        if get_origin(hint) is NotRequired
    }
    properties = {name: _schema(hint, definitions) for name, hint in get_type_hints(facts, localns=_lazy_classes()).items()}
    for name, description in descriptions.items():
        if description:
            properties[name] = {**properties[name], "description": description}
    return {
        "type": "object",
        "description": inspect.cleandoc(facts.__doc__ or "").partition("\n")[0],
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def _schema(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    if hint is Any:
        return {}
    if hint in _SIMPLE:
        return {"type": _SIMPLE[hint]}
    if is_typeddict(hint):
        if hint.__name__ not in definitions:
            definitions[hint.__name__] = {}  # a class may hold itself
            definitions[hint.__name__] = _object_schema(hint, definitions)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return {"anyOf": [_schema(argument, definitions) for argument in arguments]}
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin is list:
        return {"type": "array", "items": _schema(arguments[0], definitions)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(arguments[1], definitions)}
    raise TypeError(f"{hint!r} has no JSON schema")
