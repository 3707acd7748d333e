"""Indexes of column chunks: page indexes (ColumnIndex, OffsetIndex), bloom filters, and RowRanges, sets of rows."""
