"""Indexes of column chunks: page indexes (ColumnIndex, OffsetIndex) and bloom filters. RowRanges are the row sets they lead to.

page_index reads page indexes, written_pages makes them, and page_locations has their loops. bloom_filter is a filter in memory,
bloom_format a filter in a file. chunk_claims collects all claims about a chunk, and consistency_checks finds the refuted ones.
"""
