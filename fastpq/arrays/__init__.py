"""Columns in memory, in Arrow's layout: numbers, strings and binary, lists and structs, tables, reused memory.

table has columns, flat_column a flat column, nested_columns lists and structs; column_base is their base. layouts has the values
of strings, binary and dictionaries; slices reads every layout for binary and strings. memory keeps blocks for later reads, and
allowance bounds the memory of a read.
"""
