"""Writing: how a column is encoded, the order of rows, and the chunks of a row group."""
