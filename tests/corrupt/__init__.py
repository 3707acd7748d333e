"""Mutated files: the reader must answer with a table or a typed error, in bounded time and memory."""
