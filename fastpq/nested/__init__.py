"""Nested columns: their shape, in memory, and to and from the levels of their leaves."""
