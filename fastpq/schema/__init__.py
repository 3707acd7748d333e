"""Schemas: the tree of groups and columns with its levels; physical, logical and nested types; their NumPy and Arrow types.

parquet_schema builds the tree (nodes in ``tree``) from SchemaElements; elements makes SchemaElements for a new file. types and
nested_types describe columns, and logical converts annotations. shape finds the lists, maps and structs of the tree.
"""
