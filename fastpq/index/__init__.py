"""Indexes of column chunks: page indexes (ColumnIndex, OffsetIndex), bloom filters, and RowRanges, sets of rows.

page_index reads page indexes, written_pages makes them, page_locations has their loops. bloom_filter is a filter in memory,
bloom_format a filter in a file. claims collects all claims about a chunk, and contradictions finds the refuted ones.
"""
