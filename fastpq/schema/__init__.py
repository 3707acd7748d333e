"""Schemas: the tree of groups and columns with its levels; physical, logical and nested types; their NumPy and Arrow types."""
