"""Columns in memory, in Arrow's layout: numbers, strings and binary, lists and structs, tables, reused memory."""
