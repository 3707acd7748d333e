"""The schema tree, its leaf columns and their levels, logical types, and the types of values in NumPy and Arrow."""
