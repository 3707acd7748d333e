"""Writing: tables become column chunks, row groups and a footer.

file_writer takes the tables. spec says how each column is written; sampling and choice choose its encoding. sorting orders the
rows, chunks and encoded_chunk encode each column chunk in memory, and row_groups places the chunks and writes the footer.
"""

from fastpq.common.lazy import refuse_calls

refuse_calls(__name__)
