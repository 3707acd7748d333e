"""Schemas: the tree of groups and columns with its levels, and the physical, logical and nested types.

parquet_schema builds the tree from SchemaElements, and tree has its nodes. elements makes a new file's SchemaElements. types and
nested_types describe columns, with their types in NumPy and Arrow. logical converts annotations. shape finds the lists, maps and
structs in the tree. variant_group checks VARIANT and FILE groups.
"""

from typing import TYPE_CHECKING

from fastpq.common.lazy import lazy_names

if TYPE_CHECKING:
    from fastpq.schema.nested_types import DataType, ListType, MapType, StructType
    from fastpq.schema.shape import LeafShape, ListShape, Shape, StructShape, shape_of
    from fastpq.schema.tree import GroupNode, SchemaNode

__all__ = [
    "DataType",
    "GroupNode",
    "LeafShape",
    "ListShape",
    "ListType",
    "MapType",
    "SchemaNode",
    "Shape",
    "StructShape",
    "StructType",
    "shape_of",
]

# The names that each module defines. The module is imported when one of them is first used.
_NAMES_OF = {
    "fastpq.schema.nested_types": ("DataType", "ListType", "MapType", "StructType"),
    "fastpq.schema.shape": ("LeafShape", "ListShape", "Shape", "StructShape", "shape_of"),
    "fastpq.schema.tree": ("GroupNode", "SchemaNode"),
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _NAMES_OF)
