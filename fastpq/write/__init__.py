"""Writing: tables become column chunks, row groups and a footer.

file_writer takes the tables. spec says how each column is written; sampling and choice choose its encoding. sorting orders the
rows, chunks encodes each column chunk in memory, on several threads by parallel_chunks, and row_groups writes the chunks' indexes
and the footer.
"""

from fastpq.common.lazy import refuse_calls

refuse_calls(__name__)
