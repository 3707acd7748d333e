"""Categories of Polars' Enum in the metadata of an Arrow field."""

from __future__ import annotations

from fastpq.arrays.nodes import FieldNode

# Keys of Polars, of 1.32 and later first: the categories in their order, each as the length in bytes, ";", and the text.
_KEYS = (b"_PL_ENUM_VALUES2", b"_PL_ENUM_VALUES")


def enum_categories(field: FieldNode | None) -> list[str] | None:
    """The categories of a field of Polars' Enum type, in their order; None for another field, or metadata of another form.

    Args:
        field: the Arrow field of a column.
    """
    if field is None or field.dictionary is None or not field.metadata:
        return None
    packed = next((field.metadata[key] for key in _KEYS if key in field.metadata), None)
    if packed is None:
        return None
    found: list[str] = []
    while packed:
        length, mark, rest = packed.partition(b";")
        if not mark or not length.isdigit() or int(length) > len(rest):
            return None
        try:
            found.append(rest[: int(length)].decode())
        except UnicodeDecodeError:
            return None
        packed = rest[int(length) :]
    return found
