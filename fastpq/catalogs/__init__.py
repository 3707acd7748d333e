"""Files that belong to a table of somebody else's catalog, which has their keys, field ids and deleted rows.

Each catalog has a module or a package of its own.
"""
