"""Filtered reads: evidence first rules rows out, then the values decide about the rows that are left.

row_evidence defines the interface that each kind of evidence implements, and holds the rows that are left. Each kind has its own
file: statistics_evidence, bloom_filter_evidence, page_index_evidence and dictionary_evidence. row_selector asks them, the
cheapest first. filtered_scan reads the rows that are left. explain shows what the evidence said.
"""
