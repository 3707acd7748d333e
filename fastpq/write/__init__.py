"""Writing: how a column is encoded, the order of rows, chunks and row groups, and the footer."""
